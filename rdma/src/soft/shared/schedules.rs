//! What processes share, in every order in which they can run, as far as loom can tell them apart, and with actors that are
//! killed after each of their accesses: the real code over words in ordinary memory, with loom's atomics (`sync.rs`).
//!
//! `ci/schedules` runs them.
//!
//! Explored: one writer and one reader of an area of two descriptors and three frames, over messages that travel in their
//! descriptor and in frames, with each of the two killed after its k-th access for every k; the next connection over what a
//! dead writer left; the hand-over of an area; entries of a GID table with writers that die; words that are owned. Up to
//! three to five preemptions, as each model says.
//!
//! What it cannot show: more actors, orders that a weaker memory than loom's would allow, a writer that does not keep to the
//! protocol (`tests/shared/hostile.rs`, and the fuzz target `hostile_peer`, have that), and what the kernel does (who is alive is told
//! by its locks: here the models say it).

use super::area::Area;
use super::blocks::{GidEntry, Link, QpBlock};
use super::inbound::{Inbound, Next};
use super::membership::Member;
use super::outbound::Outbound;
use super::owners;
use crate::Gid;
use crate::verbs::explore::{explore, explore_deaths};
use crate::verbs::sync::mortal::live;
use crate::verbs::sync::{AtomicU32, Ordering, fence};
use loom::sync::Arc;
use loom::thread;

const SENDER: u32 = 9 << 8;

/// Both ends' blocks, and the area between them.
struct Ends {
    area: Area,
    receiver: QpBlock,
    sender: QpBlock,
}

// SAFETY: the area is memory that both ends have, and is used as the product uses it, which is what is explored.
unsafe impl Sync for Ends {}
// SAFETY: as above.
unsafe impl Send for Ends {}

impl Ends {
    /// With a connection of generation 1.
    fn new() -> Arc<Self> {
        let ends = Ends { area: Area::on_heap(3, 2), receiver: QpBlock::empty(), sender: QpBlock::empty() };
        ends.announce(1);
        Arc::new(ends)
    }

    fn announce(&self, generation: u32) -> Link {
        let link = Link::new(generation, SENDER);
        self.receiver.taken.0.store(0, Ordering::Release);
        self.receiver.head.0.link.store(link.0, Ordering::SeqCst);
        link
    }

