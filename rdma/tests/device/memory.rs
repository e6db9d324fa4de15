//! Registering memory.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::raw::{Host, aligned, errno, two};
use rdma::soft::{Profile, Topology};
use rdma_sys as sys;
use std::ffi::c_int;
use std::ptr::without_provenance_mut;
use sys::ibv_wc_status as status;

const LOCAL_WRITE: u32 = sys::IBV_ACCESS_LOCAL_WRITE;

/// Tries to register, and takes it back. Returns the errno.
fn try_register(host: &Host, base: *mut u8, length: usize, access: u32) -> c_int {
    // SAFETY: a live domain; the device checks the range.
    unsafe {
        let mr = (host.verbs.reg_mr)(host.pd, base.cast(), length, access as c_int);
        if mr.is_null() {
            return errno();
        }
        assert_eq!((host.verbs.dereg_mr)(mr), 0);
        0
    }
}

/// TN3205: page-aligned. The page is that of Apple silicon, 16 KiB, also where the host's is smaller.
#[test]
fn memory_starts_at_a_page_of_16_kib() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let base = aligned(1 << 16);
    assert_eq!(try_register(&host, base, 1, LOCAL_WRITE), 0, "the length need not be a multiple");
    assert_eq!(try_register(&host, base, 16384, LOCAL_WRITE), 0);
    for offset in [1, 64, 4096, 8192] {
        assert_eq!(try_register(&host, base.wrapping_add(offset), 100, LOCAL_WRITE), libc::EINVAL, "{offset}");
    }
    assert_eq!(try_register(&host, base, 0, LOCAL_WRITE), libc::EINVAL);
    assert_eq!(try_register(&host, std::ptr::null_mut(), 16384, LOCAL_WRITE), libc::EINVAL);
    assert_eq!(try_register(&host, base, usize::MAX, LOCAL_WRITE), libc::EINVAL);
}

#[test]
fn the_page_can_be_set() {
    let profile = Profile::thunderbolt().with_page(4096).unwrap();
    let host = Host::open(&fabrics::new(Topology::mesh(2).unwrap(), profile), 0);
    let base = aligned(1 << 16);
    assert_eq!(try_register(&host, base.wrapping_add(4096), 100, LOCAL_WRITE), 0);
    assert_eq!(try_register(&host, base.wrapping_add(2048), 100, LOCAL_WRITE), libc::EINVAL);
}

/// REMOTE_WRITE and atomics need LOCAL_WRITE; unknown bits are refused, those that rdma-core calls optional ignored.
#[test]
fn access_flags_follow_the_rules() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let base = aligned(16384);
    for (access, expected) in [
        (0, 0),
        (LOCAL_WRITE, 0),
        (LOCAL_WRITE | sys::IBV_ACCESS_REMOTE_WRITE | sys::IBV_ACCESS_REMOTE_READ, 0),
        (sys::IBV_ACCESS_REMOTE_READ, 0),
        (sys::IBV_ACCESS_REMOTE_WRITE, libc::EINVAL),
        (sys::IBV_ACCESS_REMOTE_ATOMIC, libc::EINVAL),
        (LOCAL_WRITE | 1 << 20, 0),
        (LOCAL_WRITE | 1 << 7, libc::EINVAL),
        (1 << 31, libc::EINVAL),
    ] {
        assert_eq!(try_register(&host, base, 16384, access), expected, "{access:#x}");
    }
}

#[test]
fn what_is_not_mapped_or_not_writable_is_a_fault() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let page = 16384;
    // SAFETY: new mappings; what is unmapped is ours.
    unsafe {
        let map = |protection| {
            let base =
                libc::mmap(std::ptr::null_mut(), 8 * page, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            assert_ne!(base, libc::MAP_FAILED);
            let base = base.cast::<u8>();
            base.wrapping_add(base.addr().next_multiple_of(page) - base.addr())
        };
        let read_only = map(libc::PROT_READ);
        assert_eq!(try_register(&host, read_only, page, LOCAL_WRITE), libc::EFAULT);
        assert_eq!(try_register(&host, read_only, page, 0), 0, "to send from");
        let hole = map(libc::PROT_READ | libc::PROT_WRITE);
        assert_eq!(try_register(&host, hole, 4 * page, LOCAL_WRITE), 0);
        assert_eq!(libc::munmap(hole.wrapping_add(2 * page).cast(), page), 0);
        assert_eq!(try_register(&host, hole, 4 * page, LOCAL_WRITE), libc::EFAULT);
    }
}

