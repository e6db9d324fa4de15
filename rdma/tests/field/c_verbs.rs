//! Group C: verbs applications in general. Queues.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::pair::{Unconnected, connect, device, fabric};
use crate::support::raw::two_with;
use crate::support::{LONG, eventually};
use rdma::{ErrorKind, QueuePair};
use rdma_sys::{self as sys, QpAttrMask as Mask, ibv_qp_state as state, ibv_wc_status as status};

/// One account for all requests, whatever they are for: a random mix of data and control never meets a full queue that the
/// model did not foresee.
#[test]
fn c02_one_account_for_all_sends() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(8).depth(1000));
    let (mut in_flight, mut frames, mut waiting) = (0_u64, 0_u64, std::collections::VecDeque::new());
    let mut seed = 42_u64;
    for step in 0..100_000_u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = seed >> 40;
        if random.is_multiple_of(2) {
            let length = if random.is_multiple_of(3) { 16 } else { 4096 * (1 + random as usize % 3) };
            let need = (length as u64).div_ceil(4096);
            let buffer = a.region.buffer(length).unwrap();
            match a.queue_pair.post_send(buffer, .., step) {
                Ok(()) => {
                    in_flight += 1;
                    frames += need;
                    waiting.push_back((length, need));
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::QueueFull);
                    assert!(in_flight == 8 || frames + need > 1023);
                }
            }
        } else if let Some(&(length, need)) = waiting.front() {
            b.post_recv(length, step);
            b.success();
            a.success();
            waiting.pop_front();
            in_flight -= 1;
            frames -= need;
        }
    }
}

/// The three styles of "full" are told in tests/hostile/posts.rs; here the device's own.
#[test]
fn c03_full_has_one_name() {
    for style in [libc::ENOMEM, -libc::ENOMEM] {
        assert_eq!(sys::errno_of(style, || 0), Some(libc::ENOMEM));
    }
    assert_eq!(sys::errno_of(-1, || libc::ENOMEM), Some(libc::ENOMEM));
    assert_eq!(sys::errno_of(-1, || libc::EINVAL), Some(libc::EINVAL));
}

/// A post that fails returns the very buffer; a thousand of them leak nothing.
#[test]
fn c04_a_failed_post_returns_the_buffer() {
    let [mut a, _b] = connect(&fabric(), |builder| builder.requests(2));
    a.post_send(b"x", 0);
    a.post_send(b"x", 1);
    let before = a.region.available();
    let mut buffer = a.filled(b"keep");
    let address = buffer.as_ptr();
    for _ in 0..1000 {
        buffer = a.queue_pair.post_send(buffer, .., 2).unwrap_err().into_memory().unwrap();
        assert_eq!(buffer.as_ptr(), address);
    }
    drop(buffer);
    assert_eq!(a.region.available(), before);
}

/// u u u S: four places are free after S was polled; and a queue of unsignaled sends never fills for good.
#[test]
fn c06_unsignaled_sends_are_retired_once() {
    let two = two_with(fabrics::mesh(2), 1023, 1 << 22);
    let sge = two.mem_a.sge(0, 255 * 4096);
    for id in 0..4 {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 255 * 4096)), 0);
        let flags = if id == 3 { sys::IBV_SEND_SIGNALED } else { 0 };
        assert_eq!(two.a.post_send_flags(two.qp_a, id, sge, flags), 0);
    }
    assert_eq!(two.a.post_send(two.qp_a, 4, sge), -libc::ENOMEM, "4 × 255 of 1023");
    assert_eq!(two.a.wait(1)[0].wr_id, 3);
    for id in 4..8 {
        assert_eq!(two.a.post_send(two.qp_a, id, sge), 0);
    }
}

