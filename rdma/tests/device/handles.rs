//! Pointers that are no live object, and objects that are still in use.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::raw::{Host, errno};
use rdma_sys as sys;
use std::ptr::{null_mut, without_provenance_mut};

/// A pointer that is nothing of the device's.
fn invented<T>() -> *mut T {
    without_provenance_mut(0x1000)
}

#[test]
fn null_and_invented_pointers_are_errors() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let verbs = host.verbs;
    let is_null = |pointer: *mut sys::ibv_pd| {
        assert!(pointer.is_null());
        assert_eq!(errno(), libc::EINVAL);
    };
    let check = |address: usize| {
        // SAFETY: the device checks each pointer against what it has made before it follows it: that is what is tested.
        unsafe {
            let context = without_provenance_mut::<sys::ibv_context>(address);
            let pd = without_provenance_mut::<sys::ibv_pd>(address);
            let mr = without_provenance_mut::<sys::ibv_mr>(address);
            let cq = without_provenance_mut::<sys::ibv_cq>(address);
            let qp = without_provenance_mut::<sys::ibv_qp>(address);
            let device = without_provenance_mut::<sys::ibv_device>(address);
            assert!((verbs.open_device)(device).is_null());
            assert!((verbs.get_device_name)(device).is_null());
            assert_eq!((verbs.close_device)(context), libc::EINVAL);
            assert_eq!((verbs.query_device)(context, &mut Default::default()), libc::EINVAL);
            assert_eq!((verbs.query_port)(context, 1, &mut Default::default()), libc::EINVAL);
            assert_eq!((verbs.query_gid)(context, 1, 0, &mut Default::default()), -1);
            is_null((verbs.alloc_pd)(context));
            is_null((verbs.create_cq)(context, 1, null_mut(), null_mut(), 0).cast::<sys::ibv_pd>());
            assert_eq!((verbs.dealloc_pd)(pd), libc::EINVAL);
            is_null((verbs.reg_mr)(pd, null_mut(), 1, 1).cast::<sys::ibv_pd>());
            is_null((verbs.create_qp)(pd, &mut host.init_attr(1)).cast::<sys::ibv_pd>());
            assert_eq!((verbs.dereg_mr)(mr), libc::EINVAL);
            assert_eq!((verbs.destroy_cq)(cq), libc::EINVAL);
            assert_eq!((verbs.modify_qp)(qp, &mut Default::default(), 0), libc::EINVAL);
            assert_eq!((verbs.query_qp)(qp, &mut Default::default(), 0, &mut Default::default()), libc::EINVAL);
            assert_eq!((verbs.destroy_qp)(qp), libc::EINVAL);
            (verbs.free_device_list)(without_provenance_mut(address));
        }
    };
    check(0);
    check(invented::<u8>().addr());
    // A live object of another kind.
    check(host.pd.addr() + 8);
}

#[test]
fn null_arguments_are_errors() {
    let mut host = Host::open(&fabrics::mesh(2), 0);
    let qp = host.queue_pair(1);
    let verbs = host.verbs;
    // SAFETY: live objects; the null arguments are what is tested.
    unsafe {
        assert_eq!((verbs.query_device)(host.context, null_mut()), libc::EINVAL);
        assert_eq!((verbs.query_port)(host.context, 1, null_mut()), libc::EINVAL);
        assert_eq!((verbs.query_gid)(host.context, 1, 0, null_mut()), -1);
        assert!((verbs.create_qp)(host.pd, null_mut()).is_null());
        assert_eq!((verbs.modify_qp)(qp, null_mut(), 1), libc::EINVAL);
        assert_eq!((verbs.query_qp)(qp, null_mut(), 1, null_mut()), libc::EINVAL);
        let ops = &(*host.context).ops;
        let mut bad = null_mut();
        assert_eq!((ops.post_send.unwrap())(null_mut(), null_mut(), &mut bad), libc::EINVAL);
        assert_eq!((ops.post_recv.unwrap())(null_mut(), null_mut(), null_mut()), libc::EINVAL);
        assert_eq!((ops.poll_cq.unwrap())(null_mut(), 1, null_mut()), -libc::EINVAL);
        assert_eq!((ops.poll_cq.unwrap())(host.cq, 1, null_mut()), -libc::EINVAL);
        assert_eq!((ops.poll_cq.unwrap())(host.cq, -1, &mut Default::default()), -libc::EINVAL);
        assert_eq!((ops.poll_cq.unwrap())(host.cq, 0, null_mut()), 0);
        // An empty chain is nothing to do.
        assert_eq!((ops.post_send.unwrap())(qp, null_mut(), null_mut()), 0);
        let list = (verbs.get_device_list)(null_mut());
        assert!(!list.is_null());
        (verbs.free_device_list)(list);
    }
}

