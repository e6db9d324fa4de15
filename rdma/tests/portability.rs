//! What works under one profile and not under another is told, where it is done.
#![allow(unsafe_code)]

mod support;

use crate::support::fabrics;
use crate::support::raw::{Host, Two, aligned, send_wr, two_on};
use rdma::soft::{Fabric, Habit, Topology};
use rdma_sys as sys;
use std::ptr::null_mut;

fn fabric(profile: &str) -> Fabric {
    fabrics::new(Topology::mesh(2).unwrap(), format!("{profile},lint=yes").parse().unwrap())
}

fn habits(fabric: &Fabric) -> Vec<Habit> {
    fabric.findings().iter().map(|finding| finding.habit()).collect()
}

/// A message as every device takes it: nothing is found.
fn plain_exchange(two: &Two) {
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 4096)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 4000)), 0);
    assert_eq!((two.a.wait(1).len(), two.b.wait(1).len()), (1, 1));
}

#[test]
fn a_portable_program_has_none() {
    for profile in ["thunderbolt", "classic"] {
        let two = two_on(fabric(profile), 255);
        plain_exchange(&two);
        assert_eq!(habits(&two.fabric), [], "{profile}");
    }
}

type Act = fn(&mut Two);

/// Each habit, and that nothing else is found.
#[test]
fn each_is_found() {
    let cases: [(&str, Act, &[Habit]); 10] = [
        (
            "thunderbolt",
            |two| {
                assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 8192)), 0);
                assert_eq!(two.a.post_send(two.qp_a, 7, two.mem_a.sge(0, 8192)), 0);
                assert_eq!((two.a.wait(1).len(), two.b.wait(1).len()), (1, 1));
            },
            &[Habit::ManyFrames, Habit::ManyFrames],
        ),
        (
            "classic",
            |two| {
                assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 64)), 0);
                assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 0)), 0);
                assert_eq!((two.a.wait(1).len(), two.b.wait(1).len()), (1, 1));
            },
            &[Habit::EmptyMessage],
        ),
        (
            "thunderbolt",
            |two| {
                assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 8)), 0);
                assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 64)), 0);
                assert_eq!((two.a.wait(1).len(), two.b.wait(1).len()), (1, 1));
            },
            &[Habit::LateReceive],
        ),
        (
            "classic",
            |two| {
                assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 8192)), 0);
                assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 8)), 0);
                assert_eq!((two.a.wait(1).len(), two.b.wait(1).len()), (1, 1));
            },
            &[Habit::ManyFrames, Habit::LooseReceive],
        ),
        (
            "classic",
            |two| {
                assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 64)), 0);
                let flags = sys::IBV_SEND_INLINE | sys::IBV_SEND_SIGNALED;
                assert_eq!(two.a.post_send_flags(two.qp_a, 2, two.mem_a.sge(0, 8), flags), 0);
                assert_eq!((two.a.wait(1).len(), two.b.wait(1).len()), (1, 1));
            },
            &[Habit::Inline],
        ),
        (
            "classic",
            |two| {
                assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 64)), 0);
                let mut sge = two.mem_a.sge(0, 8);
                let mut wr = send_wr(2, &mut sge, sys::IBV_SEND_SIGNALED);
                wr.opcode = sys::ibv_wr_opcode::IBV_WR_SEND_WITH_IMM;
                let mut bad = null_mut();
                // SAFETY: a live queue pair and a request over registered memory.
                assert_eq!(unsafe { sys::ibv_post_send(two.qp_a, &mut wr, &mut bad) }, 0);
                assert_eq!((two.a.wait(1).len(), two.b.wait(1).len()), (1, 1));
            },
            &[Habit::Immediate],
        ),
        (
            "thunderbolt",
            |two| {
                assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 64)), 0);
                assert_eq!(two.a.post_send_flags(two.qp_a, 2, two.mem_a.sge(0, 8), 0), 0);
                assert_eq!(two.b.wait(1).len(), 1);
            },
            &[Habit::Unsignaled],
        ),
        (
            "classic",
            |two| {
                let late = two.b.memory(16_384);
                assert_eq!(two.b.post_recv(two.qp_b, 1, late.sge(0, 64)), 0);
            },
            &[Habit::LateRegistration],
        ),
        (
            "thunderbolt",
            |two| {
                let all = sys::IBV_ACCESS_LOCAL_WRITE | sys::IBV_ACCESS_REMOTE_WRITE;
                two.a.memory_with(16_384, all);
            },
            &[Habit::RemoteAccess],
        ),
        (
            "thunderbolt",
            |two| {
                two.a.memory(0xfa_0000 + 16_384);
            },
            &[Habit::LargeRegion],
        ),
    ];
    for (profile, act, expected) in cases {
        let mut two = two_on(fabric(profile), 255);
        act(&mut two);
        assert_eq!(habits(&two.fabric), expected, "{profile}");
    }
}

#[test]
fn objects_and_addresses() {
    let fabric = fabric("classic");
    let mut host = Host::open(&fabric, 0);
    let base = aligned(32_768).wrapping_add(4096);
    // SAFETY: a live domain, and within an allocation.
    let mr = unsafe { (host.verbs.reg_mr)(host.pd, base.cast(), 4096, 1) };
    assert!(!mr.is_null());
    // SAFETY: registered just now.
    assert_eq!(unsafe { (host.verbs.dereg_mr)(mr) }, 0);
    assert_eq!(habits(&fabric), [Habit::UnalignedRegion]);
    for _ in 0..4 {
        host.queue_pair(1);
    }
    assert_eq!(habits(&fabric).last(), Some(&Habit::ManyQueuePairs));
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (qp_a, qp_b) = (a.queue_pair(1), b.queue_pair(1));
    assert_eq!(a.to_init(qp_a), 0);
    let (mut attributes, mask) = support::raw::rtr(&b, qp_b);
    attributes.ah_attr.grh.dgid = b.gid(0);
    attributes.ah_attr.grh.sgid_index = 0;
    assert_eq!(a.modify(qp_a, attributes, mask), 0);
    assert!(habits(&fabric).contains(&Habit::FirstGid));
    assert_eq!(b.to_init(qp_b), 0);
    let memory = b.memory(16_384);
    assert_eq!(b.post_recv(qp_b, 1, memory.sge(0, 64)), 0);
    assert!(habits(&fabric).contains(&Habit::EarlyReceive));
    for _ in 0..101 {
        b.memory(16_384);
    }
    assert!(habits(&fabric).contains(&Habit::ManyRegions));
}

/// Counted, not repeated; and it says where.
#[test]
fn a_finding_says_where_and_what_to_do() {
    let two = two_on(fabric("thunderbolt"), 255);
    for id in 40..45 {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 8192)), 0);
    }
    let findings = two.fabric.findings();
    assert_eq!(findings.len(), 1);
    let finding = &findings[0];
    assert_eq!((finding.call(), finding.wr_id(), finding.times()), ("ibv_post_recv", Some(40), 5));
    let text = finding.to_string();
    for word in ["host 1 rdma_en2", "ibv_post_recv", "0x28", "ManyFrames", "thunderbolt_27", "4096", "5 times"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(format!("{finding:#}").contains("portability"), "the stack names this file's functions");
}
