//! Group B: users and authors of Rust verbs libraries. Completions, waiting, layouts.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::pair::{connect, fabric, pair};
use crate::support::raw::{self, Host, two};
use crate::support::{LONG, SHORT};
use rdma::{ErrorKind, Status};
use rdma_sys::{self as sys, QpAttrMask as Mask, ibv_qp_state as state, ibv_wc_status as status};
use std::time::Duration;

/// There is no channel to arm; waiting polls, and loses no wake-up.
#[test]
fn b14_waiting_loses_nothing() {
    let [mut a, mut b] = pair();
    let host = Host::open(&fabrics::mesh(2), 0);
    assert!(host.verbs.create_comp_channel.is_none());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for token in 0..20_000 {
                a.post_recv(8, token);
                a.post_send(b"ping", token);
                a.success();
                a.success();
            }
        });
        for token in 0..20_000 {
            b.post_recv(8, token);
            b.post_send(b"pong", token);
            b.success();
            b.success();
        }
    });
}

/// A wait that times out gives the operation up to nobody: the late message lands in the buffer that is still there.
#[test]
fn b16_a_timeout_gives_no_buffer_back() {
    let [mut a, mut b] = pair();
    b.post_recv(64, 1);
    assert_eq!(b.completions.wait(SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(b.region.available(), b.region.len() - 64, "the pool does not have it");
    a.post_send(b"late", 2);
    assert_eq!(b.success().bytes(), b"late");
}

/// A failed request is not a failed queue: the others of the batch are delivered, in order, each with its own status.
#[test]
fn b18_one_failure_among_others() {
    let two = two();
    for id in 0..2 {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, if id == 0 { 64 } else { 8192 })), 0);
    }
    for id in 2..4 {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 64)), 0);
    }
    for id in 0..2 {
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 64)), 0);
    }
    let to_err = sys::ibv_qp_attr { qp_state: state::IBV_QPS_ERR, ..Default::default() };
    assert_eq!(two.b.modify(two.qp_b, to_err, Mask::STATE), 0);
    let outcomes: Vec<_> = two.b.wait(4).iter().map(|wc| (wc.wr_id, wc.status)).collect();
    let expected = [
        (0, status::IBV_WC_SUCCESS),
        (1, status::IBV_WC_LOC_LEN_ERR),
        (2, status::IBV_WC_WR_FLUSH_ERR),
        (3, status::IBV_WC_WR_FLUSH_ERR),
    ];
    assert_eq!(outcomes, expected);
}

/// A pool of four: four sends, the fifth is told, never taken for done; polling one makes room.
#[test]
fn b19_exhaustion_is_told() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(4));
    for token in 0..4 {
        a.post_send(b"x", token);
    }
    let buffer = a.filled(b"x");
    let error = a.queue_pair.post_send(buffer, .., 4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QueueFull);
    b.post_recv(8, 0);
    a.success();
    a.queue_pair.post_send(error.into_memory().unwrap(), .., 4).unwrap();
}

/// Out-of-band messages from a peer: truncated, repeated, of the wrong version. Never a panic.
#[test]
fn b23_remote_input_never_panics() {
    let endpoint = rdma::Endpoint::new(1, 2, 3, "fe80::1".parse().unwrap(), rdma::Mtu::B4096);
    let good = endpoint.to_bytes();
    for length in 0..=good.len() {
        for position in 0..length {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = good;
                bytes[position] = value;
                let decoded = rdma::Endpoint::from_bytes(&bytes[..length]);
                assert!(length == good.len() || decoded.is_err());
            }
        }
    }
    let text = endpoint.to_string();
    for end in 0..text.len() {
        assert!(text[..end].parse::<rdma::Endpoint>().is_err() || end > text.len() - 2);
    }
}

