//! The states of a queue pair: exactly the masks of Apple TN3205, exactly these values, and nothing changed by a refusal.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::raw::{self, Host, number};
use rdma::soft::Fabric;
use rdma_sys::{self as sys, QpAttrMask as Mask, ibv_qp_state as state};

struct Ready {
    a: Host,
    b: Host,
    qp_a: *mut sys::ibv_qp,
    qp_b: *mut sys::ibv_qp,
    fabric: Fabric,
}

fn ready() -> Ready {
    let fabric = fabrics::mesh(2);
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (qp_a, qp_b) = (a.queue_pair(8), b.queue_pair(8));
    Ready { a, b, qp_a, qp_b, fabric }
}

impl Ready {
    /// A modification that must be refused with this errno and leave the state alone.
    #[track_caller]
    fn refused(&self, attributes: sys::ibv_qp_attr, mask: Mask, errno: i32, what: &str) {
        let before = self.a.state(self.qp_a);
        assert_eq!(self.a.modify(self.qp_a, attributes, mask), errno, "{what}");
        assert_eq!(self.a.state(self.qp_a), before, "{what}");
    }

    /// Every mask that lacks one bit of the right one, or has one more, must be refused.
    fn masks_are_exact(&self, attributes: sys::ibv_qp_attr, right: Mask) {
        for bit in (0..26).map(|bit| Mask::from_bits_retain(1 << bit)) {
            self.refused(attributes, right ^ bit, libc::EINVAL, &format!("mask {right:?} but {bit:?}"));
        }
        self.refused(attributes, Mask::from_bits_retain(right.bits() | 1 << 31), libc::EINVAL, "an unknown bit");
    }
}

#[test]
fn to_init() {
    let ready = ready();
    let (attributes, mask) = raw::init();
    ready.masks_are_exact(attributes, mask);
    for (wrong, what) in [
        (sys::ibv_qp_attr { port_num: 0, ..attributes }, "port 0"),
        (sys::ibv_qp_attr { port_num: 2, ..attributes }, "port 2"),
        (sys::ibv_qp_attr { pkey_index: 1, ..attributes }, "pkey 1"),
        (sys::ibv_qp_attr { qp_access_flags: 8, ..attributes }, "remote atomics"),
    ] {
        ready.refused(wrong, mask, libc::EINVAL, what);
    }
    // All three flags, as MLX has it.
    assert_eq!(ready.a.modify(ready.qp_a, sys::ibv_qp_attr { qp_access_flags: 7, ..attributes }, mask), 0);
    assert_eq!(ready.a.state(ready.qp_a), state::IBV_QPS_INIT);
}

#[test]
fn to_rtr() {
    let ready = ready();
    let (attributes, mask) = raw::rtr(&ready.b, ready.qp_b);
    ready.refused(attributes, mask, libc::EINVAL, "from RESET");
    assert_eq!(ready.a.to_init(ready.qp_a), 0);
    ready.masks_are_exact(attributes, mask);
    let path = attributes.ah_attr;
    let with = |path| sys::ibv_qp_attr { ah_attr: path, ..attributes };
    ready.refused(with(sys::ibv_ah_attr { is_global: 0, ..path }), mask, libc::EINVAL, "is_global 0");
    ready.refused(with(sys::ibv_ah_attr { port_num: 2, ..path }), mask, libc::EINVAL, "port 2");
    for mtu in [0, 6, u32::MAX] {
        ready.refused(sys::ibv_qp_attr { path_mtu: sys::ibv_mtu(mtu), ..attributes }, mask, libc::EINVAL, "mtu");
    }
    let mut wrong = path;
    for index in [3, 15, 16, 255] {
        wrong.grh.sgid_index = index;
        ready.refused(with(wrong), mask, libc::EINVAL, "an empty sgid entry");
    }
    // The other family: errno 60 on a Mac (ml-explore/mlx issue 3467 and pull request 3468).
    wrong.grh.sgid_index = 0;
    ready.refused(with(wrong), mask, libc::ETIMEDOUT, "link-local here, IPv4 there");
    let mut wrong = path;
    wrong.grh.dgid = sys::ibv_gid { raw: [0; 16] };
    ready.refused(with(wrong), mask, libc::EINVAL, "an empty dgid");
    wrong.grh.dgid = sys::ibv_gid { raw: [0xaa; 16] };
    ready.refused(with(wrong), mask, libc::ETIMEDOUT, "a dgid that is nobody's");
    wrong.grh.dgid = ready.a.gid(1);
    ready.refused(with(wrong), mask, libc::ETIMEDOUT, "a dgid of this end");
    // Not enforced: the hop limit (TN3205 has 1, perftest 255), and MTU 1024 does as well (MLX).
    let mut other = path;
    other.grh.hop_limit = 255;
    let small = sys::ibv_qp_attr { path_mtu: sys::ibv_mtu::IBV_MTU_1024, ..with(other) };
    assert_eq!(ready.a.modify(ready.qp_a, small, mask), 0);
    assert_eq!(ready.a.state(ready.qp_a), state::IBV_QPS_RTR);
    ready.refused(attributes, mask, libc::EINVAL, "RTR a second time");
}

