//! Cables, hosts, addresses, time.
#![allow(unsafe_code)]

use super::fabric;
use crate::support::raw::{Host, errno, two_on};
use crate::support::{SHORT, eventually, fabrics};
use rdma::soft::{End, Fabric, Profile, Topology};
use rdma::{ErrorKind, Gid, GidKind, Provider};
use rdma_sys::{ibv_port_state as port_state, ibv_wc_status as status};
use std::time::Duration;

/// With the cable out both ports are DOWN, and connections are silent: no completion, no event. Plugged in again, they go on.
#[test]
fn a_cable_is_pulled_and_plugged_in() {
    let two = two_on(fabrics::mesh(2), 255);
    two.fabric.set_cable(0, false).unwrap();
    assert_eq!([two.a.port().state, two.b.port().state], [port_state::IBV_PORT_DOWN; 2]);
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 8)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 8)), 0);
    std::thread::sleep(SHORT);
    assert!(two.a.poll().is_empty() && two.b.poll().is_empty());
    two.fabric.set_cable(0, true).unwrap();
    assert_eq!((two.a.wait(1)[0].wr_id, two.b.wait(1)[0].wr_id), (2, 1));
}

/// The same by plan: at a frame, and at a call.
#[test]
fn a_plan_pulls_a_cable() {
    let two = two_on(fabric("at frame 3 pull 0; at call 400 plug 0"), 255);
    for id in 0..5 {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 8)), 0);
    }
    let mut sent = 0;
    for id in 0..5 {
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 8)), 0);
        sent += two.a.poll().len();
    }
    assert_eq!(sent, 3);
    assert_eq!(two.a.port().state, port_state::IBV_PORT_DOWN);
    eventually("the cable", || {
        sent += two.a.poll().len();
        sent == 5
    });
    assert_eq!(two.b.wait(5).len(), 5);
    let trace = two.fabric.trace();
    assert!(
        trace.lines()[0].contains("pulled out") && trace.lines()[1].contains("call 400: cable 0 is plugged"),
        "{trace}"
    );
}

#[test]
fn a_host_is_switched_off() {
    let fabric = fabric("at call 8 off 1; at call 16 on 1");
    let host = Host::open(&fabric, 0);
    assert_eq!(host.port().state, port_state::IBV_PORT_ACTIVE);
    eventually("off", || host.port().state == port_state::IBV_PORT_DOWN);
    // SAFETY: an open context.
    assert!(unsafe { (host.verbs.alloc_pd)(host.context) }.is_null());
    assert_eq!(errno(), libc::EOPNOTSUPP);
    eventually("on", || host.port().state == port_state::IBV_PORT_ACTIVE);
}

/// The IPv4 address comes late, then changes: waiting finds the first, and a connection with it is a stale GID after that.
#[test]
fn addresses_come_late_and_change() {
    let fabric = fabric("at call 40 gid 0 0 1 ::ffff:169.254.9.9; at call 200 gid 0 0 1 ::ffff:169.254.8.8");
    fabric.set_gid(End { host: 0, device: 0 }, 1, Gid::ZERO).unwrap();
    let context = Provider::soft(&fabric.host(0).unwrap()).unwrap().first_active().unwrap().open().unwrap();
    let port = context.port(1).unwrap();
    let entry = port.wait_gid(GidKind::Ipv4Mapped, Duration::from_secs(20)).unwrap();
    assert_eq!(entry.gid(), Gid::from_ipv4([169, 254, 9, 9].into()));
    let domain = context.protection_domain().unwrap();
    let completions = context.completion_queue(16).unwrap();
    let mut prepared = domain.queue_pair(&completions).build().unwrap();
    let mine = prepared.publish().unwrap();
    let far = Provider::soft(&fabric.host(1).unwrap()).unwrap().first_active().unwrap().open().unwrap();
    let (far_domain, far_completions) = (far.protection_domain().unwrap(), far.completion_queue(16).unwrap());
    let mut other = far_domain.queue_pair(&far_completions).build().unwrap();
    let theirs = other.publish().unwrap();
    eventually("the change", || {
        fabric.gids(End { host: 0, device: 0 }).unwrap()[1] != entry.gid() || {
            let _ = port.gids();
            false
        }
    });
    let failed = prepared.connect(&theirs).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::StaleGid, "{failed}");
    let _ = mine;
}

/// After so long without traffic a queue pair is dead: posts succeed, and nothing completes (tmc/gojaccl: about 23 minutes).
/// Traffic keeps it alive.
#[test]
fn idle_queue_pairs_die() {
    let two = two_on(fabric("idle 23m"), 255);
    let exchange = |id| {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 8)), 0);
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 8)), 0);
    };
    for id in 0..3 {
        two.fabric.pass_time(Duration::from_secs(20 * 60));
        exchange(id);
        assert_eq!((two.a.wait(1)[0].status, two.b.wait(1)[0].wr_id), (status::IBV_WC_SUCCESS, id));
    }
    two.fabric.pass_time(Duration::from_secs(24 * 60));
    exchange(3);
    exchange(4);
    std::thread::sleep(SHORT);
    assert!(two.a.poll().is_empty() && two.b.poll().is_empty());
    assert!(two.fabric.trace().lines()[0].contains("is dead"), "{}", two.fabric.trace());
}

/// Without a plan there is nothing to tell, and time changes nothing.
#[test]
fn without_a_plan_nothing_happens() {
    let fabric = Fabric::new(Topology::mesh(2).unwrap(), Profile::thunderbolt().with_faults("seed 4".parse().unwrap()));
    fabric.pass_time(Duration::from_secs(1 << 40));
    let two = two_on(fabric, 255);
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 8)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 8)), 0);
    assert_eq!((two.a.wait(1).len(), two.b.wait(1).len()), (1, 1));
    assert!(two.fabric.trace().lines().is_empty());
}
