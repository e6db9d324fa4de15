//! A small lock for data that is held for nanoseconds.

use super::sync::{AtomicBool, Backoff, Ordering, UnsafeCell};
use core::fmt;
use core::ops::{Deref, DerefMut};

/// A spinning, yielding mutual exclusion lock around a value.
///
/// An uncontended lock and unlock is one exchange and one store. A `std::sync::Mutex` costs two to three times as
/// much, which shows in a path of twenty nanoseconds. Nothing that can panic or call user code runs under it.
///
/// Explored with loom (`schedules.rs`): two and three threads that lock, try to lock and unlock.
pub(crate) struct Latch<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through `Held`, of which at most one exists at a time: `held` is true exactly while
// it lives. So sharing the latch moves access to the value between threads, which `T: Send` allows.
unsafe impl<T: Send> Sync for Latch<T> {}

impl<T> Latch<T> {
    pub(crate) fn new(value: T) -> Self {
        Latch { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the latch. The holder may have lost its processor, so the wait yields after a few turns.
    #[inline]
    pub(crate) fn lock(&self) -> Held<'_, T> {
        if self.held.swap(true, Ordering::Acquire) {
            self.lock_contended();
        }
        Held { latch: self }
    }

    #[cold]
    fn lock_contended(&self) {
        let mut backoff = Backoff::new();
        loop {
            while self.held.load(Ordering::Relaxed) {
                backoff.pause();
            }
            if !self.held.swap(true, Ordering::Acquire) {
                return;
            }
        }
    }

    /// Takes the latch if it is free.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Held<'_, T>> {
        if self.held.load(Ordering::Relaxed) || self.held.swap(true, Ordering::Acquire) {
            return None;
        }
        // Made only now: a `Held` that was made too early would let go, when dropped, of what somebody else holds.
        Some(Held { latch: self })
    }
}

impl<T> fmt::Debug for Latch<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Latch").field("held", &self.held.load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}

/// The right to use the value of a [`Latch`].
pub(crate) struct Held<'a, T> {
    latch: &'a Latch<T>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `Held` exists, so `held` is true and was set by the swap that made this `Held`; no other exists until
        // its drop clears `held`.
        unsafe { &*self.latch.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`; `&mut self` keeps other borrows through this `Held` away.
        unsafe { &mut *self.latch.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.latch.held.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Latch;

    #[test]
    fn one_at_a_time() {
        let latch = Latch::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let mut value = latch.lock();
                        *value = std::hint::black_box(*value) + 1;
                    }
                });
            }
        });
        assert_eq!(*latch.lock(), 40_000);
    }

    #[test]
    fn try_lock_refuses_while_held() {
        let latch = Latch::new(());
        let held = latch.lock();
        assert!(latch.try_lock().is_none());
        assert!(latch.try_lock().is_none(), "a refusal changes nothing");
        drop(held);
        assert!(latch.try_lock().is_some());
    }
}
