//! Budgets, batches, and what is in flight.

use super::ends::Link;
use rdma::{Direction, ErrorKind};

/// A full queue is told, with the buffer, and polling makes room.
#[test]
fn a_full_queue_is_told() {
    let link = Link::open();
    let [mut a, mut b] = link.connect(|builder| builder.requests(4));
    for token in 0..4 {
        b.post_recv(64, token);
    }
    let buffer = b.region.buffer(64).unwrap();
    let error = b.queue_pair.post_recv(buffer, 4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QueueFull);
    let buffer = error.into_memory().unwrap();
    a.post_send(b"one", 0);
    b.success();
    b.queue_pair.post_recv(buffer, 4).unwrap();
}

#[test]
fn batches() {
    let link = Link::open();
    let [mut a, mut b] = link.connect(|builder| builder.requests(16));
    let mut batch = b.queue_pair.receive_batch::<16>();
    for token in 0..16 {
        batch.push(b.region.buffer(64).unwrap(), token).unwrap();
    }
    batch.submit().unwrap();
    let mut batch = a.queue_pair.send_batch::<16>();
    for token in 0..16_u64 {
        let mut buffer = a.region.buffer(8).unwrap();
        buffer.copy_from_slice(&token.to_le_bytes());
        batch.push(buffer, .., token).unwrap();
    }
    batch.submit().unwrap();
    for token in 0..16_u64 {
        assert_eq!(b.success().bytes(), token.to_le_bytes());
        assert_eq!(a.success().token(), token);
    }
}

/// Sends without a signal come back with the signaled one behind them.
#[test]
fn unsignaled_sends() {
    let link = Link::open();
    let [mut a, mut b] = link.connect(|builder| builder.requests(8));
    for token in 0..8 {
        b.post_recv(64, token);
    }
    for token in 0..7 {
        let buffer = a.filled(b"quiet");
        a.queue_pair.post_send_unsignaled(buffer, .., token).unwrap();
    }
    a.post_send(b"loud", 7);
    let mut tokens: Vec<_> = (0..8).map(|_| a.success().token()).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, [0, 1, 2, 3, 4, 5, 6, 7]);
    for _ in 0..8 {
        b.success();
    }
}

/// Closing returns what the device still had, and the memory is whole again.
#[test]
fn closing_returns_what_is_in_flight() {
    let link = Link::open();
    let [mut a, b] = link.connect(|builder| builder);
    for token in 0..5 {
        a.post_recv(100, token);
    }
    let unfinished = a.queue_pair.close().unwrap();
    let tokens: Vec<_> = unfinished.iter().map(|item| (item.direction, item.token)).collect();
    assert_eq!(tokens, [0, 1, 2, 3, 4].map(|token| (Direction::Receive, token)));
    drop(unfinished);
    assert_eq!(a.region.available(), a.region.len());
    b.queue_pair.close().unwrap();
}

/// Polling an idle queue finds nothing, and waiting ends.
#[test]
fn waiting_ends() {
    let link = Link::open();
    let [mut a, _b] = link.connect(|builder| builder);
    assert!(a.completions.poll_one().unwrap().is_none());
    let error = a.completions.wait(crate::support::SHORT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}
