//! Where memory stays while the device has it.
//!
//! Each direction of a queue pair is a [`Lane`] of slots, one for each request that it may have in flight. The poster
//! fills slots in order; the poller empties the one that a completion names. A slot's tag tells whose it is: 0 means
//! the poster's, anything else the poller's. Queues are first in, first out, so the poster's next slot is the oldest.
//!
//! Which thread may do what:
//!
//! * *The poster* is whoever has `&mut QueuePair`. It writes a slot whose tag is 0 (acquire) and then sets the tag (release).
//! * *The poller* is whoever holds the latch of the completion queue. It takes from a slot whose tag is the one that the
//!   completion names (acquire), and then clears the tag (release).
//! * Taking a slot back after a post that failed, and emptying all slots after the queue pair was destroyed, is done with
//!   that latch held, too.
//!
//! Explored with loom (`schedules.rs`): a poster and a poller over slots that are used again, a withdrawal against a
//! completion, emptying against a poller, and a poller that comes to a stop after each of its steps.

use super::parcel::RawParcel;
use super::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, UnsafeCell};
use core::mem::MaybeUninit;

/// What a request leaves behind for its completion. Plain data: the memory's ownership is with the slot's tag.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Posted {
    pub(crate) memory: RawParcel,
    pub(crate) token: u64,
    /// The range of the memory that was posted.
    pub(crate) start: usize,
    pub(crate) length: u32,
    /// What it takes of the queue's depth.
    pub(crate) depth: u16,
    /// How many unsignaled requests were posted just before it; they end with it.
    pub(crate) run: u16,
}

/// The number of bits of a slot's index and of its generation in a work request's id.
pub(crate) const INDEX_BITS: u32 = 15;
pub(crate) const GENERATION_BITS: u32 = 20;

/// The most requests a lane may have in flight.
pub(crate) const MAX_REQUESTS: u32 = 1 << INDEX_BITS;

/// Keeps what two threads write apart (two lines of 64 bytes, because processors fetch pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// The slots of a queue pair, shared by its poster and its poller or pollers.
#[derive(Debug)]
pub(crate) struct Slots {
    pub(crate) send: Lane,
    pub(crate) receive: Lane,
    pub(crate) number: u32,
    poisoned: AtomicBool,
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Lane {
    cells: Box<[Cell]>,
    /// The depth that completions have given back. Stored by the poller.
    returned: Apart<AtomicU64>,
}

#[repr(C, align(64))]
struct Cell {
    posted: UnsafeCell<MaybeUninit<Posted>>,
    /// 0, or `generation << 1 | 1`: then `posted` is initialised, and owns its memory.
    tag: AtomicU32,
}

// SAFETY: `posted` is used by one side at a time, as the module's documentation lays down; the tag hands it over with
// release and acquire. What is in it is Send.
unsafe impl Sync for Cell {}

impl core::fmt::Debug for Cell {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Cell").field("tag", &self.tag.load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}

// A request touches one cache line of its own.
#[cfg(not(all(loom, test)))]
const _: () = assert!(size_of::<Cell>() == 64);

/// A slot with a request in flight, in the hands of the poller.
pub(crate) struct Occupied<'a> {
    lane: &'a Lane,
    cell: &'a Cell,
}

impl Occupied<'_> {
    /// What is in the slot. The words of its memory own it once [`release`](Self::release) has been called.
    #[inline]
    pub(crate) fn posted(&self) -> &Posted {
        // SAFETY: the tag was set (`occupied`), so the slot is initialised and the poller's, which is us.
        unsafe { (*self.cell.posted.get()).assume_init_ref() }
    }

    /// Gives the slot back to the poster, without what it owned, and returns the depth.
    #[inline]
    pub(crate) fn release(self) {
        let depth = u64::from(self.posted().depth);
        // One poller at a time (the latch), so no addition is lost.
        let returned = &self.lane.returned.0;
        returned.store(returned.load(Ordering::Relaxed) + depth, Ordering::Release);
        self.cell.tag.store(0, Ordering::Release);
    }
}

/// Why a completion was not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No request with this id is in flight.
    NeverIssued,
    /// More bytes than the receive was posted with.
    TooLong,
}

