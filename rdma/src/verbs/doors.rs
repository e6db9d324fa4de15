//! The doors to and from raw objects: every public function that a caller must vouch for.

use super::library::Library;
use crate::error::Chosen;
use crate::{
    CompletionQueue, Context, Device, Error, MemoryRegion, PreparedQueuePair, ProtectionDomain, Provider, QueuePair,
    Result, SharedRegion,
};
use rdma_sys as sys;
use std::path::Path;

impl Provider {
    /// A verbs library in a file. It is never unloaded.
    ///
    /// # Errors
    ///
    /// [`LibraryNotFound`](crate::ErrorKind::LibraryNotFound) if it cannot be loaded, or lacks a call that cannot be done
    /// without.
    ///
    /// # Safety
    ///
    /// The file is a verbs library of the ABI that `rdma_sys` describes: loading it runs its code, and its functions are
    /// called with that ABI's types.
    pub unsafe fn library(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: promised by the caller.
        let verbs = unsafe { sys::Verbs::load(path) }.map_err(|error| Error::no_library(&error, Chosen::Program))?;
        // SAFETY: promised by the caller; a loaded library is never unloaded.
        Ok(Provider::new(unsafe { Library::new(verbs) }))
    }

    /// A function table that the caller made or loaded.
    ///
    /// # Safety
    ///
    /// The table's functions are those of one verbs library, usable from any thread and for ever. What they may get wrong
    /// without harm is laid down in docs/safety.md of the repository.
    pub unsafe fn from_verbs(verbs: sys::Verbs) -> Self {
        // SAFETY: promised by the caller.
        Provider::new(unsafe { Library::new(verbs) })
    }
}

/// Gives a type its `as_raw`.
macro_rules! door {
    ($type:ident, $raw:ident, $what:literal, $more:literal) => {
        impl $type {
            #[doc = concat!("The raw ", $what, " (`", stringify!($raw), "`), for calls that this crate lacks.")]
            ///
            /// # Safety
            ///
            /// The pointer is valid while this value (or what was made from it) lives, and is not to be destroyed through
            /// it. What is done with it must not change what this crate relies on; docs/safety.md of the repository says
            /// what that is.
            #[doc = $more]
            pub unsafe fn as_raw(&self) -> *mut sys::$raw {
                self.raw().as_ptr()
            }
        }
    };
}

door!(Device, ibv_device, "device", "");
door!(Context, ibv_context, "context", "");
door!(ProtectionDomain, ibv_pd, "protection domain", "");
door!(MemoryRegion, ibv_mr, "memory region", "");
door!(SharedRegion, ibv_mr, "memory region", "");
door!(
    CompletionQueue,
    ibv_cq,
    "completion queue",
    "Polling it takes completions away from this value: their memory then comes back with [`QueuePair::close`] only."
);
door!(PreparedQueuePair, ibv_qp, "queue pair", "");
door!(
    QueuePair,
    ibv_qp,
    "queue pair",
    "Requests that are posted to it directly complete in its completion queue with ids that this crate did not give out, \
     which poisons the queue pair."
);
