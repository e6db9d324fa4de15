//! Posts that fail in every style, or say that they failed and did not.

use super::provider::{plan, turn};
use crate::support::pair::connect_devices;
use rdma::{ErrorKind, QueuePairBuilder};

fn shape(builder: QueuePairBuilder<'_>) -> QueuePairBuilder<'_> {
    builder.requests(8)
}

macro_rules! ends {
    ($turn:ident) => {{
        let devices = [$turn.hostile.devices().unwrap().remove(0), $turn.other.devices().unwrap().remove(0)];
        connect_devices([&devices[0], &devices[1]], 1 << 17, shape)
    }};
}

/// 12, −12, and −1 with errno 12 are one thing: the queue is full. The buffer comes back each time.
#[test]
fn a_failed_post_returns_the_buffer_whatever_its_style() {
    let turn = turn();
    let [mut a, mut b] = ends!(turn);
    for (returned, kind) in [
        (libc::ENOMEM, ErrorKind::QueueFull),
        (-libc::ENOMEM, ErrorKind::QueueFull),
        (libc::EINVAL, ErrorKind::InvalidArgument),
        (-libc::EFAULT, ErrorKind::InvalidArgument),
        (-libc::EIO, ErrorKind::Other),
        (i32::MIN, ErrorKind::InvalidArgument),
    ] {
        plan().post = Some((returned, false));
        for _ in 0..20 {
            let buffer = a.region.buffer(64).unwrap();
            let address = buffer.as_ptr();
            let error = a.queue_pair.post_recv(buffer, 1).unwrap_err();
            assert_eq!(error.kind(), kind, "{returned}: {error}");
            let buffer = error.into_memory().unwrap();
            assert_eq!(buffer.as_ptr(), address);
            let error = a.queue_pair.post_send(buffer, .., 1).unwrap_err();
            assert_eq!(error.kind(), kind);
            assert_eq!(error.error().failed_call(), Some("ibv_post_send"));
        }
    }
    // Nothing is spoilt by it.
    plan().post = None;
    assert!(!a.queue_pair.is_poisoned());
    for token in 0..8 {
        a.post_recv(64, token);
        b.post_send(b"x", token);
    }
    for token in 0..8 {
        assert_eq!(a.success().token(), token);
    }
}

/// It said that the post failed, and completes it all the same: the completion is of a request that is not in flight.
#[test]
fn a_failed_post_that_completes_poisons_the_queue_pair() {
    let turn = turn();
    let [mut a, mut b] = ends!(turn);
    plan().post = Some((-libc::EIO, true));
    let buffer = a.region.buffer(64).unwrap();
    drop(a.queue_pair.post_recv(buffer, 1).unwrap_err());
    plan().post = None;
    b.post_send(b"x", 2);
    crate::support::eventually("the impossible completion", || {
        a.completions.poll_one().is_err_and(|error| error.kind() == ErrorKind::Poisoned)
    });
    assert!(a.queue_pair.is_poisoned());
    assert!(a.queue_pair.close().unwrap().is_empty());
}

/// The budget is asked first: a full queue does not reach the provider.
#[test]
fn a_full_queue_does_not_reach_the_provider() {
    let turn = turn();
    let [mut a, _b] = ends!(turn);
    for token in 0..8 {
        a.post_recv(64, token);
        a.post_send(b"x", token);
    }
    let before = plan().calls;
    for _ in 0..10 {
        let buffer = a.region.buffer(64).unwrap();
        assert_eq!(a.queue_pair.post_recv(buffer, 9).unwrap_err().kind(), ErrorKind::QueueFull);
        let buffer = a.region.buffer(64).unwrap();
        assert_eq!(a.queue_pair.post_send(buffer, .., 9).unwrap_err().kind(), ErrorKind::QueueFull);
    }
    assert_eq!(plan().calls, before);
}

/// What was granted counts, not what was asked for; even if it is less.
#[test]
fn a_smaller_grant_is_respected() {
    let turn = turn();
    plan().query_qp = Some(|attributes| {
        attributes.cap.max_send_wr = 3;
        attributes.cap.max_recv_wr = 2;
    });
    let [mut a, _b] = ends!(turn);
    let granted = a.queue_pair.capacities();
    assert_eq!((granted.send_depth, granted.receive_depth), (3, 2));
    assert_eq!((granted.send_requests, granted.receive_requests), (3, 2));
    a.post_recv(64, 1);
    a.post_recv(4096, 2);
    let buffer = a.region.buffer(64).unwrap();
    assert_eq!(a.queue_pair.post_recv(buffer, 3).unwrap_err().kind(), ErrorKind::QueueFull);
    // Three frames, and no more.
    a.post_send(&[0; 8192], 4);
    let buffer = a.region.buffer(8192).unwrap();
    assert_eq!(a.queue_pair.post_send(buffer, .., 5).unwrap_err().kind(), ErrorKind::QueueFull);
    a.post_send(&[0; 4096], 6);
}

/// A grant of nothing is no queue pair.
#[test]
fn a_grant_of_nothing_posts_nothing() {
    let turn = turn();
    plan().query_qp = Some(|attributes| attributes.cap = Default::default());
    let [mut a, _b] = ends!(turn);
    let buffer = a.region.buffer(64).unwrap();
    let error = a.queue_pair.post_recv(buffer, 1).unwrap_err();
    assert!(error.into_memory().is_some());
}
