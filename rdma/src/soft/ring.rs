//! Storage that is used round and round.

use core::cell::UnsafeCell;

/// A power of two of cells, addressed by counters that only grow. Who may touch which cell is the user's protocol.
pub(crate) struct Ring<T> {
    cells: Box<[UnsafeCell<T>]>,
    shift: u32,
    /// Who reaches which cell when, for loom; empty if several may at once.
    #[cfg(all(loom, test))]
    uses: Box<[crate::verbs::sync::UnsafeCell<()>]>,
}

// SAFETY: a ring hands out raw pointers only; whoever dereferences one proves exclusion there. Moving access between
// threads needs `T: Send`.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// A ring of at least `capacity` cells, each of which is one thread's at a time.
    pub(crate) fn new(capacity: u32, make: impl FnMut() -> T) -> Self {
        #[cfg_attr(not(all(loom, test)), allow(unused_mut))]
        let mut ring = Ring::of_shared(capacity, make);
        #[cfg(all(loom, test))]
        {
            ring.uses = ring.cells.iter().map(|_| crate::verbs::sync::UnsafeCell::new(())).collect();
        }
        ring
    }

    /// A ring of cells that several threads may look at at once.
    pub(crate) fn of_shared(capacity: u32, mut make: impl FnMut() -> T) -> Self {
        let length = capacity.max(1).next_power_of_two();
        Ring {
            cells: (0..length).map(|_| UnsafeCell::new(make())).collect(),
            shift: length.trailing_zeros(),
            #[cfg(all(loom, test))]
            uses: Box::default(),
        }
    }

    /// The cell of a counter's value.
    #[inline]
    pub(crate) fn at(&self, counter: u64) -> *mut T {
        let index = counter as usize & (self.cells.len() - 1);
        #[cfg(all(loom, test))]
        self.uses.get(index).map(crate::verbs::sync::UnsafeCell::get);
        // SAFETY: the length is a power of two (see `of_shared`, where every ring is made), so the masked index is below it.
        unsafe { self.cells.get_unchecked(index).get() }
    }

    /// How often the ring has been gone round at a counter's value.
    #[inline]
    pub(crate) fn lap(&self, counter: u64) -> u32 {
        (counter >> self.shift) as u32
    }
}