#[test]
fn link_local_addresses_work_among_themselves() {
    let ready = ready();
    let (mut attributes, mask) = raw::rtr(&ready.b, ready.qp_b);
    attributes.ah_attr.grh.dgid = ready.b.gid(0);
    attributes.ah_attr.grh.sgid_index = 0;
    assert_eq!(ready.a.to_init(ready.qp_a), 0);
    assert_eq!(ready.a.modify(ready.qp_a, attributes, mask), 0);
}

/// Two cables: the GID of the other one is not on this one.
#[test]
fn a_gid_of_another_cable_is_not_reached() {
    let fabric = fabrics::ring(2);
    let mut a = Host::open_device(&fabric, 0, 0);
    let mut near = Host::open_device(&fabric, 1, 1);
    let mut far = Host::open_device(&fabric, 1, 0);
    let qp = a.queue_pair(8);
    let (near_qp, far_qp) = (near.queue_pair(8), far.queue_pair(8));
    assert_eq!(a.to_init(qp), 0);
    assert_eq!(a.to_rtr(qp, &far, far_qp), libc::ETIMEDOUT);
    assert_eq!(a.state(qp), state::IBV_QPS_INIT);
    assert_eq!(a.to_rtr(qp, &near, near_qp), 0);
}

#[test]
fn a_port_that_is_down_reaches_nobody() {
    let ready = ready();
    assert_eq!(ready.a.to_init(ready.qp_a), 0);
    ready.fabric.set_cable(0, false).unwrap();
    assert_eq!(ready.a.to_rtr(ready.qp_a, &ready.b, ready.qp_b), libc::ETIMEDOUT);
    ready.fabric.set_cable(0, true).unwrap();
    assert_eq!(ready.a.to_rtr(ready.qp_a, &ready.b, ready.qp_b), 0);
}

#[test]
fn to_rts() {
    let ready = ready();
    let (attributes, mask) = raw::rts();
    ready.refused(attributes, mask, libc::EINVAL, "from RESET");
    assert_eq!(ready.a.to_init(ready.qp_a), 0);
    ready.refused(attributes, mask, libc::EINVAL, "from INIT");
    assert_eq!(ready.a.to_rtr(ready.qp_a, &ready.b, ready.qp_b), 0);
    ready.masks_are_exact(attributes, mask);
    assert_eq!(ready.a.to_rts(ready.qp_a), 0);
    assert_eq!(ready.a.state(ready.qp_a), state::IBV_QPS_RTS);
    ready.refused(attributes, mask, libc::EINVAL, "RTS a second time");
}

#[test]
fn no_state_but_these() {
    let ready = ready();
    for next in [4, 5, 7, u32::MAX] {
        let attributes = sys::ibv_qp_attr { qp_state: state(next), ..Default::default() };
        ready.refused(attributes, Mask::STATE, libc::EINVAL, "an unknown state");
    }
    ready.refused(Default::default(), Mask::empty(), libc::EINVAL, "no state at all");
    ready.refused(Default::default(), Mask::ACCESS_FLAGS, libc::EINVAL, "no state at all");
}

