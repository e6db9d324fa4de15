//! Sending into a peer's area. Under the send latch of the queue pair.

use super::area::Area;
use super::blocks::{Credit, Head, Link, QpBlock};
use super::descriptor::{Message, is_short};
use super::membership::{Member, Membership};
use crate::soft::queue_pair::Limits;
use crate::soft::stream::Pace;
use crate::verbs::sync::Ordering;
use std::sync::Arc;

/// How many frames to use before asking the peer which are free again: 256 KiB stay in a core's own cache.
const HOT: usize = 64;

/// In place of the first frame of a message that has none: areas have fewer.
const NO_FRAME: u16 = u16::MAX;

/// How many fruitless looks at a peer there are between two questions to the kernel whether it lives.
const PATIENCE: u32 = 1024;

/// A connection as its sender sees it.
pub(crate) struct Outbound<K = Arc<Membership>> {
    membership: K,
    area: Area,
    /// The peer's block. It lies in the control window, which `membership` keeps.
    peer: *const QpBlock,
    owner: Member,
    /// This queue pair's own block, which says what it holds; kept as `peer` is.
    own: *const Head,
    link: Link,
    generation: u32,
    /// How many messages were written, how many of them the peer has taken, how many receives it has posted: the last two
    /// as last seen.
    written: u64,
    taken: u64,
    credit: u64,
    /// How many of them belong to sends that have completed.
    used_up: u64,
    /// Free frames, the next one last. Those that were used last are used next: they are in the cache.
    free: Vec<u16>,
    /// The frames of the messages that were not taken, one behind the other, in `used`.
    lengths: Box<[u16]>,
    used: Used,
    pace: Pace,
    futile: u32,
}

// SAFETY: the pointers lead to atomics in a window that `membership` keeps mapped.
unsafe impl<K: Send> Send for Outbound<K> {}

/// Frame numbers, first in, first out.
struct Used {
    ring: Box<[u16]>,
    head: usize,
    tail: usize,
}

impl Used {
    fn new(frames: u32) -> Self {
        Used { ring: vec![0; (frames as usize).next_power_of_two()].into(), head: 0, tail: 0 }
    }

    fn put(&mut self, frame: u16) {
        let mask = self.ring.len() - 1;
        self.ring[self.head & mask] = frame;
        self.head = self.head.wrapping_add(1);
    }

    fn take(&mut self) -> u16 {
        let mask = self.ring.len() - 1;
        let frame = self.ring[self.tail & mask];
        self.tail = self.tail.wrapping_add(1);
        frame
    }
}

/// What became of looking for the peer.
pub(crate) enum Target {
    /// Connected.
    Open(Box<Outbound>),
    /// Nobody takes messages from us there.
    Absent,
    /// The peer has a connection with us that we have left, and takes part in a new one at its next call; or there is no
    /// memory to see it now.
    Later,
}

/// Who sends: the queue pair's own block and place.
pub(crate) struct Sender<'a> {
    pub(crate) membership: &'a Arc<Membership>,
    pub(crate) block: &'a QpBlock,
    pub(crate) number: u32,
    pub(crate) far: crate::soft::topology::End,
}

impl Outbound {
    /// Looks whether the queue pair `peer` of the far device takes messages from us. `left` are the connections that
    /// we have left.
    pub(crate) fn open(sender: &Sender<'_>, peer: u32, left: &[Link]) -> Target {
        let Sender { membership, far, .. } = *sender;
        let owners = membership.qp_owners(far);
        for (slot, owner) in owners.iter().enumerate() {
            let owner = owner.load(Ordering::Acquire);
            let block = membership.block(far, slot);
            let head = &block.head.0;
            if owner == 0 || head.number.load(Ordering::Acquire) != peer {
                continue;
            }
            let link = Link(head.link.load(Ordering::Acquire));
            let owner = Member::from_word(owner);
            if link.peer() != Some(sender.number) || !membership.is_alive(owner) {
                return Target::Absent;
            }
            if left.contains(&link) {
                return Target::Later;
            }
            let (area, frames, descriptors) = (
                head.area.load(Ordering::Acquire),
                head.frames.load(Ordering::Acquire),
                head.descriptors.load(Ordering::Acquire),
            );
            let layout = membership.layout();
            let fits = (1..=layout.areas).contains(&(area as usize))
                && (1..=layout.frames).contains(&frames)
                && descriptors.is_power_of_two()
                && descriptors <= layout.descriptors;
            if !fits {
                return Target::Absent;
            }
            let own = &sender.block.head.0;
            // The area is the connection's only if that still stands, and is not one of a dead member whose block another
            // member has just taken; from now on nobody else gets it.
            if !own.take_hold(area, head, link) {
                return Target::Absent;
            }
            let holder = membership.area_owners(far)[area as usize - 1].load(Ordering::SeqCst);
            let mapped =
                (holder == owner.word()).then(|| Area::map(membership, far, area as usize - 1, frames, descriptors));
            let area = match mapped {
                Some(Ok(area)) => area,
                other => {
                    own.hold.store(0, Ordering::SeqCst);
                    // The peer is there, but we have no memory to see it: perhaps at the next call.
                    return if other.is_some() { Target::Later } else { Target::Absent };
                }
            };
            return Target::Open(Box::new(Outbound::over(membership.clone(), area, block, owner, own, link)));
        }
        Target::Absent
    }

    /// Called each time that a send has to wait. Returns whether it makes sense to go on waiting.
    pub(crate) fn is_worth_waiting(&mut self) -> bool {
        self.futile += 1;
        if self.futile < PATIENCE {
            return true;
        }
        self.futile = 0;
        self.membership.is_alive(self.owner)
    }
}

