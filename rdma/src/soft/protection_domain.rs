//! A protection domain and the regions registered in it.

use super::context::SoftContext;
use super::quota::Ticket;
use super::registry::{Kind, Object};
use core::sync::atomic::AtomicU32;
use rdma_sys as sys;
use std::sync::Arc;

#[repr(C)]
pub(crate) struct SoftPd {
    pub(crate) abi: sys::ibv_pd,
    pub(crate) ticket: Ticket,
    pub(crate) context: Arc<SoftContext>,
    /// How many regions and queue pairs were made in it.
    pub(crate) users: AtomicU32,
}

// SAFETY: the ABI structure is never written after it was made; its pointer is kept by the Arc beside it.
unsafe impl Sync for SoftPd {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for SoftPd {}

// SAFETY: repr(C), and the first field is the ibv_pd.
unsafe impl Object for SoftPd {
    type Abi = sys::ibv_pd;
    const KIND: Kind = Kind::ProtectionDomain;
}

impl SoftPd {
    /// What tells it apart from the device's other domains while it lives.
    #[inline]
    pub(crate) fn identity(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }
}

#[repr(C)]
pub(crate) struct SoftMr {
    pub(crate) abi: sys::ibv_mr,
    pub(crate) ticket: Ticket,
    pub(crate) domain: Arc<SoftPd>,
}

// SAFETY: the ABI structure is never written after it was made; its pointers are kept by the Arc beside it, except for
// the registered address, which is never followed through it.
unsafe impl Sync for SoftMr {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for SoftMr {}

// SAFETY: repr(C), and the first field is the ibv_mr.
unsafe impl Object for SoftMr {
    type Abi = sys::ibv_mr;
    const KIND: Kind = Kind::MemoryRegion;
}
