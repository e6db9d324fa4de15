// Generated from include/thunderbolt_verbs.h by bindgen/regenerate.rs. Do not edit.

impl ibv_node_type {
    pub const IBV_NODE_UNKNOWN: ibv_node_type = ibv_node_type(-1);
    pub const IBV_NODE_CA: ibv_node_type = ibv_node_type(1);
    pub const IBV_NODE_SWITCH: ibv_node_type = ibv_node_type(2);
    pub const IBV_NODE_ROUTER: ibv_node_type = ibv_node_type(3);
    pub const IBV_NODE_RNIC: ibv_node_type = ibv_node_type(4);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_node_type(pub ::core::ffi::c_int);
impl ibv_transport_type {
    pub const IBV_TRANSPORT_UNKNOWN: ibv_transport_type = ibv_transport_type(-1);
    pub const IBV_TRANSPORT_IB: ibv_transport_type = ibv_transport_type(0);
    pub const IBV_TRANSPORT_IWARP: ibv_transport_type = ibv_transport_type(1);
    pub const IBV_TRANSPORT_THUNDERBOLT: ibv_transport_type = ibv_transport_type(100);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_transport_type(pub ::core::ffi::c_int);
impl ibv_mtu {
    pub const IBV_MTU_256: ibv_mtu = ibv_mtu(1);
    pub const IBV_MTU_512: ibv_mtu = ibv_mtu(2);
    pub const IBV_MTU_1024: ibv_mtu = ibv_mtu(3);
    pub const IBV_MTU_2048: ibv_mtu = ibv_mtu(4);
    pub const IBV_MTU_4096: ibv_mtu = ibv_mtu(5);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_mtu(pub ::core::ffi::c_uint);
impl ibv_port_state {
    pub const IBV_PORT_NOP: ibv_port_state = ibv_port_state(0);
    pub const IBV_PORT_DOWN: ibv_port_state = ibv_port_state(1);
    pub const IBV_PORT_INIT: ibv_port_state = ibv_port_state(2);
    pub const IBV_PORT_ARMED: ibv_port_state = ibv_port_state(3);
    pub const IBV_PORT_ACTIVE: ibv_port_state = ibv_port_state(4);
    pub const IBV_PORT_ACTIVE_DEFER: ibv_port_state = ibv_port_state(5);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_port_state(pub ::core::ffi::c_uint);
impl ibv_link_layer {
    pub const IBV_LINK_LAYER_UNSPECIFIED: ibv_link_layer = ibv_link_layer(0);
    pub const IBV_LINK_LAYER_INFINIBAND: ibv_link_layer = ibv_link_layer(1);
    pub const IBV_LINK_LAYER_ETHERNET: ibv_link_layer = ibv_link_layer(2);
    pub const IBV_LINK_LAYER_THUNDERBOLT: ibv_link_layer = ibv_link_layer(100);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_link_layer(pub ::core::ffi::c_uint);
impl ibv_atomic_cap {
    pub const IBV_ATOMIC_NONE: ibv_atomic_cap = ibv_atomic_cap(0);
    pub const IBV_ATOMIC_HCA: ibv_atomic_cap = ibv_atomic_cap(1);
    pub const IBV_ATOMIC_GLOB: ibv_atomic_cap = ibv_atomic_cap(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_atomic_cap(pub ::core::ffi::c_uint);
impl ibv_qp_type {
    pub const IBV_QPT_RC: ibv_qp_type = ibv_qp_type(2);
    pub const IBV_QPT_UC: ibv_qp_type = ibv_qp_type(3);
    pub const IBV_QPT_UD: ibv_qp_type = ibv_qp_type(4);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_qp_type(pub ::core::ffi::c_uint);
impl ibv_qp_state {
    pub const IBV_QPS_RESET: ibv_qp_state = ibv_qp_state(0);
    pub const IBV_QPS_INIT: ibv_qp_state = ibv_qp_state(1);
    pub const IBV_QPS_RTR: ibv_qp_state = ibv_qp_state(2);
    pub const IBV_QPS_RTS: ibv_qp_state = ibv_qp_state(3);
    pub const IBV_QPS_SQD: ibv_qp_state = ibv_qp_state(4);
    pub const IBV_QPS_SQE: ibv_qp_state = ibv_qp_state(5);
    pub const IBV_QPS_ERR: ibv_qp_state = ibv_qp_state(6);
    pub const IBV_QPS_UNKNOWN: ibv_qp_state = ibv_qp_state(7);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_qp_state(pub ::core::ffi::c_uint);
impl ibv_mig_state {
    pub const IBV_MIG_MIGRATED: ibv_mig_state = ibv_mig_state(0);
    pub const IBV_MIG_REARM: ibv_mig_state = ibv_mig_state(1);
    pub const IBV_MIG_ARMED: ibv_mig_state = ibv_mig_state(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_mig_state(pub ::core::ffi::c_uint);
impl ibv_wr_opcode {
    pub const IBV_WR_RDMA_WRITE: ibv_wr_opcode = ibv_wr_opcode(0);
    pub const IBV_WR_RDMA_WRITE_WITH_IMM: ibv_wr_opcode = ibv_wr_opcode(1);
    pub const IBV_WR_SEND: ibv_wr_opcode = ibv_wr_opcode(2);
    pub const IBV_WR_SEND_WITH_IMM: ibv_wr_opcode = ibv_wr_opcode(3);
    pub const IBV_WR_RDMA_READ: ibv_wr_opcode = ibv_wr_opcode(4);
    pub const IBV_WR_ATOMIC_CMP_AND_SWP: ibv_wr_opcode = ibv_wr_opcode(5);
    pub const IBV_WR_ATOMIC_FETCH_AND_ADD: ibv_wr_opcode = ibv_wr_opcode(6);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_wr_opcode(pub ::core::ffi::c_uint);
impl ibv_wc_status {
    pub const IBV_WC_SUCCESS: ibv_wc_status = ibv_wc_status(0);
    pub const IBV_WC_LOC_LEN_ERR: ibv_wc_status = ibv_wc_status(1);
    pub const IBV_WC_LOC_QP_OP_ERR: ibv_wc_status = ibv_wc_status(2);
    pub const IBV_WC_LOC_EEC_OP_ERR: ibv_wc_status = ibv_wc_status(3);
    pub const IBV_WC_LOC_PROT_ERR: ibv_wc_status = ibv_wc_status(4);
    pub const IBV_WC_WR_FLUSH_ERR: ibv_wc_status = ibv_wc_status(5);
    pub const IBV_WC_MW_BIND_ERR: ibv_wc_status = ibv_wc_status(6);
    pub const IBV_WC_BAD_RESP_ERR: ibv_wc_status = ibv_wc_status(7);
    pub const IBV_WC_LOC_ACCESS_ERR: ibv_wc_status = ibv_wc_status(8);
    pub const IBV_WC_REM_INV_REQ_ERR: ibv_wc_status = ibv_wc_status(9);
    pub const IBV_WC_REM_ACCESS_ERR: ibv_wc_status = ibv_wc_status(10);
    pub const IBV_WC_REM_OP_ERR: ibv_wc_status = ibv_wc_status(11);
    pub const IBV_WC_RETRY_EXC_ERR: ibv_wc_status = ibv_wc_status(12);
    pub const IBV_WC_RNR_RETRY_EXC_ERR: ibv_wc_status = ibv_wc_status(13);
    pub const IBV_WC_LOC_RDD_VIOL_ERR: ibv_wc_status = ibv_wc_status(14);
    pub const IBV_WC_REM_INV_RD_REQ_ERR: ibv_wc_status = ibv_wc_status(15);
    pub const IBV_WC_REM_ABORT_ERR: ibv_wc_status = ibv_wc_status(16);
    pub const IBV_WC_INV_EECN_ERR: ibv_wc_status = ibv_wc_status(17);
    pub const IBV_WC_INV_EEC_STATE_ERR: ibv_wc_status = ibv_wc_status(18);
    pub const IBV_WC_FATAL_ERR: ibv_wc_status = ibv_wc_status(19);
    pub const IBV_WC_RESP_TIMEOUT_ERR: ibv_wc_status = ibv_wc_status(20);
    pub const IBV_WC_GENERAL_ERR: ibv_wc_status = ibv_wc_status(21);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_wc_status(pub ::core::ffi::c_uint);
impl ibv_wc_opcode {
    pub const IBV_WC_SEND: ibv_wc_opcode = ibv_wc_opcode(0);
    pub const IBV_WC_RDMA_WRITE: ibv_wc_opcode = ibv_wc_opcode(1);
    pub const IBV_WC_RDMA_READ: ibv_wc_opcode = ibv_wc_opcode(2);
    pub const IBV_WC_COMP_SWAP: ibv_wc_opcode = ibv_wc_opcode(3);
    pub const IBV_WC_FETCH_ADD: ibv_wc_opcode = ibv_wc_opcode(4);
    pub const IBV_WC_RECV: ibv_wc_opcode = ibv_wc_opcode(128);
    pub const IBV_WC_RECV_RDMA_WITH_IMM: ibv_wc_opcode = ibv_wc_opcode(129);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_wc_opcode(pub ::core::ffi::c_uint);
impl ibv_event_type {
    pub const IBV_EVENT_CQ_ERR: ibv_event_type = ibv_event_type(0);
    pub const IBV_EVENT_QP_FATAL: ibv_event_type = ibv_event_type(1);
    pub const IBV_EVENT_QP_REQ_ERR: ibv_event_type = ibv_event_type(2);
    pub const IBV_EVENT_QP_ACCESS_ERR: ibv_event_type = ibv_event_type(3);
    pub const IBV_EVENT_COMM_EST: ibv_event_type = ibv_event_type(4);
    pub const IBV_EVENT_SQ_DRAINED: ibv_event_type = ibv_event_type(5);
    pub const IBV_EVENT_PATH_MIG: ibv_event_type = ibv_event_type(6);
    pub const IBV_EVENT_PATH_MIG_ERR: ibv_event_type = ibv_event_type(7);
    pub const IBV_EVENT_DEVICE_FATAL: ibv_event_type = ibv_event_type(8);
    pub const IBV_EVENT_PORT_ACTIVE: ibv_event_type = ibv_event_type(9);
    pub const IBV_EVENT_PORT_ERR: ibv_event_type = ibv_event_type(10);
    pub const IBV_EVENT_LID_CHANGE: ibv_event_type = ibv_event_type(11);
    pub const IBV_EVENT_PKEY_CHANGE: ibv_event_type = ibv_event_type(12);
    pub const IBV_EVENT_SM_CHANGE: ibv_event_type = ibv_event_type(13);
    pub const IBV_EVENT_SRQ_ERR: ibv_event_type = ibv_event_type(14);
    pub const IBV_EVENT_SRQ_LIMIT_REACHED: ibv_event_type = ibv_event_type(15);
    pub const IBV_EVENT_QP_LAST_WQE_REACHED: ibv_event_type = ibv_event_type(16);
    pub const IBV_EVENT_CLIENT_REREGISTER: ibv_event_type = ibv_event_type(17);
    pub const IBV_EVENT_GID_CHANGE: ibv_event_type = ibv_event_type(18);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ibv_event_type(pub ::core::ffi::c_uint);
pub const IBV_ACCESS_LOCAL_WRITE: ibv_access_flags = 1;
pub const IBV_ACCESS_REMOTE_WRITE: ibv_access_flags = 2;
pub const IBV_ACCESS_REMOTE_READ: ibv_access_flags = 4;
pub const IBV_ACCESS_REMOTE_ATOMIC: ibv_access_flags = 8;
pub type ibv_access_flags = ::core::ffi::c_uint;
pub const IBV_SEND_FENCE: ibv_send_flags = 1;
pub const IBV_SEND_SIGNALED: ibv_send_flags = 2;
pub const IBV_SEND_SOLICITED: ibv_send_flags = 4;
pub const IBV_SEND_INLINE: ibv_send_flags = 8;
pub type ibv_send_flags = ::core::ffi::c_uint;
pub const IBV_WC_GRH: ibv_wc_flags = 1;
pub const IBV_WC_WITH_IMM: ibv_wc_flags = 2;
pub type ibv_wc_flags = ::core::ffi::c_uint;
pub const IBV_QP_STATE: ibv_qp_attr_mask = 1;
pub const IBV_QP_CUR_STATE: ibv_qp_attr_mask = 2;
pub const IBV_QP_EN_SQD_ASYNC_NOTIFY: ibv_qp_attr_mask = 4;
pub const IBV_QP_ACCESS_FLAGS: ibv_qp_attr_mask = 8;
pub const IBV_QP_PKEY_INDEX: ibv_qp_attr_mask = 16;
pub const IBV_QP_PORT: ibv_qp_attr_mask = 32;
pub const IBV_QP_QKEY: ibv_qp_attr_mask = 64;
pub const IBV_QP_AV: ibv_qp_attr_mask = 128;
pub const IBV_QP_PATH_MTU: ibv_qp_attr_mask = 256;
pub const IBV_QP_TIMEOUT: ibv_qp_attr_mask = 512;
pub const IBV_QP_RETRY_CNT: ibv_qp_attr_mask = 1024;
pub const IBV_QP_RNR_RETRY: ibv_qp_attr_mask = 2048;
pub const IBV_QP_RQ_PSN: ibv_qp_attr_mask = 4096;
pub const IBV_QP_MAX_QP_RD_ATOMIC: ibv_qp_attr_mask = 8192;
pub const IBV_QP_ALT_PATH: ibv_qp_attr_mask = 16384;
pub const IBV_QP_MIN_RNR_TIMER: ibv_qp_attr_mask = 32768;
pub const IBV_QP_SQ_PSN: ibv_qp_attr_mask = 65536;
pub const IBV_QP_MAX_DEST_RD_ATOMIC: ibv_qp_attr_mask = 131072;
pub const IBV_QP_PATH_MIG_STATE: ibv_qp_attr_mask = 262144;
pub const IBV_QP_CAP: ibv_qp_attr_mask = 524288;
pub const IBV_QP_DEST_QPN: ibv_qp_attr_mask = 1048576;
pub const IBV_QP_RATE_LIMIT: ibv_qp_attr_mask = 33554432;
pub type ibv_qp_attr_mask = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug)]
pub struct ibv_srq {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct ibv_ah {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct ibv_mw {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_device {
    pub reserved_ops: [*mut ::core::ffi::c_void; 2usize],
    pub node_type: ibv_node_type,
    pub transport_type: ibv_transport_type,
    pub name: [::core::ffi::c_char; 64usize],
    pub dev_name: [::core::ffi::c_char; 64usize],
    pub dev_path: [::core::ffi::c_char; 256usize],
    pub ibdev_path: [::core::ffi::c_char; 256usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_context_ops {
    pub reserved_query_device: *mut ::core::ffi::c_void,
    pub reserved_query_port: *mut ::core::ffi::c_void,
    pub reserved_alloc_pd: *mut ::core::ffi::c_void,
    pub reserved_dealloc_pd: *mut ::core::ffi::c_void,
    pub reserved_reg_mr: *mut ::core::ffi::c_void,
    pub reserved_rereg_mr: *mut ::core::ffi::c_void,
    pub reserved_dereg_mr: *mut ::core::ffi::c_void,
    pub alloc_mw: *mut ::core::ffi::c_void,
    pub bind_mw: *mut ::core::ffi::c_void,
    pub dealloc_mw: *mut ::core::ffi::c_void,
    pub reserved_create_cq: *mut ::core::ffi::c_void,
    pub poll_cq: ::core::option::Option<
        unsafe extern "C" fn(
            cq: *mut ibv_cq,
            num_entries: ::core::ffi::c_int,
            wc: *mut ibv_wc,
        ) -> ::core::ffi::c_int,
    >,
    pub req_notify_cq: ::core::option::Option<
        unsafe extern "C" fn(
            cq: *mut ibv_cq,
            solicited_only: ::core::ffi::c_int,
        ) -> ::core::ffi::c_int,
    >,
    pub reserved_cq_event: *mut ::core::ffi::c_void,
    pub reserved_resize_cq: *mut ::core::ffi::c_void,
    pub reserved_destroy_cq: *mut ::core::ffi::c_void,
    pub reserved_create_srq: *mut ::core::ffi::c_void,
    pub reserved_modify_srq: *mut ::core::ffi::c_void,
    pub reserved_query_srq: *mut ::core::ffi::c_void,
    pub reserved_destroy_srq: *mut ::core::ffi::c_void,
    pub post_srq_recv: ::core::option::Option<
        unsafe extern "C" fn(
            srq: *mut ibv_srq,
            recv_wr: *mut ibv_recv_wr,
            bad_recv_wr: *mut *mut ibv_recv_wr,
        ) -> ::core::ffi::c_int,
    >,
    pub reserved_create_qp: *mut ::core::ffi::c_void,
    pub reserved_query_qp: *mut ::core::ffi::c_void,
    pub reserved_modify_qp: *mut ::core::ffi::c_void,
    pub reserved_destroy_qp: *mut ::core::ffi::c_void,
    pub post_send: ::core::option::Option<
        unsafe extern "C" fn(
            qp: *mut ibv_qp,
            wr: *mut ibv_send_wr,
            bad_wr: *mut *mut ibv_send_wr,
        ) -> ::core::ffi::c_int,
    >,
    pub post_recv: ::core::option::Option<
        unsafe extern "C" fn(
            qp: *mut ibv_qp,
            wr: *mut ibv_recv_wr,
            bad_wr: *mut *mut ibv_recv_wr,
        ) -> ::core::ffi::c_int,
    >,
    pub reserved_create_ah: *mut ::core::ffi::c_void,
    pub reserved_destroy_ah: *mut ::core::ffi::c_void,
    pub reserved_attach_mcast: *mut ::core::ffi::c_void,
    pub reserved_detach_mcast: *mut ::core::ffi::c_void,
    pub reserved_async_event: *mut ::core::ffi::c_void,
}
impl Default for ibv_context_ops {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug)]
pub struct ibv_context {
    pub device: *mut ibv_device,
    pub ops: ibv_context_ops,
    pub cmd_fd: ::core::ffi::c_int,
    pub async_fd: ::core::ffi::c_int,
    pub num_comp_vectors: ::core::ffi::c_int,
}
#[repr(C)]
#[derive(Debug)]
pub struct ibv_pd {
    pub context: *mut ibv_context,
    pub handle: u32,
}
#[repr(C)]
#[derive(Debug)]
pub struct ibv_mr {
    pub context: *mut ibv_context,
    pub pd: *mut ibv_pd,
    pub addr: *mut ::core::ffi::c_void,
    pub length: usize,
    pub handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}
#[repr(C)]
#[derive(Debug)]
pub struct ibv_comp_channel {
    pub context: *mut ibv_context,
    pub fd: ::core::ffi::c_int,
    pub refcnt: ::core::ffi::c_int,
}
#[repr(C)]
#[derive(Debug)]
pub struct ibv_cq {
    pub context: *mut ibv_context,
    pub channel: *mut ibv_comp_channel,
    pub cq_context: *mut ::core::ffi::c_void,
    pub handle: u32,
    pub cqe: ::core::ffi::c_int,
}
#[repr(C)]
#[derive(Debug)]
pub struct ibv_qp {
    pub context: *mut ibv_context,
    pub qp_context: *mut ::core::ffi::c_void,
    pub pd: *mut ibv_pd,
    pub send_cq: *mut ibv_cq,
    pub recv_cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    pub handle: u32,
    pub qp_num: u32,
    pub state: ibv_qp_state,
    pub qp_type: ibv_qp_type,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union ibv_gid {
    pub raw: [u8; 16usize],
    pub global: ibv_gid_ibv_gid_global,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct ibv_gid_ibv_gid_global {
    pub subnet_prefix: u64,
    pub interface_id: u64,
}
impl Default for ibv_gid {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_device_attr {
    pub fw_ver: [::core::ffi::c_char; 64usize],
    pub node_guid: u64,
    pub sys_image_guid: u64,
    pub max_mr_size: u64,
    pub page_size_cap: u64,
    pub vendor_id: u32,
    pub vendor_part_id: u32,
    pub hw_ver: u32,
    pub max_qp: ::core::ffi::c_int,
    pub max_qp_wr: ::core::ffi::c_int,
    pub device_cap_flags: ::core::ffi::c_uint,
    pub max_sge: ::core::ffi::c_int,
    pub max_sge_rd: ::core::ffi::c_int,
    pub max_cq: ::core::ffi::c_int,
    pub max_cqe: ::core::ffi::c_int,
    pub max_mr: ::core::ffi::c_int,
    pub max_pd: ::core::ffi::c_int,
    pub max_qp_rd_atom: ::core::ffi::c_int,
    pub max_ee_rd_atom: ::core::ffi::c_int,
    pub max_res_rd_atom: ::core::ffi::c_int,
    pub max_qp_init_rd_atom: ::core::ffi::c_int,
    pub max_ee_init_rd_atom: ::core::ffi::c_int,
    pub atomic_cap: ibv_atomic_cap,
    pub max_ee: ::core::ffi::c_int,
    pub max_rdd: ::core::ffi::c_int,
    pub max_mw: ::core::ffi::c_int,
    pub max_raw_ipv6_qp: ::core::ffi::c_int,
    pub max_raw_ethy_qp: ::core::ffi::c_int,
    pub max_mcast_grp: ::core::ffi::c_int,
    pub max_mcast_qp_attach: ::core::ffi::c_int,
    pub max_total_mcast_qp_attach: ::core::ffi::c_int,
    pub max_ah: ::core::ffi::c_int,
    pub max_fmr: ::core::ffi::c_int,
    pub max_map_per_fmr: ::core::ffi::c_int,
    pub max_srq: ::core::ffi::c_int,
    pub max_srq_wr: ::core::ffi::c_int,
    pub max_srq_sge: ::core::ffi::c_int,
    pub max_pkeys: u16,
    pub local_ca_ack_delay: u8,
    pub phys_port_cnt: u8,
}
impl Default for ibv_device_attr {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_port_attr {
    pub state: ibv_port_state,
    pub max_mtu: ibv_mtu,
    pub active_mtu: ibv_mtu,
    pub gid_tbl_len: ::core::ffi::c_int,
    pub port_cap_flags: u32,
    pub max_msg_sz: u32,
    pub bad_pkey_cntr: u32,
    pub qkey_viol_cntr: u32,
    pub pkey_tbl_len: u16,
    pub lid: u16,
    pub sm_lid: u16,
    pub lmc: u8,
    pub max_vl_num: u8,
    pub sm_sl: u8,
    pub subnet_timeout: u8,
    pub init_type_reply: u8,
    pub active_width: u8,
    pub active_speed: u8,
    pub phys_state: u8,
    pub link_layer: u8,
    pub flags: u8,
    pub port_cap_flags2: u16,
}
impl Default for ibv_port_attr {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct ibv_qp_cap {
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_qp_init_attr {
    pub qp_context: *mut ::core::ffi::c_void,
    pub send_cq: *mut ibv_cq,
    pub recv_cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    pub cap: ibv_qp_cap,
    pub qp_type: ibv_qp_type,
    pub sq_sig_all: ::core::ffi::c_int,
}
impl Default for ibv_qp_init_attr {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ibv_global_route {
    pub dgid: ibv_gid,
    pub flow_label: u32,
    pub sgid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
}
impl Default for ibv_global_route {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ibv_ah_attr {
    pub grh: ibv_global_route,
    pub dlid: u16,
    pub sl: u8,
    pub src_path_bits: u8,
    pub static_rate: u8,
    pub is_global: u8,
    pub port_num: u8,
}
impl Default for ibv_ah_attr {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ibv_qp_attr {
    pub qp_state: ibv_qp_state,
    pub cur_qp_state: ibv_qp_state,
    pub path_mtu: ibv_mtu,
    pub path_mig_state: ibv_mig_state,
    pub qkey: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub dest_qp_num: u32,
    pub qp_access_flags: ::core::ffi::c_uint,
    pub cap: ibv_qp_cap,
    pub ah_attr: ibv_ah_attr,
    pub alt_ah_attr: ibv_ah_attr,
    pub pkey_index: u16,
    pub alt_pkey_index: u16,
    pub en_sqd_async_notify: u8,
    pub sq_draining: u8,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub port_num: u8,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub alt_port_num: u8,
    pub alt_timeout: u8,
    pub rate_limit: u32,
}
impl Default for ibv_qp_attr {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct ibv_sge {
    pub addr: u64,
    pub length: u32,
    pub lkey: u32,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct ibv_wr_rdma {
    pub remote_addr: u64,
    pub rkey: u32,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct ibv_wr_atomic {
    pub remote_addr: u64,
    pub compare_add: u64,
    pub swap: u64,
    pub rkey: u32,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_wr_ud {
    pub ah: *mut ibv_ah,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
}
impl Default for ibv_wr_ud {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union ibv_wr_operation {
    pub rdma: ibv_wr_rdma,
    pub atomic: ibv_wr_atomic,
    pub ud: ibv_wr_ud,
}
impl Default for ibv_wr_operation {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ibv_send_wr {
    pub wr_id: u64,
    pub next: *mut ibv_send_wr,
    pub sg_list: *mut ibv_sge,
    pub num_sge: ::core::ffi::c_int,
    pub opcode: ibv_wr_opcode,
    pub send_flags: ::core::ffi::c_uint,
    pub imm_data: u32,
    pub wr: ibv_wr_operation,
    pub xrc_remote_srqn: u32,
    pub reserved_bind_mw_or_tso: [u64; 6usize],
}
impl Default for ibv_send_wr {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_recv_wr {
    pub wr_id: u64,
    pub next: *mut ibv_recv_wr,
    pub sg_list: *mut ibv_sge,
    pub num_sge: ::core::ffi::c_int,
}
impl Default for ibv_recv_wr {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_wc {
    pub wr_id: u64,
    pub status: ibv_wc_status,
    pub opcode: ibv_wc_opcode,
    pub vendor_err: u32,
    pub byte_len: u32,
    pub imm_data: u32,
    pub qp_num: u32,
    pub src_qp: u32,
    pub wc_flags: ::core::ffi::c_uint,
    pub pkey_index: u16,
    pub slid: u16,
    pub sl: u8,
    pub dlid_path_bits: u8,
}
impl Default for ibv_wc {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union ibv_async_event_element {
    pub cq: *mut ibv_cq,
    pub qp: *mut ibv_qp,
    pub srq: *mut ibv_srq,
    pub port_num: ::core::ffi::c_int,
}
impl Default for ibv_async_event_element {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ibv_async_event {
    pub element: ibv_async_event_element,
    pub event_type: ibv_event_type,
}
impl Default for ibv_async_event {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
