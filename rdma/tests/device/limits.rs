//! How many there are of what.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::raw::{Host, aligned, errno};
use rdma_sys as sys;
use std::ptr::null_mut;

/// TN3205: up to 10 UC queue pairs. The eleventh fails with EBUSY, per device and across contexts
/// (ml-explore/mlx pull request 4209), although the attribute says 11.
#[test]
fn ten_queue_pairs_a_device_across_contexts() {
    let fabric = fabrics::mesh(2);
    let (mut one, mut two) = (Host::open(&fabric, 0), Host::open(&fabric, 0));
    let first = one.queue_pair(64);
    for _ in 0..4 {
        one.queue_pair(64);
    }
    for _ in 0..5 {
        two.queue_pair(64);
    }
    for host in [&one, &two] {
        let mut init = host.init_attr(64);
        // SAFETY: live objects.
        assert!(unsafe { (host.verbs.create_qp)(host.pd, &mut init) }.is_null());
        assert_eq!(errno(), libc::EBUSY);
    }
    one.destroy(first);
    two.queue_pair(64);
    // The other end of the cable is another device.
    Host::open(&fabric, 1).queue_pair(64);
}

/// The 101st registration fails with ENOMEM, per device (ml-explore/mlx issue 3162; adurham/exo).
#[test]
fn a_hundred_regions_a_device_across_domains() {
    let fabric = fabrics::mesh(2);
    let (mut one, mut two) = (Host::open(&fabric, 0), Host::open(&fabric, 0));
    let first = one.memory(16384);
    for _ in 0..49 {
        one.memory(16384);
    }
    for _ in 0..50 {
        two.memory(16384);
    }
    let memory = aligned(16384);
    // SAFETY: a live domain and memory of that length.
    unsafe {
        assert!((two.verbs.reg_mr)(two.pd, memory.cast(), 16384, 1).is_null());
        assert_eq!(errno(), libc::ENOMEM);
        one.deregister(first);
        let mr = (two.verbs.reg_mr)(two.pd, memory.cast(), 16384, 1);
        assert!(!mr.is_null());
        assert_eq!((two.verbs.dereg_mr)(mr), 0);
    }
}

#[test]
fn domains_and_completion_queues_have_limits() {
    let host = Host::open(&fabrics::mesh(2), 0);
    // SAFETY: an open context; everything is freed.
    unsafe {
        let domains: Vec<_> = (0..10).map(|_| (host.verbs.alloc_pd)(host.context)).collect();
        assert!(domains.iter().all(|domain| !domain.is_null()));
        assert!((host.verbs.alloc_pd)(host.context).is_null());
        assert_eq!(errno(), libc::ENOMEM);
        let create = |capacity| (host.verbs.create_cq)(host.context, capacity, null_mut(), null_mut(), 0);
        let queues: Vec<_> = (0..10).map(|_| create(1)).collect();
        assert!(queues.iter().all(|queue| !queue.is_null()));
        assert!(create(1).is_null());
        assert_eq!(errno(), libc::ENOMEM);
        for domain in domains {
            assert_eq!((host.verbs.dealloc_pd)(domain), 0);
        }
        for queue in queues {
            assert_eq!((host.verbs.destroy_cq)(queue), 0);
        }
    }
}

/// TN3205 uses 4096 entries, and more were refused (Aileuxe/MCDMA).
#[test]
fn a_completion_queue_has_1_to_4096_entries() {
    let host = Host::open(&fabrics::mesh(2), 0);
    // SAFETY: an open context; what is made is destroyed.
    unsafe {
        for capacity in [1, 64, 4096] {
            let queue = (host.verbs.create_cq)(host.context, capacity, null_mut(), null_mut(), 0);
            assert_eq!((*queue).cqe, capacity);
            assert_eq!((host.verbs.destroy_cq)(queue), 0);
        }
        for capacity in [0, -1, i32::MIN, 4097, i32::MAX] {
            assert!((host.verbs.create_cq)(host.context, capacity, null_mut(), null_mut(), 0).is_null(), "{capacity}");
            assert_eq!(errno(), libc::EINVAL);
        }
    }
}

/// UC only: errno 102 on a Mac, which is EOPNOTSUPP there (ml-explore/mlx pull request 4530).
#[test]
fn only_uc_queue_pairs_can_be_made() {
    let host = Host::open(&fabrics::mesh(2), 0);
    for (kind, expected) in [
        (sys::ibv_qp_type::IBV_QPT_RC, libc::EOPNOTSUPP),
        (sys::ibv_qp_type::IBV_QPT_UD, libc::EOPNOTSUPP),
        (sys::ibv_qp_type(0), libc::EINVAL),
        (sys::ibv_qp_type(u32::MAX), libc::EINVAL),
    ] {
        let mut init = sys::ibv_qp_init_attr { qp_type: kind, ..host.init_attr(64) };
        // SAFETY: live objects.
        assert!(unsafe { (host.verbs.create_qp)(host.pd, &mut init) }.is_null());
        assert_eq!(errno(), expected, "{kind:?}");
    }
}

#[test]
fn one_scatter_element_no_shared_queue() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let plain = host.init_attr(64);
    let cases = [
        sys::ibv_qp_init_attr { cap: sys::ibv_qp_cap { max_send_sge: 2, ..plain.cap }, ..plain },
        sys::ibv_qp_init_attr { cap: sys::ibv_qp_cap { max_recv_sge: 2, ..plain.cap }, ..plain },
        sys::ibv_qp_init_attr { srq: std::ptr::dangling_mut(), ..plain },
    ];
    for mut init in cases {
        // SAFETY: live objects; the shared receive queue is refused before anybody follows it.
        assert!(unsafe { (host.verbs.create_qp)(host.pd, &mut init) }.is_null());
        assert_eq!(errno(), libc::EINVAL);
    }
}

#[test]
fn there_are_no_channels_and_no_notifications() {
    let host = Host::open(&fabrics::mesh(2), 0);
    assert!(host.verbs.create_comp_channel.is_none() && host.verbs.get_async_event.is_none());
    // SAFETY: live objects; the channel is refused before anybody follows it.
    unsafe {
        assert_eq!((*host.context).async_fd, -1);
        assert_eq!(sys::ibv_req_notify_cq(host.cq, 0), libc::EOPNOTSUPP);
        assert!((host.verbs.create_cq)(host.context, 1, null_mut(), std::ptr::dangling_mut(), 0).is_null());
        assert_eq!(errno(), libc::EOPNOTSUPP);
    }
}
