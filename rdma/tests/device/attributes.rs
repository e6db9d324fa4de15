//! What the device says of itself (Apple TN3205; listings by users of macOS 26 and 27).
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::raw::{Host, errno};
use rdma_sys as sys;
use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;

#[test]
fn a_device_is_thunderbolt_and_named_after_its_interface() {
    let fabric = fabrics::mesh(4);
    let host = Host::open(&fabric, 1);
    // SAFETY: calls as the ABI has them, on live objects.
    unsafe {
        let mut count = 0;
        let list = (host.verbs.get_device_list)(&mut count);
        assert_eq!(count, 3);
        let names: Vec<_> = (0..3)
            .map(|index| {
                let device = *list.add(index);
                assert_eq!((*device).transport_type, sys::ibv_transport_type(100));
                CStr::from_ptr((host.verbs.get_device_name)(device)).to_str().unwrap().to_owned()
            })
            .collect();
        // The order of a Mac with M3 Ultra, which is not that of the numbers.
        assert_eq!(names, ["rdma_en2", "rdma_en3", "rdma_en5"]);
        assert!((*list.add(3)).is_null());
        (host.verbs.free_device_list)(list);
    }
}

#[test]
fn device_attributes_are_those_of_macos_26() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let mut attr = sys::ibv_device_attr::default();
    // SAFETY: an open context.
    assert_eq!(unsafe { (host.verbs.query_device)(host.context, &mut attr) }, 0);
    assert_eq!((attr.max_qp, attr.max_cq, attr.max_pd, attr.max_mr), (11, 11, 11, 100));
    assert_eq!((attr.max_qp_wr, attr.max_sge, attr.max_cqe), (4095, 1, 4096));
    assert_eq!((attr.max_mr_size, attr.phys_port_cnt), (0xfa0000, 1));
    assert_eq!((attr.vendor_id, attr.vendor_part_id, attr.hw_ver, attr.device_cap_flags), (0, 0, 0, 0));
    assert_eq!((attr.max_qp_rd_atom, attr.max_srq), (0, 0));
    assert_eq!(attr.atomic_cap, sys::ibv_atomic_cap::IBV_ATOMIC_NONE);
    // SAFETY: the device of an open context.
    let guid = unsafe { (host.verbs.get_device_guid.unwrap())((*host.context).device) };
    assert_eq!(guid, attr.node_guid);
}

#[test]
fn port_attributes_are_those_of_macos_26() {
    let fabric = fabrics::mesh(2);
    let host = Host::open(&fabric, 0);
    let port = host.port();
    assert_eq!(port.state, sys::ibv_port_state::IBV_PORT_ACTIVE);
    assert_eq!((port.max_mtu, port.active_mtu), (sys::ibv_mtu::IBV_MTU_4096, sys::ibv_mtu::IBV_MTU_4096));
    assert_eq!((port.max_msg_sz, port.link_layer, port.lmc), (0x1000000, 100, 0));
    assert_eq!((port.active_width, port.active_speed), (4, 4));
    assert_eq!(port.lid, 1);
    assert_eq!(Host::open_device(&fabrics::mesh(3), 0, 1).port().lid, 2);
}

/// The exported `ibv_query_port` is the frozen symbol: it writes 48 bytes, whatever the structure's length is today
/// (rdma-core `verbs.c`; Aileuxe/MCDMA's stub).
#[test]
fn query_port_writes_the_first_48_bytes_only() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let mut bytes = [0xa5_u8; 64];
    // SAFETY: an open context, and 64 bytes, which is more than the structure has.
    assert_eq!(unsafe { (host.verbs.query_port)(host.context, 1, bytes.as_mut_ptr().cast()) }, 0);
    assert!(bytes[48..].iter().all(|&byte| byte == 0xa5));
    assert_eq!(bytes[46], 100, "link layer");
}

