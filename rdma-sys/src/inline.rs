//! The four data-path calls that no library exports: in `infiniband/verbs.h` they are inline functions which go through
//! `context->ops` (Apple's librdma: 0xDaizz/RMLX `ffi.rs`; rdma-core: `verbs.h`).

use crate::bindings::{ibv_cq, ibv_qp, ibv_recv_wr, ibv_send_wr, ibv_wc};
use core::ffi::c_int;

/// Posts a chain of send work requests. Returns 0, or an error in one of the styles of [`crate::errno_of`].
///
/// Apple's provider does not write `bad_wr` on failure (measured by SQCU/mesh), so set it to null first and trust only
/// a value that points into the chain.
///
/// # Safety
///
/// `qp` is a live queue pair of the library that made it; `wr` starts a chain of valid work requests whose memory
/// regions stay registered until their completion; `bad_wr` may be written. All three need to live for the call only.
#[inline]
pub unsafe fn ibv_post_send(qp: *mut ibv_qp, wr: *mut ibv_send_wr, bad_wr: *mut *mut ibv_send_wr) -> c_int {
    // SAFETY: the caller says that qp is live, and a live queue pair points to the context that made it.
    match unsafe { (*(*qp).context).ops.post_send } {
        // SAFETY: the caller's promise is exactly what the provider's function asks for.
        Some(post_send) => unsafe { post_send(qp, wr, bad_wr) },
        None => libc::EOPNOTSUPP,
    }
}

/// Posts a chain of receive work requests. Returns as [`ibv_post_send`] does.
///
/// # Safety
///
/// As for [`ibv_post_send`]; the memory must allow local writes, and nobody else may use it until the completion.
#[inline]
pub unsafe fn ibv_post_recv(qp: *mut ibv_qp, wr: *mut ibv_recv_wr, bad_wr: *mut *mut ibv_recv_wr) -> c_int {
    // SAFETY: the caller says that qp is live, and a live queue pair points to the context that made it.
    match unsafe { (*(*qp).context).ops.post_recv } {
        // SAFETY: the caller's promise is exactly what the provider's function asks for.
        Some(post_recv) => unsafe { post_recv(qp, wr, bad_wr) },
        None => libc::EOPNOTSUPP,
    }
}

/// Takes up to `num_entries` completions. Returns their number, or a negative value.
///
/// # Safety
///
/// `cq` is a live completion queue; `wc` has room for `num_entries` completions.
#[inline]
pub unsafe fn ibv_poll_cq(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: the caller says that cq is live, and a live completion queue points to the context that made it.
    match unsafe { (*(*cq).context).ops.poll_cq } {
        // SAFETY: the caller's promise is exactly what the provider's function asks for.
        Some(poll_cq) => unsafe { poll_cq(cq, num_entries, wc) },
        None => -libc::EOPNOTSUPP,
    }
}

/// Asks for one event on the completion channel at the next completion. Returns as [`ibv_post_send`] does.
///
/// # Safety
///
/// `cq` is a live completion queue.
#[inline]
pub unsafe fn ibv_req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: the caller says that cq is live, and a live completion queue points to the context that made it.
    match unsafe { (*(*cq).context).ops.req_notify_cq } {
        // SAFETY: the caller's promise is exactly what the provider's function asks for.
        Some(req_notify_cq) => unsafe { req_notify_cq(cq, solicited_only) },
        None => libc::EOPNOTSUPP,
    }
}