#[test]
fn reset_and_err_are_reached_from_everywhere() {
    let to = |next| sys::ibv_qp_attr { qp_state: next, ..Default::default() };
    for steps in 0..=3 {
        for last in [state::IBV_QPS_RESET, state::IBV_QPS_ERR] {
            let Ready { a, b, qp_a, qp_b, fabric: _fabric } = ready();
            let up =
                [&|| a.to_init(qp_a), &|| a.to_rtr(qp_a, &b, qp_b), &|| a.to_rts(qp_a) as _] as [&dyn Fn() -> i32; 3];
            up[..steps].iter().for_each(|step| assert_eq!(step(), 0));
            assert_eq!(a.modify(qp_a, to(last), Mask::STATE), 0);
            assert_eq!(a.modify(qp_a, to(last), Mask::STATE), 0, "again");
            assert_eq!(a.modify(qp_a, to(last), Mask::STATE | Mask::PORT), libc::EINVAL);
            assert_eq!(a.modify(qp_a, to(state::IBV_QPS_RESET), Mask::STATE), 0);
            // And up again.
            up.iter().for_each(|step| assert_eq!(step(), 0));
            // SAFETY: live; C code reads the state there.
            assert_eq!(unsafe { (*qp_a).state }, state::IBV_QPS_RTS);
        }
    }
}

#[test]
fn query_tells_what_was_set() {
    let ready = ready();
    ready.a.connect(ready.qp_a, &ready.b, ready.qp_b);
    let (attributes, init) = ready.a.query(ready.qp_a);
    assert_eq!(attributes.qp_state, state::IBV_QPS_RTS);
    assert_eq!(attributes.cur_qp_state, state::IBV_QPS_RTS);
    assert_eq!(attributes.dest_qp_num, number(ready.qp_b));
    assert_eq!((attributes.rq_psn, attributes.sq_psn), (7, 7));
    assert_eq!(attributes.path_mtu, sys::ibv_mtu::IBV_MTU_4096);
    assert_eq!((attributes.port_num, attributes.ah_attr.is_global, attributes.ah_attr.grh.sgid_index), (1, 1, 1));
    assert_eq!(init.qp_type, sys::ibv_qp_type::IBV_QPT_UC);
    assert_eq!((init.send_cq, init.recv_cq), (ready.a.cq, ready.a.cq));
}

/// The number is the receive path shifted by eight (0x900 was seen: hellas-ai/thunderbolt-ibverbs), and is not used again
/// soon.
#[test]
fn numbers_are_paths() {
    let mut host = Host::open(&fabrics::mesh(2), 0);
    let first = host.queue_pair(1);
    assert_eq!(number(first), 0x900);
    host.destroy(first);
    let second = host.queue_pair(1);
    assert_eq!(number(second), 0xa00);
}

/// Frames have no sequence number (hellas-ai/thunderbolt-ibverbs), so ends that disagree about theirs exchange messages all
/// the same. Inferred.
#[test]
fn sequence_numbers_are_not_compared() {
    let mut ready = ready();
    let (mem_a, mem_b) = (ready.a.memory(16384), ready.b.memory(16384));
    let (qp_a, qp_b) = (ready.qp_a, ready.qp_b);
    for (host, qp, peer, peer_qp, psn) in [(&ready.a, qp_a, &ready.b, qp_b, 1), (&ready.b, qp_b, &ready.a, qp_a, 2)] {
        assert_eq!(host.to_init(qp), 0);
        let (attributes, mask) = raw::rtr(peer, peer_qp);
        assert_eq!(host.modify(qp, sys::ibv_qp_attr { rq_psn: 100 * psn, ..attributes }, mask), 0);
        let (attributes, mask) = raw::rts();
        assert_eq!(host.modify(qp, sys::ibv_qp_attr { sq_psn: psn, ..attributes }, mask), 0);
    }
    assert_eq!(ready.b.post_recv(qp_b, 1, mem_b.sge(0, 64)), 0);
    assert_eq!(ready.a.post_send(qp_a, 2, mem_a.sge(0, 64)), 0);
    assert_eq!((ready.a.wait(1)[0].wr_id, ready.b.wait(1)[0].wr_id), (2, 1));
}