/// A shared completion queue, one queue pair dropped with work in flight, another made at once: each sees its own.
#[test]
fn c21_a_shared_queue_keeps_queue_pairs_apart() {
    let fabric = fabric();
    let (mut one, mut other) =
        (Unconnected::open(&device(&fabric, 0), 1 << 16), Unconnected::open(&device(&fabric, 1), 1 << 16));
    let join = |here: &Unconnected, there: &Unconnected| -> [QueuePair; 2] {
        let mut prepared =
            [here, there].map(|end| end.domain.queue_pair(&end.completions).requests(8).build().unwrap());
        let endpoints = [0, 1].map(|index| {
            let port = [here, there][index].context.port(1).unwrap();
            prepared[index].endpoint(&port, port.gid().unwrap()).unwrap()
        });
        let [first, second] = prepared;
        [first.connect(&endpoints[1]).unwrap(), second.connect(&endpoints[0]).unwrap()]
    };
    let [mut old_here, mut old_there] = join(&one, &other);
    for token in 0..8 {
        old_there.post_recv(other.region.buffer(8).unwrap(), 100 + token).unwrap();
        old_here.post_send(one.region.buffer(8).unwrap(), .., 100 + token).unwrap();
    }
    drop(old_there);
    let [mut here, mut there] = join(&one, &other);
    there.post_recv(other.region.buffer(8).unwrap(), 1).unwrap();
    here.post_send(one.region.buffer(8).unwrap(), .., 2).unwrap();
    let received = other.completions.wait(LONG).unwrap();
    assert_eq!((received.token(), received.queue_pair()), (1, there.number()));
    let mut tokens: Vec<_> = (0..9).map(|_| one.completions.wait(LONG).unwrap().token()).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, [2, 100, 101, 102, 103, 104, 105, 106, 107]);
    assert!(other.completions.poll_one().unwrap().is_none());
}

/// Events are not there to be acknowledged: destroying never waits for one.
#[test]
fn c22_destroying_a_queue_waits_for_nothing() {
    let [a, b] = connect(&fabric(), |builder| builder.requests(4));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _keep = a;
        panic!("between a completion and its handling");
    }));
    assert!(panicked.is_err());
    drop(b);
}

/// A handler that fails, or panics, at the first of three: the other two come with the next poll. A post to a queue pair in
/// the error state loses no buffer.
#[test]
fn c24_a_failing_handler_loses_no_completion() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(8));
    for token in 0..3 {
        b.post_recv(if token == 0 { 8192 } else { 64 }, token);
        a.post_send(b"x", token);
    }
    let failed = b.completions.wait_for(3, LONG, |completion| {
        completion.into_result()?;
        Ok(())
    });
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Failed);
    assert_eq!([b.success().token(), b.success().token()], [1, 2]);
    // SAFETY: a live queue pair, taken to the error state behind the library's back.
    unsafe {
        let provider = rdma::Provider::soft(&fabrics::mesh(2).host(0).unwrap()).unwrap();
        let mut to_err = sys::ibv_qp_attr { qp_state: state::IBV_QPS_ERR, ..Default::default() };
        assert_eq!((provider.verbs().modify_qp)(b.queue_pair.as_raw(), &mut to_err, Mask::STATE.bits() as i32), 0);
    }
    let buffer = b.region.buffer(64).unwrap();
    b.queue_pair.post_recv(buffer, 9).unwrap();
    let failure = b.next().into_result().unwrap_err();
    assert_eq!((failure.token(), failure.status().raw()), (9, status::IBV_WC_WR_FLUSH_ERR.0));
    assert_eq!(failure.into_buffer().unwrap().len(), 64);
}

/// Both queues flush when a queue pair goes to the error state, in order, what is posted later included.
#[test]
fn d02_both_queues_flush() {
    let two = two_with(fabrics::mesh(2), 1023, 1 << 16);
    for id in 0..4 {
        assert_eq!(two.a.post_recv(two.qp_a, id, two.mem_a.sge(0, 64)), 0);
    }
    for id in 10..12 {
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 64)), 0);
    }
    let to_err = sys::ibv_qp_attr { qp_state: state::IBV_QPS_ERR, ..Default::default() };
    assert_eq!(two.a.modify(two.qp_a, to_err, Mask::STATE), 0);
    assert_eq!(two.a.post_send(two.qp_a, 12, two.mem_a.sge(0, 64)), 0, "the marker");
    let mut seen = Vec::new();
    eventually("seven flushes", || {
        seen.extend(two.a.poll());
        seen.len() == 7
    });
    assert!(seen.iter().all(|wc| wc.status == status::IBV_WC_WR_FLUSH_ERR));
    let sends: Vec<_> = seen.iter().map(|wc| wc.wr_id).filter(|&id| id >= 10).collect();
    assert_eq!(sends, [10, 11, 12], "the marker is last");
    assert_eq!(two.a.modify(two.qp_a, to_err, Mask::STATE), 0, "again");
}
