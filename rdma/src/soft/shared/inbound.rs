//! Receiving from an area. Under the poll latch of the receive completion queue.

use super::area::{Area, Part};
use super::blocks::QpBlock;
use super::descriptor::Message;
use super::membership::Membership;
use crate::soft::profile::FRAME;
use crate::verbs::sync::Ordering;
use core::cell::Cell;
use std::sync::Arc;

/// A connection as its receiver sees it.
pub(crate) struct Inbound<K = Arc<Membership>> {
    /// Keeps the control window, in which the block lies.
    _keep: K,
    area: Area,
    block: *const QpBlock,
    generation: u32,
    /// The receive with which the first message is paired. Counted up by each receive that a message took besides its first.
    base: Cell<u64>,
    /// How much of the message that is next went to receives, in bytes.
    delivered: Cell<u32>,
}

// SAFETY: the pointer leads to atomics in a window that `_keep` keeps mapped.
unsafe impl<K: Send> Send for Inbound<K> {}

/// What stands where the next message would be.
pub(crate) enum Next {
    Nothing,
    Message(Message),
    /// The writer has left.
    End,
}

impl<K> Inbound<K> {
    pub(crate) fn new(keep: K, area: Area, block: &QpBlock, generation: u32, base: u64) -> Self {
        Inbound { area, block, generation, base: Cell::new(base), delivered: Cell::new(0), _keep: keep }
    }

    /// The message for a receive.
    #[inline]
    pub(crate) fn next(&self, receive: u64) -> Next {
        let index = receive - self.base.get();
        if self.area.is_cut(self.generation, index) {
            return Next::End;
        }
        match self.area.look(self.generation, index) {
            Some(message) => Next::Message(message),
            None => Next::Nothing,
        }
    }

    /// Copies what is next of the payload of a receive's message.
    ///
    /// # Safety
    ///
    /// `length` bytes at `target` can be written.
    #[inline]
    pub(crate) unsafe fn copy(&self, receive: u64, message: Message, length: u32, target: *mut u8) -> bool {
        let part = Part { skipped: self.delivered.get() / FRAME as u32, length };
        // SAFETY: passed on to the caller.
        unsafe { self.area.take(receive - self.base.get(), message, part, target) }
    }

    /// How much of a message was not delivered yet, in bytes. What a hostile peer has changed in the meantime: nothing.
    pub(crate) fn rest_of(&self, message: Message) -> u32 {
        message.length.saturating_sub(self.delivered.get())
    }

    /// After a receive took its part of a message: how much is left for the next.
    pub(crate) fn leave(&self, message: Message, rest: u32) {
        if rest == 0 {
            self.delivered.set(0);
        } else {
            self.delivered.set(message.length - rest);
            self.base.set(self.base.get() + 1);
        }
    }

    /// Says that all messages before that of `receive` have been taken.
    #[inline]
    pub(crate) fn taken(&self, receive: u64) {
        // SAFETY: the block lies in the control window, which `_keep` keeps; it consists of atomics.
        unsafe { (*self.block).taken.0.store(receive - self.base.get(), Ordering::Release) };
    }
}
