//! The words that members of a fabric share, outside of the areas.

use crate::Gid;
use crate::soft::queue_pair::Apart;
use crate::verbs::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// What all queue pairs of a device share.
#[repr(C, align(64))]
pub(crate) struct DeviceWords {
    /// How many queue pair numbers were given out.
    pub(crate) numbers: AtomicU32,
    /// How many connections were prepared: the source of [`Link`]'s generations.
    pub(crate) generations: AtomicU32,
}

/// An entry of a GID table: two copies, and which of them holds. So a writer that dies leaves an entry that is whole.
///
/// Explored with loom (`schedules.rs`): writers that die, and readers.
#[repr(C)]
#[derive(Default)]
pub(crate) struct GidEntry {
    /// Even: the first copy holds; odd: the second one.
    turn: AtomicU32,
    copies: [[AtomicU64; 2]; 2],
}

impl GidEntry {
    pub(crate) fn get(&self) -> Gid {
        // Each further turn means that a writer has finished meanwhile; who writes on and on is not waited for.
        for _ in 0..1000 {
            let turn = self.turn.load(Ordering::Acquire);
            let copy = &self.copies[turn as usize & 1];
            let (high, low) = (copy[0].load(Ordering::Acquire), copy[1].load(Ordering::Acquire));
            if self.turn.load(Ordering::Acquire) == turn {
                let mut raw = [0; 16];
                raw[..8].copy_from_slice(&high.to_be_bytes());
                raw[8..].copy_from_slice(&low.to_be_bytes());
                return Gid::from_bytes(raw);
            }
        }
        Gid::ZERO
    }

    /// For one writer at a time (see [`Membership::set_gid`](super::membership::Membership::set_gid)).
    pub(crate) fn set(&self, gid: Gid) {
        let turn = self.turn.load(Ordering::Acquire).wrapping_add(1);
        let copy = &self.copies[turn as usize & 1];
        let raw = gid.to_bytes();
        let (high, low) = raw.split_at(8);
        for (word, half) in copy.iter().zip([high, low]) {
            word.store(half.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)), Ordering::Release);
        }
        self.turn.store(turn, Ordering::Release);
    }
}

/// What others may know about a queue pair. Written by its owner alone; apart by who reads what how often.
#[repr(C)]
pub(crate) struct QpBlock {
    pub(crate) head: Apart<Head>,
    /// How many receives were posted since the connection was made, with its generation: see [`Credit`].
    pub(crate) credit: Apart<AtomicU64>,
    /// How many messages of the connection were taken out of the area.
    pub(crate) taken: Apart<AtomicU64>,
}

/// Read often, written when a connection changes.
#[derive(Default)]
pub(crate) struct Head {
    pub(crate) link: AtomicU64,
    /// The queue pair number; 0 while the block is not in use.
    pub(crate) number: AtomicU32,
    /// The granted depth of its send queue, in frames: as much of an area it may need.
    pub(crate) send_depth: AtomicU32,
    /// The area that it receives into, plus one, and how much of it there is.
    pub(crate) area: AtomicU32,
    pub(crate) frames: AtomicU32,
    pub(crate) descriptors: AtomicU32,
    /// The area of the other device that it may be writing to, plus one.
    pub(crate) hold: AtomicU32,
}

impl Head {
    /// For the writer, whose own block this is: says that it holds an area of `peer`'s, whose connection is `link`. Returns
    /// whether the connection still stood then; if not, nothing is held.
    ///
    /// It stores what it holds, and then looks whether the connection still stands. The area's owner ends the connection, and
    /// then looks who [holds](Self::holds) the area, with a fence between the two on both sides: so one of them sees the other.
    pub(crate) fn take_hold(&self, area: u32, peer: &Head, link: Link) -> bool {
        self.hold.store(area, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let stands = peer.link.load(Ordering::SeqCst) == link.0;
        if !stands {
            self.hold.store(0, Ordering::SeqCst);
        }
        stands
    }

    /// For an area's owner, after the fence: whether this queue pair says that it holds the area.
    pub(crate) fn holds(&self, index: usize) -> bool {
        self.hold.load(Ordering::SeqCst) == index as u32 + 1
    }
}

impl QpBlock {
    /// Says how many receives there are for the messages of a connection.
    #[inline]
    pub(crate) fn say_credit(&self, generation: u32, count: u64) {
        self.credit.0.store(Credit::word(generation, count), Ordering::Release);
    }
}

#[cfg(all(loom, test))]
impl QpBlock {
    pub(crate) fn empty() -> Self {
        QpBlock { head: Apart(Head::default()), credit: Apart(AtomicU64::new(0)), taken: Apart(AtomicU64::new(0)) }
    }
}

/// A connection as one end sees it, in one word: whether it takes messages, from which queue pair, and the generation,
/// which no other connection of the device has. Zero: no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link(pub(crate) u64);

impl Link {
    pub(crate) const NONE: Link = Link(0);

    pub(crate) fn new(generation: u32, peer: u32) -> Self {
        Link(u64::from(generation) << 32 | u64::from(peer & 0xff_ffff) << 1 | 1)
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The queue pair that messages are taken from.
    pub(crate) fn peer(self) -> Option<u32> {
        (self.0 & 1 != 0).then_some((self.0 >> 1) as u32 & 0xff_ffff)
    }
}

/// A count of receives, tagged with the connection that they are for.
pub(crate) struct Credit;

impl Credit {
    pub(crate) fn word(generation: u32, count: u64) -> u64 {
        u64::from(generation as u16) << 48 | count & ((1 << 48) - 1)
    }

    /// The count, if it is this connection's.
    #[inline]
    pub(crate) fn count(word: u64, generation: u32) -> Option<u64> {
        (word >> 48 == u64::from(generation as u16)).then_some(word & ((1 << 48) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_one_word() {
        let link = Link::new(7, 0xabcd00);
        assert_eq!((link.generation(), link.peer()), (7, Some(0xabcd00)));
        assert_eq!(Link::NONE.peer(), None);
        assert_ne!(Link::new(8, 0xabcd00), link);
    }

    #[test]
    fn credit_of_another_connection_is_none() {
        let word = Credit::word(0x1_0002, 4095);
        assert_eq!(Credit::count(word, 0x1_0002), Some(4095));
        assert_eq!(Credit::count(word, 3), None);
    }

    #[test]
    fn a_gid_comes_back_as_it_was_put() {
        let entry = GidEntry::default();
        assert!(entry.get().is_zero());
        for last in 1..5 {
            let gid = Gid::from_bytes([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, last]);
            entry.set(gid);
            assert_eq!(entry.get(), gid);
        }
    }
}
