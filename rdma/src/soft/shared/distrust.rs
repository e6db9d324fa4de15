//! What the words of other processes may say without harm.

use super::interleavings::{HERE, fabric, pair, queue_pair};
use super::membership::Membership;
use super::outbound::{Outbound, Target};
use crate::soft::fabric::Fabric;
use crate::soft::profile::FRAME;
use crate::soft::queue_pair::SoftQp;
use crate::soft::topology::End;
use core::sync::atomic::Ordering;
use std::sync::Arc;

const THERE: End = End { host: 1, device: 0 };

/// A sender on [`HERE`] and its peer on [`THERE`], connected.
struct Two {
    _connected: Vec<crate::QueuePair>,
    sender: Arc<SoftQp>,
    peer: u32,
    membership: Arc<Membership>,
    _fabric: Fabric,
}

fn two(test: &str) -> Two {
    let fabric = fabric(test);
    let (one, other) = (queue_pair(&fabric, 0), queue_pair(&fabric, 1));
    let (sender, peer) = (one.1.clone(), other.1.number);
    let membership = fabric.0.wiring.membership().unwrap().clone();
    Two { _connected: pair(one.0, other.0), sender, peer, membership, _fabric: fabric }
}

impl Two {
    fn open(&self) -> Option<Box<Outbound>> {
        match self.sender.presence.as_ref().unwrap().find(self.peer, &[]) {
            Target::Open(outbound) => Some(outbound),
            Target::Absent => None,
            Target::Later => panic!("nothing was left"),
        }
    }
}

#[test]
fn an_area_that_cannot_be() {
    let two = two("cannot-be");
    let head = &two.membership.block(THERE, 0).head.0;
    let (areas, frames, descriptors) =
        (two.membership.layout().areas as u32, two.membership.layout().frames, two.membership.layout().descriptors);
    for (word, bad) in [
        (&head.area, vec![0, areas + 1, u32::MAX]),
        (&head.frames, vec![0, frames + 1, 1 << 16, u32::MAX]),
        (&head.descriptors, vec![0, 3, 1000, descriptors * 2, 1 << 31, u32::MAX]),
    ] {
        let good = word.load(Ordering::Relaxed);
        for bad in bad {
            word.store(bad, Ordering::Relaxed);
            assert!(two.open().is_none(), "{bad}");
        }
        word.store(good, Ordering::Relaxed);
    }
    let hold = &two.membership.block(HERE, 0).head.0.hold;
    assert_eq!(hold.load(Ordering::Relaxed), 0);
    let outbound = two.open().unwrap();
    assert_ne!(hold.load(Ordering::Relaxed), 0);
    outbound.leave(0);
}

/// Counts that no receiver has come to: more than was written, and less than before.
#[test]
fn messages_that_were_not_written_are_not_taken() {
    let two = two("not-written");
    let taken = &two.membership.block(THERE, 0).taken.0;
    let mut outbound = two.open().unwrap();
    let bytes = vec![0_u8; 1 << 20];
    let mut write = || {
        // SAFETY: the source is as long.
        unsafe { outbound.write(bytes.as_ptr(), bytes.len() as u32, None) }
    };
    let mut written = |count| {
        taken.store(count, Ordering::Relaxed);
        (0..100).filter(|_| write().is_some()).count()
    };
    // What was written counts as taken, not more; and each frame is used once.
    let fit =
        two.membership.block(THERE, 0).head.0.frames.load(Ordering::Relaxed) as usize * FRAME as usize / (1 << 20);
    assert_eq!((written(5000), written(1 << 20)), (100, 100));
    assert!(written(3) + written(0) <= fit);
    outbound.leave(0);
}

/// Owners, members and numbers that never were.
#[test]
fn members_that_cannot_be_are_dead() {
    let two = two("members");
    let owner = &two.membership.qp_owners(THERE)[0];
    let good = owner.load(Ordering::Relaxed);
    for bad in [0, 1, 0x7ff, 0x401, 0x800, u32::MAX, good ^ 0x800, good + 1] {
        owner.store(bad, Ordering::Relaxed);
        assert!(two.open().is_none(), "{bad:#x}");
    }
    owner.store(good, Ordering::Relaxed);
    two.open().unwrap().leave(0);
}
