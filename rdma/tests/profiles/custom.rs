//! Switches: both sides of what reports disagree about.
#![allow(unsafe_code)]

use crate::support::raw::{Host, Two, errno, send_wr, two_on};
use crate::support::{SHORT, fabrics, pattern};
use rdma::soft::Topology;
use rdma_sys::{self as sys, ibv_wc_status as status};
use std::ptr::null_mut;

const FRAME: usize = 4096;

fn fabric(profile: &str) -> rdma::soft::Fabric {
    fabrics::new(Topology::mesh(2).unwrap(), profile.parse().unwrap())
}

fn two(profile: &str) -> Two {
    two_on(fabric(profile), 1)
}

/// The frames that had no place go on into the next receive (adurham/exo, SQCU/mesh), as many messages later.
#[test]
fn after_a_mismatch_messages_pair_wrongly() {
    let two = two("thunderbolt,matching=mispairing");
    let bytes = pattern(3, 3 * FRAME);
    two.mem_a.write(0, &bytes);
    for id in 0..3 {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(id as usize * FRAME, FRAME)), 0);
    }
    assert_eq!(two.a.post_send(two.qp_a, 8, two.mem_a.sge(0, 2 * FRAME)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 9, two.mem_a.sge(2 * FRAME, FRAME)), 0);
    let received = two.b.wait(3);
    assert_eq!(received[0].status, status::IBV_WC_LOC_LEN_ERR);
    // The second half of the first message, where the second message was expected.
    assert_eq!((received[1].wr_id, received[1].status), (1, status::IBV_WC_SUCCESS));
    assert!(two.mem_b.read(FRAME, FRAME) == bytes[FRAME..2 * FRAME]);
    assert!(two.mem_b.read(2 * FRAME, FRAME) == bytes[2 * FRAME..]);
    assert_eq!(two.a.wait(2).iter().map(|wc| wc.status.0).sum::<u32>(), 0);
}

/// Without the switch each message meets one receive, whatever it met before.
#[test]
fn otherwise_they_do_not() {
    let two = two("thunderbolt");
    assert_eq!(two.b.post_recv(two.qp_b, 0, two.mem_b.sge(0, FRAME)), 0);
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(FRAME, FRAME)), 0);
    two.mem_a.write(2 * FRAME, &[9; FRAME]);
    assert_eq!(two.a.post_send(two.qp_a, 8, two.mem_a.sge(0, 2 * FRAME)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 9, two.mem_a.sge(2 * FRAME, FRAME)), 0);
    let received = two.b.wait(2);
    assert_eq!([received[0].status, received[1].status], [status::IBV_WC_LOC_LEN_ERR, status::IBV_WC_SUCCESS]);
    assert_eq!(two.mem_b.read(FRAME, FRAME), [9; FRAME]);
}

/// Accepted beyond the depth (SQCU/mesh: 8193 receives), and never heard of again.
#[test]
fn over_posting_is_refused_or_loses() {
    let refusing = two("thunderbolt,depths=15");
    let losing = two("thunderbolt,depths=15,over_posting=lost");
    for id in 0..15 {
        for two in [&refusing, &losing] {
            assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 64)), 0);
        }
    }
    assert_eq!(refusing.b.post_recv(refusing.qp_b, 15, refusing.mem_b.sge(0, 64)), -libc::ENOMEM);
    for id in 15..100 {
        assert_eq!(losing.b.post_recv(losing.qp_b, id, losing.mem_b.sge(0, 64)), 0);
    }
    for id in 0..15 {
        assert_eq!(losing.a.post_send(losing.qp_a, id, losing.mem_a.sge(0, 64)), 0);
    }
    assert_eq!(losing.b.wait(15).last().unwrap().wr_id, 14);
    losing.a.wait(15);
    assert_eq!(losing.a.post_send(losing.qp_a, 99, losing.mem_a.sge(0, 64)), 0);
    std::thread::sleep(SHORT);
    assert!(losing.a.poll().is_empty() && losing.b.poll().is_empty(), "its receive is not there");
}

