//! Where a message is announced: one cache line, with the payload of a short one.
//!
//! The writer writes what it announces, and the mark last. The reader believes a mark that is the connection's and the
//! message's, and counts the message as taken once it has copied it; only then may the writer use the line again.
//!
//! Explored with loom, together with those who use it (`schedules.rs`).

use crate::soft::queue_pair::INLINE;
use crate::soft::small;
use crate::verbs::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};

/// A message, as far as its descriptor says. Nothing in it is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) length: u32,
    pub(crate) first: u16,
    pub(crate) immediate: Option<u32>,
}

/// In a descriptor's `what`: there is immediate data, which takes the last bytes of its payload.
const IMMEDIATE: u64 = 1 << 48;

/// Where it is there.
const IMMEDIATE_AT: usize = INLINE - size_of::<u32>();

/// Whether a payload travels in the descriptor.
#[inline]
pub(crate) fn is_short(length: u32, immediate: bool) -> bool {
    length as usize <= if immediate { IMMEDIATE_AT } else { INLINE }
}

#[repr(C, align(64))]
pub(crate) struct Descriptor {
    /// The connection's generation and the message's number: written last.
    mark: AtomicU64,
    /// The length, the first frame, and whether there is immediate data.
    what: AtomicU64,
    payload: UnsafeCell<[u8; INLINE]>,
}

#[cfg(not(all(loom, test)))]
const _: () = assert!(size_of::<Descriptor>() == 64 && align_of::<Descriptor>() == 64);

// SAFETY: the payload is bytes of which any value will do, copied by raw pointer; other processes reach them anyway. What
// orders the accesses of a peer that keeps to the protocol is told above.
unsafe impl Sync for Descriptor {}

fn mark(generation: u32, index: u64) -> u64 {
    u64::from(generation) << 32 | u64::from(index as u32)
}

impl Descriptor {
    /// For the writer: puts a message that [is short](is_short).
    ///
    /// # Safety
    ///
    /// `message.length` bytes at `source` can be read.
    #[inline]
    pub(crate) unsafe fn put_inline(&self, generation: u32, index: u64, source: *const u8, message: Message) {
        let length = message.length as usize;
        debug_assert!(length <= INLINE);
        // SAFETY: the payload has room for INLINE bytes. Other processes may read or write the same bytes; nothing relies on
        // their values.
        unsafe { small::copy(source, self.payload.get().cast(), length) };
        self.put(generation, index, message);
    }

    /// For the writer: puts a message whose payload was written to the frames from `first` on.
    #[inline]
    pub(crate) fn put(&self, generation: u32, index: u64, message: Message) {
        let mut what = u64::from(message.length) | u64::from(message.first) << 32;
        if let Some(immediate) = message.immediate {
            what |= IMMEDIATE;
            // SAFETY: the last bytes of the payload, aligned as the descriptor is. Whatever a reader finds there will do.
            unsafe { self.payload.get().cast::<u8>().add(IMMEDIATE_AT).cast::<u32>().write_volatile(immediate) };
        }
        self.what.store(what, Ordering::Relaxed);
        self.mark.store(mark(generation, index), Ordering::Release);
    }

    /// For the reader: whether message `index` is there.
    #[inline]
    pub(crate) fn look(&self, generation: u32, index: u64) -> Option<Message> {
        if self.mark.load(Ordering::Acquire) != mark(generation, index) {
            return None;
        }
        let what = self.what.load(Ordering::Relaxed);
        // SAFETY: as in `put`.
        let immediate = || unsafe { self.payload.get().cast::<u8>().add(IMMEDIATE_AT).cast::<u32>().read_volatile() };
        Some(Message {
            length: what as u32,
            first: (what >> 32) as u16,
            immediate: (what & IMMEDIATE != 0).then(immediate),
        })
    }

    /// For the reader: copies the payload of a message that [is short](is_short): [`INLINE`] bytes at most.
    ///
    /// # Safety
    ///
    /// `length` bytes at `target` can be written.
    #[inline]
    pub(crate) unsafe fn take(&self, target: *mut u8, length: usize) {
        // SAFETY: the payload holds INLINE bytes, which is as much as a short message has; the target is as long as
        // promised. Another process may be writing the source: any bytes will do.
        unsafe { small::copy(self.payload.get().cast_const().cast(), target, length.min(INLINE)) };
    }
}

/// What the writer says when it leaves: the messages from this one on are not to be taken.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Cut {
    generation: AtomicU32,
    count: AtomicU64,
}

impl Cut {
    /// For the writer, when it leaves: the reader is to take the messages before `count`, no others.
    pub(crate) fn set(&self, generation: u32, count: u64) {
        self.count.store(count, Ordering::Relaxed);
        self.generation.store(generation, Ordering::Release);
    }

    /// For the reader: whether the writer has left, and message `index` is not to be taken.
    #[inline]
    pub(crate) fn is_before(&self, generation: u32, index: u64) -> bool {
        self.generation.load(Ordering::Acquire) == generation && index >= self.count.load(Ordering::Relaxed)
    }
}

#[cfg(all(loom, test))]
impl Descriptor {
    pub(crate) fn empty() -> Self {
        Descriptor { mark: AtomicU64::new(0), what: AtomicU64::new(0), payload: UnsafeCell::new([0; INLINE]) }
    }
}
