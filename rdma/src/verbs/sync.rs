//! What the parts that threads share without a lock are made of: the standard library's atomics and cells, or those of
//! loom, which tries every order in which threads can run (`RUSTFLAGS="--cfg loom"`, the tests in `schedules.rs`).

#[cfg(not(all(loom, test)))]
mod chosen {
    pub(crate) use crate::wait::Backoff;
    pub(crate) use core::cell::UnsafeCell;
    pub(crate) use core::sync::atomic::{
        AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

#[cfg(all(loom, test))]
mod chosen {
    pub(crate) use loom::sync::atomic::{Ordering, fence};

    /// Loom's numbers, each access of which may be a thread's last: see [`mortal`](super::mortal).
    macro_rules! numbers {
        ($($name:ident: $number:ty;)*) => { $(
            #[derive(Debug, Default)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            #[allow(dead_code, reason = "not every number is used in every way")]
            impl $name {
                pub(crate) fn new(value: $number) -> Self {
                    $name(loom::sync::atomic::$name::new(value))
                }

                #[track_caller]
                pub(crate) fn load(&self, order: Ordering) -> $number {
                    super::mortal::step();
                    self.0.load(order)
                }

                #[track_caller]
                pub(crate) fn store(&self, value: $number, order: Ordering) {
                    super::mortal::step();
                    self.0.store(value, order);
                }

                #[track_caller]
                pub(crate) fn swap(&self, value: $number, order: Ordering) -> $number {
                    super::mortal::step();
                    self.0.swap(value, order)
                }

                #[track_caller]
                pub(crate) fn compare_exchange(
                    &self,
                    current: $number,
                    new: $number,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$number, $number> {
                    super::mortal::step();
                    self.0.compare_exchange(current, new, success, failure)
                }

                #[track_caller]
                pub(crate) fn fetch_add(&self, value: $number, order: Ordering) -> $number {
                    super::mortal::step();
                    self.0.fetch_add(value, order)
                }

                #[track_caller]
                pub(crate) fn fetch_sub(&self, value: $number, order: Ordering) -> $number {
                    super::mortal::step();
                    self.0.fetch_sub(value, order)
                }

                #[track_caller]
                pub(crate) fn fetch_or(&self, value: $number, order: Ordering) -> $number {
                    super::mortal::step();
                    self.0.fetch_or(value, order)
                }

                #[track_caller]
                pub(crate) fn fetch_and(&self, value: $number, order: Ordering) -> $number {
                    super::mortal::step();
                    self.0.fetch_and(value, order)
                }
            }
        )* };
    }

    numbers! {
        AtomicI64: i64;
        AtomicU8: u8;
        AtomicU16: u16;
        AtomicU32: u32;
        AtomicU64: u64;
        AtomicUsize: usize;
    }

    /// Loom's flag, whose stores are exchanges: loom orders a plain store and another thread's exchange in both ways, also
    /// where the exchange has seen the value that the store replaces, and then the store is lost (a lock stays locked for
    /// ever). On no machine is it.
    #[derive(Debug, Default)]
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

/// An actor that is killed in the middle of what it does, as a process may be: after so many accesses to what is shared. What
/// it has stored stays, and nothing more happens.
///
/// It is killed by unwinding, so it must be code that puts nothing right when it is dropped.
#[cfg(all(loom, test))]
pub(crate) mod mortal {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    thread_local! {
        /// Loom's threads all run on one of the system's: whose turn it is, it knows by number.
        static MORTAL: Cell<Option<(loom::thread::ThreadId, usize)>> = const { Cell::new(None) };
    }

    struct Death;

    /// Runs `life` until it has accessed what is shared `steps` times. Returns what it returns, `None` if it was killed.
    pub(crate) fn live<T>(steps: usize, life: impl FnOnce() -> T) -> Option<T> {
        MORTAL.set(Some((loom::thread::current().id(), steps)));
        let ended = catch_unwind(AssertUnwindSafe(life));
        MORTAL.set(None);
        match ended {
            Ok(value) => Some(value),
            Err(reason) if reason.is::<Death>() => None,
            Err(reason) => resume_unwind(reason),
        }
    }

    pub(super) fn step() {
        let Some((thread, left)) = MORTAL.get() else { return };
        if loom::thread::current().id() != thread {
            return;
        }
        if left == 0 {
            MORTAL.set(None);
            resume_unwind(Box::new(Death));
        }
        MORTAL.set(Some((thread, left - 1)));
    }
}