/// No immediate data is `None`; asking for some is unsupported here.
#[test]
fn b24_immediate_data_is_an_option() {
    let [mut a, mut b] = pair();
    b.post_recv(64, 1);
    let buffer = a.filled(b"x");
    let error = a.queue_pair.post_send_immediate(buffer, .., 0x01020304, 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    a.queue_pair.post_send(error.into_memory().unwrap(), .., 2).unwrap();
    assert_eq!(b.success().immediate(), None);
}

/// An incomplete address vector is EINVAL, and the safe API cannot make one.
#[test]
fn b25_an_incomplete_address_is_refused() {
    let fabric = fabrics::mesh(2);
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (qp_a, qp_b) = (a.queue_pair(1), b.queue_pair(1));
    assert_eq!(a.to_init(qp_a), 0);
    let (good, mask) = raw::rtr(&b, qp_b);
    let mut zero_gid = good.ah_attr;
    zero_gid.grh.dgid = sys::ibv_gid { raw: [0; 16] };
    for (path, what) in [
        (sys::ibv_ah_attr { is_global: 0, ..good.ah_attr }, "is_global"),
        (sys::ibv_ah_attr { port_num: 0, ..good.ah_attr }, "port 0"),
        (sys::ibv_ah_attr { port_num: 2, ..good.ah_attr }, "port 2"),
        (zero_gid, "dgid"),
    ] {
        assert_eq!(a.modify(qp_a, sys::ibv_qp_attr { ah_attr: path, ..good }, mask), libc::EINVAL, "{what}");
    }
    // Hop limit 0 is accepted: it is not enforced.
    let mut path = good.ah_attr;
    path.grh.hop_limit = 0;
    assert_eq!(a.modify(qp_a, sys::ibv_qp_attr { ah_attr: path, ..good }, mask), 0);
}

/// The frozen symbol writes 48 bytes; what is behind them is left alone, and zero if it was.
#[test]
fn b26_query_port_writes_its_part() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let mut canary = [0xa5_u8; 128];
    // SAFETY: an open context, and more room than the structure has.
    assert_eq!(unsafe { (host.verbs.query_port)(host.context, 1, canary.as_mut_ptr().cast()) }, 0);
    assert!(canary[48..].iter().all(|&byte| byte == 0xa5));
    assert_eq!(host.port().port_cap_flags2, 0);
}

/// Layouts are asserted with `offset_of!`, for every target (rdma-sys/src/abi.rs): this is debug code that would abort
/// otherwise.
#[test]
fn b27_layouts_are_constant_assertions() {
    const { assert!(std::mem::offset_of!(sys::ibv_send_wr, wr) == 40 && size_of::<sys::ibv_send_wr>() == 128) };
}

/// Waits that are given up again and again: each number is seen once, in order, because nothing was given up but the wait.
#[test]
fn b28_a_wait_that_is_given_up_loses_no_message() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(16));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..1000_u64 {
                a.post_send(&number.to_le_bytes(), number);
                a.success();
            }
        });
        for token in 0..8 {
            b.post_recv(8, token);
        }
        let mut expected = 0_u64;
        let start = std::time::Instant::now();
        while expected < 1000 {
            assert!(start.elapsed() < LONG);
            match b.completions.wait(Duration::from_micros(expected % 3 * 100)) {
                Ok(completion) => {
                    let received = completion.into_result().unwrap();
                    assert_eq!(received.bytes(), expected.to_le_bytes());
                    expected += 1;
                    b.queue_pair.post_recv(received.into_buffer().unwrap(), 0).unwrap();
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut),
            }
        }
    });
}

/// Buffers run out while completions are handled: nothing waits for anything, so nothing hangs.
#[test]
fn b29_an_empty_pool_is_an_error_not_a_wait() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(4));
    let all = b.region.buffer(b.region.len()).unwrap();
    let error = b.region.buffer(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    drop(all);
    b.post_recv(8, 1);
    a.post_send(b"x", 2);
    assert_eq!(b.next().status(), Status::SUCCESS);
}
