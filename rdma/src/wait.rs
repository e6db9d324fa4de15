//! Waiting politely, and never for ever.

use std::time::{Duration, Instant};

/// How often to pause before giving the processor away. Measured: 64 pauses (about 1.5 µs) cost nothing when the two
/// ends run on two cores and keep a hop at 3 µs when they share one; spinning on costs milliseconds there.
const PAUSES: u32 = 64;

/// Pauses first, then yields the processor.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    turns: u32,
}

impl Backoff {
    pub(crate) const fn new() -> Self {
        Backoff { turns: 0 }
    }

    /// One turn of waiting. Returns whether the turn gave the processor away.
    #[inline]
    pub(crate) fn pause(&mut self) -> bool {
        if self.turns < PAUSES {
            self.turns += 1;
            std::hint::spin_loop();
            false
        } else {
            std::thread::yield_now();
            true
        }
    }
}

/// A point in time after which waiting ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    /// `None`: further away than the clock can tell.
    at: Option<Instant>,
}

impl Deadline {
    pub(crate) fn after(timeout: Duration) -> Self {
        Deadline { at: Instant::now().checked_add(timeout) }
    }

    pub(crate) fn passed(self) -> bool {
        self.at.is_some_and(|at| Instant::now() >= at)
    }

    /// What is left, at most an hour at a time; `None` once it has passed.
    pub(crate) fn left(self) -> Option<Duration> {
        const LONG: Duration = Duration::from_secs(3600);
        match self.at {
            None => Some(LONG),
            Some(at) => {
                at.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).map(|left| left.min(LONG))
            }
        }
    }
}

/// Asks `ready` again and again until it answers or the deadline has passed. For things that take milliseconds.
pub(crate) fn poll_until<T>(timeout: Duration, interval: Duration, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Deadline::after(timeout);
    loop {
        if let Some(value) = ready() {
            return Some(value);
        }
        std::thread::sleep(interval.min(deadline.left()?));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_immense_timeout_is_no_overflow() {
        let deadline = Deadline::after(Duration::MAX);
        assert!(!deadline.passed());
        assert!(deadline.left().is_some());
    }

    #[test]
    fn polling_asks_at_least_once_and_ends() {
        assert_eq!(poll_until(Duration::ZERO, Duration::ZERO, || Some(1)), Some(1));
        assert_eq!(poll_until::<()>(Duration::ZERO, Duration::ZERO, || None), None);
    }
}
