//! The least that a hop can take on this machine, at this moment.

use super::clock::Clock;
use super::end::Patience;
use super::stop::Stop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A cache line that two threads hand to each other, without anything around it.
///
/// What a hand-over costs depends on which two cores the threads are on, and on a virtual machine that changes from one
/// second to the next, by a factor of ten. So a latency says little unless this is measured beside it: each batch begins
/// with some round trips of the line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Line(AtomicU64);

/// Round trips of the line in a batch.
const ROUND_TRIPS: u64 = 60;

impl Line {
    /// The client's side: the time of a hop, in nanoseconds.
    pub(crate) fn measure(&self, clock: &Clock, patience: &Patience) -> Result<f64, Stop> {
        let start = self.0.load(Ordering::Relaxed);
        // One round trip ahead, because the other side may not be there yet.
        self.hand_over(start, patience)?;
        let from = clock.ticks();
        for turn in 1..=ROUND_TRIPS {
            self.hand_over(start + 2 * turn, patience)?;
        }
        let to = clock.ticks();
        Ok(clock.nanoseconds(from, to) as f64 / (2 * ROUND_TRIPS) as f64)
    }

    #[inline]
    fn hand_over(&self, value: u64, patience: &Patience) -> Result<(), Stop> {
        self.0.store(value + 1, Ordering::Release);
        self.wait_for(value + 2, patience)
    }

    /// The server's side: answers as many round trips as the client makes. `before` is how many measurements there were.
    pub(crate) fn answer(&self, before: u64, patience: &Patience) -> Result<(), Stop> {
        let start = before * 2 * (ROUND_TRIPS + 1);
        for turn in 0..=ROUND_TRIPS {
            self.wait_for(start + 2 * turn + 1, patience)?;
            self.0.store(start + 2 * turn + 2, Ordering::Release);
        }
        Ok(())
    }

    /// Busily for some microseconds, then giving the processor away, because the two threads may share one.
    #[inline]
    fn wait_for(&self, value: u64, patience: &Patience) -> Result<(), Stop> {
        for _ in 0..64 {
            if self.0.load(Ordering::Acquire) == value {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        self.wait_long(value, patience)
    }

    #[cold]
    fn wait_long(&self, value: u64, patience: &Patience) -> Result<(), Stop> {
        let begin = Instant::now();
        while self.0.load(Ordering::Acquire) != value {
            if patience.interrupted() {
                return Err(Stop::Interrupted);
            }
            // The other side ends with an error of its own, which is told instead of this one.
            if begin.elapsed() > patience.timeout.min(Duration::from_secs(5)) {
                return Err(Stop::PeerGone);
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}
