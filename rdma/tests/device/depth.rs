//! Depth: counted in 4 KiB frames, granted in steps, given back by polling (Apple TN3205; SQCU/mesh for the steps).
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::raw::{Host, errno, two_with};
use rdma_sys as sys;

const FRAME: usize = 4096;

#[test]
fn depth_is_granted_in_steps_and_read_back_by_query() {
    for (asked, granted) in
        [(1, 1023), (256, 1023), (1023, 1023), (1024, 2047), (2047, 2047), (2048, 4095), (4095, 4095)]
    {
        let mut host = Host::open(&fabrics::mesh(2), 0);
        let qp = host.queue_pair(asked);
        let (attributes, init) = host.query(qp);
        for cap in [attributes.cap, init.cap] {
            assert_eq!((cap.max_send_wr, cap.max_recv_wr), (granted, granted), "{asked}");
            assert_eq!((cap.max_send_sge, cap.max_recv_sge, cap.max_inline_data), (1, 1, 0));
        }
    }
    let host = Host::open(&fabrics::mesh(2), 0);
    for asked in [4096, u32::MAX] {
        let mut init = host.init_attr(asked);
        // SAFETY: live objects.
        assert!(unsafe { (host.verbs.create_qp)(host.pd, &mut init) }.is_null());
        assert_eq!(errno(), libc::EINVAL, "{asked}");
    }
}

/// What creating writes back is not what was granted, so programs must ask (hellas-ai/thunderbolt-ibverbs pull request 41).
#[test]
fn creating_does_not_say_what_was_granted() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let mut init = host.init_attr(256);
    // SAFETY: live objects; what is made is destroyed.
    unsafe {
        let qp = (host.verbs.create_qp)(host.pd, &mut init);
        assert_eq!(init.cap.max_send_wr, 256);
        assert_eq!((host.verbs.destroy_qp)(qp), 0);
    }
}

/// floor(G/k) messages of k frames fit, and one more after each that is polled.
#[test]
fn a_message_takes_as_many_places_as_it_has_frames() {
    for depth in [1023, 2047, 4095] {
        for frames in [1, 2, 4, 16] {
            let length = frames * FRAME - 7;
            let two = two_with(fabrics::mesh(2), depth, 1 << 16);
            let fits = depth as usize / frames;
            for id in 0..fits {
                assert_eq!(two.b.post_recv(two.qp_b, id as u64, two.mem_b.sge(0, length)), 0, "{depth} {frames} {id}");
            }
            assert_eq!(two.b.post_recv(two.qp_b, 0, two.mem_b.sge(0, length)), -libc::ENOMEM);
            // The rest is taken by smaller ones.
            for _ in fits * frames..depth as usize {
                assert_eq!(two.b.post_recv(two.qp_b, 1 << 40, two.mem_b.sge(0, 1)), 0);
            }
            assert_eq!(two.b.post_recv(two.qp_b, 0, two.mem_b.sge(0, 1)), -libc::ENOMEM);
            // Completed is not enough: the place is free once it was polled.
            assert_eq!(two.a.post_send(two.qp_a, 7, two.mem_a.sge(0, length)), 0);
            assert_eq!(two.b.post_recv(two.qp_b, 0, two.mem_b.sge(0, 1)), -libc::ENOMEM);
            assert_eq!(two.b.wait(1)[0].wr_id, 0);
            assert_eq!(two.b.post_recv(two.qp_b, 0, two.mem_b.sge(0, length)), 0);
            assert_eq!(two.b.post_recv(two.qp_b, 0, two.mem_b.sge(0, 1)), -libc::ENOMEM);
        }
    }
}

#[test]
fn the_send_queue_is_counted_in_the_same_way() {
    let two = two_with(fabrics::mesh(2), 1023, 1 << 16);
    for id in 0..63 {
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 1 << 16)), 0);
    }
    // hellas-ai/thunderbolt-ibverbs pull request 35: the 64th message of 64 KiB is refused with −12.
    assert_eq!(two.a.post_send(two.qp_a, 63, two.mem_a.sge(0, 1 << 16)), -libc::ENOMEM);
    assert!(two.a.poll().is_empty());
    assert_eq!(two.b.post_recv(two.qp_b, 0, two.mem_b.sge(0, 1 << 16)), 0);
    assert_eq!(two.a.wait(1)[0].wr_id, 0);
    assert_eq!(two.a.post_send(two.qp_a, 63, two.mem_a.sge(0, 1 << 16)), 0);
}

/// An unsignaled send gives its place back with the next signaled one that is polled, not by itself.
#[test]
fn unsignaled_sends_end_with_a_signaled_one() {
    let two = two_with(fabrics::mesh(2), 1023, 1 << 22);
    let frames = 128;
    let sge = |host: &crate::support::raw::Memory| host.sge(0, frames * FRAME);
    for id in 0..7 {
        assert_eq!(two.b.post_recv(two.qp_b, id, sge(&two.mem_b)), 0);
        assert_eq!(two.a.post_send_flags(two.qp_a, id, sge(&two.mem_a), 0), 0);
    }
    assert_eq!(two.b.wait(7).len(), 7);
    for _ in 0..100 {
        assert!(two.a.poll().is_empty());
    }
    // 7 × 128 of 1023 are taken: not another 128.
    assert_eq!(two.a.post_send_flags(two.qp_a, 8, sge(&two.mem_a), 0), -libc::ENOMEM);
    assert_eq!(two.b.post_recv(two.qp_b, 9, two.mem_b.sge(0, FRAME)), 0);
    assert_eq!(two.a.post_send_flags(two.qp_a, 9, two.mem_a.sge(0, FRAME), sys::IBV_SEND_SIGNALED), 0);
    assert_eq!(two.a.wait(1)[0].wr_id, 9);
    for id in 0..7 {
        assert_eq!(two.a.post_send_flags(two.qp_a, id, sge(&two.mem_a), 0), 0);
    }
}

#[test]
fn with_sq_sig_all_every_send_completes() {
    let fabric = fabrics::mesh(2);
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (mem_a, mem_b) = (a.memory(16384), b.memory(16384));
    let qp_b = b.queue_pair(8);
    let mut init = sys::ibv_qp_init_attr { sq_sig_all: 1, ..a.init_attr(8) };
    // SAFETY: live objects; it is destroyed below.
    let qp_a = unsafe { (a.verbs.create_qp)(a.pd, &mut init) };
    a.connect(qp_a, &b, qp_b);
    b.connect(qp_b, &a, qp_a);
    assert_eq!(b.post_recv(qp_b, 1, mem_b.sge(0, 8)), 0);
    assert_eq!(a.post_send_flags(qp_a, 2, mem_a.sge(0, 8), 0), 0);
    assert_eq!(a.wait(1)[0].wr_id, 2);
    // SAFETY: live, once.
    assert_eq!(unsafe { (a.verbs.destroy_qp)(qp_a) }, 0);
}

/// 16,773,120 bytes: 4095 frames (TN3205).
#[test]
fn the_longest_message_has_4095_frames() {
    const MAX: usize = 4095 * FRAME;
    let two = two_with(fabrics::mesh(2), 4095, MAX + FRAME);
    let bytes = crate::support::pattern(1, MAX);
    two.mem_a.write(0, &bytes);
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, MAX)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, MAX)), 0);
    assert_eq!(two.b.wait(1)[0].byte_len as usize, MAX);
    assert!(two.mem_b.read(0, MAX) == bytes);
    assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, MAX + 1)), -libc::EINVAL);
    assert_eq!(two.b.post_recv(two.qp_b, 2, two.mem_b.sge(0, MAX + 1)), -libc::EINVAL);
}
