//! A protection domain.

use super::call;
use super::context::RawContext;
use crate::error::Result;
use crate::rules::DeviceRules;
use core::fmt;
use core::ptr::NonNull;
use rdma_sys as sys;
use std::sync::Arc;

/// Owns an `ibv_pd`.
pub(crate) struct RawDomain {
    pub(crate) context: Arc<RawContext>,
    pub(crate) rules: DeviceRules,
    raw: NonNull<sys::ibv_pd>,
    live: bool,
}

// SAFETY: verbs libraries may be called with one protection domain from several threads.
unsafe impl Send for RawDomain {}
// SAFETY: as above.
unsafe impl Sync for RawDomain {}

impl RawDomain {
    pub(crate) fn allocate(context: &Arc<RawContext>, rules: &DeviceRules) -> Result<Arc<Self>> {
        // SAFETY: an open context.
        let raw = call::pointer("ibv_alloc_pd", || unsafe { (context.library().verbs.alloc_pd)(context.as_ptr()) })
            .map_err(|error| error.on_device(context.device()))?;
        Ok(Arc::new(RawDomain { context: context.clone(), rules: rules.clone(), raw, live: true }))
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_pd {
        self.raw.as_ptr()
    }

    fn destroy(&mut self) -> Result<()> {
        self.live = false;
        // SAFETY: a live protection domain, freed once: `live` was true. Regions and queue pairs hold it: there are none.
        call::number("ibv_dealloc_pd", || unsafe { (self.context.library().verbs.dealloc_pd)(self.as_ptr()) })
            .map_err(|error| error.on_device(self.context.device()))
    }

    /// Frees the domain and says whether that worked. If not, its context is leaked.
    pub(crate) fn close(mut self) -> Result<()> {
        self.destroy().inspect_err(|_| core::mem::forget(self.context.clone()))
    }
}

impl Drop for RawDomain {
    fn drop(&mut self) {
        if self.live && self.destroy().is_err() {
            core::mem::forget(self.context.clone());
        }
    }
}

impl fmt::Debug for RawDomain {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RawDomain").field("context", &self.context).finish_non_exhaustive()
    }
}
