//! Work requests that are refused, chains, and what a failed call says.
#![allow(unsafe_code)]

use crate::support::raw::{send_wr, two};
use rdma_sys::{self as sys, ibv_wr_opcode as opcode};
use std::ptr::null_mut;

/// SEND and RECV only (TN3205); inline capacity is 0; one scatter element.
#[test]
fn what_the_device_does_not_have_is_refused() {
    let two = two();
    let mut sge = two.mem_a.sge(0, 8);
    let plain = send_wr(1, &mut sge, sys::IBV_SEND_SIGNALED);
    for (wr, expected, what) in [
        (sys::ibv_send_wr { opcode: opcode::IBV_WR_SEND_WITH_IMM, ..plain }, libc::EOPNOTSUPP, "immediate"),
        (sys::ibv_send_wr { opcode: opcode::IBV_WR_RDMA_WRITE, ..plain }, libc::EOPNOTSUPP, "write"),
        (sys::ibv_send_wr { opcode: opcode::IBV_WR_RDMA_READ, ..plain }, libc::EOPNOTSUPP, "read"),
        (sys::ibv_send_wr { opcode: opcode::IBV_WR_ATOMIC_CMP_AND_SWP, ..plain }, libc::EOPNOTSUPP, "atomic"),
        (sys::ibv_send_wr { opcode: opcode(u32::MAX), ..plain }, libc::EOPNOTSUPP, "unknown"),
        (sys::ibv_send_wr { send_flags: sys::IBV_SEND_INLINE, ..plain }, libc::EINVAL, "inline"),
        (sys::ibv_send_wr { num_sge: 2, ..plain }, libc::EINVAL, "two elements"),
        (sys::ibv_send_wr { num_sge: -1, ..plain }, libc::EINVAL, "minus one"),
        (sys::ibv_send_wr { sg_list: null_mut(), ..plain }, libc::EINVAL, "no list"),
    ] {
        let mut wr = wr;
        let mut bad = null_mut();
        // SAFETY: a live queue pair and a request over registered memory.
        assert_eq!(unsafe { sys::ibv_post_send(two.qp_a, &mut wr, &mut bad) }, -expected, "{what}");
    }
    assert!(two.a.poll().is_empty());
    // Ordering hints are harmless.
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 8)), 0);
    let flags = sys::IBV_SEND_SIGNALED | sys::IBV_SEND_FENCE | sys::IBV_SEND_SOLICITED;
    assert_eq!(two.a.post_send_flags(two.qp_a, 2, two.mem_a.sge(0, 8), flags), 0);
    assert_eq!(two.a.wait(1)[0].wr_id, 2);
}

#[test]
fn keys_that_are_none_are_a_fault() {
    let two = two();
    let sge = two.mem_a.sge(0, 8);
    for lkey in [0, 1, 0x100, sge.lkey + 1, sge.lkey ^ 0x100, u32::MAX] {
        assert_eq!(two.a.post_send(two.qp_a, 1, sys::ibv_sge { lkey, ..sge }), -libc::EFAULT, "{lkey:#x}");
        assert_eq!(two.a.post_recv(two.qp_a, 1, sys::ibv_sge { lkey, ..sge }), -libc::EFAULT, "{lkey:#x}");
    }
}

/// A chain is posted up to its first bad request. Which one that was the device does not say: it leaves `bad_wr` alone
/// (SQCU/mesh, from the provider's code).
#[test]
fn a_chain_is_posted_up_to_its_first_bad_request() {
    let two = two();
    for id in 0..5 {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 8)), 0);
    }
    let mut good = two.mem_a.sge(0, 8);
    let mut evil = sys::ibv_sge { lkey: 0, ..good };
    let mut fourth = send_wr(13, &mut good, sys::IBV_SEND_SIGNALED);
    let mut third = sys::ibv_send_wr { next: &mut fourth, ..send_wr(12, &mut evil, sys::IBV_SEND_SIGNALED) };
    let mut second = sys::ibv_send_wr { next: &mut third, ..send_wr(11, &mut good, sys::IBV_SEND_SIGNALED) };
    let mut first = sys::ibv_send_wr { next: &mut second, ..send_wr(10, &mut good, sys::IBV_SEND_SIGNALED) };
    let marker = &raw mut fourth;
    let mut bad = marker;
    // SAFETY: a live queue pair and a chain of valid requests.
    assert_eq!(unsafe { sys::ibv_post_send(two.qp_a, &mut first, &mut bad) }, -libc::EFAULT);
    assert_eq!(bad, marker, "not written");
    assert_eq!(two.a.wait(2).iter().map(|wc| wc.wr_id).collect::<Vec<_>>(), [10, 11]);
    assert_eq!(two.b.wait(2).len(), 2);
}

#[test]
fn a_chain_of_receives_and_a_cyclic_one() {
    let two = two();
    let mut sge = two.mem_b.sge(0, 8);
    let mut second = sys::ibv_recv_wr { wr_id: 2, next: null_mut(), sg_list: &mut sge, num_sge: 1 };
    let mut first = sys::ibv_recv_wr { wr_id: 1, next: &mut second, sg_list: &raw mut sge, num_sge: 1 };
    let mut bad = null_mut();
    // SAFETY: a live queue pair and a chain of valid requests.
    assert_eq!(unsafe { sys::ibv_post_recv(two.qp_b, &mut first, &mut bad) }, 0);
    for id in 0..2 {
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 8)), 0);
    }
    assert_eq!(two.b.wait(2).iter().map(|wc| wc.wr_id).collect::<Vec<_>>(), [1, 2]);
    // A chain that bites its tail ends when the queue is full.
    let wr = &raw mut first;
    // SAFETY: as above; all requests are valid, however often they are read.
    unsafe {
        (*wr).next = &mut second;
        (*(*wr).next).next = wr;
        assert_eq!(sys::ibv_post_recv(two.qp_b, wr, &mut bad), -libc::ENOMEM);
    }
}

/// An empty message takes a frame, and arrives, on macOS 26: inferred (on 27 it is lost: Aileuxe/MCDMA).
#[test]
fn an_empty_message_takes_a_frame() {
    let two = two();
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 64)), 0);
    let mut wr = sys::ibv_send_wr { num_sge: 0, sg_list: null_mut(), ..send_wr(2, null_mut(), sys::IBV_SEND_SIGNALED) };
    // SAFETY: a live queue pair and a valid request.
    assert_eq!(unsafe { sys::ibv_post_send(two.qp_a, &mut wr, &mut null_mut()) }, 0);
    assert_eq!(two.b.wait(1)[0].byte_len, 0);
    assert_eq!(two.a.wait(1)[0].wr_id, 2);
}

/// `ibv_query_qp_data_in_order` says 0 (Aileuxe/MCDMA): nobody may watch a message arrive by its last byte.
#[test]
fn bytes_come_in_any_order() {
    let two = two();
    let query = two.a.verbs.query_qp_data_in_order.unwrap();
    for kind in [opcode::IBV_WR_SEND, opcode::IBV_WR_RDMA_WRITE] {
        // SAFETY: a live queue pair.
        assert_eq!(unsafe { query(two.qp_a, kind, 0) }, 0);
    }
}
