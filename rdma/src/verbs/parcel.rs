//! Memory on its way through a queue pair, in one flat shape whatever it is.
//!
//! An enum of the three kinds would say the same; but moving one through slots and completions costs several times as much
//! as these four words do (the compiler copies it by parts of odd sizes, which processors forward badly).
//!
//! The same is why the words stand in this order, here, in a span and in a completion's report, and why none of them has a
//! value that it cannot hold: the compiler copies two words at once, beginning with the first that it does not look into.
//! Where one copy takes (start, length) and the next takes (length, owner), the processor has to wait until the first has
//! reached the cache, about 5 ns, many times a message.

use super::span::{PLACES, Span};
use crate::buffer::{Buffer, FrozenBuffer, SharedBuffer};
use crate::memory::Memory;
use core::fmt;
use core::mem::{ManuallyDrop, MaybeUninit, offset_of};
use std::sync::Arc;

/// Which kind of memory a parcel is. A whole word that may hold any value: an enum would have niches, and the compiler
/// would put other enums' tags there, in the middle of what is to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
struct Kind(usize);

impl Kind {
    const BUFFER: Kind = Kind(0);
    const FROZEN: Kind = Kind(1);
    const SHARED: Kind = Kind(2);
}

/// The words of a parcel. Plain data: copying it copies no ownership.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawParcel {
    start: *mut u8,
    length: usize,
    /// `Arc<RawRegion>` (of a span) or `Arc<Buffer>` (of a frozen buffer), as a raw pointer with its count.
    owner: *const (),
    kind: Kind,
}

// The first three words are those of a span.
const _: () = {
    let [start, length, region] = PLACES;
    assert!(start == offset_of!(RawParcel, start) && length == offset_of!(RawParcel, length));
    assert!(region == offset_of!(RawParcel, owner) && size_of::<Span>() == offset_of!(RawParcel, kind));
};

impl RawParcel {
    /// Writes the words one by one. A copy of the whole would read them back from the stack by pairs, of which each was
    /// just written by halves, and processors stall on that.
    ///
    /// # Safety
    ///
    /// The place may be written.
    #[inline(always)]
    pub(crate) unsafe fn write_words(self, place: *mut RawParcel) {
        // SAFETY: promised by the caller.
        unsafe {
            (&raw mut (*place).owner).write_volatile(self.owner);
            (&raw mut (*place).start).write_volatile(self.start);
            (&raw mut (*place).length).write_volatile(self.length);
            (&raw mut (*place).kind).write_volatile(self.kind);
        }
    }
}

// SAFETY: what it is made from (Span, Arc<Buffer>) is Send; the words are only ever made into that again.
unsafe impl Send for RawParcel {}

#[cfg(all(loom, test))]
impl RawParcel {
    /// Words that own nothing, told apart by a number. Must not be made a parcel.
    pub(crate) fn marked(number: usize) -> Self {
        RawParcel { start: core::ptr::dangling_mut(), length: number, owner: core::ptr::dangling(), kind: Kind::BUFFER }
    }
}

/// Owned memory of any kind.
#[repr(transparent)]
pub(crate) struct Parcel(RawParcel);

// SAFETY: as for what it holds: Buffer, FrozenBuffer and SharedBuffer are Send and Sync.
unsafe impl Send for Parcel {}
// SAFETY: as above.
unsafe impl Sync for Parcel {}

impl Parcel {
    #[inline]
    fn of_span(span: Span, kind: Kind) -> Self {
        let mut raw = MaybeUninit::<RawParcel>::uninit();
        // SAFETY: there is room for a span, whose words are the first three of a parcel; the fourth is written, too.
        Parcel(unsafe {
            raw.as_mut_ptr().cast::<Span>().write(span);
            (&raw mut (*raw.as_mut_ptr()).kind).write(kind);
            raw.assume_init()
        })
    }

    #[inline]
    pub(crate) fn from_buffer(buffer: Buffer) -> Self {
        Parcel::of_span(buffer.into_span(), Kind::BUFFER)
    }

    #[inline]
    pub(crate) fn from_shared(buffer: SharedBuffer) -> Self {
        Parcel::of_span(buffer.into_span(), Kind::SHARED)
    }

    #[inline]
    pub(crate) fn from_frozen(buffer: FrozenBuffer) -> Self {
        let (start, length) = (buffer.span().start(), buffer.span().length());
        let owner = Arc::into_raw(buffer.into_arc()).cast();
        Parcel(RawParcel { start, length, owner, kind: Kind::FROZEN })
    }

    /// The words. Ownership goes with them.
    #[inline]
    pub(crate) fn into_raw(self) -> RawParcel {
        ManuallyDrop::new(self).0
    }

    /// Ownership back.
    ///
    /// # Safety
    ///
    /// The words came from `into_raw` and have not been made a parcel again since.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: RawParcel) -> Self {
        Parcel(raw)
    }

    /// # Safety
    ///
    /// The kind is `Buffer` or `Shared`.
    #[inline]
    unsafe fn into_span(self) -> Span {
        let raw = self.into_raw();
        // SAFETY: of these two kinds, the first three words are those of a span that `of_span` wrote there; `into_raw`
        // consumed the parcel, so the span is moved out once.
        unsafe { (&raw const raw).cast::<Span>().read() }
    }

    #[inline]
    pub(crate) fn into_buffer(self) -> Option<Buffer> {
        match self.0.kind {
            // SAFETY: the kind is Buffer.
            Kind::BUFFER => Some(Buffer::new(unsafe { self.into_span() })),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn into_shared(self) -> Option<SharedBuffer> {
        match self.0.kind {
            // SAFETY: the kind is Shared.
            Kind::SHARED => Some(SharedBuffer::new(unsafe { self.into_span() })),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn into_frozen(self) -> Option<FrozenBuffer> {
        match self.0.kind {
            Kind::FROZEN => {
                let owner = self.into_raw().owner.cast::<Buffer>();
                // SAFETY: the owner of this kind came from an Arc<Buffer>, with its count, which is given up here.
                Some(FrozenBuffer::from_arc(unsafe { Arc::from_raw(owner) }))
            }
            _ => None,
        }
    }

    pub(crate) fn into_memory(self) -> Memory {
        match self.0.kind {
            // SAFETY: the kind is Buffer.
            Kind::BUFFER => Memory::Buffer(Buffer::new(unsafe { self.into_span() })),
            Kind::FROZEN => {
                let owner = self.into_raw().owner.cast::<Buffer>();
                // SAFETY: as in `into_frozen`.
                Memory::Frozen(FrozenBuffer::from_arc(unsafe { Arc::from_raw(owner) }))
            }
            // SAFETY: the kind is Shared: there are three.
            _ => Memory::Shared(SharedBuffer::new(unsafe { self.into_span() })),
        }
    }

    /// The bytes, where they can be seen: not those of shared memory.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self.0.kind {
            Kind::SHARED => &[],
            // SAFETY: the parcel owns a buffer, or a share of a frozen one, of this range: readable, and not written while
            // `self` is borrowed (see `Span::bytes`).
            _ => unsafe { core::slice::from_raw_parts(self.0.start, self.0.length) },
        }
    }
}

impl Drop for Parcel {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the words are not used after this.
        drop(unsafe { Parcel::from_raw(self.0) }.into_memory());
    }
}

impl fmt::Debug for Parcel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes", self.0.length)
    }
}

impl fmt::Debug for RawParcel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes", self.length)
    }
}
