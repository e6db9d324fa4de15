//! Group C: verbs applications in general. Setting up.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::pair::{Unconnected, device, fabric};
use crate::support::raw::{self, Host, aligned, errno, send_wr, two};
use rdma::{Endpoint, ErrorKind, Gid, GidKind, Guid, Mtu};
use rdma_sys::{self as sys, ibv_wc_status as status};
use std::ptr::null_mut;

/// Local and remote GID of different kinds: said before RTR.
#[test]
fn c12_kinds_of_gids_must_match() {
    let fabric = fabric();
    let (a, b) = (Unconnected::open(&device(&fabric, 0), 4096), Unconnected::open(&device(&fabric, 1), 4096));
    let publish = |end: &Unconnected, kind| {
        let mut prepared = end.domain.queue_pair(&end.completions).build().unwrap();
        let port = end.context.port(1).unwrap();
        let endpoint = prepared.endpoint(&port, port.gid_of_kind(kind).unwrap()).unwrap();
        (prepared, endpoint)
    };
    let (_there, peer) = publish(&b, GidKind::Ipv4Mapped);
    let error = publish(&a, GidKind::LinkLocal).0.connect(&peer).unwrap_err();
    assert_eq!((error.kind(), error.failed_call()), (ErrorKind::NoUsableGid, None));
    let (there, peer) = publish(&b, GidKind::LinkLocal);
    let (here, local) = publish(&a, GidKind::LinkLocal);
    let _here = here.connect(&peer).unwrap();
    there.connect(&local).unwrap();
}

/// Bytes on the wire are big endian, whatever the machine; GUIDs print in canonical order.
#[test]
fn c13_the_exchange_has_golden_bytes() {
    let gid = Gid::from_bytes(std::array::from_fn(|index| index as u8));
    let endpoint = Endpoint::new(0x0102, 0x01_0203, 0xab_cdef, gid, Mtu::B4096);
    let golden = *b"RDMA\x01\x05\x01\x02\x00\x01\x02\x03\x00\xab\xcd\xef\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f";
    assert_eq!(endpoint.to_bytes(), golden);
    assert_eq!(Endpoint::from_bytes(&golden).unwrap(), endpoint);
    assert_eq!(Guid::from_bytes([1, 2, 3, 4, 5, 6, 7, 8]).to_string(), "0102:0304:0506:0708");
}

/// Inline capacity is what was granted: none here.
#[test]
fn c16_inline_capacity_is_granted_as_none() {
    let fabric = fabrics::mesh(2);
    let host = Host::open(&fabric, 0);
    let mut init = host.init_attr(8);
    init.cap.max_inline_data = 220;
    // SAFETY: live objects; what is made is destroyed.
    unsafe {
        let qp = (host.verbs.create_qp)(host.pd, &mut init);
        assert!(!qp.is_null());
        assert_eq!(host.query(qp).0.cap.max_inline_data, 0);
        assert_eq!((host.verbs.destroy_qp)(qp), 0);
    }
    let two = two();
    let mut sge = sys::ibv_sge { lkey: 0, ..two.mem_a.sge(0, 1) };
    let mut wr = send_wr(1, &mut sge, sys::IBV_SEND_INLINE);
    // SAFETY: a live queue pair and a request over mapped memory.
    assert_eq!(unsafe { sys::ibv_post_send(two.qp_a, &mut wr, &mut null_mut()) }, -libc::EINVAL);
}

/// Receives can be posted from INIT on, so that none is missed: what the peer sends right after its RTS arrives.
#[test]
fn c19_receives_before_the_connection_is_ready() {
    let fabric = fabrics::mesh(2);
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (mem_a, mem_b) = (a.memory(16384), b.memory(16384));
    let (qp_a, qp_b) = (a.queue_pair(8), b.queue_pair(8));
    assert_eq!(b.post_recv(qp_b, 1, mem_b.sge(0, 64)), -libc::EINVAL, "RESET");
    assert_eq!(b.to_init(qp_b), 0);
    assert_eq!(b.post_recv(qp_b, 1, mem_b.sge(0, 64)), 0, "INIT");
    a.connect(qp_a, &b, qp_b);
    assert_eq!(b.to_rtr(qp_b, &a, qp_a), 0);
    assert_eq!(a.post_send(qp_a, 2, mem_a.sge(0, 64)), 0);
    assert_eq!(b.wait(1)[0].wr_id, 1);
}

/// Both ends use the smaller MTU; a value that is none is refused.
#[test]
fn c23_the_path_mtu_is_agreed_on() {
    let fabric = fabrics::mesh(2);
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (qp_a, qp_b) = (a.queue_pair(1), b.queue_pair(1));
    assert_eq!(a.to_init(qp_a), 0);
    let (good, mask) = raw::rtr(&b, qp_b);
    // 8192 does not exist, and would be above the port's active MTU.
    assert_eq!(a.modify(qp_a, sys::ibv_qp_attr { path_mtu: sys::ibv_mtu(6), ..good }, mask), libc::EINVAL);
    let small = sys::ibv_qp_attr { path_mtu: sys::ibv_mtu::IBV_MTU_1024, ..good };
    assert_eq!(a.modify(qp_a, small, mask), 0);
    assert_eq!(a.query(qp_a).0.path_mtu, sys::ibv_mtu::IBV_MTU_1024);
    // The exchange carries it: tests/safe/connecting.rs, `the_smaller_mtu_is_used`.
}

/// Access flags: the table of what registers, and what a region without local write can be used for.
#[test]
fn c26_access_flags() {
    let fabric = fabrics::mesh(2);
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let base = aligned(16384);
    let try_flags = |access: u32| {
        // SAFETY: a live domain and memory of that length.
        unsafe {
            let mr = (a.verbs.reg_mr)(a.pd, base.cast(), 16384, access as i32);
            if mr.is_null() { errno() } else { (a.verbs.dereg_mr)(mr) }
        }
    };
    assert_eq!([0, 1, 7].map(try_flags), [0; 3]);
    assert_eq!([2, 8, 6, 1 << 6, 1 << 31].map(try_flags), [libc::EINVAL; 5]);
    let (send_only, source) = (b.memory_with(16384, 0), a.memory_with(16384, 0));
    let (qp_a, qp_b) = (a.queue_pair(8), b.queue_pair(8));
    a.connect(qp_a, &b, qp_b);
    b.connect(qp_b, &a, qp_a);
    source.write(0, &[1; 64]);
    assert_eq!(b.post_recv(qp_b, 1, send_only.sge(0, 64)), 0);
    assert_eq!(a.post_send(qp_a, 2, source.sge(0, 64)), 0);
    assert_eq!(a.wait(1)[0].status, status::IBV_WC_SUCCESS, "sending needs no local write");
    assert_eq!(b.wait(1)[0].status, status::IBV_WC_LOC_PROT_ERR);
    assert!(send_only.read(0, 64).iter().all(|&byte| byte == 0), "not a byte is written");
}
