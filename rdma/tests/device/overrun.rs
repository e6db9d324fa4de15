//! More completions than the completion queue holds: as on classic verbs the one too many is lost, and its queue pair goes
//! to the error state. Inferred for Thunderbolt.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::raw::{Host, Memory};
use rdma_sys::{self as sys, ibv_qp_state as state, ibv_wc_status as status};
use std::ptr::null_mut;

struct Small {
    a: Host,
    b: Host,
    qp_a: *mut sys::ibv_qp,
    qp_b: *mut sys::ibv_qp,
    cq_b: *mut sys::ibv_cq,
    mem_a: Memory,
    mem_b: Memory,
}

/// The receiver's queue pair completes into a queue of `capacity` of its own.
fn small(capacity: i32) -> Small {
    let fabric = fabrics::mesh(2);
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (mem_a, mem_b) = (a.memory(1 << 16), b.memory(1 << 16));
    // SAFETY: an open context.
    let cq_b = unsafe { (b.verbs.create_cq)(b.context, capacity, null_mut(), null_mut(), 0) };
    let qp_a = a.queue_pair(1023);
    let mut init = sys::ibv_qp_init_attr { send_cq: cq_b, recv_cq: cq_b, ..b.init_attr(1023) };
    // SAFETY: live objects.
    let qp_b = unsafe { (b.verbs.create_qp)(b.pd, &mut init) };
    a.connect(qp_a, &b, qp_b);
    b.connect(qp_b, &a, qp_a);
    Small { a, b, qp_a, qp_b, cq_b, mem_a, mem_b }
}

impl Small {
    fn poll_b(&self) -> Vec<sys::ibv_wc> {
        let mut wc = [sys::ibv_wc::default(); 64];
        // SAFETY: a live queue, and room for 64.
        let count = unsafe { sys::ibv_poll_cq(self.cq_b, 64, wc.as_mut_ptr()) };
        wc[..count as usize].to_vec()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // SAFETY: live objects, each destroyed once.
        unsafe {
            (self.b.verbs.destroy_qp)(self.qp_b);
            (self.b.verbs.destroy_cq)(self.cq_b);
        }
    }
}

#[test]
fn one_entry_and_three_hundred_messages() {
    let small = small(1);
    for id in 0..300 {
        assert_eq!(small.b.post_recv(small.qp_b, id, small.mem_b.sge(0, 64)), 0);
    }
    for id in 0..300 {
        assert_eq!(small.a.post_send(small.qp_a, id, small.mem_a.sge(0, 64)), 0);
    }
    let received = small.poll_b();
    assert_eq!(received.len(), 1, "the others are lost");
    assert_eq!((received[0].wr_id, received[0].status), (0, status::IBV_WC_SUCCESS));
    assert_eq!(small.b.state(small.qp_b), state::IBV_QPS_ERR);
    // The sender has sent, and knows nothing.
    let sent = small.a.wait(300);
    assert!(sent.iter().all(|wc| wc.status == status::IBV_WC_SUCCESS));
    assert_eq!(small.a.state(small.qp_a), state::IBV_QPS_RTS);
}

/// As long as somebody polls in time, nothing overflows, however small the queue.
#[test]
fn a_small_queue_that_is_polled_loses_nothing() {
    let small = small(2);
    for id in 0..2000 {
        assert_eq!(small.b.post_recv(small.qp_b, id, small.mem_b.sge(0, 64)), 0);
        assert_eq!(small.a.post_send(small.qp_a, id, small.mem_a.sge(0, 64)), 0);
        small.a.wait(1);
        if id % 2 == 1 {
            let received: Vec<_> = small.poll_b().iter().map(|wc| wc.wr_id).collect();
            assert_eq!(received, [id - 1, id]);
        }
    }
    assert_eq!(small.b.state(small.qp_b), state::IBV_QPS_RTS);
}

/// TN3205 puts 4,095 + 4,095 frames on a queue of 4,096 entries: frames are not completions.
#[test]
fn deep_queues_on_one_completion_queue_are_no_overflow() {
    let two = crate::support::raw::two_with(fabrics::mesh(2), 4095, 1 << 20);
    for _ in 0..3 {
        for id in 0..255 {
            assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 1 << 16)), 0);
            assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 1 << 16)), 0);
        }
        two.a.wait(255);
        two.b.wait(255);
    }
}

/// A queue pair that was emptied by RESET leaves its room behind.
#[test]
fn reset_gives_the_room_back() {
    let small = small(4);
    for round in 0..20 {
        for id in 0..3 {
            assert_eq!(small.b.post_recv(small.qp_b, id, small.mem_b.sge(0, 64)), 0);
            assert_eq!(small.a.post_send(small.qp_a, id, small.mem_a.sge(0, 64)), 0);
        }
        small.a.wait(3);
        let to_reset = sys::ibv_qp_attr { qp_state: state::IBV_QPS_RESET, ..Default::default() };
        assert_eq!(small.b.modify(small.qp_b, to_reset, sys::QpAttrMask::STATE), 0);
        assert_eq!(small.a.modify(small.qp_a, to_reset, sys::QpAttrMask::STATE), 0);
        assert!(small.poll_b().is_empty(), "{round}");
        small.a.connect(small.qp_a, &small.b, small.qp_b);
        small.b.connect(small.qp_b, &small.a, small.qp_a);
    }
    assert_eq!(small.b.state(small.qp_b), state::IBV_QPS_RTS);
}

