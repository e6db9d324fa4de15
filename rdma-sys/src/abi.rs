//! The layout of the ABI, asserted at compile time for every target the crate is built for.
//!
//! Each row carries its evidence:
//!
//! * `header`: printed by a C program that was compiled against Apple's SDK header (tmc/apple `abi_oracle.c`)
//! * `binary`: read off Apple's binary (Aileuxe/MCDMA `compare-apple-build.py`)
//! * `note`: Apple TN3205
//! * `upstream`: rdma-core v44, which agrees with every value known of Apple's
//!
//! The same rows are compared with an installed `infiniband/verbs.h` by `tests/abi_probe.rs`, which reads this file.

// The tables use the C spelling of everything.
#![allow(non_snake_case)]

use crate::bindings::*;
use core::mem::{offset_of, size_of};

macro_rules! sizes {
    ($($evidence:ident $name:ident = $size:literal;)*) => {
        $( const _: () = assert!(size_of::<$name>() == $size, concat!("size of ", stringify!($name), " (", stringify!($evidence), ")")); )*
    };
}

macro_rules! offsets {
    ($name:ident { $($evidence:ident $field:ident = $offset:literal;)* }) => {
        $( const _: () = assert!(offset_of!($name, $field) == $offset, concat!("offset of ", stringify!($name), ".", stringify!($field), " (", stringify!($evidence), ")")); )*
    };
}

macro_rules! values {
    ($kind:ident { $($evidence:ident $name:ident = $value:literal;)* }) => {
        $( const _: () = assert!($kind::$name.0 == $value, concat!("value of ", stringify!($name), " (", stringify!($evidence), ")")); )*
    };
}

macro_rules! flags {
    ($($evidence:ident $name:ident = $value:literal;)*) => {
        $( const _: () = assert!($name == $value, concat!("value of ", stringify!($name), " (", stringify!($evidence), ")")); )*
    };
}

sizes! {
    binary ibv_device = 664;
    upstream ibv_context_ops = 256;
    upstream ibv_pd = 16;
    binary ibv_mr = 48;
    upstream ibv_comp_channel = 16;
    header ibv_gid = 16;
    header ibv_qp_cap = 20;
    header ibv_qp_init_attr = 64;
    header ibv_global_route = 24;
    header ibv_ah_attr = 32;
    header ibv_qp_attr = 144;
    header ibv_port_attr = 52;
    upstream ibv_device_attr = 232;
    header ibv_sge = 16;
    header ibv_send_wr = 128;
    header ibv_recv_wr = 32;
    header ibv_wc = 48;
}

offsets! { ibv_device {
    upstream node_type = 16;
    upstream transport_type = 20;
    upstream name = 24;
    upstream dev_name = 88;
    upstream dev_path = 152;
    upstream ibdev_path = 408;
} }

offsets! { ibv_context {
    upstream device = 0;
    header ops = 8;
    upstream cmd_fd = 264;
    upstream async_fd = 268;
    upstream num_comp_vectors = 272;
} }

offsets! { ibv_context_ops {
    upstream alloc_mw = 56;
    header poll_cq = 88;
    upstream req_notify_cq = 96;
    upstream post_srq_recv = 160;
    header post_send = 200;
    header post_recv = 208;
} }

offsets! { ibv_pd {
    upstream context = 0;
    upstream handle = 8;
} }

offsets! { ibv_mr {
    upstream context = 0;
    upstream pd = 8;
    upstream addr = 16;
    upstream length = 24;
    upstream handle = 32;
    header lkey = 36;
    header rkey = 40;
} }

offsets! { ibv_cq {
    upstream context = 0;
    header channel = 8;
    upstream cq_context = 16;
    upstream handle = 24;
    upstream cqe = 28;
} }

offsets! { ibv_qp {
    upstream context = 0;
    upstream qp_context = 8;
    upstream pd = 16;
    upstream send_cq = 24;
    upstream recv_cq = 32;
    upstream srq = 40;
    upstream handle = 48;
    header qp_num = 52;
    upstream state = 56;
    upstream qp_type = 60;
} }

offsets! { ibv_comp_channel {
    upstream context = 0;
    header fd = 8;
    upstream refcnt = 12;
} }

offsets! { ibv_gid {
    upstream raw = 0;
} }

offsets! { ibv_qp_cap {
    upstream max_send_wr = 0;
    upstream max_recv_wr = 4;
    upstream max_send_sge = 8;
    upstream max_recv_sge = 12;
    upstream max_inline_data = 16;
} }

offsets! { ibv_qp_init_attr {
    upstream qp_context = 0;
    header send_cq = 8;
    upstream recv_cq = 16;
    upstream srq = 24;
    header cap = 32;
    header qp_type = 52;
    upstream sq_sig_all = 56;
} }

offsets! { ibv_global_route {
    upstream dgid = 0;
    upstream flow_label = 16;
    upstream sgid_index = 20;
    upstream hop_limit = 21;
    upstream traffic_class = 22;
} }

