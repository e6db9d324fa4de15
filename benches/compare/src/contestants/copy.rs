//! A copy into the receiver's memory, and a flag.
#![allow(unsafe_code)]

use crate::Result;
use crate::arena::Arena;
use crate::play::{End, touch, wait};
use std::sync::atomic::{AtomicU64, Ordering};

/// Messages of a side that have places of their own: one that is read, and one that is written.
const PLACES: usize = 2;
/// A flag has lines of its own, and room beside it for a message that is short.
const FLAG: usize = 128;
const BESIDE: usize = 48;

pub(crate) struct CopyEnd<'a> {
    arena: &'a Arena,
    side: usize,
    message: Vec<u8>,
    sent: u64,
    received: u64,
}

fn room(size: usize) -> usize {
    FLAG + size.next_multiple_of(FLAG)
}

impl<'a> CopyEnd<'a> {
    /// How much of the arena it takes.
    pub(crate) fn memory(size: usize) -> usize {
        2 * PLACES * room(size)
    }

    pub(crate) fn new(arena: &'a Arena, side: usize, size: usize) -> Self {
        assert!(arena.rest().1 >= Self::memory(size) && side < 2);
        CopyEnd { arena, side, message: vec![1; size], sent: 0, received: 0 }
    }

    /// The flag and the bytes of a side's message of this number.
    fn place(&self, side: usize, number: u64) -> (&AtomicU64, *mut u8) {
        let size = self.message.len();
        let index = side * PLACES + number as usize % PLACES;
        // SAFETY: there is as much memory, see `new`. Flags are used as atomics only.
        unsafe {
            let place = self.arena.rest().0.add(index * room(size));
            (AtomicU64::from_ptr(place.cast()), place.add(if size <= BESIDE { 8 } else { FLAG }))
        }
    }
}

impl End for CopyEnd<'_> {
    #[inline]
    fn rewrite(&mut self, value: u8) -> Result<()> {
        self.message.fill(value);
        Ok(())
    }

    #[inline]
    fn send(&mut self) -> Result<()> {
        self.sent += 1;
        let (flag, place) = self.place(self.side, self.sent);
        // SAFETY: a room of so many bytes. Nobody else looks at them: sides take turns, so the other has read what was here.
        unsafe { place.copy_from_nonoverlapping(self.message.as_ptr(), self.message.len()) };
        flag.store(self.sent, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Result<()> {
        self.received += 1;
        let (flag, place) = self.place(1 - self.side, self.received);
        wait(|| Ok((flag.load(Ordering::Acquire) == self.received).then_some(())))?;
        // SAFETY: the flag says that they are written; they are again only after the answer.
        touch(unsafe { std::slice::from_raw_parts(place, self.message.len()) });
        Ok(())
    }
}
