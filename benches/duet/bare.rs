//! The least that two threads need: a copy into the receiver's memory, and a flag.
#![allow(unsafe_code)]

use super::ends::{AHEAD, End, touch};
use super::{Stage, Stop};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What fits beside the flag in its cache line, and so costs no line of its own.
const BESIDE: usize = 48;

/// A flag in a line of its own, with room for a short message beside it, and room for a long one elsewhere.
#[repr(align(128))]
struct Slot {
    flag: AtomicU64,
    beside: [u8; BESIDE],
}

/// Memory that both sides reach: the slots of each direction, and the room that goes with each; and each side's message.
struct Desk {
    slots: NonNull<Slot>,
    rooms: NonNull<u8>,
    size: usize,
}

// SAFETY: who may touch a slot's or room's bytes is decided by its flag; see `send` and `receive`.
unsafe impl Send for Desk {}
// SAFETY: as above.
unsafe impl Sync for Desk {}

const COUNT: usize = 2 * AHEAD;

fn layouts(size: usize) -> [Layout; 2] {
    let rooms = Layout::from_size_align((COUNT + 2) * size.next_multiple_of(4096), 4096).expect("a length of memory");
    [Layout::array::<Slot>(COUNT).expect("a few lines"), rooms]
}

impl Desk {
    fn new(size: usize) -> Self {
        let [slots, rooms] = layouts(size).map(|layout| {
            // SAFETY: no layout here is empty.
            NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
        });
        Desk { slots: slots.cast(), rooms, size }
    }

    fn slot(&self, index: usize) -> NonNull<Slot> {
        assert!(index < COUNT);
        // SAFETY: there are COUNT of them.
        unsafe { self.slots.add(index) }
    }

    fn flag(&self, index: usize) -> &AtomicU64 {
        // SAFETY: a slot is zeroed memory, of which the flag is used as an atomic only.
        unsafe { &(*self.slot(index).as_ptr()).flag }
    }

    /// Where the message goes.
    fn place(&self, index: usize) -> *mut u8 {
        if self.size <= BESIDE {
            // SAFETY: the slot exists; no reference is made.
            return unsafe { (&raw mut (*self.slot(index).as_ptr()).beside).cast() };
        }
        self.room(index)
    }

    /// The rooms of slots, and after them those of the two messages.
    fn room(&self, index: usize) -> *mut u8 {
        assert!(index < COUNT + 2);
        // SAFETY: there are so many rooms of that many bytes.
        unsafe { self.rooms.as_ptr().add(index * self.size.next_multiple_of(4096)) }
    }

    /// A side's message.
    fn message(&self, side: usize) -> *mut u8 {
        self.room(COUNT + side)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let [slots, rooms] = layouts(self.size);
        // SAFETY: allocated with these layouts, and nobody has the desk any more.
        unsafe {
            dealloc(self.slots.as_ptr().cast(), slots);
            dealloc(self.rooms.as_ptr(), rooms);
        }
    }
}

pub(crate) struct BareEnd<'a> {
    stage: &'a Stage,
    desk: Arc<Desk>,
    side: usize,
    sent: u64,
    received: u64,
}

impl<'a> BareEnd<'a> {
    pub(crate) fn connect(stage: &'a Stage, size: usize) -> [Self; 2] {
        let desk = Arc::new(Desk::new(size));
        [0, 1].map(|side| BareEnd { stage, desk: desk.clone(), side, sent: 0, received: 0 })
    }

    /// The slot of the `count`th message of a side.
    fn index(side: usize, count: u64) -> usize {
        side * AHEAD + count as usize % AHEAD
    }
}

impl End for BareEnd<'_> {
    #[inline]
    fn send(&mut self) -> Result<(), Stop> {
        let index = Self::index(self.side, self.sent);
        self.sent += 1;
        // SAFETY: both are rooms of so many bytes, and different ones; the message is this side's alone. The other side read
        // what was in the place before it sent the message that came last, because sides take turns, and looks again when
        // the flag has this message's number.
        unsafe { self.desk.place(index).copy_from_nonoverlapping(self.desk.message(self.side), self.desk.size) };
        self.desk.flag(index).store(self.sent, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Result<(), Stop> {
        let index = Self::index(1 - self.side, self.received);
        self.received += 1;
        let flag = self.desk.flag(index);
        let (mut turns, mut since) = (0, None);
        while flag.load(Ordering::Acquire) != self.received {
            if turns < 64 {
                turns += 1;
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
                self.stage.impatient(*since.get_or_insert_with(Instant::now))?;
            }
        }
        // SAFETY: the flag says that the message is written, and the other side writes there again only after it has had
        // an answer to a later one.
        touch(unsafe { std::slice::from_raw_parts(self.desk.place(index), self.desk.size) });
        Ok(())
    }

    fn repost(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    #[inline]
    fn rewrite(&mut self, value: u8) -> Result<(), Stop> {
        // SAFETY: a room of so many bytes, which is this side's alone.
        unsafe { self.desk.message(self.side).write_bytes(value, self.desk.size) };
        Ok(())
    }
}
