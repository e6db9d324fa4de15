//! A completion as the device writes it.

use super::address::scramble;
use super::queue_pair::SoftQp;
use rdma_sys as sys;
use sys::{ibv_wc_opcode as opcode, ibv_wc_status as status};

/// Writes a completion as the device gives it.
///
/// # Safety
///
/// It can be written.
#[inline]
pub(super) unsafe fn report(qp: &SoftQp, out: *mut sys::ibv_wc, completion: sys::ibv_wc) {
    let failed = completion.status != status::IBV_WC_SUCCESS;
    // SAFETY: promised by the caller.
    unsafe { out.write(completion) };
    if failed && qp.device.profile.garbles_failures {
        // SAFETY: written just now.
        garble(unsafe { &mut *out });
    }
}

/// Only the id, the status, the queue pair's number and the vendor's code mean anything in a failed completion
/// (`ibv_poll_cq(3)`). A profile can fill the rest with garbage, so that a program that reads it is found out.
#[cold]
fn garble(completion: &mut sys::ibv_wc) {
    let id = completion.wr_id;
    let garbage = |salt: u64| scramble(id ^ salt) as u32 | 1;
    *completion = sys::ibv_wc {
        vendor_err: garbage(1),
        opcode: opcode(garbage(2)),
        byte_len: garbage(3),
        imm_data: garbage(4),
        src_qp: garbage(5),
        wc_flags: garbage(6) as _,
        pkey_index: garbage(7) as u16,
        slid: garbage(8) as u16,
        ..*completion
    };
}
