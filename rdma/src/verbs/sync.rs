//! What the parts that threads share without a lock are made of: the standard library's atomics and cells, or those of
//! loom, which tries every order in which threads can run (`RUSTFLAGS="--cfg loom"`, the tests in `schedules.rs`).

#[cfg(not(all(loom, test)))]
mod chosen {
    pub(crate) use crate::wait::Backoff;
    pub(crate) use core::cell::UnsafeCell;
    pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
}

#[cfg(all(loom, test))]
mod chosen {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    /// Loom's flag, whose stores are exchanges: loom orders a plain store and another thread's exchange in both ways, also
    /// where the exchange has seen the value that the store replaces, and then the store is lost (a lock stays locked for
    /// ever). On no machine is it.
    #[derive(Debug)]
    pub(crate) struct AtomicBool(loom::sync::atomic::AtomicBool);

    impl AtomicBool {
        pub(crate) fn new(value: bool) -> Self {
            AtomicBool(loom::sync::atomic::AtomicBool::new(value))
        }

        #[track_caller]
        pub(crate) fn load(&self, order: Ordering) -> bool {
            self.0.load(order)
        }

        #[track_caller]
        pub(crate) fn store(&self, value: bool, order: Ordering) {
            self.0.swap(value, order);
        }

        #[track_caller]
        pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
            self.0.swap(value, order)
        }
    }

    /// Loom's cell under the standard one's interface. Each `get` counts as an access that excludes all others: without an
    /// order between two of them, loom reports a race.
    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T>(loom::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            UnsafeCell(loom::cell::UnsafeCell::new(value))
        }

        #[track_caller]
        pub(crate) fn get(&self) -> *mut T {
            self.0.with_mut(|pointer| pointer)
        }
    }

    /// Waiting lets another thread run: loom has no clock.
    pub(crate) struct Backoff;

    impl Backoff {
        pub(crate) fn new() -> Self {
            Backoff
        }

        pub(crate) fn pause(&mut self) -> bool {
            loom::thread::yield_now();
            true
        }
    }
}

pub(crate) use chosen::*;
