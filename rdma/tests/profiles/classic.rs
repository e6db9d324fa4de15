//! Unreliable connections as a network adapter has them. What is asked for is what Linux's `rdma_rxe` was seen to do; where
//! its statuses are its own, any failure and the error state.
#![allow(unsafe_code)]

use crate::support::raw::{self, Two, number, send_wr, two_on};
use crate::support::{SHORT, fabrics};
use rdma::soft::{Profile, Topology};
use rdma_sys::{self as sys, ibv_qp_state as state, ibv_wc_opcode as opcode, ibv_wc_status as status};
use std::ptr::null_mut;

fn classic() -> Two {
    two_on(fabrics::new(Topology::mesh(2).unwrap(), Profile::classic()), 255)
}

#[test]
fn a_message_without_a_receive_is_lost() {
    let two = classic();
    assert_eq!(two.a.post_send(two.qp_a, 1, two.mem_a.sge(0, 10)), 0);
    assert_eq!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
    // The next message goes to the next receive.
    two.mem_a.write(0, b"second");
    assert_eq!(two.b.post_recv(two.qp_b, 2, two.mem_b.sge(0, 64)), 0);
    std::thread::sleep(SHORT);
    assert!(two.b.poll().is_empty());
    assert_eq!(two.a.post_send(two.qp_a, 3, two.mem_a.sge(0, 6)), 0);
    let received = two.b.wait(1)[0];
    assert_eq!((received.wr_id, received.status, received.byte_len), (2, status::IBV_WC_SUCCESS, 6));
    assert_eq!(two.mem_b.read(0, 6), b"second");
    assert_eq!([two.a.state(two.qp_a), two.b.state(two.qp_b)], [state::IBV_QPS_RTS; 2]);
}

#[test]
fn a_longer_receive_is_fine() {
    let two = classic();
    for length in [0, 1, 48, 49, 5000, 20_000] {
        two.mem_a.write(0, &vec![length as u8; length]);
        assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 65_536)), 0);
        assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, length)), 0);
        let received = two.b.wait(1)[0];
        assert_eq!((received.status, received.byte_len as usize), (status::IBV_WC_SUCCESS, length));
        assert_eq!(two.mem_b.read(0, length), vec![length as u8; length]);
        two.a.wait(1);
    }
}

/// The receiver alone has the error, and its queue pair ends; the sender's later messages succeed into nothing.
#[test]
fn a_message_that_is_too_long_ends_the_receiver() {
    let two = classic();
    for id in 1..=3 {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 100)), 0);
    }
    assert_eq!(two.a.post_send(two.qp_a, 9, two.mem_a.sge(0, 101)), 0);
    assert_eq!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
    let ended = two.b.wait(3);
    assert_eq!(ended.iter().map(|wc| wc.wr_id).collect::<Vec<_>>(), [1, 2, 3]);
    assert_ne!(ended[0].status, status::IBV_WC_SUCCESS);
    assert_eq!([ended[1].status, ended[2].status], [status::IBV_WC_WR_FLUSH_ERR; 2]);
    assert_eq!(two.b.state(two.qp_b), state::IBV_QPS_ERR);
    assert_eq!(two.a.post_send(two.qp_a, 10, two.mem_a.sge(0, 10)), 0);
    assert_eq!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
    assert_eq!(two.a.state(two.qp_a), state::IBV_QPS_RTS);
}

#[test]
fn a_bad_key_is_found_out_when_it_is_used() {
    let two = classic();
    let mut sge = two.mem_b.sge(0, 64);
    sge.lkey = 0xdead;
    assert_eq!(two.b.post_recv(two.qp_b, 1, sge), 0);
    assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 10)), 0);
    assert_eq!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
    assert_ne!(two.b.wait(1)[0].status, status::IBV_WC_SUCCESS);
    assert_eq!(two.b.state(two.qp_b), state::IBV_QPS_ERR);

    let mut sge = two.mem_a.sge(0, 64);
    sge.lkey = 0xdead;
    assert_eq!(two.a.post_send(two.qp_a, 3, sge), 0);
    assert_ne!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
    assert_eq!(two.a.state(two.qp_a), state::IBV_QPS_ERR);
}

