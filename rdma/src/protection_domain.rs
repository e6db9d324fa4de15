//! Where memory is registered and queue pairs are made.

use crate::completion_queue::CompletionQueue;
use crate::context::still_in_use;
use crate::error::Result;
use crate::memory_region::{MemoryRegion, SharedRegion};
use crate::queue_pair::QueuePairBuilder;
use crate::rules::DeviceRules;
use crate::verbs::context::RawContext;
use crate::verbs::domain::RawDomain;
use crate::verbs::owner::{SharedMemory, SoleBox, StableMemory};
use crate::verbs::region::RawRegion;
use std::sync::Arc;

/// A protection domain: queue pairs use the memory that is registered in theirs, and no other.
///
/// It is a handle; the domain lives while anything made in it does.
#[doc(alias = "ibv_pd")]
#[derive(Clone, Debug)]
pub struct ProtectionDomain(Arc<RawDomain>);

impl ProtectionDomain {
    pub(crate) fn new(context: &Arc<RawContext>, rules: &DeviceRules) -> Result<Self> {
        Ok(ProtectionDomain(RawDomain::allocate(context, rules)?))
    }

    pub(crate) fn raw(&self) -> &Arc<RawDomain> {
        &self.0
    }

    /// The device's rules.
    pub fn rules(&self) -> &DeviceRules {
        &self.0.rules
    }

    /// Allocates zeroed memory, aligned as the device wants it, and registers it: one region, to be cut into many
    /// [buffers](crate::Buffer). Apple's devices have about 100 regions, so make few and large ones, and make them before
    /// the queue pairs that are to use them are connected.
    ///
    /// ```
    /// # use rdma::{Provider, soft::Fabric};
    /// # let fabric = Fabric::mesh(2)?;
    /// # let context = Provider::soft(&fabric.host(0)?)?.first_active()?.open()?;
    /// let domain = context.protection_domain()?;
    /// let region = domain.allocate(1 << 20)?;
    /// let mut buffer = region.buffer(4096)?;
    /// buffer[..5].copy_from_slice(b"hello");
    /// # Ok::<(), rdma::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a length of 0 or one that cannot lie within
    /// [`DeviceRules::address_window`]; [`LimitReached`](crate::ErrorKind::LimitReached) if the device's regions are used
    /// up; [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[doc(alias = "ibv_reg_mr")]
    pub fn allocate(&self, length: usize) -> Result<MemoryRegion> {
        Ok(MemoryRegion::new(RawRegion::allocate(&self.0, length)?))
    }

    /// Registers memory that the caller has, of which the owner has sole access: a mapping, for example. See
    /// [`StableMemory`] for what the owner promises. It is dropped after the region has been deregistered.
    ///
    /// # Errors
    ///
    /// As for [`allocate`](Self::allocate), and [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the memory does
    /// not start at a multiple of [`DeviceRules::alignment`] or crosses a border of [`DeviceRules::address_window`].
    pub fn register(&self, owner: impl StableMemory) -> Result<MemoryRegion> {
        Ok(MemoryRegion::new(RawRegion::stable(&self.0, Box::new(owner))?))
    }

    /// Registers a boxed slice, which must be [aligned](DeviceRules::alignment) (few are).
    ///
    /// # Errors
    ///
    /// As for [`register`](Self::register).
    pub fn register_box(&self, bytes: Box<[u8]>) -> Result<MemoryRegion> {
        self.register(SoleBox::from(bytes))
    }

    /// Registers memory that others may touch at any time: a GPU's, or memory shared with another process. Its buffers can
    /// be posted, but not be seen as slices. See [`SharedMemory`] for what the owner promises.
    ///
    /// # Errors
    ///
    /// As for [`register`](Self::register).
    pub fn register_shared(&self, owner: impl SharedMemory) -> Result<SharedRegion> {
        Ok(SharedRegion::new(RawRegion::shared(&self.0, Box::new(owner))?))
    }

    /// Begins a queue pair whose sends and receives complete in `completions`.
    #[doc(alias = "ibv_create_qp")]
    pub fn queue_pair<'a>(&'a self, completions: &'a CompletionQueue) -> QueuePairBuilder<'a> {
        QueuePairBuilder::new(&self.0, completions)
    }

    /// Frees the domain and says whether that worked. Dropping the last handle does the same, silently.
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) if something that was made in it, or a clone of this handle, still exists: then it
    /// is freed when the last of them goes.
    #[doc(alias = "ibv_dealloc_pd")]
    pub fn close(self) -> Result<()> {
        match Arc::try_unwrap(self.0) {
            Ok(raw) => raw.close(),
            Err(_) => Err(still_in_use("the protection domain")),
        }
    }
}