#[test]
fn posting_fails_in_three_styles() {
    for (style, expected) in [("errno", libc::ENOMEM), ("negative", -libc::ENOMEM), ("minus_one", -1)] {
        for (bad_wr, named) in [("set", true), ("unset", false)] {
            let two = two(&format!("thunderbolt,depths=1,post_errors={style},bad_wr={bad_wr}"));
            assert_eq!(two.b.post_recv(two.qp_b, 0, two.mem_b.sge(0, 64)), 0);
            let mut sge = two.mem_b.sge(0, 64);
            let mut wr = sys::ibv_recv_wr { wr_id: 7, next: null_mut(), sg_list: &mut sge, num_sge: 1 };
            let mut bad = null_mut();
            // SAFETY: a live queue pair and a request over registered memory.
            assert_eq!(unsafe { sys::ibv_post_recv(two.qp_b, &mut wr, &mut bad) }, expected);
            assert!(style != "minus_one" || errno() == libc::ENOMEM);
            assert_eq!(bad == &raw mut wr, named);
        }
    }
}

/// Of a failed completion only the id, the status, the number and the vendor's code mean anything.
#[test]
fn failed_completions_hold_garbage() {
    let two = two("thunderbolt,failure_fields=garbage");
    assert_eq!(two.b.post_recv(two.qp_b, 5, two.mem_b.sge(0, 2 * FRAME)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 6, two.mem_a.sge(0, 10)), 0);
    let failed = two.b.wait(1)[0];
    assert_eq!((failed.wr_id, failed.status), (5, status::IBV_WC_LOC_LEN_ERR));
    assert_ne!(failed.opcode, sys::ibv_wc_opcode::IBV_WC_RECV);
    assert!(failed.byte_len > 2 * FRAME as u32 && failed.imm_data != 0);
    // One that succeeded does not.
    let sent = two.a.wait(1)[0];
    assert_eq!((sent.wr_id, sent.opcode, sent.imm_data), (6, sys::ibv_wc_opcode::IBV_WC_SEND, 0));
}

/// Local write alone is refused (ggml-org/llama.cpp, Anemll/mlx-rdma), or anything but it (Aileuxe/MCDMA).
#[test]
fn registrations_want_certain_access() {
    let all = sys::IBV_ACCESS_LOCAL_WRITE | sys::IBV_ACCESS_REMOTE_WRITE | sys::IBV_ACCESS_REMOTE_READ;
    for (rule, granted) in [("any", [true, true]), ("local", [true, false]), ("all", [false, true])] {
        let mut host = Host::open(&fabric(&format!("thunderbolt,access={rule}")), 0);
        for (access, granted) in [sys::IBV_ACCESS_LOCAL_WRITE, all].into_iter().zip(granted) {
            let base = crate::support::raw::aligned(16_384);
            // SAFETY: a live domain and an allocation of that length.
            let mr = unsafe { (host.verbs.reg_mr)(host.pd, base.cast(), 16_384, access as i32) };
            assert_eq!(!mr.is_null(), granted, "{rule} {access}");
            if granted {
                // SAFETY: live.
                assert_eq!(unsafe { (host.verbs.dereg_mr)(mr) }, 0);
            } else {
                assert_eq!(errno(), libc::EINVAL);
            }
        }
        // This crate asks for local write, and for more only where that is refused.
        let context = host.provider.first_active().unwrap().open().unwrap();
        assert!(context.protection_domain().unwrap().allocate(16_384).is_ok(), "{rule}");
        let _ = host.queue_pair(1);
    }
}

#[test]
fn receives_can_have_to_wait_for_rts() {
    let fabric = fabric("thunderbolt,receives_from=rts");
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (qp_a, qp_b, memory) = (a.queue_pair(15), b.queue_pair(15), b.memory(16_384));
    a.connect(qp_a, &b, qp_b);
    assert_eq!(b.to_init(qp_b), 0);
    assert_eq!(b.post_recv(qp_b, 1, memory.sge(0, 64)), -libc::EINVAL);
    assert_eq!(b.to_rtr(qp_b, &a, qp_a), 0);
    assert_eq!(b.post_recv(qp_b, 1, memory.sge(0, 64)), -libc::EINVAL);
    assert_eq!(b.to_rts(qp_b), 0);
    assert_eq!(b.post_recv(qp_b, 1, memory.sge(0, 64)), 0);
}

#[test]
fn loopback_is_unanswered_or_refused() {
    for (rule, expected) in [("unanswered", libc::ETIMEDOUT), ("refused", libc::EINVAL)] {
        let mut host = Host::open(&fabric(&format!("thunderbolt,loopback={rule}")), 0);
        let qps = [host.queue_pair(1), host.queue_pair(1)];
        assert_eq!(host.to_init(qps[0]), 0);
        assert_eq!(host.to_rtr(qps[0], &host, qps[1]), expected, "{rule}");
    }
}

