//! Calls that fail, from the function table and through the safe API.
#![allow(unsafe_code)]

use super::fabric;
use crate::support::raw::{self, Host, errno};
use rdma::{ErrorKind, Provider};
use rdma_sys as sys;
use std::ptr::null_mut;

/// The second call of each kind fails, with the errno that was asked for, and the third does what the second would have.
#[test]
fn every_call_can_fail() {
    // What a call does when it is asked for the second time, as an errno.
    type Call = fn(&mut Host) -> i32;
    /// What a call that makes something does; it is destroyed again.
    fn made<T>(pointer: *mut T, destroy: impl Fn(*mut T) -> i32) -> i32 {
        if pointer.is_null() {
            return errno();
        }
        destroy(pointer)
    }
    /// What a call that destroys does, and does it again if it failed.
    fn again(destroy: impl Fn() -> i32) -> i32 {
        let result = destroy();
        assert!(result == 0 || destroy() == 0);
        result
    }
    let calls: [(&str, Call); 12] = [
        ("ibv_query_device", |host| {
            let mut attributes = sys::ibv_device_attr::default();
            // SAFETY: an open context.
            unsafe { (host.verbs.query_device)(host.context, &mut attributes) }
        }),
        ("ibv_query_port", |host| {
            let mut attributes = sys::ibv_port_attr::default();
            // SAFETY: an open context.
            unsafe { (host.verbs.query_port)(host.context, 1, &mut attributes) }
        }),
        ("ibv_query_gid", |host| {
            let mut gid = sys::ibv_gid::default();
            // SAFETY: an open context.
            match unsafe { (host.verbs.query_gid)(host.context, 1, 0, &mut gid) } {
                0 => 0,
                failed => {
                    assert_eq!(failed, -1);
                    errno()
                }
            }
        }),
        ("ibv_alloc_pd", |host| {
            // SAFETY: an open context, and a domain that was just made.
            made(unsafe { (host.verbs.alloc_pd)(host.context) }, |pd| unsafe { (host.verbs.dealloc_pd)(pd) })
        }),
        ("ibv_dealloc_pd", |host| {
            // SAFETY: an open context.
            let pd = unsafe { (host.verbs.alloc_pd)(host.context) };
            // SAFETY: a domain that was just made, and is still there if that failed.
            again(|| unsafe { (host.verbs.dealloc_pd)(pd) })
        }),
        ("ibv_reg_mr", |host| {
            let base = raw::aligned(16_384);
            // SAFETY: a live domain and an allocation of that length.
            let mr = unsafe { (host.verbs.reg_mr)(host.pd, base.cast(), 16_384, 1) };
            // SAFETY: a registration that was just made.
            made(mr, |mr| unsafe { (host.verbs.dereg_mr)(mr) })
        }),
        ("ibv_dereg_mr", |host| {
            let base = raw::aligned(16_384);
            // SAFETY: a live domain and an allocation of that length.
            let mr = unsafe { (host.verbs.reg_mr)(host.pd, base.cast(), 16_384, 1) };
            // SAFETY: a registration that was just made, and is still there if that failed.
            again(|| unsafe { (host.verbs.dereg_mr)(mr) })
        }),
        ("ibv_create_cq", |host| {
            // SAFETY: an open context.
            let cq = unsafe { (host.verbs.create_cq)(host.context, 1, null_mut(), null_mut(), 0) };
            // SAFETY: a queue that was just made.
            made(cq, |cq| unsafe { (host.verbs.destroy_cq)(cq) })
        }),
        ("ibv_create_qp", |host| {
            let mut init = host.init_attr(1);
            // SAFETY: live objects.
            let qp = unsafe { (host.verbs.create_qp)(host.pd, &mut init) };
            // SAFETY: a queue pair that was just made.
            made(qp, |qp| unsafe { (host.verbs.destroy_qp)(qp) })
        }),
        ("ibv_modify_qp", |host| {
            let qp = host.queue_pair(1);
            host.to_init(qp)
        }),
        ("ibv_destroy_qp", |host| {
            let mut init = host.init_attr(1);
            // SAFETY: live objects.
            let qp = unsafe { (host.verbs.create_qp)(host.pd, &mut init) };
            // SAFETY: a queue pair that was just made, and is still there if that failed.
            again(|| unsafe { (host.verbs.destroy_qp)(qp) })
        }),
        ("ibv_poll_cq", |host| {
            let mut wc = sys::ibv_wc::default();
            // SAFETY: a live queue, and room for one.
            -unsafe { sys::ibv_poll_cq(host.cq, 1, &mut wc) }
        }),
    ];
    for (name, call) in calls {
        // Opening a host makes a domain and a completion queue: the first of their kind.
        let first = matches!(name, "ibv_alloc_pd" | "ibv_create_cq");
        let which = if first { 3 } else { 2 };
        let mut host = Host::open(&fabric(&format!("fail {name} {which} EBUSY")), 0);
        let results = [(); 3].map(|()| call(&mut host));
        assert_eq!(results, [0, libc::EBUSY, 0], "{name}");
    }
}

