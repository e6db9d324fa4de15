//! A queue pair's presence in the shared fabric: its block, its area, and the connections it enters and leaves.

use super::area::{self, Area};
use super::blocks::{Link, QpBlock};
use super::inbound::Inbound;
use super::membership::Membership;
use super::outbound::{Outbound, Sender, Target};
use super::owners;
use crate::soft::topology::End;
use crate::verbs::sync::AtomicU32;
use crate::{Error, Result};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a queue pair of a shared fabric has beside its own queues.
pub(crate) struct Presence {
    membership: Arc<Membership>,
    end: End,
    far: Option<End>,
    cable: Option<usize>,
    slot: usize,
    number: u32,
    receive_depth: u32,
    /// The area it receives into. Locked after the queue pair's attributes.
    area: Mutex<Option<usize>>,
    /// The first receive that was posted with no light in the cable, or `u64::MAX`.
    unheard: AtomicU64,
    retired: AtomicBool,
}

/// For the errno of a call that cannot have its memory.
fn out_of_memory(error: Error) -> c_int {
    crate::verbs::call::explain(error);
    libc::ENOMEM
}

impl Presence {
    /// Takes a queue pair's place on a device, and memory for its receive queue. EBUSY: all places are taken; ENOMEM.
    pub(crate) fn take(
        membership: &Arc<Membership>,
        end: End,
        far: Option<End>,
        cable: Option<usize>,
        send_depth: u32,
        receive_depth: u32,
    ) -> Result<Self, c_int> {
        let slot = owners::take(membership.qp_owners(end), membership).ok_or(libc::EBUSY)?;
        let block = membership.block(end, slot);
        let head = &block.head.0;
        // Left by a member that died: nobody may take it for ours.
        head.link.store(Link::NONE.0, Ordering::SeqCst);
        head.hold.store(0, Ordering::SeqCst);
        let number = new_number(membership, end);
        let presence = Presence {
            membership: membership.clone(),
            end,
            far,
            cable,
            slot,
            number,
            receive_depth,
            area: Mutex::new(None),
            unheard: AtomicU64::new(u64::MAX),
            retired: AtomicBool::new(false),
        };
        // As much as a peer of the same depth needs; if it turns out to have more, the rest is taken when they connect.
        let index = presence.take_area(presence.frames(receive_depth))?;
        *presence.area() = Some(index);
        head.send_depth.store(send_depth, Ordering::Release);
        head.number.store(number, Ordering::Release);
        Ok(presence)
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether the cable is out, or a host at one of its ends is off.
    #[inline]
    pub(crate) fn is_dark(&self) -> bool {
        let (Some(cable), Some(far)) = (self.cable, self.far) else { return true };
        let membership = &self.membership;
        let flags = [membership.cable_out(cable), membership.host_off(self.end.host), membership.host_off(far.host)];
        flags.iter().any(|flag| flag.load(Ordering::Relaxed) != 0)
    }

    /// Receives from this one on were posted in the dark, if there were none of them before. Returns whether that was so.
    #[cold]
    pub(crate) fn begin_darkness(&self, receive: u64) -> bool {
        self.unheard.compare_exchange(u64::MAX, receive, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn end_darkness(&self) {
        self.unheard.store(u64::MAX, Ordering::Relaxed);
    }

    /// Whether a receive was posted in the dark, in which nobody hears of it.
    #[inline]
    pub(crate) fn is_unheard(&self, receive: u64) -> bool {
        receive >= self.unheard.load(Ordering::Relaxed) && self.is_dark()
    }

    fn area(&self) -> MutexGuard<'_, Option<usize>> {
        self.area.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn block(&self) -> &QpBlock {
        self.membership.block(self.end, self.slot)
    }

    /// The frames that may wait in an area: the receiver's whole depth that it has not polled, and the sender's that waits.
    /// Where depth counts requests, room for the longest message besides; senders wait for more.
    fn frames(&self, send_depth: u32) -> u32 {
        let layout = self.membership.layout();
        (layout.message_frames + self.receive_depth + send_depth).min(layout.frames)
    }

    fn take_area(&self, frames: u32) -> Result<usize, c_int> {
        // There are twice as many as queue pairs, so only the dead or the hostile can have them all.
        let index = area::claim(&self.membership, self.end, self.far).ok_or(libc::EBUSY)?;
        match self.map(index, frames) {
            Ok(_) => Ok(index),
            Err(error) => {
                self.give_area_back(index);
                Err(out_of_memory(error))
            }
        }
    }

    fn map(&self, index: usize, frames: u32) -> Result<Area> {
        Area::map(&self.membership, self.end, index, frames, frames.next_power_of_two())
    }

    fn give_area_back(&self, index: usize) {
        owners::give_back(&self.membership.area_owners(self.end)[index], &self.membership);
    }

    /// Enters a connection as its receiver, with messages from the queue pair `peer`, of which the first is paired with
    /// the receive `base`. Nobody else uses the area: it is not held. Nothing is announced yet.
    pub(crate) fn prepare(&self, peer: u32, base: u64) -> Result<(Inbound, u32), c_int> {
        let membership = &self.membership;
        let mut own = self.area();
        let depth = self.far.map_or(0, |far| {
            let find = |(slot, owner): (usize, &AtomicU32)| {
                let head = &membership.block(far, slot).head.0;
                (owner.load(Ordering::Acquire) != 0 && head.number.load(Ordering::Acquire) == peer)
                    .then(|| head.send_depth.load(Ordering::Acquire))
            };
            membership.qp_owners(far).iter().enumerate().find_map(find).unwrap_or(0)
        });
        let frames = self.frames(depth.min(membership.layout().frames)).max(1);
        let index = match *own {
            Some(index) if !area::is_held(membership, self.far, index) => index,
            // The writer of an earlier connection may still be at it.
            held => {
                let other = self.take_area(frames)?;
                *own = Some(other);
                if let Some(held) = held {
                    self.give_area_back(held);
                }
                other
            }
        };
        let area = self.map(index, frames).map_err(out_of_memory)?;
        let generation = self.new_generation();
        let head = &self.block().head.0;
        head.area.store(index as u32 + 1, Ordering::Release);
        head.frames.store(frames, Ordering::Release);
        head.descriptors.store(area.descriptors(), Ordering::Release);
        Ok((Inbound::new(membership.clone(), area, self.block(), generation, base), generation))
    }

    fn new_generation(&self) -> u32 {
        let words = self.membership.device(self.end);
        loop {
            let generation = words.generations.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if generation != 0 {
                return generation;
            }
        }
    }

    /// Announces a connection that was prepared, and from which its receiver takes messages already.
    pub(crate) fn announce(&self, generation: u32, peer: u32) {
        // Not earlier: until now a poller may have counted the messages of the connection before.
        self.block().taken.0.store(0, Ordering::Release);
        self.block().head.0.link.store(Link::new(generation, peer).0, Ordering::SeqCst);
    }

    /// Says how many receives there are for the messages of a connection.
    #[inline]
    pub(crate) fn credit(&self, generation: u32, count: u64) {
        self.block().say_credit(generation, count);
    }

    /// Takes no more messages.
    pub(crate) fn close(&self) {
        self.block().head.0.link.store(Link::NONE.0, Ordering::SeqCst);
    }

    /// Whether a queue pair of the far device takes messages on a connection.
    pub(crate) fn is_announced(&self, link: Link) -> bool {
        let Some(far) = self.far else { return false };
        (0..self.membership.qp_owners(far).len())
            .any(|slot| self.membership.block(far, slot).head.0.link.load(Ordering::Acquire) == link.0)
    }

    /// Looks for the queue pair that is to get our messages.
    pub(crate) fn find(&self, peer: u32, left: &[Link]) -> Target {
        let Some(far) = self.far else { return Target::Absent };
        Outbound::open(
            &Sender { membership: &self.membership, block: self.block(), number: self.number, far },
            peer,
            left,
        )
    }
}

impl Presence {
    /// Gives everything back, once.
    pub(crate) fn retire(&self) {
        // A child of the process that made it leaves the parent's things alone.
        if !self.membership.is_here() || self.retired.swap(true, Ordering::Relaxed) {
            return;
        }
        self.close();
        let head = &self.block().head.0;
        head.number.store(0, Ordering::Release);
        head.hold.store(0, Ordering::SeqCst);
        if let Some(index) = self.area().take() {
            self.give_area_back(index);
        }
        owners::give_back(&self.membership.qp_owners(self.end)[self.slot], &self.membership);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.retire();
    }
}

/// A number for a new queue pair, as `SoftDevice::number` makes them: unique on the device while it lives.
fn new_number(membership: &Membership, end: End) -> u32 {
    let words = membership.device(end);
    loop {
        let path = 9 + words.numbers.fetch_add(1, Ordering::Relaxed) % 0xfff0;
        let number = path << 8;
        let mut slots = 0..membership.qp_owners(end).len();
        if !slots.any(|slot| membership.block(end, slot).head.0.number.load(Ordering::Acquire) == number) {
            return number;
        }
    }
}