/// Memory that was registered late is unknown to the queue pair, or it is not.
#[test]
fn registering_late() {
    for (rule, expected) in [("yes", -libc::EFAULT), ("no", 0)] {
        let mut two = two(&format!("thunderbolt,register_first={rule}"));
        let late = two.b.memory(16_384);
        assert_eq!(two.b.post_recv(two.qp_b, 1, late.sge(0, 64)), expected, "{rule}");
    }
}

#[test]
fn limits_are_numbers() {
    let mut host = Host::open(&fabric("thunderbolt,regions=2,domains=1,reported_queue_pairs=40"), 0);
    host.memory(16_384);
    host.memory(16_384);
    let base = crate::support::raw::aligned(16_384);
    // SAFETY: a live domain and context, and an allocation of that length.
    unsafe {
        assert!((host.verbs.reg_mr)(host.pd, base.cast(), 16_384, 1).is_null());
        assert_eq!(errno(), libc::ENOMEM);
        assert!((host.verbs.alloc_pd)(host.context).is_null());
        let mut attributes = sys::ibv_device_attr::default();
        assert_eq!((host.verbs.query_device)(host.context, &mut attributes), 0);
        assert_eq!((attributes.max_qp, attributes.max_mr, attributes.max_pd), (40, 2, 1));
    }
}

/// Immediate data is the device's, whatever the rules of matching.
#[test]
fn immediate_data_arrives_under_any_rules() {
    for profile in
        ["classic", "classic,matching=frames", "classic,matching=frames,lint=yes", "classic,matching=packets"]
    {
        let two = two(profile);
        assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 64)), 0);
        let mut sge = two.mem_a.sge(0, 64);
        let mut request = send_wr(2, &raw mut sge, sys::IBV_SEND_SIGNALED);
        (request.opcode, request.imm_data) = (sys::ibv_wr_opcode::IBV_WR_SEND_WITH_IMM, 7);
        // SAFETY: a live queue pair and a chain of one request.
        assert_eq!(unsafe { sys::ibv_post_send(two.qp_a, &mut request, &mut null_mut()) }, 0);
        let received = two.b.wait(1)[0];
        assert_eq!(
            (received.imm_data, received.wc_flags & sys::IBV_WC_WITH_IMM),
            (7, sys::IBV_WC_WITH_IMM),
            "{profile}"
        );
    }
}

/// The rules of matching and the unit of depth are two things; a lint changes neither.
#[test]
fn matching_does_not_depend_on_the_unit_of_depth() {
    for profile in ["classic,matching=frames", "classic,matching=frames,lint=yes"] {
        let two = two(profile);
        assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 3 * FRAME)), 0);
        assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 2 * FRAME)), 0);
        let received = two.b.wait(1)[0];
        assert_eq!((received.status, received.byte_len as usize), (status::IBV_WC_SUCCESS, 2 * FRAME), "{profile}");
        assert_eq!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
    }
    // What fits is no mismatch; what does not goes on into the next receive.
    let mispaired = two("classic,matching=mispairing");
    for (id, length, wanted) in [(1, 2 * FRAME, status::IBV_WC_SUCCESS), (2, FRAME, status::IBV_WC_LOC_LEN_ERR)] {
        assert_eq!(mispaired.b.post_recv(mispaired.qp_b, id, mispaired.mem_b.sge(0, length)), 0);
        assert_eq!(mispaired.a.post_send(mispaired.qp_a, id, mispaired.mem_a.sge(0, 2 * FRAME)), 0);
        assert_eq!(mispaired.b.wait(1)[0].status, wanted);
    }
    assert_eq!(mispaired.b.post_recv(mispaired.qp_b, 3, mispaired.mem_b.sge(0, FRAME)), 0);
    assert_eq!(mispaired.b.wait(1)[0].wr_id, 3);
    let two = two("classic,matching=packets");
    assert_eq!(two.a.post_send(two.qp_a, 9, two.mem_a.sge(0, 2 * FRAME)), 0);
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, FRAME)), 0);
    two.b.wait(1);
    assert!(two.a.poll().is_empty(), "the second frame has no receive yet");
    assert_eq!(two.b.post_recv(two.qp_b, 2, two.mem_b.sge(0, FRAME)), 0);
    assert_eq!((two.b.wait(1)[0].wr_id, two.a.wait(1)[0].wr_id), (2, 9));
}