impl Slots {
    pub(crate) fn new(number: u32, sends: u32, receives: u32) -> Self {
        Slots { send: Lane::new(sends), receive: Lane::new(receives), number, poisoned: AtomicBool::new(false) }
    }

    #[inline]
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Relaxed)
    }

    #[cold]
    pub(crate) fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }
}

fn tag(generation: u32) -> u32 {
    (generation & ((1 << GENERATION_BITS) - 1)) << 1 | 1
}

impl Lane {
    fn new(requests: u32) -> Self {
        let cell = |_| Cell { posted: UnsafeCell::new(MaybeUninit::uninit()), tag: AtomicU32::new(0) };
        Lane { cells: (0..requests).map(cell).collect(), returned: Apart(AtomicU64::new(0)) }
    }

    /// How many requests it takes.
    #[inline]
    pub(crate) fn capacity(&self) -> u32 {
        self.cells.len() as u32
    }

    /// The depth that completions have given back since the beginning.
    #[inline]
    pub(crate) fn returned(&self) -> u64 {
        self.returned.0.load(Ordering::Acquire)
    }

    /// Whether the poster may fill this slot.
    #[inline]
    pub(crate) fn is_free(&self, index: u32) -> bool {
        self.cells.get(index as usize).is_some_and(|cell| cell.tag.load(Ordering::Acquire) == 0)
    }

    /// Fills a slot.
    ///
    /// # Safety
    ///
    /// The caller is the poster, and `is_free(index)` said yes since it last filled a slot of this index.
    #[inline]
    pub(crate) unsafe fn fill(&self, index: u32, generation: u32, posted: Posted) {
        let cell = &self.cells[index as usize];
        let place = cell.posted.get().cast::<Posted>();
        let Posted { memory, token, start, length, depth, run } = posted;
        // SAFETY: the tag was 0, so the slot is the poster's, who is our caller. Every field is written.
        unsafe {
            memory.write_words(&raw mut (*place).memory);
            (&raw mut (*place).token).write(token);
            (&raw mut (*place).start).write(start);
            (&raw mut (*place).length).write(length);
            (&raw mut (*place).depth).write(depth);
            (&raw mut (*place).run).write(run);
        }
        cell.tag.store(tag(generation), Ordering::Release);
    }

    /// The slot of a completed request, if such a request is in flight.
    ///
    /// # Safety
    ///
    /// The caller holds the latch of the lane's completion queue for as long as it keeps what is returned.
    #[inline]
    pub(crate) unsafe fn occupied(&self, index: u32, generation: u32) -> Option<Occupied<'_>> {
        let cell = self.cells.get(index as usize)?;
        (cell.tag.load(Ordering::Acquire) == tag(generation)).then_some(Occupied { lane: self, cell })
    }

    /// Takes back a slot whose post failed, unless a completion has taken it.
    ///
    /// # Safety
    ///
    /// The caller is the poster and holds the latch of the lane's completion queue.
    #[cold]
    pub(crate) unsafe fn withdraw(&self, index: u32, generation: u32) -> Option<Posted> {
        let cell = self.cells.get(index as usize)?;
        if cell.tag.load(Ordering::Acquire) != tag(generation) {
            return None;
        }
        // SAFETY: the tag is set, so the slot is initialised; with the latch held there is no poller, and the poster is our
        // caller.
        let posted = unsafe { (*cell.posted.get()).assume_init() };
        cell.tag.store(0, Ordering::Release);
        Some(posted)
    }

    /// Empties all slots, oldest first, beginning at the poster's next.
    ///
    /// # Safety
    ///
    /// The caller is the poster and holds the latch of the lane's completion queue, and the queue pair has been destroyed.
    pub(crate) unsafe fn drain(&self, next: u32) -> Vec<Posted> {
        let order = (next as usize..self.cells.len()).chain(0..next as usize);
        order
            .filter_map(|index| {
                let cell = &self.cells[index];
                if cell.tag.swap(0, Ordering::AcqRel) == 0 {
                    return None;
                }
                // SAFETY: the tag was set, so the slot is initialised; with the latch held there is no poller, and the
                // poster is our caller. The tag says now that nobody owns the memory but what is returned.
                Some(unsafe { (*cell.posted.get()).assume_init() })
            })
            .collect()
    }
}