#[test]
fn other_ports_and_entries_are_refused() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let mut port = MaybeUninit::<sys::ibv_port_attr>::uninit();
    let mut gid = MaybeUninit::<sys::ibv_gid>::uninit();
    // SAFETY: an open context and structures to fill.
    unsafe {
        for number in [0, 2, 255] {
            assert_eq!((host.verbs.query_port)(host.context, number, port.as_mut_ptr()), libc::EINVAL);
        }
        for (number, index) in [(0, 0), (2, 0), (1, -1), (1, 16), (1, c_int::MAX)] {
            assert_eq!((host.verbs.query_gid)(host.context, number, index, gid.as_mut_ptr()), -1);
            assert_eq!(errno(), libc::EINVAL);
        }
        let mut pkey = 0_u16;
        assert_eq!((host.verbs.query_pkey.unwrap())(host.context, 1, 0, &mut pkey), 0);
        assert_eq!(pkey, 0xffff);
    }
}

/// GIDs mirror the interface's addresses: link-local from the MAC, IPv4-mapped, a stable link-local (TN3205's sample).
#[test]
fn the_gid_table_is_that_of_tn3205() {
    let host = Host::open(&fabrics::mesh(2), 0);
    // SAFETY: plain bytes.
    let table: Vec<[u8; 16]> = (0..16).map(|index| unsafe { host.gid(index).raw }).collect();
    assert_eq!(table[0][..8], [0xfe, 0x80, 0, 0, 0, 0, 0, 0]);
    assert_eq!(table[0][11..13], [0xff, 0xfe], "EUI-64 of a MAC");
    assert_eq!(table[1][..12], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
    assert_eq!(table[2][..8], [0xfe, 0x80, 0, 0, 0, 0, 0, 0]);
    assert_ne!(table[0], table[2]);
    assert!(table[3..].iter().all(|gid| gid == &[0; 16]));
}

/// Both ends have to have the cable, and be on; whether anybody opened the other one does not matter.
#[test]
fn a_port_is_down_with_the_cable_out_or_a_host_off() {
    let fabric = fabrics::mesh(2);
    let host = Host::open(&fabric, 0);
    let down = || {
        assert_eq!(host.port().state, sys::ibv_port_state::IBV_PORT_DOWN);
        // SAFETY: an open context.
        assert!(unsafe { (host.verbs.alloc_pd)(host.context) }.is_null());
        assert_eq!(errno(), libc::EOPNOTSUPP);
    };
    let up = || assert_eq!(host.port().state, sys::ibv_port_state::IBV_PORT_ACTIVE);
    up();
    fabric.set_cable(0, false).unwrap();
    down();
    fabric.set_cable(0, true).unwrap();
    up();
    for number in [0, 1] {
        fabric.set_host(number, false).unwrap();
        down();
        fabric.set_host(number, true).unwrap();
        up();
    }
    assert!(fabric.set_cable(1, false).is_err());
    assert!(fabric.set_host(2, false).is_err());
}

#[test]
fn a_device_without_a_cable_is_down() {
    let host = fabrics::mesh(1).host(0).unwrap();
    let provider = rdma::Provider::soft(&host).unwrap();
    let context = provider.devices().unwrap()[0].open().unwrap();
    assert!(!context.port(1).unwrap().is_active());
    assert_eq!(context.protection_domain().unwrap_err().kind(), rdma::ErrorKind::PortDown);
}

/// Applications look their texts up by these calls.
#[test]
fn the_texts_exist() {
    let host = Host::open(&fabrics::mesh(2), 0);
    // SAFETY: the calls take any number and return strings that live for ever.
    unsafe {
        let status = host.verbs.wc_status_str.unwrap();
        for number in [0, 1, 5, 21, 22, u32::MAX] {
            assert!(!CStr::from_ptr(status(sys::ibv_wc_status(number))).is_empty());
        }
        let state = CStr::from_ptr((host.verbs.port_state_str.unwrap())(sys::ibv_port_state::IBV_PORT_ACTIVE));
        assert_eq!(state.to_str(), Ok("PORT_ACTIVE"));
        assert!(!CStr::from_ptr((host.verbs.node_type_str.unwrap())(sys::ibv_node_type(100))).is_empty());
        assert!(!CStr::from_ptr((host.verbs.event_type_str.unwrap())(sys::ibv_event_type(99))).is_empty());
    }
}