/// Posting fails in the profile's style, with nothing posted.
#[test]
fn a_post_can_fail() {
    let two = raw::two_on(fabric("fail ibv_post_send 1 EFAULT times 2; fail ibv_post_recv 2 ENOMEM"), 255);
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 8)), 0);
    assert_eq!(two.b.post_recv(two.qp_b, 2, two.mem_b.sge(0, 8)), -libc::ENOMEM);
    for _ in 0..2 {
        assert_eq!(two.a.post_send(two.qp_a, 3, two.mem_a.sge(0, 8)), -libc::EFAULT);
    }
    assert!(two.a.poll().is_empty());
    assert_eq!(two.a.post_send(two.qp_a, 4, two.mem_a.sge(0, 8)), 0);
    assert_eq!((two.a.wait(1)[0].wr_id, two.b.wait(1)[0].wr_id), (4, 1));
}

/// A failed transition to RTR leaves a queue pair that is good for nothing but to be destroyed.
#[test]
fn a_transition_can_fail_half_way() {
    let fabric = fabric("half-rtr 1 EBUSY");
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (qp_a, qp_b) = (a.queue_pair(1), b.queue_pair(1));
    assert_eq!((a.to_init(qp_a), b.to_init(qp_b)), (0, 0));
    assert_eq!(a.to_rtr(qp_a, &b, qp_b), libc::EBUSY);
    assert_eq!(a.to_rtr(qp_a, &b, qp_b), libc::EINVAL, "not twice on the same queue pair");
    let fresh = a.queue_pair(1);
    a.connect(fresh, &b, qp_b);
}

/// Through the safe API: typed, with the call's name, and nothing is lost.
#[test]
fn failures_are_typed_errors() {
    let fabric = fabric("fail ibv_reg_mr 1 ENOMEM; fail ibv_create_qp 1 EBUSY; fail ibv_destroy_qp 1 EIO");
    let provider = Provider::soft(&fabric.host(0).unwrap()).unwrap();
    let context = provider.first_active().unwrap().open().unwrap();
    let domain = context.protection_domain().unwrap();
    let completions = context.completion_queue(64).unwrap();
    let error = domain.allocate(4096).unwrap_err();
    assert!(error.to_string().contains("ibv_reg_mr") && error.to_string().contains("ENOMEM"), "{error}");
    let error = domain.queue_pair(&completions).requests(4).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitReached, "{error}");
    // A destroy that fails costs the queue pair, not the program.
    drop(domain.queue_pair(&completions).requests(4).build().unwrap());
    assert_eq!(fabric.trace().lines().len(), 3, "{}", fabric.trace());
    assert!(fabric.trace().to_string().contains("ibv_destroy_qp, call 1, fails with EIO"));
    assert!(domain.queue_pair(&completions).requests(4).build().is_ok());
}

/// A host without a list, and a plan that names what there is not.
#[test]
fn what_cannot_be() {
    let provider = Provider::soft(&fabric("fail ibv_get_device_list 1 ENOSYS").host(0).unwrap()).unwrap();
    assert!(provider.devices().is_err());
    assert_eq!(provider.devices().unwrap().len(), 1);
    let plan = "at call 1 pull 7".parse().unwrap();
    let profile = rdma::soft::Profile::thunderbolt().with_faults(plan);
    let topology = rdma::soft::Topology::mesh(2).unwrap();
    let error = rdma::soft::Fabric::join_with("nobody", topology, profile, 0).unwrap_err();
    assert!(error.to_string().contains("cable 7"), "{error}");
}
