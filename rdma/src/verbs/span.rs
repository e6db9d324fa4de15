//! A range of a region, held by one owner.

use super::region::RawRegion;
use core::fmt;
use core::mem::offset_of;
use core::ptr::NonNull;
use std::sync::Arc;

/// Exclusive use of a range of a region's memory. Dropping it gives the range back.
///
/// It is a pointer and a length, not a reference: while it lies in a slot of a queue pair, the device writes through it.
///
/// The order of the words is that of a `RawParcel`, and only the last cannot be null: see there.
#[repr(C)]
pub(crate) struct Span {
    /// Not null.
    start: *mut u8,
    length: usize,
    /// An `Arc<RawRegion>` as a raw pointer, with its count.
    region: NonNull<RawRegion>,
}

/// Where the words stand, for `RawParcel`, which has the same.
pub(super) const PLACES: [usize; 3] = [offset_of!(Span, start), offset_of!(Span, length), offset_of!(Span, region)];

// SAFETY: a span is to its bytes what a `Box<[u8]>` is: the region gave the range to nobody else.
unsafe impl Send for Span {}
// SAFETY: as above: a shared reference to a span allows reading only.
unsafe impl Sync for Span {}

impl Span {
    /// Takes a range of the region, if it has one of this length.
    pub(crate) fn take(region: &Arc<RawRegion>, length: usize) -> Option<Self> {
        let offset = region.take(length)?;
        // SAFETY: ranges lie within the region, whose memory is one mapping.
        let start = unsafe { region.base().add(offset) };
        let region = Arc::into_raw(region.clone()).cast_mut();
        // SAFETY: the pointer of an Arc is not null.
        Some(Span { start: start.as_ptr(), length, region: unsafe { NonNull::new_unchecked(region) } })
    }

    #[inline]
    pub(crate) fn region(&self) -> &RawRegion {
        // SAFETY: the span has a count of the Arc that the pointer came from.
        unsafe { self.region.as_ref() }
    }

    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    #[inline]
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// The address of its first byte.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        self.start.addr() as u64
    }

    /// Its place in the region.
    pub(crate) fn offset(&self) -> usize {
        self.start.addr() - self.region().base().addr().get()
    }

    /// The bytes, to read. Only for spans of regions that are not shared.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        debug_assert!(!self.region().is_shared());
        // SAFETY: mapped, initialised memory (pages are zeroed; StableMemory promises it), ours alone: the range was given
        // to this span only, and the device does not write while the span is not in a slot (a span in a slot cannot be
        // borrowed: slots give out no references).
        unsafe { core::slice::from_raw_parts(self.start, self.length) }
    }

    /// The bytes, to write. Only for spans of regions that are not shared.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        debug_assert!(!self.region().is_shared());
        // SAFETY: as for `bytes`; `&mut self` excludes other borrows through this span.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.length) }
    }

    /// Copies out of memory that others may be writing.
    pub(crate) fn copy_out(&self, offset: usize, target: &mut [u8]) -> bool {
        if offset > self.length || target.len() > self.length - offset {
            return false;
        }
        for (index, byte) in target.iter_mut().enumerate() {
            // SAFETY: within the span; volatile, because others may write at the same time, and every value of a byte is
            // valid.
            *byte = unsafe { self.start.add(offset + index).read_volatile() };
        }
        true
    }

    /// Copies into memory that others may be reading or writing.
    pub(crate) fn copy_in(&mut self, offset: usize, source: &[u8]) -> bool {
        if offset > self.length || source.len() > self.length - offset {
            return false;
        }
        for (index, &byte) in source.iter().enumerate() {
            // SAFETY: within the span; volatile, because others may look at the same time.
            unsafe { self.start.add(offset + index).write_volatile(byte) };
        }
        true
    }

    /// Cuts the span in two. `at` is at most its length.
    pub(crate) fn split_at(mut self, at: usize) -> (Self, Self) {
        debug_assert!(at <= self.length);
        let at = at.min(self.length);
        // SAFETY: the pointer came from an Arc of which the span has a count; this one more is the rest's.
        unsafe { Arc::increment_strong_count(self.region.as_ptr()) };
        // SAFETY: at most one past the end of the span.
        let start = unsafe { self.start.add(at) };
        let rest = Span { start, length: self.length - at, region: self.region };
        self.length = at;
        (self, rest)
    }

    /// Joins two spans that lie side by side in one region, in this order.
    pub(crate) fn join(mut self, mut next: Self) -> Result<Self, (Self, Self)> {
        if self.region != next.region || self.address() + self.length as u64 != next.address() {
            return Err((self, next));
        }
        self.length += next.length;
        // The range is part of this one now: there is nothing for `next` to give back.
        next.length = 0;
        Ok(self)
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        if self.length != 0 {
            self.region().give_back(self.offset(), self.length);
        }
        // SAFETY: the count that the span has, given up here.
        drop(unsafe { Arc::from_raw(self.region.as_ptr()) });
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Span").field("offset", &self.offset()).field("length", &self.length).finish_non_exhaustive()
    }
}
