//! The parts that threads share without a lock, in every order in which their threads can run, as far as loom can tell
//! them apart: the real code, with loom's atomics (`sync.rs`).
//!
//! `ci/schedules` runs them.
//!
//! Each model has two or three threads and explores all their schedules (three threads: up to three preemptions). What it
//! cannot show: more threads, more slots, and orders that a weaker memory than loom's would allow.

use super::explore::explore;
use super::latch::Latch;
use super::parcel::RawParcel;
use super::slots::{Lane, Posted, Slots};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

fn posted(token: u64) -> Posted {
    Posted { memory: RawParcel::marked(token as usize), token, start: 0, length: 7, depth: 2, run: 0 }
}

#[test]
fn a_latch_has_one_holder() {
    explore(None, || {
        let latch = Arc::new(Latch::new(0_u32));
        let other = {
            let latch = latch.clone();
            thread::spawn(move || *latch.lock() += 1)
        };
        *latch.lock() += 1;
        other.join().unwrap();
        assert_eq!(*latch.lock(), 2);
    });
}

#[test]
fn a_refused_try_changes_nothing() {
    explore(Some(3), || {
        let latch = Arc::new(Latch::new(0_u32));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let latch = latch.clone();
                thread::spawn(move || match latch.try_lock() {
                    Some(mut held) => {
                        *held += 1;
                        1
                    }
                    None => 0,
                })
            })
            .collect();
        *latch.lock() += 1;
        let taken: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(*latch.lock(), 1 + taken);
    });
}

/// One lane of two slots, with a latch as its completion queue has.
struct Queue {
    slots: Slots,
    latch: Latch<()>,
    /// How many requests the device says are done. It orders nothing by itself: that is left to the tags.
    done: AtomicU32,
}

impl Queue {
    fn new() -> Arc<Self> {
        Arc::new(Queue { slots: Slots::new(9, 2, 2), latch: Latch::new(()), done: AtomicU32::new(0) })
    }

    fn lane(&self) -> &Lane {
        &self.slots.send
    }

    /// The poller's turn at one request: what `route` does with its completion.
    fn complete(&self, request: u32) -> Option<u64> {
        let _held = self.latch.lock();
        // SAFETY: the latch is held to the end of this function, and the slot is released before.
        let slot = unsafe { self.lane().occupied(request % 2, request / 2)? };
        let token = slot.posted().token;
        slot.release();
        Some(token)
    }

    /// The poster's turn at one request.
    fn post(&self, request: u32) {
        while !self.lane().is_free(request % 2) {
            thread::yield_now();
        }
        // What makes a slot free has counted its depth before: a poster that may fill a slot finds the depth, too.
        assert!(self.lane().returned() >= 2 * u64::from((request + 1).saturating_sub(2)));
        // SAFETY: this thread is the only poster, and the slot is free.
        unsafe { self.lane().fill(request % 2, request / 2, posted(u64::from(request))) };
    }
}

#[test]
fn slots_go_round_between_poster_and_poller() {
    explore(Some(4), || {
        let queue = Queue::new();
        let poster = {
            let queue = queue.clone();
            thread::spawn(move || {
                for request in 0..3 {
                    queue.post(request);
                    queue.done.store(request + 1, Ordering::Relaxed);
                }
            })
        };
        for request in 0..3 {
            let token = loop {
                match queue.complete(request) {
                    Some(token) => break token,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(token, u64::from(request));
            assert_eq!(queue.complete(request), None, "a completion was believed twice");
        }
        poster.join().unwrap();
        assert_eq!(queue.lane().returned(), 6);
    });
}

/// A device whose completions are ordered after what was posted: the tag is then always there.
#[test]
fn a_completion_that_the_device_ordered_finds_its_slot() {
    explore(None, || {
        let queue = Queue::new();
        let poster = {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.post(0);
                queue.done.store(1, Ordering::Release);
            })
        };
        if queue.done.load(Ordering::Acquire) == 1 {
            assert_eq!(queue.complete(0), Some(0));
        }
        poster.join().unwrap();
    });
}

/// A post that failed takes its memory back, unless a completion has: never both, never neither.
#[test]
fn a_withdrawal_and_a_completion_exclude_one_another() {
    explore(None, || {
        let queue = Queue::new();
        let poller = {
            let queue = queue.clone();
            thread::spawn(move || queue.complete(0).is_some())
        };
        queue.post(0);
        let withdrawn = {
            let _held = queue.latch.lock();
            // SAFETY: this thread is the poster, and the latch is held.
            unsafe { queue.lane().withdraw(0, 0) }
        };
        if let Some(withdrawn) = &withdrawn {
            assert_eq!(withdrawn.token, 0);
        }
        let completed = poller.join().unwrap();
        assert!(withdrawn.is_some() != completed);
        assert!(queue.lane().is_free(0));
    });
}

/// Closing gives back what has not completed: each request comes out once, whatever the poller does meanwhile.
#[test]
fn emptying_and_completions_share_the_requests() {
    explore(None, || {
        let queue = Queue::new();
        let poller = {
            let queue = queue.clone();
            thread::spawn(move || [0, 1].map(|request| queue.complete(request)))
        };
        queue.post(0);
        queue.post(1);
        let drained: Vec<u64> = {
            let _held = queue.latch.lock();
            // SAFETY: this thread is the poster, the latch is held, and there is no device.
            unsafe { queue.lane().drain(0) }.iter().map(|posted| posted.token).collect()
        };
        let completed = poller.join().unwrap();
        let mut all: Vec<u64> = completed.into_iter().flatten().chain(drained.iter().copied()).collect();
        assert!(drained.is_sorted(), "not oldest first");
        all.sort_unstable();
        assert_eq!(all, [0, 1]);
    });
}

/// A poller that stops for good after each of its steps: the poster goes on with what it has, and what the poller did not
/// take stays in its slot.
#[test]
fn a_poller_that_stops_loses_nothing() {
    for steps in 0..4 {
        explore(Some(4), move || {
            let queue = Queue::new();
            let poller = {
                let queue = queue.clone();
                thread::spawn(move || (0..2).take(steps).filter(|&request| queue.complete(request).is_some()).count())
            };
            queue.post(0);
            queue.post(1);
            let taken = poller.join().unwrap();
            let _held = queue.latch.lock();
            // SAFETY: this thread is the poster, the latch is held, and there is no device.
            assert_eq!(unsafe { queue.lane().drain(0) }.len() + taken, 2);
        });
    }
}
