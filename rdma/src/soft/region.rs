//! A device's table of registered memory.

use crate::verbs::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The regions of one device, found by their key without a lock.
///
/// A key is the entry's number plus one in the low bits and a generation above, so the first is 0x101 (a value seen on a
/// Mac: openclawradar.com), keys are not reused before the generation wraps, and key 0 is never valid.
pub(crate) struct RegionTable {
    entries: Box<[Entry]>,
    /// The bits of a key that are the entry's number.
    numbers: u32,
    control: Mutex<Control>,
}

struct Control {
    /// Entries that are not in use, the next one last.
    free: Vec<u32>,
    generation: u32,
    serial: u64,
}

#[derive(Default)]
struct Entry {
    /// The key under which the entry is live; 0 if it is not. The other fields are written before it and keep their
    /// values until the entry is free again.
    key: AtomicU32,
    base: AtomicUsize,
    length: AtomicUsize,
    access: AtomicU32,
    domain: AtomicUsize,
    serial: AtomicU64,
}

/// What the table knows about a live key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) base: usize,
    pub(crate) length: usize,
    pub(crate) access: u32,
    /// The protection domain, by the address of its object.
    pub(crate) domain: usize,
    /// Counts registrations of the device: a later one has a greater number.
    pub(crate) serial: u64,
}

impl Region {
    /// Whether the region holds all of the range.
    #[inline]
    pub(crate) fn holds(&self, address: u64, length: u32) -> bool {
        let base = self.base as u64;
        address >= base
            && address - base <= self.length as u64
            && u64::from(length) <= self.length as u64 - (address - base)
    }
}

impl RegionTable {
    pub(crate) fn new(limit: u32) -> Self {
        RegionTable {
            entries: (0..limit).map(|_| Entry::default()).collect(),
            numbers: (1 << 8.max(32 - limit.leading_zeros())) - 1,
            control: Mutex::new(Control { free: (0..limit).rev().collect(), generation: 0, serial: 0 }),
        }
    }

    /// The number of the latest registration.
    pub(crate) fn serial(&self) -> u64 {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).serial
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        (self.entries.len() - self.control.lock().unwrap_or_else(PoisonError::into_inner).free.len()) as u32
    }

    /// Enters a region. Returns its key, or `None` if the table is full.
    pub(crate) fn insert(&self, base: usize, length: usize, access: u32, domain: usize) -> Option<u32> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let number = control.free.pop()?;
        control.serial += 1;
        control.generation = control.generation % (u32::MAX >> self.numbers.trailing_ones()) + 1;
        let entry = &self.entries[number as usize];
        entry.base.store(base, Ordering::Relaxed);
        entry.length.store(length, Ordering::Relaxed);
        entry.access.store(access, Ordering::Relaxed);
        entry.domain.store(domain, Ordering::Relaxed);
        entry.serial.store(control.serial, Ordering::Relaxed);
        let key = control.generation << self.numbers.trailing_ones() | (number + 1);
        entry.key.store(key, Ordering::Release);
        Some(key)
    }

    /// Makes a key invalid. The entry can be used again only after [`release`](Self::release).
    pub(crate) fn revoke(&self, key: u32) {
        if let Some(entry) = self.entry(key) {
            entry.key.store(0, Ordering::Release);
        }
    }

    /// Gives the entry of a revoked key back, once nobody can be copying by it any more.
    pub(crate) fn release(&self, key: u32) {
        let number = (key & self.numbers) - 1;
        self.control.lock().unwrap_or_else(PoisonError::into_inner).free.push(number);
    }

    #[inline]
    fn entry(&self, key: u32) -> Option<&Entry> {
        let entry = self.entries.get(((key & self.numbers) as usize).wrapping_sub(1))?;
        (entry.key.load(Ordering::Acquire) == key).then_some(entry)
    }

    /// Whether a key is live.
    #[inline]
    pub(crate) fn is_live(&self, key: u32) -> bool {
        self.entry(key).is_some()
    }

    /// What a live key stands for.
    #[inline]
    pub(crate) fn find(&self, key: u32) -> Option<Region> {
        let entry = self.entry(key)?;
        Some(Region {
            base: entry.base.load(Ordering::Relaxed),
            length: entry.length.load(Ordering::Relaxed),
            access: entry.access.load(Ordering::Relaxed),
            domain: entry.domain.load(Ordering::Relaxed),
            serial: entry.serial.load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_start_at_0x101_and_are_not_reused() {
        let table = RegionTable::new(100);
        let first = table.insert(4096, 10, 1, 1).unwrap();
        assert_eq!(first, 0x101);
        table.revoke(first);
        assert!(!table.is_live(first));
        table.release(first);
        let second = table.insert(8192, 10, 1, 1).unwrap();
        assert_ne!(first, second);
        assert!(!table.is_live(first));
        assert_eq!(table.find(second).unwrap().base, 8192);
    }

    #[test]
    fn the_table_has_a_limit() {
        let table = RegionTable::new(100);
        let keys: Vec<_> = (0..100).map(|_| table.insert(0, 1, 0, 0).unwrap()).collect();
        assert_eq!(table.insert(0, 1, 0, 0), None);
        table.revoke(keys[50]);
        table.release(keys[50]);
        assert!(table.insert(0, 1, 0, 0).is_some());
    }

    #[test]
    fn invented_keys_are_not_live() {
        let table = RegionTable::new(100);
        table.insert(0, 1, 0, 0).unwrap();
        for key in [0, 1, 0x100, 0x102, 0x201, 0x1ff, u32::MAX] {
            assert!(!table.is_live(key), "{key:#x}");
        }
    }

    #[test]
    fn ranges_are_checked_without_overflow() {
        let region = Region { base: 4096, length: 100, access: 0, domain: 0, serial: 0 };
        assert!(region.holds(4096, 100) && region.holds(4196, 0) && region.holds(4195, 1));
        assert!(!region.holds(4096, 101) && !region.holds(4195, 2) && !region.holds(4095, 1));
        assert!(!region.holds(u64::MAX, u32::MAX) && !region.holds(4197, 0));
    }
}
