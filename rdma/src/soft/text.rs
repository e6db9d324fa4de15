//! The texts of `ibv_wc_status_str` and its relatives, in our own words.

use core::ffi::{CStr, c_char};
use rdma_sys as sys;

pub(crate) unsafe extern "C" fn wc_status_str(status: sys::ibv_wc_status) -> *const c_char {
    use sys::ibv_wc_status as s;
    let text: &CStr = match status {
        s::IBV_WC_SUCCESS => c"success",
        s::IBV_WC_LOC_LEN_ERR => c"local length error",
        s::IBV_WC_LOC_QP_OP_ERR => c"local queue pair operation error",
        s::IBV_WC_LOC_EEC_OP_ERR => c"local end-to-end context operation error",
        s::IBV_WC_LOC_PROT_ERR => c"local protection error",
        s::IBV_WC_WR_FLUSH_ERR => c"work request flushed",
        s::IBV_WC_MW_BIND_ERR => c"memory window bind error",
        s::IBV_WC_BAD_RESP_ERR => c"bad response",
        s::IBV_WC_LOC_ACCESS_ERR => c"local access error",
        s::IBV_WC_REM_INV_REQ_ERR => c"invalid request at the peer",
        s::IBV_WC_REM_ACCESS_ERR => c"access error at the peer",
        s::IBV_WC_REM_OP_ERR => c"operation error at the peer",
        s::IBV_WC_RETRY_EXC_ERR => c"retries used up",
        s::IBV_WC_RNR_RETRY_EXC_ERR => c"receiver-not-ready retries used up",
        s::IBV_WC_FATAL_ERR => c"fatal error",
        s::IBV_WC_RESP_TIMEOUT_ERR => c"response timed out",
        s::IBV_WC_GENERAL_ERR => c"general error",
        _ => c"unknown status",
    };
    text.as_ptr()
}

pub(crate) unsafe extern "C" fn port_state_str(state: sys::ibv_port_state) -> *const c_char {
    use sys::ibv_port_state as s;
    let text: &CStr = match state {
        s::IBV_PORT_NOP => c"PORT_NOP",
        s::IBV_PORT_DOWN => c"PORT_DOWN",
        s::IBV_PORT_INIT => c"PORT_INIT",
        s::IBV_PORT_ARMED => c"PORT_ARMED",
        s::IBV_PORT_ACTIVE => c"PORT_ACTIVE",
        s::IBV_PORT_ACTIVE_DEFER => c"PORT_ACTIVE_DEFER",
        _ => c"unknown port state",
    };
    text.as_ptr()
}

pub(crate) unsafe extern "C" fn node_type_str(node: sys::ibv_node_type) -> *const c_char {
    use sys::ibv_node_type as n;
    let text: &CStr = match node {
        n::IBV_NODE_CA => c"channel adapter",
        n::IBV_NODE_SWITCH => c"switch",
        n::IBV_NODE_ROUTER => c"router",
        n::IBV_NODE_RNIC => c"iWARP adapter",
        sys::ibv_node_type(100) => c"Thunderbolt",
        _ => c"unknown node type",
    };
    text.as_ptr()
}

pub(crate) unsafe extern "C" fn event_type_str(event: sys::ibv_event_type) -> *const c_char {
    use sys::ibv_event_type as e;
    let text: &CStr = match event {
        e::IBV_EVENT_CQ_ERR => c"completion queue error",
        e::IBV_EVENT_QP_FATAL => c"queue pair error",
        e::IBV_EVENT_DEVICE_FATAL => c"device error",
        e::IBV_EVENT_PORT_ACTIVE => c"port active",
        e::IBV_EVENT_PORT_ERR => c"port down",
        e::IBV_EVENT_GID_CHANGE => c"GID table changed",
        _ => c"unknown event",
    };
    text.as_ptr()
}
