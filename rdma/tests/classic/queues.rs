//! Queues that are full, or in use.
#![allow(unsafe_code)]

use super::end::{End, Shape, connected, settle};
use crate::support::eventually;
use rdma_sys::ibv_qp_state as state;

/// The queue holds what was granted; one more is refused, and polling makes room.
#[test]
fn a_full_receive_queue() {
    let two = connected(Shape { depth: 4, ..Shape::default() });
    let (a, b) = (&two.a, &two.b);
    let mut count = 0;
    let refused = loop {
        match b.post_recv(count, 0, 64) {
            0 => count += 1,
            errno => break errno,
        }
        assert!(count < 1000, "it is never full");
    };
    assert_eq!(refused, libc::ENOMEM);
    assert!(count >= 4 && count >= u64::from(b.granted().max_recv_wr), "{count}");
    assert_eq!(a.post_send(1, 0, 8), 0);
    a.has_sent(1);
    b.has_received(0, 8);
    assert_eq!(b.post_recv(count, 0, 64), 0);
}

/// What does not fit is lost, and the receiver fails.
#[test]
fn a_full_completion_queue() {
    let two = connected(Shape { entries: 1, ..Shape::default() });
    let (a, b) = (&two.a, &two.b);
    // SAFETY: live.
    let entries = unsafe { (*b.recv_cq).cqe } as u64;
    let messages = entries + 4;
    assert!(messages <= 16, "a completion queue of one entry has {entries}");
    for token in 0..messages {
        assert_eq!(b.post_recv(token, 0, 64), 0);
    }
    for token in 0..messages {
        assert_eq!(a.post_send(token, 0, 8), 0);
        a.has_sent(token);
    }
    settle();
    // A shared software fabric finds out when somebody looks.
    let mut polled = Vec::new();
    eventually("the error state", || {
        polled.extend(End::poll(b.recv_cq).iter().map(|wc| wc.wr_id));
        b.state() == state::IBV_QPS_ERR
    });
    assert!(!polled.is_empty() && polled.len() as u64 <= entries, "{polled:?}");
    assert!(polled.iter().copied().eq(0..polled.len() as u64), "{polled:?}");
    assert_eq!(a.state(), state::IBV_QPS_RTS);
}

#[test]
fn what_is_in_use_stays() {
    let two = connected(Shape::default());
    let a = &two.a;
    // SAFETY: live objects; a refusal leaves them so.
    unsafe {
        assert_eq!((a.verbs.destroy_cq)(a.send_cq).abs(), libc::EBUSY);
        assert_eq!((a.verbs.destroy_cq)(a.recv_cq).abs(), libc::EBUSY);
        assert_eq!((a.verbs.dealloc_pd)(a.pd).abs(), libc::EBUSY);
    }
}