offsets! { ibv_ah_attr {
    upstream grh = 0;
    header dlid = 24;
    upstream sl = 26;
    upstream src_path_bits = 27;
    upstream static_rate = 28;
    upstream is_global = 29;
    upstream port_num = 30;
} }

offsets! { ibv_qp_attr {
    upstream qp_state = 0;
    upstream cur_qp_state = 4;
    upstream path_mtu = 8;
    upstream path_mig_state = 12;
    upstream qkey = 16;
    upstream rq_psn = 20;
    upstream sq_psn = 24;
    upstream dest_qp_num = 28;
    upstream qp_access_flags = 32;
    header cap = 36;
    header ah_attr = 56;
    header alt_ah_attr = 88;
    header pkey_index = 120;
    upstream alt_pkey_index = 122;
    upstream en_sqd_async_notify = 124;
    upstream sq_draining = 125;
    upstream max_rd_atomic = 126;
    upstream max_dest_rd_atomic = 127;
    upstream min_rnr_timer = 128;
    header port_num = 129;
    upstream timeout = 130;
    upstream retry_cnt = 131;
    upstream rnr_retry = 132;
    upstream alt_port_num = 133;
    upstream alt_timeout = 134;
    header rate_limit = 136;
} }

offsets! { ibv_port_attr {
    upstream state = 0;
    upstream max_mtu = 4;
    upstream active_mtu = 8;
    header gid_tbl_len = 12;
    upstream port_cap_flags = 16;
    upstream max_msg_sz = 20;
    upstream bad_pkey_cntr = 24;
    upstream qkey_viol_cntr = 28;
    upstream pkey_tbl_len = 32;
    header lid = 34;
    upstream sm_lid = 36;
    upstream lmc = 38;
    upstream max_vl_num = 39;
    upstream sm_sl = 40;
    upstream subnet_timeout = 41;
    upstream init_type_reply = 42;
    upstream active_width = 43;
    upstream active_speed = 44;
    upstream phys_state = 45;
    header link_layer = 46;
    upstream flags = 47;
    header port_cap_flags2 = 48;
} }

offsets! { ibv_device_attr {
    upstream fw_ver = 0;
    upstream node_guid = 64;
    upstream sys_image_guid = 72;
    upstream max_mr_size = 80;
    upstream page_size_cap = 88;
    upstream vendor_id = 96;
    upstream vendor_part_id = 100;
    upstream hw_ver = 104;
    upstream max_qp = 108;
    upstream max_qp_wr = 112;
    upstream device_cap_flags = 116;
    upstream max_sge = 120;
    upstream max_sge_rd = 124;
    upstream max_cq = 128;
    upstream max_cqe = 132;
    upstream max_mr = 136;
    upstream max_pd = 140;
    upstream max_qp_rd_atom = 144;
    upstream atomic_cap = 164;
    upstream max_srq = 212;
    upstream max_pkeys = 224;
    upstream local_ca_ack_delay = 226;
    upstream phys_port_cnt = 227;
} }

offsets! { ibv_sge {
    upstream addr = 0;
    upstream length = 8;
    upstream lkey = 12;
} }

offsets! { ibv_send_wr {
    upstream wr_id = 0;
    upstream next = 8;
    upstream sg_list = 16;
    upstream num_sge = 24;
    upstream opcode = 28;
    upstream send_flags = 32;
    upstream imm_data = 36;
    header wr = 40;
} }

offsets! { ibv_recv_wr {
    upstream wr_id = 0;
    upstream next = 8;
    upstream sg_list = 16;
    upstream num_sge = 24;
} }

offsets! { ibv_wc {
    upstream wr_id = 0;
    upstream status = 8;
    upstream opcode = 12;
    upstream vendor_err = 16;
    upstream byte_len = 20;
    upstream imm_data = 24;
    upstream qp_num = 28;
    upstream src_qp = 32;
    upstream wc_flags = 36;
    upstream pkey_index = 40;
    upstream slid = 42;
    upstream sl = 44;
    upstream dlid_path_bits = 45;
} }

values! { ibv_qp_type {
    header IBV_QPT_RC = 2;
    header IBV_QPT_UC = 3;
    upstream IBV_QPT_UD = 4;
} }

values! { ibv_wr_opcode {
    header IBV_WR_RDMA_WRITE = 0;
    upstream IBV_WR_RDMA_WRITE_WITH_IMM = 1;
    header IBV_WR_SEND = 2;
    upstream IBV_WR_SEND_WITH_IMM = 3;
    header IBV_WR_RDMA_READ = 4;
    upstream IBV_WR_ATOMIC_CMP_AND_SWP = 5;
    upstream IBV_WR_ATOMIC_FETCH_AND_ADD = 6;
} }

flags! {
    upstream IBV_SEND_FENCE = 1;
    header IBV_SEND_SIGNALED = 2;
    upstream IBV_SEND_SOLICITED = 4;
    upstream IBV_SEND_INLINE = 8;
}

