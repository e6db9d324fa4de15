//! Memory that the caller brings.

use core::ptr::NonNull;

/// An owner of memory of which it has sole access, so that buffers of a region over it can be seen as slices.
///
/// Implement it for a mapping, a pinned allocation, a buffer of another library: anything that keeps bytes at one address
/// until it is dropped. The owner moves into the region and is dropped after the region has been deregistered (never, if
/// that fails).
///
/// # Safety
///
/// From the call of [`bytes`](StableMemory::bytes) until the owner is dropped
///
/// * the range is mapped, readable and writable, initialised, and stays where it is, however the owner is moved;
/// * nobody reads or writes it but through what `bytes` returned: no other thread, process, device or handle. Memory for
///   which that cannot be promised is [`SharedMemory`].
pub unsafe trait StableMemory: Send + Sync + 'static {
    /// The range. Called once.
    fn bytes(&self) -> NonNull<[u8]>;
}

/// An owner of memory that others may touch at any time: a GPU, another process, another registration. Buffers of a region
/// over it can be posted, but their bytes can only be copied in and out.
///
/// # Safety
///
/// From the call of [`bytes`](SharedMemory::bytes) until the owner is dropped, the range is mapped, readable and writable,
/// stays where it is, and no Rust reference to any of it is used.
pub unsafe trait SharedMemory: Send + Sync + 'static {
    /// The range. Called once.
    fn bytes(&self) -> NonNull<[u8]>;
}

// SAFETY: a boxed slice is initialised memory that does not move with the box, and the region never touches the box again
// before dropping it.
unsafe impl StableMemory for SoleBox {
    fn bytes(&self) -> NonNull<[u8]> {
        self.0
    }
}

/// A boxed slice, taken apart so that holding the box asserts nothing about the bytes.
pub(crate) struct SoleBox(NonNull<[u8]>);

// SAFETY: it is a Box<[u8]>.
unsafe impl Send for SoleBox {}
// SAFETY: as above; a shared reference gives out an address only.
unsafe impl Sync for SoleBox {}

impl From<Box<[u8]>> for SoleBox {
    fn from(bytes: Box<[u8]>) -> Self {
        SoleBox(NonNull::from(Box::leak(bytes)))
    }
}

impl Drop for SoleBox {
    fn drop(&mut self) {
        // SAFETY: it came from Box::leak, and is made a box again once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
