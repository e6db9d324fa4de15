//! Many requests, one call.

use crate::support::pair::{connect, connect_devices, device, fabric, pair};
use rdma::{Buffer, ErrorKind};

#[test]
fn a_batch_is_posted_in_order() {
    let [mut a, mut b] = pair();
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
    assert_eq!(batch.len(), 16);
    batch.submit().unwrap();
    for token in 0..16_u64 {
        let received = b.success();
        assert_eq!((received.token(), received.bytes()), (token, &token.to_le_bytes()[..]));
        assert_eq!(a.success().token(), token);
    }
    a.queue_pair.send_batch::<4>().submit().unwrap();
    assert!(a.is_idle() && b.is_idle());
}

#[test]
fn a_batch_that_is_dropped_or_forgotten_changes_nothing() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(4));
    for forget in [false, true] {
        let mut batch = a.queue_pair.send_batch::<4>();
        for token in 0..4 {
            batch.push(a.region.buffer(128).unwrap(), .., token).unwrap();
        }
        if forget {
            std::mem::forget(batch);
        } else {
            drop(batch);
        }
        assert_eq!(a.region.len() - a.region.available(), if forget { 4 * 128 } else { 0 });
    }
    for token in 0..4 {
        b.post_recv(64, token);
        a.post_send(b"x", token);
    }
    for token in 0..4 {
        assert_eq!((a.success().token(), b.success().token()), (token, token));
    }
}

/// The batch counts with what is in flight already.
#[test]
fn a_batch_keeps_the_budgets() {
    let [mut a, _b] = connect(&fabric(), |builder| builder.requests(6));
    a.post_send(b"x", 0);
    let mut batch = a.queue_pair.send_batch::<8>();
    for token in 1..6 {
        batch.push(a.region.buffer(8).unwrap(), .., token).unwrap();
    }
    let error = batch.push(a.region.buffer(8).unwrap(), .., 6).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QueueFull);
    assert!(error.into_memory().is_some());
    batch.submit().unwrap();
    // The batch's own size.
    let mut batch = a.queue_pair.receive_batch::<2>();
    for token in 0..2 {
        batch.push(a.region.buffer(8).unwrap(), token).unwrap();
    }
    let error = batch.push(a.region.buffer(8).unwrap(), 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QueueFull);
    assert!(error.to_string().contains("submit"), "{error}");
    batch.submit().unwrap();
    let unfinished = a.queue_pair.close().unwrap();
    assert_eq!(unfinished.iter().map(|item| item.token).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 0, 1]);
}

#[test]
fn depth_is_counted_in_a_batch() {
    let devices = fabric();
    let devices = [device(&devices, 0), device(&devices, 1)];
    let [mut a, mut b] =
        connect_devices([&devices[0], &devices[1]], 8 << 20, |builder| builder.depth(256).requests(100));
    let mut batch = b.queue_pair.receive_batch::<70>();
    let refused = (0..70).find(|&token| batch.push(b.region.buffer(1 << 16).unwrap(), token).is_err());
    assert_eq!(refused, Some(63), "63 × 16 frames are 1008 of 1023");
    batch.submit().unwrap();
    let buffer = a.region.buffer(1 << 16).unwrap().freeze();
    for token in 0..63 {
        a.queue_pair.post_send(buffer.clone(), .., token).unwrap();
        a.success();
    }
    for token in 0..63 {
        assert_eq!(b.success().token(), token);
    }
    assert!(b.is_idle());
}

#[test]
fn bad_requests_do_not_enter_a_batch() {
    let [mut a, b] = pair();
    let mut batch = a.queue_pair.send_batch::<4>();
    let foreign: Buffer = b.region.buffer(8).unwrap();
    assert_eq!(batch.push(foreign, .., 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(batch.push(a.region.buffer(8).unwrap(), 3..9, 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(batch.push(a.region.buffer(8).unwrap(), 3..3, 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(batch.len(), 0);
}

/// u u u S in one batch: the three come back with the fourth, once each.
#[test]
fn unsignaled_sends_of_a_batch_end_with_the_signaled_one() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(16));
    for round in 0..10 {
        for token in 0..4 {
            b.post_recv(64, token);
        }
        let mut batch = a.queue_pair.send_batch::<4>();
        for token in 0..3 {
            batch.push_unsignaled(a.region.buffer(8).unwrap(), .., round * 4 + token).unwrap();
        }
        batch.push(a.region.buffer(8).unwrap(), .., round * 4 + 3).unwrap();
        batch.submit().unwrap();
        for token in 0..4 {
            assert_eq!(a.success().token(), round * 4 + token);
            b.success();
        }
        assert!(a.is_idle());
    }
}
