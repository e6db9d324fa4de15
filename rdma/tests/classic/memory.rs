//! Memory: what can be registered, and requests over what is not.
#![allow(unsafe_code)]

use super::end::{MEMORY, Shape, connected, settle};
use crate::support::raw::errno;
use rdma_sys::{self as sys, ibv_qp_state as state, ibv_wc_status as status};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The post succeeds; then the sender fails, and nothing arrives.
#[test]
fn a_send_with_a_wrong_key() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    assert_eq!(b.post_recv(1, 0, 64), 0);
    let wrong = sys::ibv_sge { lkey: a.key() ^ 0x5500, ..a.sge(0, 64) };
    assert_eq!(a.post_send_with(2, wrong, |_| ()), 0);
    let wc = a.sent();
    assert_eq!(wc.wr_id, 2);
    assert_ne!(wc.status, status::IBV_WC_SUCCESS);
    a.fails();
    settle();
    assert!(super::end::End::poll(b.recv_cq).is_empty());
    assert_eq!(b.state(), state::IBV_QPS_RTS);
}

/// The post succeeds; when a message arrives, the receiver fails, and the sender knows nothing of it.
#[test]
fn a_receive_with_a_wrong_key() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    let wrong = sys::ibv_sge { lkey: b.key() ^ 0x5500, ..b.sge(0, 64) };
    assert_eq!(b.post_recv_of(1, wrong), 0);
    assert_eq!(b.state(), state::IBV_QPS_RTS);
    assert_eq!(a.post_send(2, 0, 64), 0);
    a.has_sent(2);
    let wc = b.received();
    assert_eq!(wc.wr_id, 1);
    assert_ne!(wc.status, status::IBV_WC_SUCCESS);
    b.fails();
    assert_eq!(a.state(), state::IBV_QPS_RTS);
}

/// Memory with a posted receive can be deregistered. The receive fails when a message arrives, and nothing is written.
#[test]
fn deregistered_under_a_receive() {
    let mut two = connected(Shape::default());
    two.b.fill(0, &[7; 64]);
    assert_eq!(two.b.post_recv(1, 0, 64), 0);
    // SAFETY: live, and not used again: the end is told.
    assert_eq!(unsafe { (two.b.verbs.dereg_mr)(two.b.mr) }, 0);
    two.b.mr = null_mut();
    let (a, b) = (&two.a, &two.b);
    assert_eq!(a.post_send(2, 0, 64), 0);
    a.has_sent(2);
    let wc = b.received();
    assert_eq!(wc.wr_id, 1);
    assert_ne!(wc.status, status::IBV_WC_SUCCESS);
    b.fails();
    assert_eq!(b.bytes(0, 64), [7; 64]);
}

#[test]
fn what_can_be_registered() {
    let two = connected(Shape::default());
    let a = &two.a;
    let register = |address: *mut u8, length: usize, access: u32| {
        // SAFETY: a live domain. What the range is worth is for the library to find out.
        let mr = unsafe { (a.verbs.reg_mr)(a.pd, address.cast::<c_void>(), length, access as c_int) };
        if mr.is_null() { Err(errno()) } else { Ok(mr) }
    };
    let local = sys::IBV_ACCESS_LOCAL_WRITE;
    assert_eq!(register(a.base, 0, local), Err(libc::EINVAL));
    assert_eq!(register(a.base, 4096, sys::IBV_ACCESS_REMOTE_WRITE), Err(libc::EINVAL));
    // SAFETY: a mapping of our own, gone again, at an address that nobody else gets: this thread alone maps memory of
    // that size.
    let unmapped = unsafe {
        let length = 1 << 30;
        let base = libc::mmap(null_mut(), length, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANON, -1, 0);
        assert_ne!(base, libc::MAP_FAILED);
        assert_eq!(libc::munmap(base, length), 0);
        base.cast::<u8>().add(length / 2)
    };
    assert_eq!(register(unmapped, 4096, local), Err(libc::EFAULT));
    // The same memory again.
    let again = register(a.base, MEMORY, local).unwrap();
    // SAFETY: live, and forgotten.
    assert_eq!(unsafe { (a.verbs.dereg_mr)(again) }, 0);
}

/// Refused, or sent into nothing: no memory changes, and nobody is told.
#[test]
fn a_write_with_a_wrong_key() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    b.fill(0, &[7; 64]);
    let posted = a.post_send_with(1, a.sge(0, 64), |wr| {
        wr.opcode = sys::ibv_wr_opcode::IBV_WR_RDMA_WRITE;
        wr.wr.rdma = sys::ibv_wr_rdma { remote_addr: b.base as u64, rkey: 0x1234_5600 };
    });
    if posted == 0 {
        a.has_sent(1);
    }
    settle();
    assert_eq!(b.bytes(0, 64), [7; 64]);
    assert!(super::end::End::poll(b.recv_cq).is_empty());
    for end in [a, b] {
        assert_eq!(end.state(), state::IBV_QPS_RTS);
    }
}

/// There is none on an unreliable connection.
#[test]
fn a_read() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    a.fill(0, &[7; 64]);
    let posted = a.post_send_with(1, a.sge(0, 64), |wr| {
        wr.opcode = sys::ibv_wr_opcode::IBV_WR_RDMA_READ;
        wr.wr.rdma = sys::ibv_wr_rdma { remote_addr: b.base as u64, rkey: b.key() };
    });
    if posted == 0 {
        assert_ne!(a.sent().status, status::IBV_WC_SUCCESS);
        a.fails();
    }
    assert_eq!(a.bytes(0, 64), [7; 64]);
}