    /// The owner of the area ends the connection. Returns whether the sender may still be at it.
    fn close(&self) -> bool {
        self.receiver.head.0.link.store(Link::NONE.0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.sender.head.0.holds(0)
    }

    /// The sender's side of the connection, if it still stands.
    fn outbound(&self, generation: u32) -> Option<Outbound<()>> {
        let link = Link::new(generation, SENDER);
        self.sender.head.0.take_hold(1, &self.receiver.head.0, link).then(|| {
            let owner = Member::from_word(1);
            Outbound::over((), self.area.seen_again(), &self.receiver, owner, &self.sender.head.0, link)
        })
    }

    fn inbound(&self, generation: u32) -> Inbound<()> {
        Inbound::new((), self.area.seen_again(), &self.receiver, generation, 0)
    }
}

/// The messages' lengths: within the descriptor, in one frame, in two.
const LENGTHS: [usize; 3] = [8, 4000, 4100];

fn payload(generation: u32, index: usize) -> Vec<u8> {
    vec![generation as u8 * 16 + index as u8 + 1; LENGTHS[index]]
}

/// The immediate data that two of the three carry.
fn immediate(index: usize) -> Option<u32> {
    (index != 1).then_some(0xdead_0000 + index as u32)
}

/// Writes a message if there is room.
fn write(outbound: &mut Outbound<()>, generation: u32, index: usize) -> bool {
    let bytes = payload(generation, index);
    // SAFETY: the source is that long.
    unsafe { outbound.write(bytes.as_ptr(), bytes.len() as u32, immediate(index)) }.is_some()
}

/// What stands where message `index` is expected: taken, nothing, or the end.
enum Taken {
    Whole,
    Nothing,
    End,
}

fn take(inbound: &Inbound<()>, generation: u32, index: usize) -> Taken {
    let message = match inbound.next(index as u64) {
        Next::Nothing => return Taken::Nothing,
        Next::End => return Taken::End,
        Next::Message(message) => message,
    };
    let mut bytes = vec![0; message.length as usize];
    // SAFETY: the target is that long.
    assert!(unsafe { inbound.copy(index as u64, message, message.length, bytes.as_mut_ptr()) }, "frames that are none");
    assert_eq!(bytes, payload(generation, index), "message {index} is not whole");
    assert_eq!(message.immediate, immediate(index));
    inbound.taken(index as u64 + 1);
    Taken::Whole
}

/// Three messages through two descriptors, and three frames of which four are needed: what was taken is used again, and only
/// that. A message completes once it has a receive.
#[test]
fn messages_cross() {
    explore(Some(4), || {
        let ends = Ends::new();
        let writer = {
            let ends = ends.clone();
            thread::spawn(move || {
                let mut outbound = ends.outbound(1).unwrap();
                for index in 0..3 {
                    while !write(&mut outbound, 1, index) {
                        thread::yield_now();
                    }
                }
                while !outbound.covered(3, || false) {
                    thread::yield_now();
                }
                outbound.leave(3);
            })
        };
        let inbound = ends.inbound(1);
        ends.receiver.say_credit(1, 3);
        for index in 0..3 {
            loop {
                match take(&inbound, 1, index) {
                    Taken::Whole => break,
                    Taken::Nothing => thread::yield_now(),
                    Taken::End => panic!("the end comes before message {index}"),
                }
            }
        }
        writer.join().unwrap();
        assert!(matches!(take(&inbound, 1, 3), Taken::End));
        assert!(!ends.close());
    });
}

/// A writer that is killed: what the reader takes is whole, in order, and not more than was written; and over what the dead
/// left, the next connection works and sees nothing of the old one.
#[test]
fn a_writer_that_is_killed() {
    explore_deaths(3, |steps, died| {
        let ends = Ends::new();
        let writer = {
            let ends = ends.clone();
            thread::spawn(move || {
                let mut written = 0;
                let survived = live(steps, || {
                    let mut outbound = ends.outbound(1).unwrap();
                    while written < 2 && write(&mut outbound, 1, written) {
                        written += 1;
                    }
                    outbound.leave(2);
                });
                (written, survived.is_some())
            })
        };
        let inbound = ends.inbound(1);
        let mut next = 0;
        for _ in 0..2 {
            if let Taken::Whole = take(&inbound, 1, next) {
                next += 1;
            }
        }
        let (written, survived) = writer.join().unwrap();
        if !survived {
            died.store(true, Ordering::Relaxed);
        }
        // What it was about to say when it was killed may count.
        while let Taken::Whole = take(&inbound, 1, next) {
            next += 1;
            assert!(next <= 2);
        }
        assert!(next >= written && next <= written + 1, "{next} of {written} messages");
        // The living let go when they leave.
        assert!(!survived || !ends.close());
        ends.close();
        ends.announce(2);
        let inbound = ends.inbound(2);
        assert!(matches!(take(&inbound, 2, 0), Taken::Nothing), "a message of an earlier connection");
        let mut outbound = ends.outbound(2).unwrap();
        for index in 0..2 {
            assert!(write(&mut outbound, 2, index));
            assert!(matches!(take(&inbound, 2, index), Taken::Whole));
        }
    });
}

/// A reader that is killed: the writer uses nothing again that it may have been reading, and does not wait for it.
#[test]
fn a_reader_that_is_killed() {
    explore_deaths(3, |steps, died| {
        let ends = Ends::new();
        let reader = {
            let ends = ends.clone();
            thread::spawn(move || {
                let mut next = 0;
                let survived = live(steps, || {
                    let inbound = ends.inbound(1);
                    ends.receiver.say_credit(1, 3);
                    for _ in 0..2 {
                        if let Taken::Whole = take(&inbound, 1, next) {
                            next += 1;
                        }
                    }
                });
                (next, survived.is_some())
            })
        };
        let mut outbound = ends.outbound(1).unwrap();
        let written = (0..3).take_while(|&index| write(&mut outbound, 1, index)).count();
        let credit = outbound.covered(3, || false);
        let (taken, survived) = reader.join().unwrap();
        if !survived {
            died.store(true, Ordering::Relaxed);
        }
        // Two find room in any case, the third only once one of them was taken.
        assert!(written >= 2 && (written == 2 || taken >= 1), "{written} written, {taken} taken");
        assert!(!credit || steps > 0);
        outbound.leave(written as u64);
        assert!(!ends.close());
    });
}

/// An area's owner that ends the connection, and a writer that begins to use it: one sees the other. So an area that is not
/// held is nobody's, whenever the writer may have been killed.
#[test]
fn an_area_is_not_taken_from_a_living_writer() {
    explore_deaths(3, |steps, died| {
        let ends = Ends::new();
        let writer = {
            let ends = ends.clone();
            thread::spawn(move || live(steps, || ends.outbound(1).is_some()))
        };
        let held = ends.close();
        match writer.join().unwrap() {
            Some(writes) => {
                assert!(held || !writes, "the writer writes to an area that its owner took for free");
                assert_eq!(ends.sender.head.0.holds(0), writes);
            }
            None => died.store(true, Ordering::Relaxed),
        }
    });
}

/// Receives of another connection are not taken for this one's.
#[test]
fn credit_is_of_one_connection() {
    explore(Some(5), || {
        let ends = Ends::new();
        let owner = {
            let ends = ends.clone();
            thread::spawn(move || {
                ends.receiver.say_credit(1, 1);
                ends.close();
                ends.receiver.say_credit(2, 5);
                ends.announce(2);
            })
        };
        if let Some(mut outbound) = ends.outbound(1) {
            assert!(!outbound.covered(2, || false));
            outbound.covered(1, || false);
            assert!(!outbound.covered(2, || false));
            if !outbound.stands() {
                outbound.leave(0);
            }
        }
        owner.join().unwrap();
        let mut outbound = ends.outbound(2).unwrap();
        assert!(outbound.covered(5, || false) && !outbound.covered(6, || false));
    });
}

fn gid(byte: u8) -> Gid {
    Gid::from_bytes([byte; 16])
}

/// Whatever writer dies when, an entry reads as one of those that were written.
#[test]
fn gids_are_whole() {
    explore_deaths(3, |steps, died| {
        let entry = Arc::new(GidEntry::default());
        let writers = {
            let entry = entry.clone();
            // One after the other, as the gate has it: the first may be killed, and the kernel then opens the gate.
            thread::spawn(move || {
                let survived = live(steps, || entry.set(gid(1))).is_some();
                entry.set(gid(2));
                entry.set(gid(3));
                survived
            })
        };
        let seen = entry.get();
        assert!((0..4).any(|byte| seen == gid(byte)), "{seen}");
        if !writers.join().unwrap() {
            died.store(true, Ordering::Relaxed);
        }
        assert_eq!(entry.get(), gid(3));
    });
}

/// Two take what a dead member had: one gets it, also where the first that tries dies on the way.
#[test]
fn a_word_has_one_owner() {
    const DEAD: u32 = 7;
    explore_deaths(3, |steps, died| {
        let words = Arc::new([AtomicU32::new(DEAD)]);
        let other = {
            let words = words.clone();
            thread::spawn(move || live(steps, || owners::take_for(&words[..], 2, |holder| holder != DEAD)))
        };
        let own = owners::take_for(&words[..], 1, |holder| holder != DEAD);
        match other.join().unwrap() {
            Some(theirs) => assert!(own.is_some() != theirs.is_some(), "{own:?} {theirs:?}"),
            None => {
                died.store(true, Ordering::Relaxed);
                // What it took before it died is free again.
                if own.is_none() {
                    assert_eq!(owners::take_for(&words[..], 1, |holder| holder == 1), Some(0));
                }
            }
        }
        owners::give_back_of(&words[0], 3);
        assert_ne!(words[0].load(Ordering::Relaxed), 0, "given back by somebody else");
    });
}
