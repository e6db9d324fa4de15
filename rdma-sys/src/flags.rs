//! The flag sets of the ABI. Bits that have no name here are kept: providers may know more than we do.

use crate::bindings as c;
use bitflags::bitflags;

bitflags! {
    /// What a memory region or queue pair allows (`enum ibv_access_flags`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct AccessFlags: u32 {
        /// The device may write into the memory on behalf of this host: receives need it.
        const LOCAL_WRITE = c::IBV_ACCESS_LOCAL_WRITE;
        /// A peer may write. Needs `LOCAL_WRITE`.
        const REMOTE_WRITE = c::IBV_ACCESS_REMOTE_WRITE;
        /// A peer may read.
        const REMOTE_READ = c::IBV_ACCESS_REMOTE_READ;
        /// A peer may use atomics. Needs `LOCAL_WRITE`.
        const REMOTE_ATOMIC = c::IBV_ACCESS_REMOTE_ATOMIC;
        const _ = !0;
    }

    /// Flags of a send work request (`enum ibv_send_flags`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct SendFlags: u32 {
        /// Wait for earlier reads and atomics.
        const FENCE = c::IBV_SEND_FENCE;
        /// Make a completion.
        const SIGNALED = c::IBV_SEND_SIGNALED;
        /// Raise an event at the receiver.
        const SOLICITED = c::IBV_SEND_SOLICITED;
        /// The payload is copied at post time.
        const INLINE = c::IBV_SEND_INLINE;
        const _ = !0;
    }

    /// Which parts of a completion are valid (`enum ibv_wc_flags`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct WcFlags: u32 {
        /// A global routing header precedes the payload (UD only).
        const GRH = c::IBV_WC_GRH;
        /// `imm_data` holds immediate data.
        const WITH_IMM = c::IBV_WC_WITH_IMM;
        const _ = !0;
    }

    /// Which fields of `ibv_qp_attr` a call is about (`enum ibv_qp_attr_mask`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct QpAttrMask: u32 {
        /// `qp_state`
        const STATE = c::IBV_QP_STATE;
        /// `cur_qp_state`
        const CUR_STATE = c::IBV_QP_CUR_STATE;
        /// `en_sqd_async_notify`
        const EN_SQD_ASYNC_NOTIFY = c::IBV_QP_EN_SQD_ASYNC_NOTIFY;
        /// `qp_access_flags`
        const ACCESS_FLAGS = c::IBV_QP_ACCESS_FLAGS;
        /// `pkey_index`
        const PKEY_INDEX = c::IBV_QP_PKEY_INDEX;
        /// `port_num`
        const PORT = c::IBV_QP_PORT;
        /// `qkey`
        const QKEY = c::IBV_QP_QKEY;
        /// `ah_attr`
        const AV = c::IBV_QP_AV;
        /// `path_mtu`
        const PATH_MTU = c::IBV_QP_PATH_MTU;
        /// `timeout` (RC)
        const TIMEOUT = c::IBV_QP_TIMEOUT;
        /// `retry_cnt` (RC)
        const RETRY_CNT = c::IBV_QP_RETRY_CNT;
        /// `rnr_retry` (RC)
        const RNR_RETRY = c::IBV_QP_RNR_RETRY;
        /// `rq_psn`
        const RQ_PSN = c::IBV_QP_RQ_PSN;
        /// `max_rd_atomic` (RC)
        const MAX_QP_RD_ATOMIC = c::IBV_QP_MAX_QP_RD_ATOMIC;
        /// `alt_ah_attr`
        const ALT_PATH = c::IBV_QP_ALT_PATH;
        /// `min_rnr_timer` (RC)
        const MIN_RNR_TIMER = c::IBV_QP_MIN_RNR_TIMER;
        /// `sq_psn`
        const SQ_PSN = c::IBV_QP_SQ_PSN;
        /// `max_dest_rd_atomic` (RC)
        const MAX_DEST_RD_ATOMIC = c::IBV_QP_MAX_DEST_RD_ATOMIC;
        /// `path_mig_state`
        const PATH_MIG_STATE = c::IBV_QP_PATH_MIG_STATE;
        /// `cap`
        const CAP = c::IBV_QP_CAP;
        /// `dest_qp_num`
        const DEST_QPN = c::IBV_QP_DEST_QPN;
        /// `rate_limit`
        const RATE_LIMIT = c::IBV_QP_RATE_LIMIT;
        const _ = !0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A provider may answer bits that nobody has named, and they must survive a round trip through our types.
    #[test]
    fn unknown_bits_are_kept() {
        const UNKNOWN: u32 = 1 << 30;
        fn check<F: bitflags::Flags<Bits = u32>>() {
            let bits = UNKNOWN | F::FLAGS[0].value().bits();
            assert_eq!(F::from_bits(bits).map(|flags| flags.bits()), Some(bits));
            assert_eq!(F::from_bits_truncate(bits).bits(), bits);
            assert_eq!(F::from_bits_retain(bits).complement().bits(), !bits);
        }
        check::<AccessFlags>();
        check::<SendFlags>();
        check::<WcFlags>();
        check::<QpAttrMask>();
        assert_eq!(format!("{:?}", WcFlags::from_bits_retain(UNKNOWN | 2)), "WcFlags(WITH_IMM | 0x40000000)");
    }

    /// A name that stands for two bits, or for another name's bit, would be a slip of the pen in the table above.
    #[test]
    fn each_name_is_one_bit_of_its_own() {
        fn check<F: bitflags::Flags<Bits = u32>>() {
            let mut seen = 0;
            for flag in F::FLAGS.iter().filter(|flag| flag.is_named()) {
                let bits = flag.value().bits();
                assert_eq!(bits.count_ones(), 1, "{} is {bits:#x}", flag.name());
                assert_eq!(seen & bits, 0, "{} is the bit of another name", flag.name());
                seen |= bits;
            }
        }
        check::<AccessFlags>();
        check::<SendFlags>();
        check::<WcFlags>();
        check::<QpAttrMask>();
    }
}