impl<K> Outbound<K> {
    /// A connection whose area is held: nothing was written yet. `membership` keeps the two blocks.
    pub(crate) fn over(membership: K, area: Area, peer: &QpBlock, owner: Member, own: &Head, link: Link) -> Self {
        let (frames, descriptors) = (area.frames(), area.descriptors());
        Outbound {
            membership,
            free: (0..frames as u16).rev().collect(),
            lengths: vec![0; descriptors as usize].into(),
            used: Used::new(frames),
            area,
            peer,
            owner,
            own,
            link,
            generation: link.generation(),
            written: 0,
            taken: 0,
            credit: 0,
            used_up: 0,
            pace: Pace::default(),
            futile: 0,
        }
    }

    #[inline]
    fn peer(&self) -> &QpBlock {
        // SAFETY: the block lies in the control window, which `membership` keeps; it consists of atomics.
        unsafe { &*self.peer }
    }

    pub(crate) fn link(&self) -> Link {
        self.link
    }

    /// Whether the peer is still on this connection. Every so often the kernel is asked whether it still exists.
    #[inline]
    pub(crate) fn stands(&self) -> bool {
        self.peer().head.0.link.load(Ordering::Acquire) == self.link.0
    }

    /// Asks for the line that the next message will be written to, if it is as short as the last one. (A longer one is first
    /// put elsewhere, and the reader, who looks at the line all the time, would have it back by then.)
    #[inline]
    pub(crate) fn prepare(&self) {
        let last = self.written.wrapping_sub(1) as usize & (self.lengths.len() - 1);
        if self.lengths[last] == 0 {
            self.area.prepare(self.written);
        }
    }

    /// Writes a message. Returns its number, or `None` if there is no room.
    ///
    /// # Safety
    ///
    /// `length` bytes at `source` can be read.
    #[inline]
    pub(crate) unsafe fn write(&mut self, source: *const u8, length: u32, immediate: Option<u32>) -> Option<u64> {
        let index = self.written;
        let kept = u64::from(self.area.descriptors());
        if index - self.taken >= kept {
            self.collect();
            if index - self.taken >= kept {
                return None;
            }
        }
        let place = (index & (kept - 1)) as usize;
        if is_short(length, immediate.is_some()) {
            self.lengths[place] = 0;
            let message = Message { length, first: 0, immediate };
            // SAFETY: passed on to the caller.
            unsafe { self.area.put_inline(self.generation, index, source, message) };
        } else if Limits::frames_of(length) > self.area.frames() {
            // No receive that is as long can be posted there. It is announced without a payload, which would have room never.
            self.lengths[place] = 0;
            self.area.put(self.generation, index, Message { length, first: NO_FRAME, immediate });
        } else {
            let frames = Limits::frames_of(length) as usize;
            if self.free.len() < frames || self.area.frames() as usize - self.free.len() + frames > HOT {
                self.collect();
                if self.free.len() < frames {
                    return None;
                }
            }
            // The last ones, in falling order of their places, so that they come in the order in which they were put.
            let rest = self.free.len() - frames;
            self.free[rest..].reverse();
            let mine = &self.free[rest..];
            // SAFETY: passed on to the caller; the frames are below `frames` of the area, because only such were put on
            // the stack.
            unsafe { self.area.fill(mine, source, length as usize, &mut self.pace) };
            let first = mine[0];
            mine.iter().for_each(|&frame| self.used.put(frame));
            self.free.truncate(rest);
            self.lengths[place] = frames as u16;
            self.area.put(self.generation, index, Message { length, first, immediate });
        }
        self.written += 1;
        Some(index)
    }

    /// Takes back the frames of the messages that the peer has taken.
    fn collect(&mut self) {
        let mask = self.area.descriptors() as usize - 1;
        // Whatever the peer says: not more than were written.
        let taken = self.peer().taken.0.load(Ordering::Acquire).min(self.written);
        while self.taken < taken {
            let count = usize::from(self.lengths[self.taken as usize & mask]);
            let start = self.free.len();
            for _ in 0..count {
                self.free.push(self.used.take());
            }
            // So that they are used in the same order again.
            self.free[start..].reverse();
            self.taken += 1;
        }
    }

    /// Whether a message has its receives, of which it takes so many, behind those of the messages before it. With no light in
    /// the cable nothing new is heard of them.
    #[inline]
    pub(crate) fn covered(&mut self, receives: u32, is_dark: impl FnOnce() -> bool) -> bool {
        let index = self.used_up + u64::from(receives) - 1;
        if index < self.credit {
            return true;
        }
        if is_dark() {
            return false;
        }
        if let Some(count) = Credit::count(self.peer().credit.0.load(Ordering::Acquire), self.generation) {
            self.credit = count;
        }
        let covered = index < self.credit;
        if covered {
            self.futile = 0;
        }
        covered
    }

    /// Whether the message that would be written next has a receive by now.
    pub(crate) fn has_receive(&mut self) -> bool {
        let before = core::mem::replace(&mut self.used_up, self.written);
        let covered = self.covered(1, || false);
        self.used_up = before;
        covered
    }

    /// Counts the receives of a message as used.
    #[inline]
    pub(crate) fn use_up(&mut self, receives: u32) {
        self.used_up += u64::from(receives);
    }

    /// Leaves the connection, of whose messages the first `count` count. What has been said about the others is void.
    pub(crate) fn leave(self, count: u64) {
        self.area.cut_at(self.generation, count);
        // SAFETY: the block lies in the control window, which `membership` keeps; it consists of atomics.
        unsafe { (*self.own).hold.store(0, Ordering::SeqCst) };
    }

    /// The number of messages written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }
}
