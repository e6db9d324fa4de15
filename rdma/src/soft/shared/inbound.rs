//! Receiving from an area. Under the poll latch of the receive completion queue.

use super::area::{Area, Message};
use super::blocks::QpBlock;
use super::membership::Membership;
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// A connection as its receiver sees it.
pub(crate) struct Inbound {
    /// Keeps the control window, in which the block lies.
    _membership: Arc<Membership>,
    area: Area,
    block: *const QpBlock,
    generation: u32,
    /// The receive with which the first message is paired.
    base: u64,
}

// SAFETY: the pointer leads to atomics in a window that `_membership` keeps mapped.
unsafe impl Send for Inbound {}

/// What stands where the next message would be.
pub(crate) enum Next {
    Nothing,
    Message(Message),
    /// The writer has left.
    End,
}

impl Inbound {
    pub(crate) fn new(membership: Arc<Membership>, area: Area, block: &QpBlock, generation: u32, base: u64) -> Self {
        Inbound { area, block, generation, base, _membership: membership }
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
        // SAFETY: the block lies in the control window, which `_membership` keeps; it consists of atomics.
        unsafe { (*self.block).taken.0.store(receive - self.base, Ordering::Release) };
    }
}
