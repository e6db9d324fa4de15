//! Knowing on which side of a fork we are.
//!
//! Objects made before a fork are the parent's: latches may be held by threads that the child does not have, and the
//! child's memory is a copy. So every object remembers in which process it was made, and every entry point refuses a
//! foreign one with EPERM. There is no system call in it: a handler that runs in the child counts.

use core::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// The process an object was made in, as far as this process can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Birth(u32);

impl Birth {
    /// This process, now.
    pub(crate) fn now() -> Self {
        static ONCE: Once = Once::new();
        // SAFETY: the handler touches one atomic, which is all that a child of a threaded program may do.
        ONCE.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        });
        Birth(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether this process is the one in which the object was made.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        self.0 == GENERATION.load(Ordering::Relaxed)
    }

    /// Whether this process is a child of one that used the software device.
    pub(crate) fn after_fork() -> bool {
        GENERATION.load(Ordering::Relaxed) != 0
    }
}

/// A value that each process makes for itself. A child does not see its parent's, whose locks may be held for ever; the
/// parent's is kept as it is.
pub(crate) struct PerProcess<T>(AtomicPtr<(Birth, T)>);

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        PerProcess(AtomicPtr::new(null_mut()))
    }

    /// This process's value. If two threads make it at once, one of the two is dropped.
    pub(crate) fn get_or_init(&'static self, make: impl FnOnce() -> T) -> &'static T {
        let known = self.0.load(Ordering::Acquire);
        // SAFETY: a non-null value came from Box::into_raw below and is never freed.
        if let Some((birth, value)) = unsafe { known.as_ref() }
            && birth.is_here()
        {
            return value;
        }
        let fresh = Box::into_raw(Box::new((Birth::now(), make())));
        match self.0.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: just made, and never freed from now on.
            Ok(_) => unsafe { &(*fresh).1 },
            Err(winner) => {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: as for `known`; whoever was faster is of this process, because its threads are.
                unsafe { &(*winner).1 }
            }
        }
    }
}
