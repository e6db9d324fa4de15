//! Apple's device as macOS 27.0 is reported to behave (Aileuxe/MCDMA; captured output of `ibv_devinfo`).
#![allow(unsafe_code)]

use crate::support::raw::{Host, Two, errno, two_on};
use crate::support::{SHORT, fabrics, pattern};
use rdma::soft::{Profile, Topology};
use rdma::{ErrorKind, GidKind, Provider};
use rdma_sys::{self as sys, ibv_wc_status as status};

const FRAME: usize = 4096;

fn fabric() -> rdma::soft::Fabric {
    fabrics::new(Topology::mesh(2).unwrap(), Profile::thunderbolt_27())
}

fn two() -> Two {
    two_on(fabric(), 1023)
}

/// Each frame fills a receive; all but the last end with a length error and 4096 bytes.
#[test]
fn each_frame_fills_a_receive() {
    let two = two();
    for (length, receives) in [(1, 1), (FRAME, 1), (FRAME + 1, 2), (3 * FRAME, 3), (10 * FRAME - 5, 10)] {
        let bytes = pattern(length as u64, length);
        two.mem_a.write(0, &bytes);
        assert_eq!(two.a.post_send(two.qp_a, 99, two.mem_a.sge(0, length)), 0);
        for id in 0..receives {
            // A send completes once all its frames have their receives.
            std::thread::sleep(SHORT / 10);
            assert!(two.a.poll().is_empty(), "{length}: {id}");
            assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(id as usize * FRAME, FRAME)), 0);
        }
        let received = two.b.wait(receives as usize);
        for (id, wc) in received.iter().enumerate() {
            let last = id + 1 == receives as usize;
            let expected = if last { status::IBV_WC_SUCCESS } else { status::IBV_WC_LOC_LEN_ERR };
            let bytes = if last { length - id * FRAME } else { FRAME };
            assert_eq!((wc.wr_id, wc.status, wc.byte_len as usize), (id as u64, expected, bytes), "{length}");
        }
        assert!(two.mem_b.read(0, length) == bytes);
        assert_eq!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
    }
}

#[test]
fn a_receive_longer_than_a_frame_fails() {
    let two = two();
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, FRAME + 1)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 10)), 0);
    assert_eq!(two.b.wait(1)[0].status, status::IBV_WC_LOC_LEN_ERR);
    assert_eq!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
}

/// It takes no receive and never completes; what follows is not held up.
#[test]
fn an_empty_send_is_lost() {
    let two = two();
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 64)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 0)), 0);
    std::thread::sleep(SHORT);
    assert!(two.a.poll().is_empty() && two.b.poll().is_empty());
    assert_eq!(two.a.post_send(two.qp_a, 3, two.mem_a.sge(0, 8)), 0);
    assert_eq!((two.a.wait(1)[0].wr_id, two.b.wait(1)[0].wr_id), (3, 1));
}

#[test]
fn three_queue_pairs() {
    let mut host = Host::open(&fabric(), 0);
    for _ in 0..3 {
        host.queue_pair(1);
    }
    let mut init = host.init_attr(1);
    // SAFETY: live objects.
    assert!(unsafe { (host.verbs.create_qp)(host.pd, &mut init) }.is_null());
    assert_eq!(errno(), libc::EBUSY);
}

#[test]
fn the_size_of_a_region_is_enforced() {
    let mut host = Host::open(&fabric(), 0);
    host.memory(0xfa_0000);
    let longer = crate::support::raw::aligned(0xfa_0000 + 16_384);
    // SAFETY: a live domain and an allocation of that length.
    assert!(unsafe { (host.verbs.reg_mr)(host.pd, longer.cast(), 0xfa_0000 + 1, 1) }.is_null());
    assert_eq!(errno(), libc::EINVAL);
}

/// What this crate makes of it: one frame a message, and addresses that are addresses.
#[test]
fn the_safe_api_offers_single_frames() {
    let fabric = fabric();
    let provider = Provider::soft(&fabric.host(0).unwrap()).unwrap();
    let context = provider.first_active().unwrap().open().unwrap();
    let port = context.port(1).unwrap();
    let table = port.gids().unwrap();
    assert_eq!(table[0].gid().kind(), GidKind::Other);
    assert_eq!(port.gid().unwrap().gid().kind(), GidKind::Ipv4Mapped);
    assert_eq!((context.rules().max_message(), context.rules().max_region()), (4096, Some(0xfa_0000)));
    let domain = context.protection_domain().unwrap();
    let error = domain.allocate(0xfa_0000 + 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("16384000"), "{error}");
}

/// A queue pair that goes back to RESET in the middle of a message begins the next one at its beginning, whichever end it is.
#[test]
fn a_message_that_was_cut_off_is_over() {
    let two = two();
    let Two { a, b, qp_a, qp_b, mem_a, mem_b, .. } = &two;
    let reset = sys::ibv_qp_attr { qp_state: sys::ibv_qp_state::IBV_QPS_RESET, ..Default::default() };
    let (bytes, short) = (pattern(1, 3 * FRAME), pattern(2, 100));
    for sender_leaves in [true, false, true] {
        mem_a.write(0, &bytes);
        assert_eq!(b.post_recv(*qp_b, 1, mem_b.sge(0, FRAME)), 0);
        assert_eq!(a.post_send(*qp_a, 1, mem_a.sge(0, 3 * FRAME)), 0);
        assert_eq!(b.wait(1)[0].status, status::IBV_WC_LOC_LEN_ERR);
        assert!(a.poll().is_empty());
        let (host, qp, peer, peer_qp) = if sender_leaves { (a, *qp_a, b, *qp_b) } else { (b, *qp_b, a, *qp_a) };
        assert_eq!(host.modify(qp, reset, sys::QpAttrMask::STATE), 0);
        host.connect(qp, peer, peer_qp);
        mem_a.write(0, &short);
        assert_eq!(b.post_recv(*qp_b, 2, mem_b.sge(0, FRAME)), 0);
        assert_eq!(a.post_send(*qp_a, 2, mem_a.sge(0, 100)), 0);
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        crate::support::eventually("the next message", || {
            sent.extend(a.poll().into_iter().filter(|wc| wc.wr_id == 2));
            received.extend(b.poll());
            !sent.is_empty() && !received.is_empty()
        });
        let wc = received[0];
        assert_eq!((received.len(), wc.wr_id, wc.status, wc.byte_len), (1, 2, status::IBV_WC_SUCCESS, 100));
        assert!(mem_b.read(0, 100) == short);
    }
}