flags! {
    header IBV_ACCESS_LOCAL_WRITE = 1;
    header IBV_ACCESS_REMOTE_WRITE = 2;
    header IBV_ACCESS_REMOTE_READ = 4;
    upstream IBV_ACCESS_REMOTE_ATOMIC = 8;
}

values! { ibv_wc_status {
    header IBV_WC_SUCCESS = 0;
    upstream IBV_WC_LOC_LEN_ERR = 1;
    upstream IBV_WC_LOC_QP_OP_ERR = 2;
    header IBV_WC_LOC_PROT_ERR = 4;
    upstream IBV_WC_WR_FLUSH_ERR = 5;
    upstream IBV_WC_BAD_RESP_ERR = 7;
    header IBV_WC_LOC_ACCESS_ERR = 8;
    upstream IBV_WC_REM_INV_REQ_ERR = 9;
    header IBV_WC_REM_ACCESS_ERR = 10;
    upstream IBV_WC_REM_OP_ERR = 11;
    upstream IBV_WC_RETRY_EXC_ERR = 12;
    upstream IBV_WC_RNR_RETRY_EXC_ERR = 13;
    upstream IBV_WC_GENERAL_ERR = 21;
} }

values! { ibv_wc_opcode {
    upstream IBV_WC_SEND = 0;
    upstream IBV_WC_RDMA_WRITE = 1;
    upstream IBV_WC_RDMA_READ = 2;
    upstream IBV_WC_RECV = 128;
    upstream IBV_WC_RECV_RDMA_WITH_IMM = 129;
} }

flags! {
    upstream IBV_WC_GRH = 1;
    upstream IBV_WC_WITH_IMM = 2;
}

flags! {
    header IBV_QP_STATE = 1;
    upstream IBV_QP_CUR_STATE = 2;
    header IBV_QP_ACCESS_FLAGS = 8;
    header IBV_QP_PKEY_INDEX = 16;
    header IBV_QP_PORT = 32;
    upstream IBV_QP_QKEY = 64;
    header IBV_QP_AV = 128;
    header IBV_QP_PATH_MTU = 256;
    upstream IBV_QP_TIMEOUT = 512;
    upstream IBV_QP_RETRY_CNT = 1024;
    upstream IBV_QP_RNR_RETRY = 2048;
    header IBV_QP_RQ_PSN = 4096;
    upstream IBV_QP_MAX_QP_RD_ATOMIC = 8192;
    upstream IBV_QP_MIN_RNR_TIMER = 32768;
    header IBV_QP_SQ_PSN = 65536;
    upstream IBV_QP_MAX_DEST_RD_ATOMIC = 131072;
    upstream IBV_QP_CAP = 524288;
    header IBV_QP_DEST_QPN = 1048576;
}

values! { ibv_qp_state {
    header IBV_QPS_RESET = 0;
    header IBV_QPS_INIT = 1;
    header IBV_QPS_RTR = 2;
    header IBV_QPS_RTS = 3;
    upstream IBV_QPS_SQD = 4;
    upstream IBV_QPS_SQE = 5;
    header IBV_QPS_ERR = 6;
} }

values! { ibv_mtu {
    upstream IBV_MTU_256 = 1;
    upstream IBV_MTU_512 = 2;
    header IBV_MTU_1024 = 3;
    upstream IBV_MTU_2048 = 4;
    header IBV_MTU_4096 = 5;
} }

values! { ibv_port_state {
    upstream IBV_PORT_NOP = 0;
    header IBV_PORT_DOWN = 1;
    upstream IBV_PORT_INIT = 2;
    upstream IBV_PORT_ARMED = 3;
    header IBV_PORT_ACTIVE = 4;
    upstream IBV_PORT_ACTIVE_DEFER = 5;
} }

values! { ibv_link_layer {
    upstream IBV_LINK_LAYER_UNSPECIFIED = 0;
    upstream IBV_LINK_LAYER_INFINIBAND = 1;
    upstream IBV_LINK_LAYER_ETHERNET = 2;
    header IBV_LINK_LAYER_THUNDERBOLT = 100;
} }

values! { ibv_node_type {
    upstream IBV_NODE_CA = 1;
} }

values! { ibv_transport_type {
    upstream IBV_TRANSPORT_UNKNOWN = -1;
    upstream IBV_TRANSPORT_IB = 0;
    note IBV_TRANSPORT_THUNDERBOLT = 100;
} }

values! { ibv_event_type {
    upstream IBV_EVENT_CQ_ERR = 0;
    upstream IBV_EVENT_QP_FATAL = 1;
    upstream IBV_EVENT_PORT_ACTIVE = 9;
    upstream IBV_EVENT_PORT_ERR = 10;
    upstream IBV_EVENT_DEVICE_FATAL = 8;
    upstream IBV_EVENT_GID_CHANGE = 18;
} }