#[test]
fn immediate_data_crosses() {
    let two = classic();
    for length in [0_usize, 44, 45, 48, 49, 5000] {
        two.mem_a.write(0, &vec![7; length]);
        assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 8192)), 0);
        let mut sge = two.mem_a.sge(0, length);
        let mut wr = send_wr(2, &mut sge, sys::IBV_SEND_SIGNALED);
        (wr.opcode, wr.imm_data) = (sys::ibv_wr_opcode::IBV_WR_SEND_WITH_IMM, 0x0102_0304_u32.to_be());
        let mut bad = null_mut();
        // SAFETY: a live queue pair and a request over registered memory.
        assert_eq!(unsafe { sys::ibv_post_send(two.qp_a, &mut wr, &mut bad) }, 0);
        let received = two.b.wait(1)[0];
        assert_eq!((received.status, received.opcode), (status::IBV_WC_SUCCESS, opcode::IBV_WC_RECV));
        assert_ne!(received.wc_flags & sys::IBV_WC_WITH_IMM, 0);
        assert_eq!((u32::from_be(received.imm_data), received.byte_len as usize), (0x0102_0304, length));
        assert_eq!(two.mem_b.read(0, length), vec![7; length]);
        two.a.wait(1);
        // One without.
        assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 8192)), 0);
        assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, length)), 0);
        assert_eq!(two.b.wait(1)[0].wc_flags & sys::IBV_WC_WITH_IMM, 0);
        two.a.wait(1);
    }
}

/// The memory of an inline send is the caller's again after the call, registered or not.
#[test]
fn inline_data_is_taken_at_once() {
    let two = classic();
    let granted = two.a.query(two.qp_a).1.cap.max_inline_data;
    assert_eq!(granted, 32);
    let flags = sys::IBV_SEND_SIGNALED | sys::IBV_SEND_INLINE;
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 64)), 0);
    let mut bytes = [5_u8; 32];
    let sge = sys::ibv_sge { addr: bytes.as_ptr() as u64, length: 32, lkey: 0 };
    assert_eq!(two.a.post_send_flags(two.qp_a, 2, sge, flags), 0);
    bytes.fill(6);
    assert_eq!(two.b.wait(1)[0].byte_len, 32);
    assert_eq!(two.mem_b.read(0, 32), [5; 32]);
    two.a.wait(1);
    assert_eq!(two.a.post_send_flags(two.qp_a, 3, two.mem_a.sge(0, 33), flags), libc::EINVAL);
    assert!(bytes.iter().all(|&byte| byte == 6));
}

/// A queue counts requests, however long they are, and names the one that did not fit.
#[test]
fn depth_counts_requests() {
    let two = classic();
    let granted = two.b.query(two.qp_b).1.cap.max_recv_wr;
    assert_eq!(granted, 255);
    for id in 0..u64::from(granted) {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 65_536)), 0);
    }
    let mut sge = two.mem_b.sge(0, 10);
    let mut wr = sys::ibv_recv_wr { wr_id: 7, next: null_mut(), sg_list: &mut sge, num_sge: 1 };
    let mut bad = null_mut();
    // SAFETY: a live queue pair and a request over registered memory.
    assert_eq!(unsafe { sys::ibv_post_recv(two.qp_b, &mut wr, &mut bad) }, libc::ENOMEM);
    assert_eq!(bad, &raw mut wr);
}

#[test]
fn a_device_is_an_adapter() {
    let two = classic();
    let device = two.a.provider.devices().unwrap()[0].clone();
    let rules = device.open().unwrap().rules().clone();
    assert_eq!(rules.depth_unit(), rdma::DepthUnit::Requests);
    assert!(rules.allows_empty() && !rules.registers_first() && rules.address_window().is_none());
    assert_ne!(number(two.qp_a), 0);
    assert_eq!(raw::rts().0.sq_psn, 7);
}
