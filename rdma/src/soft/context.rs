//! An open device and a protection domain.

use super::completion_queue::poll_cq;
use super::device::SoftDevice;
use super::fork::Birth;
use super::object::ContextObject;
use super::post::{post_recv, post_send};
use super::registry::{Kind, Object};
use core::cell::UnsafeCell;
use core::ffi::c_int;
use rdma_sys as sys;
use std::sync::Arc;

#[repr(C)]
pub(crate) struct SoftContext {
    /// In a cell, because layers between a program and its provider replace `ops`.
    pub(crate) abi: UnsafeCell<ContextObject>,
    pub(crate) birth: Birth,
    pub(crate) device: Arc<SoftDevice>,
}

// SAFETY: this crate never touches the ABI prefix after it was made; its device pointer is kept by the Arc beside it.
unsafe impl Sync for SoftContext {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for SoftContext {}

// SAFETY: repr(C), and the first field is the ContextObject, whose first field is the ibv_context.
unsafe impl Object for SoftContext {
    type Abi = sys::ibv_context;
    const KIND: Kind = Kind::Context;
}

impl SoftContext {
    pub(crate) fn new(device: Arc<SoftDevice>) -> Arc<Self> {
        let ops = sys::ibv_context_ops {
            poll_cq: Some(poll_cq),
            req_notify_cq: Some(req_notify_cq),
            post_send: Some(post_send),
            post_recv: Some(post_recv),
            ..Default::default()
        };
        let prefix = sys::ibv_context {
            device: Arc::as_ptr(&device).cast_mut().cast(),
            ops,
            // There is no kernel object behind it, and Apple's device has no asynchronous events (async_fd is −1).
            cmd_fd: -1,
            async_fd: -1,
            num_comp_vectors: 1,
        };
        Arc::new(SoftContext { abi: UnsafeCell::new(ContextObject::new(prefix)), birth: Birth::now(), device })
    }

    /// The pointer that children carry in their ABI part.
    pub(crate) fn pointer(self: &Arc<Self>) -> *mut sys::ibv_context {
        Arc::as_ptr(self).cast_mut().cast()
    }
}

/// `ibv_req_notify_cq`: there are no completion channels on the device (TN3205 passes none).
unsafe extern "C" fn req_notify_cq(_: *mut sys::ibv_cq, _: c_int) -> c_int {
    libc::EOPNOTSUPP
}
