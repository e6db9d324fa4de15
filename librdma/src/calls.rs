//! The calls that the device has.

use core::ffi::{c_char, c_int, c_uint, c_void};
use rdma_sys::*;
use thunderbolt::soft::c_face::VERBS;

/// Exports a call of the table under its C name.
macro_rules! export {
    ($($name:ident: $field:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => { $(
        /// See the manual page of this name.
        ///
        /// # Safety
        ///
        /// The arguments are what the manual page asks for.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: passed on to the caller.
            unsafe { (VERBS.$field)($($argument),*) }
        }
    )* };
}

/// The same for those that a table may lack, and this one has.
macro_rules! export_optional {
    ($($name:ident: $field:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => { $(
        /// See the manual page of this name.
        ///
        /// # Safety
        ///
        /// The arguments are what the manual page asks for.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            const CALL: unsafe extern "C" fn($($type),*) -> $result = match VERBS.$field {
                Some(call) => call,
                None => panic!("the table lacks it"),
            };
            // SAFETY: passed on to the caller.
            unsafe { CALL($($argument),*) }
        }
    )* };
}

export! {
    ibv_get_device_list: get_device_list(count: *mut c_int) -> *mut *mut ibv_device;
    ibv_free_device_list: free_device_list(list: *mut *mut ibv_device);
    ibv_get_device_name: get_device_name(device: *mut ibv_device) -> *const c_char;
    ibv_open_device: open_device(device: *mut ibv_device) -> *mut ibv_context;
    ibv_close_device: close_device(context: *mut ibv_context) -> c_int;
    ibv_query_device: query_device(context: *mut ibv_context, attributes: *mut ibv_device_attr) -> c_int;
    ibv_query_port: query_port(context: *mut ibv_context, port: u8, attributes: *mut ibv_port_attr) -> c_int;
    ibv_query_gid: query_gid(context: *mut ibv_context, port: u8, index: c_int, gid: *mut ibv_gid) -> c_int;
    ibv_alloc_pd: alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    ibv_dealloc_pd: dealloc_pd(pd: *mut ibv_pd) -> c_int;
    ibv_reg_mr: reg_mr(pd: *mut ibv_pd, address: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr;
    ibv_dereg_mr: dereg_mr(mr: *mut ibv_mr) -> c_int;
    ibv_create_cq: create_cq(
        context: *mut ibv_context, capacity: c_int, user: *mut c_void, channel: *mut ibv_comp_channel, vector: c_int
    ) -> *mut ibv_cq;
    ibv_destroy_cq: destroy_cq(cq: *mut ibv_cq) -> c_int;
    ibv_create_qp: create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp;
    ibv_modify_qp: modify_qp(qp: *mut ibv_qp, attributes: *mut ibv_qp_attr, mask: c_int) -> c_int;
    ibv_query_qp: query_qp(
        qp: *mut ibv_qp, attributes: *mut ibv_qp_attr, mask: c_int, init: *mut ibv_qp_init_attr
    ) -> c_int;
    ibv_destroy_qp: destroy_qp(qp: *mut ibv_qp) -> c_int;
}

export_optional! {
    ibv_get_device_guid: get_device_guid(device: *mut ibv_device) -> u64;
    ibv_query_pkey: query_pkey(context: *mut ibv_context, port: u8, index: c_int, pkey: *mut u16) -> c_int;
    ibv_reg_mr_iova2: reg_mr_iova2(
        pd: *mut ibv_pd, address: *mut c_void, length: usize, iova: u64, access: c_uint
    ) -> *mut ibv_mr;
    ibv_query_qp_data_in_order: query_qp_data_in_order(qp: *mut ibv_qp, opcode: ibv_wr_opcode, flags: u32) -> c_int;
    ibv_wc_status_str: wc_status_str(status: ibv_wc_status) -> *const c_char;
    ibv_port_state_str: port_state_str(state: ibv_port_state) -> *const c_char;
    ibv_node_type_str: node_type_str(kind: ibv_node_type) -> *const c_char;
    ibv_event_type_str: event_type_str(event: ibv_event_type) -> *const c_char;
}
