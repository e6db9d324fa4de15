//! Pieces of registered memory.

use crate::verbs::span::Span;
use core::fmt;
use core::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A piece of a memory region that nobody else can reach: a slice of bytes, until it is posted.
///
/// * Posting a buffer takes it; the completion returns it. While the device has it, no safe code can read or write it.
/// * It [splits](Buffer::split_at) and [joins](Buffer::join); [`freeze`](Buffer::freeze) makes it readable by many and
///   postable on several queue pairs at once.
/// * Dropping it gives its range back to the region. It keeps the region registered while it lives.
pub struct Buffer(Span);

impl Buffer {
    pub(crate) fn new(span: Span) -> Self {
        Buffer(span)
    }

    #[inline]
    pub(crate) fn span(&self) -> &Span {
        &self.0
    }

    #[inline]
    pub(crate) fn into_span(self) -> Span {
        self.0
    }

    /// Where it begins in its region, in bytes.
    pub fn offset(&self) -> usize {
        self.0.offset()
    }

    /// Cuts it in two at `at`. Both parts can be posted, dropped, joined on their own.
    ///
    /// # Panics
    ///
    /// If `at` is greater than the length, as `split_at` of a slice does.
    #[track_caller]
    pub fn split_at(self, at: usize) -> (Buffer, Buffer) {
        assert!(at <= self.len(), "split at {at} of a buffer of {} bytes", self.len());
        let (first, second) = self.0.split_at(at);
        (Buffer(first), Buffer(second))
    }

    /// Puts two neighbours of one region together: `next` begins where this one ends.
    ///
    /// # Errors
    ///
    /// Both, unchanged, if they are not neighbours in this order.
    pub fn join(self, next: Buffer) -> Result<Buffer, (Buffer, Buffer)> {
        match self.0.join(next.0) {
            Ok(joined) => Ok(Buffer(joined)),
            Err((first, second)) => Err((Buffer(first), Buffer(second))),
        }
    }

    /// Makes it read-only and shareable. Nobody can write it any more, until it is [thawed](FrozenBuffer::thaw).
    pub fn freeze(self) -> FrozenBuffer {
        FrozenBuffer(Arc::new(self))
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Buffer").field("offset", &self.offset()).field("len", &self.len()).finish()
    }
}

/// A read-only buffer: clones share it, and each can be posted, on as many queue pairs of its protection domain as there
/// are.
///
/// On Thunderbolt each cable has a device of its own, so a domain reaches one peer: to send the same bytes to several peers,
/// have a copy in a region of each device, or register the same memory on each (see
/// [`ProtectionDomain::register_shared`](crate::ProtectionDomain::register_shared)).
#[derive(Clone)]
pub struct FrozenBuffer(Arc<Buffer>);

impl FrozenBuffer {
    #[inline]
    pub(crate) fn span(&self) -> &Span {
        self.0.span()
    }

    pub(crate) fn from_arc(buffer: Arc<Buffer>) -> Self {
        FrozenBuffer(buffer)
    }

    #[inline]
    pub(crate) fn into_arc(self) -> Arc<Buffer> {
        self.0
    }

    /// The buffer, to write again.
    ///
    /// # Errors
    ///
    /// Itself, while there are other clones, those that are posted included.
    pub fn thaw(self) -> Result<Buffer, FrozenBuffer> {
        Arc::try_unwrap(self.0).map_err(FrozenBuffer)
    }
}

impl Deref for FrozenBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for FrozenBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for FrozenBuffer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FrozenBuffer").field("offset", &self.0.offset()).field("len", &self.len()).finish()
    }
}

/// A piece of a region over memory that others may touch at any time ([`SharedMemory`](crate::SharedMemory)): it can be
/// posted, and its bytes copied in and out, but never seen as a slice.
pub struct SharedBuffer(Span);

impl SharedBuffer {
    pub(crate) fn new(span: Span) -> Self {
        SharedBuffer(span)
    }

    #[inline]
    pub(crate) fn span(&self) -> &Span {
        &self.0
    }

    #[inline]
    pub(crate) fn into_span(self) -> Span {
        self.0
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.0.length()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where it begins in its region, in bytes.
    pub fn offset(&self) -> usize {
        self.0.offset()
    }

    /// Copies bytes out, from `offset` on. What another writes at the same time may be seen in part.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if it does not hold that many bytes there.
    pub fn copy_to_slice(&self, offset: usize, target: &mut [u8]) -> crate::Result<()> {
        if self.0.copy_out(offset, target) { Ok(()) } else { Err(self.out_of_range(offset, target.len())) }
    }

    /// Copies bytes in, from `offset` on.
    ///
    /// # Errors
    ///
    /// As for [`copy_to_slice`](Self::copy_to_slice).
    pub fn copy_from_slice(&mut self, offset: usize, source: &[u8]) -> crate::Result<()> {
        if self.0.copy_in(offset, source) { Ok(()) } else { Err(self.out_of_range(offset, source.len())) }
    }

    fn out_of_range(&self, offset: usize, length: usize) -> crate::Error {
        crate::Error::argument(format!("{length} bytes at {offset} of a buffer of {}", self.len()))
    }

    /// Cuts it in two at `at`.
    ///
    /// # Panics
    ///
    /// If `at` is greater than the length.
    #[track_caller]
    pub fn split_at(self, at: usize) -> (SharedBuffer, SharedBuffer) {
        assert!(at <= self.len(), "split at {at} of a buffer of {} bytes", self.len());
        let (first, second) = self.0.split_at(at);
        (SharedBuffer(first), SharedBuffer(second))
    }

    /// Puts two neighbours together, as [`Buffer::join`] does.
    ///
    /// # Errors
    ///
    /// Both, unchanged, if they are not neighbours in this order.
    pub fn join(self, next: SharedBuffer) -> Result<SharedBuffer, (SharedBuffer, SharedBuffer)> {
        match self.0.join(next.0) {
            Ok(joined) => Ok(SharedBuffer(joined)),
            Err((first, second)) => Err((SharedBuffer(first), SharedBuffer(second))),
        }
    }
}

impl fmt::Debug for SharedBuffer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SharedBuffer").field("offset", &self.offset()).field("len", &self.len()).finish()
    }
}