#[test]
fn nothing_is_freed_twice() {
    let fabric = fabrics::mesh(2);
    let host = Host::open(&fabric, 0);
    let verbs = host.verbs;
    // SAFETY: each pointer is used after its object was freed, which the device notices: that is what is tested.
    unsafe {
        let context = (verbs.open_device)((*host.context).device);
        let pd = (verbs.alloc_pd)(context);
        let cq = (verbs.create_cq)(context, 1, null_mut(), null_mut(), 0);
        assert_eq!((verbs.destroy_cq)(cq), 0);
        assert_eq!((verbs.destroy_cq)(cq), libc::EINVAL);
        assert_eq!((verbs.dealloc_pd)(pd), 0);
        assert_eq!((verbs.dealloc_pd)(pd), libc::EINVAL);
        assert_eq!((verbs.close_device)(context), 0);
        assert_eq!((verbs.close_device)(context), libc::EINVAL);
        let list = (verbs.get_device_list)(null_mut());
        (verbs.free_device_list)(list);
        (verbs.free_device_list)(list);
    }
}

#[test]
fn parents_are_busy_while_children_live() {
    let mut host = Host::open(&fabrics::mesh(2), 0);
    let memory = host.memory(16384);
    let verbs = host.verbs;
    // SAFETY: live objects.
    unsafe {
        assert_eq!((verbs.dealloc_pd)(host.pd), libc::EBUSY);
        host.deregister(memory);
        let qp = host.queue_pair(1);
        assert_eq!((verbs.dealloc_pd)(host.pd), libc::EBUSY);
        assert_eq!((verbs.destroy_cq)(host.cq), libc::EBUSY);
        host.destroy(qp);
    }
}

/// Closing a device asks nothing, as in rdma-core; what was made from it lives on until it is destroyed.
#[test]
fn a_device_closes_with_children() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let verbs = host.verbs;
    // SAFETY: live objects.
    unsafe {
        let list = (verbs.get_device_list)(null_mut());
        let context = (verbs.open_device)(*list);
        (verbs.free_device_list)(list);
        let pd = (verbs.alloc_pd)(context);
        let cq = (verbs.create_cq)(context, 16, null_mut(), null_mut(), 0);
        assert_eq!((verbs.close_device)(context), 0);
        assert_eq!((verbs.close_device)(context), libc::EINVAL);
        assert_eq!((verbs.alloc_pd)(context), null_mut());
        assert_eq!((verbs.destroy_cq)(cq), 0);
        assert_eq!((verbs.dealloc_pd)(pd), 0);
    }
}

/// A queue pair takes completion queues of its own context only.
#[test]
fn objects_of_two_opens_do_not_mix() {
    let fabric = fabrics::mesh(2);
    let (one, two) = (Host::open(&fabric, 0), Host::open(&fabric, 0));
    for mut init in [
        sys::ibv_qp_init_attr { send_cq: two.cq, ..one.init_attr(1) },
        sys::ibv_qp_init_attr { recv_cq: two.cq, ..one.init_attr(1) },
        sys::ibv_qp_init_attr { send_cq: null_mut(), ..one.init_attr(1) },
        sys::ibv_qp_init_attr { recv_cq: invented(), ..one.init_attr(1) },
        // The wrong kind of object.
        sys::ibv_qp_init_attr { send_cq: one.pd.cast(), ..one.init_attr(1) },
    ] {
        // SAFETY: a live domain; the queues are checked before they are used: that is what is tested.
        assert!(unsafe { (one.verbs.create_qp)(one.pd, &mut init) }.is_null());
        assert_eq!(errno(), libc::EINVAL);
    }
}
