//! The exported `ibv_query_port` is a frozen one: it fills the first 48 bytes of a structure that has become longer.
#![allow(unsafe_code)]

use super::end::{Shape, two};
use rdma_sys as sys;

/// What is written is a port, and nothing is written behind the structure.
#[test]
fn a_port_is_filled_as_far_as_the_library_knows_it() {
    const LENGTH: usize = size_of::<sys::ibv_port_attr>();
    const FROZEN: usize = 48;
    const { assert!(LENGTH > FROZEN) };
    #[repr(C)]
    struct Guarded {
        port: sys::ibv_port_attr,
        guard: [u8; 64],
    }
    let two = two(Shape::default());
    for end in [&two.a, &two.b] {
        let mut filled = Guarded { port: sys::ibv_port_attr::default(), guard: [0xa5; 64] };
        // SAFETY: an open context and a structure to fill.
        assert_eq!(unsafe { (end.verbs.query_port)(end.context, 1, &mut filled.port) }, 0);
        assert_eq!(filled.guard, [0xa5; 64]);
        assert_eq!(filled.port.state, sys::ibv_port_state::IBV_PORT_ACTIVE);
        assert!(filled.port.gid_tbl_len > 0 && filled.port.max_msg_sz > 0);
        // A port that is asked for twice is the same: what the library does not write is as it was.
        let mut again = Guarded { port: sys::ibv_port_attr::default(), guard: [0xa5; 64] };
        // SAFETY: as above.
        assert_eq!(unsafe { (end.verbs.query_port)(end.context, 1, &mut again.port) }, 0);
        // SAFETY: both were made with all bytes zero, so all of them have values.
        let bytes = |port: &sys::ibv_port_attr| unsafe { core::ptr::from_ref(port).cast::<[u8; LENGTH]>().read() };
        assert_eq!(bytes(&filled.port)[FROZEN..], bytes(&again.port)[FROZEN..]);
        assert_eq!(again.port.active_mtu, filled.port.active_mtu);
    }
}