/// A region that crosses a multiple of 4 GiB receives 4 GiB too low on a Mac (SQCU/mesh); here it is refused.
#[test]
fn no_region_crosses_a_multiple_of_4_gib() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let border = 0x2_0000_0000_usize;
    let base = without_provenance_mut::<u8>(border - 16384);
    // The range is invented: it is refused before anybody looks at it.
    assert_eq!(try_register(&host, base, 16385, LOCAL_WRITE), libc::EINVAL);
    assert_eq!(try_register(&host, without_provenance_mut(border), (1 << 32) + 1, LOCAL_WRITE), libc::EINVAL);
    assert_eq!(try_register(&host, base, 16384, LOCAL_WRITE), libc::EFAULT, "within, but not mapped");
}

/// The address under which the device knows memory must be its own: −102 on a Mac (SQCU/mesh).
#[test]
fn the_iova_is_the_address() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let base = aligned(16384);
    // SAFETY: a live domain and memory of that length.
    unsafe {
        let register = host.verbs.reg_mr_iova2.unwrap();
        let mr = register(host.pd, base.cast(), 16384, base as u64, 1);
        assert!(!mr.is_null());
        assert_eq!((host.verbs.dereg_mr)(mr), 0);
        assert!(register(host.pd, base.cast(), 16384, 0, 1).is_null());
        assert_eq!(errno(), libc::EOPNOTSUPP);
    }
}

/// The remote key is 0 on a Mac (tmc/gojaccl), so a program that mixes the two up sends with key 0.
#[test]
fn keys_are_small_and_the_remote_one_is_zero() {
    let mut host = Host::open(&fabrics::mesh(2), 0);
    let memory = host.memory_with(16384, 7);
    // SAFETY: registered.
    let (lkey, rkey, length) = unsafe { ((*memory.mr).lkey, (*memory.mr).rkey, (*memory.mr).length) };
    assert_eq!((lkey, rkey, length), (0x101, 0, 16384));
    let qp = host.queue_pair(1);
    assert_eq!(host.to_init(qp), 0);
    assert_eq!(host.post_recv(qp, 1, sys::ibv_sge { lkey: rkey, ..memory.sge(0, 64) }), -libc::EFAULT);
}

/// Memory that was registered after the queue pair left RESET is unknown to it: −14 at post (Anemll/mlx-rdma; adurham/exo).
#[test]
fn memory_is_registered_before_init() {
    let fabric = fabrics::mesh(2);
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (qp_a, qp_b) = (a.queue_pair(8), b.queue_pair(8));
    let early = a.memory(16384);
    a.connect(qp_a, &b, qp_b);
    b.connect(qp_b, &a, qp_a);
    let late = a.memory(16384);
    assert_eq!(a.post_recv(qp_a, 1, early.sge(0, 64)), 0);
    assert_eq!(a.post_recv(qp_a, 1, late.sge(0, 64)), -libc::EFAULT);
    assert_eq!(a.post_send(qp_a, 1, late.sge(0, 64)), -libc::EFAULT);
}

#[test]
fn memory_of_another_domain_is_a_fault() {
    let mut two = two();
    let host = &mut two.a;
    // SAFETY: an open context.
    let other = unsafe { (host.verbs.alloc_pd)(host.context) };
    let base = aligned(16384);
    // SAFETY: a live domain and memory of that length.
    let mr = unsafe { (host.verbs.reg_mr)(other, base.cast(), 16384, 1) };
    // SAFETY: registered.
    let lkey = unsafe { (*mr).lkey };
    let sge = sys::ibv_sge { addr: base as u64, length: 8, lkey };
    assert_eq!(host.post_send(two.qp_a, 1, sge), -libc::EFAULT);
    // SAFETY: live, each once.
    unsafe {
        assert_eq!((host.verbs.dereg_mr)(mr), 0);
        assert_eq!((host.verbs.dealloc_pd)(other), 0);
    }
}

/// Receives need local write; ranges stay within their region. Both show when the message comes, and nothing is written.
#[test]
fn forbidden_writes_fail_at_arrival() {
    let fabric = fabrics::mesh(2);
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (source, read_only, small) = (a.memory(65536), b.memory_with(16384, 0), b.memory(16384));
    let (qp_a, qp_b) = (a.queue_pair(64), b.queue_pair(64));
    a.connect(qp_a, &b, qp_b);
    b.connect(qp_b, &a, qp_a);
    source.write(0, &[7; 8192]);
    for length in [8, 4096] {
        assert_eq!(b.post_recv(qp_b, 1, read_only.sge(0, length)), 0);
        assert_eq!(b.post_recv(qp_b, 2, small.sge(16384 - length + 1, length)), 0);
        for id in [3, 4] {
            assert_eq!(a.post_send(qp_a, id, source.sge(0, length)), 0);
        }
        let received = b.wait(2);
        assert!(received.iter().all(|wc| wc.status == status::IBV_WC_LOC_PROT_ERR), "{received:?}");
        assert!(a.wait(2).iter().all(|wc| wc.status == status::IBV_WC_SUCCESS));
    }
    assert!(read_only.read(0, 16384).iter().all(|&byte| byte == 0));
    assert!(small.read(0, 16384).iter().all(|&byte| byte == 0));
    // And from outside of a region nothing is sent.
    assert_eq!(a.post_send(qp_a, 5, source.sge(65536 - 8, 16)), 0);
    assert_eq!(a.wait(1)[0].status, status::IBV_WC_LOC_PROT_ERR);
}

