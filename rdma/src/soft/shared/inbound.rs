//! Receiving from an area. Under the poll latch of the receive completion queue.

use super::area::Area;
use super::blocks::QpBlock;
use super::descriptor::Message;
use super::membership::Membership;
use crate::verbs::sync::Ordering;
use std::sync::Arc;

/// A connection as its receiver sees it.
pub(crate) struct Inbound<K = Arc<Membership>> {
    /// Keeps the control window, in which the block lies.
    _keep: K,
    area: Area,
    block: *const QpBlock,
    generation: u32,
    /// The receive with which the first message is paired.
    base: u64,
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
        Inbound { area, block, generation, base, _keep: keep }
    }

    /// The message for a receive.
    #[inline]
    pub(crate) fn next(&self, receive: u64) -> Next {
        let index = receive - self.base;
        if self.area.is_cut(self.generation, index) {
            return Next::End;
        }
        match self.area.look(self.generation, index) {
            Some(message) => Next::Message(message),
            None => Next::Nothing,
        }
    }

    /// Copies the payload of a receive's message.
    ///
    /// # Safety
    ///
    /// `message.length` bytes at `target` can be written.
    #[inline]
    pub(crate) unsafe fn copy(&self, receive: u64, message: Message, target: *mut u8) -> bool {
        // SAFETY: passed on to the caller.
        unsafe { self.area.take(receive - self.base, message, target) }
    }

    /// Says that all messages before that of `receive` have been taken.
    #[inline]
    pub(crate) fn taken(&self, receive: u64) {
        // SAFETY: the block lies in the control window, which `_keep` keeps; it consists of atomics.
        unsafe { (*self.block).taken.0.store(receive - self.base, Ordering::Release) };
    }
}