/// A queue pair that is taken back to RESET after a completion was lost, and before anybody noticed, starts afresh.
#[test]
fn reset_ends_what_was_to_fail() {
    let small = small(1);
    for id in 0..2 {
        assert_eq!(small.b.post_recv(small.qp_b, id, small.mem_b.sge(0, 64)), 0);
        assert_eq!(small.a.post_send(small.qp_a, id, small.mem_a.sge(0, 64)), 0);
    }
    small.a.wait(2);
    if fabrics::are_shared() {
        // There a queue overflows when somebody looks.
        assert_eq!(small.poll_b().len(), 1);
    }
    let reset = sys::ibv_qp_attr { qp_state: state::IBV_QPS_RESET, ..Default::default() };
    assert_eq!(small.b.modify(small.qp_b, reset, sys::QpAttrMask::STATE), 0);
    small.b.connect(small.qp_b, &small.a, small.qp_a);
    assert_eq!(small.b.post_recv(small.qp_b, 9, small.mem_b.sge(0, 64)), 0);
    assert_eq!(small.b.state(small.qp_b), state::IBV_QPS_RTS);
    assert_eq!(small.a.post_send(small.qp_a, 9, small.mem_a.sge(0, 64)), 0);
    small.a.wait(1);
    let mut received = Vec::new();
    crate::support::eventually("the message", || {
        received.extend(small.poll_b());
        !received.is_empty()
    });
    assert_eq!((received[0].wr_id, received[0].status), (9, status::IBV_WC_SUCCESS));
}

/// Of 33 sends one is signaled: there is one completion, and a queue of 16 has room for it.
#[test]
fn unsignaled_sends_take_no_room() {
    let small = small(16);
    for round in 0..4 {
        for id in 0..33 {
            assert_eq!(small.a.post_recv(small.qp_a, id, small.mem_a.sge(0, 64)), 0);
        }
        for id in 0..32 {
            assert_eq!(small.b.post_send_flags(small.qp_b, id, small.mem_b.sge(0, 8), 0), 0);
        }
        assert_eq!(small.b.post_send(small.qp_b, 99, small.mem_b.sge(0, 8)), 0);
        let polled = small.poll_b();
        assert!(
            matches!(&polled[..], [wc] if wc.wr_id == 99 && wc.status == status::IBV_WC_SUCCESS),
            "{round}: {polled:?}"
        );
        assert_eq!(small.a.wait(33).len(), 33);
        assert_eq!(small.b.state(small.qp_b), state::IBV_QPS_RTS);
    }
}

/// Queue pairs that come later make the others' shares smaller: what these have in flight by then is counted, too.
#[test]
fn a_queue_pair_that_comes_later_is_counted() {
    let mut small = small(8);
    // A quarter of the room for each of four queues would be two; there were two queues, with four each.
    for id in 0..4 {
        assert_eq!(small.a.post_recv(small.qp_a, id, small.mem_a.sge(0, 64)), 0);
        assert_eq!(small.b.post_recv(small.qp_b, id, small.mem_b.sge(0, 64)), 0);
    }
    for id in 0..4 {
        assert_eq!(small.a.post_send(small.qp_a, id, small.mem_a.sge(0, 8)), 0);
        assert_eq!(small.b.post_send(small.qp_b, id, small.mem_b.sge(0, 8)), 0);
    }
    let mut init = sys::ibv_qp_init_attr { send_cq: small.cq_b, recv_cq: small.cq_b, ..small.b.init_attr(1023) };
    // SAFETY: live objects.
    let late = unsafe { (small.b.verbs.create_qp)(small.b.pd, &mut init) };
    let peer = small.a.queue_pair(1023);
    small.a.connect(peer, &small.b, late);
    small.b.connect(late, &small.a, peer);
    assert_eq!(small.a.post_recv(peer, 9, small.mem_a.sge(0, 64)), 0);
    assert_eq!(small.b.post_send(late, 9, small.mem_b.sge(0, 8)), 0);
    assert_eq!(small.poll_b().len(), 8, "a completion queue of 8");
    // The one whose completion was lost: which it is depends on when messages are taken.
    let states = [late, small.qp_b].map(|qp| small.b.state(qp));
    assert!(states.contains(&state::IBV_QPS_ERR), "{states:?}");
    // SAFETY: live objects.
    unsafe { (small.b.verbs.destroy_qp)(late) };
}