/// Classic verbs allow it, and the receive fails when its message comes.
#[test]
fn a_deregistered_region_is_not_written() {
    for length in [8, 4096] {
        let mut two = two();
        assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, length)), 0);
        let memory = two.mem_b;
        two.b.deregister(memory);
        assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, length)), 0);
        assert_eq!(two.b.wait(1)[0].status, status::IBV_WC_LOC_PROT_ERR);
        assert_eq!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
    }
}

/// The size that the attribute tells is not enforced before macOS 27 (Aileuxe/MCDMA; SQCU/mesh registered gigabytes).
#[test]
fn the_greatest_size_is_told_and_not_enforced() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let mut attr = sys::ibv_device_attr::default();
    // SAFETY: an open context.
    assert_eq!(unsafe { (host.verbs.query_device)(host.context, &mut attr) }, 0);
    let length = attr.max_mr_size as usize + 1;
    assert_eq!(try_register(&host, aligned(length), length, LOCAL_WRITE), 0);
}

/// Allocated memory, private and shared mappings (TN3205; ml-explore/mlx; SQCU/mesh); the same memory again, and in another
/// domain (MLX has one buffer in a domain for each device). Each registration has its own key, and all of them work.
#[test]
fn every_kind_of_memory_and_more_than_once() {
    const LENGTH: usize = 16384;
    let mut two = two();
    let map = |flags| {
        // SAFETY: a new mapping, twice as long as needed and never unmapped.
        let base = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), 2 * LENGTH, access, flags | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(base, libc::MAP_FAILED);
        let base = base.cast::<u8>();
        base.wrapping_add(base.addr().next_multiple_of(LENGTH) - base.addr())
    };
    let a = &mut two.a;
    // SAFETY: an open context.
    let other = unsafe { (a.verbs.alloc_pd)(a.context) };
    let kinds = [aligned(LENGTH), map(libc::MAP_PRIVATE), map(libc::MAP_SHARED)];
    let mut init = a.init_attr(8);
    // SAFETY: live objects.
    let qp = unsafe { (a.verbs.create_qp)(a.pd, &mut init) };
    let mut regions = Vec::new();
    for base in kinds {
        for domain in [a.pd, a.pd, other] {
            // SAFETY: live domains and memory of that length.
            let mr = unsafe { (a.verbs.reg_mr)(domain, base.cast(), LENGTH, LOCAL_WRITE as c_int) };
            assert!(!mr.is_null(), "errno {}", errno());
            // SAFETY: registered.
            regions.push((mr, unsafe { (*mr).lkey }, base, domain));
        }
    }
    let mut keys: Vec<_> = regions.iter().map(|region| region.1).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 9, "a key each");
    let qp_b = two.b.queue_pair(8);
    two.a.connect(qp, &two.b, qp_b);
    two.b.connect(qp_b, &two.a, qp);
    for (seed, &(_, lkey, base, _)) in regions.iter().filter(|region| region.3 == two.a.pd).enumerate() {
        two.mem_b.write(0, &[seed as u8 + 1; 5000]);
        // `mem_b` belongs to the same domain as qp_b, and was registered before it left RESET.
        assert_eq!(two.a.post_recv(qp, 1, sys::ibv_sge { addr: base as u64, length: 5000, lkey }), 0);
        assert_eq!(two.b.post_send(qp_b, 2, two.mem_b.sge(0, 5000)), 0);
        assert_eq!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
        two.b.wait(1);
        // SAFETY: 5000 bytes of ours, and nothing is under way.
        assert!(unsafe { std::slice::from_raw_parts(base, 5000) }.iter().all(|&byte| byte == seed as u8 + 1));
    }
    // SAFETY: live, each once, children before parents.
    unsafe {
        assert_eq!((two.a.verbs.destroy_qp)(qp), 0);
        for (mr, ..) in regions {
            assert_eq!((two.a.verbs.dereg_mr)(mr), 0);
        }
        assert_eq!((two.a.verbs.dealloc_pd)(other), 0);
    }
}
