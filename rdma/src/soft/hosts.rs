//! Function tables that know their host.
//!
//! Of all calls only `ibv_get_device_list` gets no object to tell which host is meant. So there are as many functions of
//! that name as there may be tables at once, each with its number built in, and a list of which host has which.

use super::calls::{self, set_errno};
use super::fabric::Host;
use super::fork::PerProcess;
use crate::{Error, ErrorKind, Result};
use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};
use rdma_sys as sys;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) type GetDeviceList = unsafe extern "C" fn(*mut c_int) -> *mut *mut sys::ibv_device;

const ROWS: usize = 32;
const COLUMNS: usize = 32;

/// How many tables there can be at once in a process.
pub(crate) const LIMIT: usize = ROWS * COLUMNS;

/// What is at a place.
enum Entry {
    Free,
    Taken(Host),
    /// A table of a parent of this process has it, and its copy may still be called.
    Foreign,
}

static HOSTS: PerProcess<Mutex<Box<[Entry]>>> = PerProcess::new();

/// Which places are taken, a bit each. For a child, which cannot ask the parent's list: a thread that the child does not
/// have may hold its lock.
static TAKEN: [AtomicU32; ROWS] = [const { AtomicU32::new(0) }; ROWS];

fn bit(place: usize) -> (&'static AtomicU32, u32) {
    (&TAKEN[place / COLUMNS], 1 << (place % COLUMNS))
}

fn hosts() -> MutexGuard<'static, Box<[Entry]>> {
    let known = |place| {
        let (word, bit) = bit(place);
        if word.load(Ordering::Relaxed) & bit == 0 { Entry::Free } else { Entry::Foreign }
    };
    let make = || Mutex::new((0..LIMIT).map(known).collect());
    HOSTS.get_or_init(make).lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn get_device_list<const ROW: usize, const COLUMN: usize>(
    count: *mut c_int,
) -> *mut *mut sys::ibv_device {
    let host = match &hosts()[ROW * COLUMNS + COLUMN] {
        Entry::Free => None,
        Entry::Taken(host) => Some(host.clone()),
        Entry::Foreign => {
            set_errno(libc::EPERM);
            return null_mut();
        }
    };
    // SAFETY: `count` is null or may be written, as the caller of ibv_get_device_list promises.
    unsafe { calls::device_list(host.as_ref(), count) }
}

macro_rules! row {
    ($($column:literal)*) => {
        const fn row<const ROW: usize>() -> [GetDeviceList; COLUMNS] {
            [$(get_device_list::<ROW, $column>),*]
        }
        const FUNCTIONS: [[GetDeviceList; COLUMNS]; ROWS] = [$(row::<$column>()),*];
    };
}

row!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);

/// A place in the list, for as long as the value lives.
#[derive(Debug)]
pub(crate) struct Place(usize);

impl Place {
    /// Takes a place for a host.
    pub(crate) fn take(host: &Host) -> Result<Place> {
        let mut hosts = hosts();
        match hosts.iter().position(|entry| matches!(entry, Entry::Free)) {
            Some(place) => {
                hosts[place] = Entry::Taken(host.clone());
                let (word, bit) = bit(place);
                word.fetch_or(bit, Ordering::Relaxed);
                Ok(Place(place))
            }
            None => Err(Error::new(
                ErrorKind::LimitReached,
                format!("{LIMIT} providers of software hosts exist in this process, and no more can"),
            )),
        }
    }

    pub(crate) fn get_device_list(&self) -> GetDeviceList {
        FUNCTIONS[self.0 / COLUMNS][self.0 % COLUMNS]
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut hosts = hosts();
        // A child's copy: the place stays the parent's.
        if matches!(hosts[self.0], Entry::Foreign) {
            return;
        }
        let host = core::mem::replace(&mut hosts[self.0], Entry::Free);
        let (word, bit) = bit(self.0);
        word.fetch_and(!bit, Ordering::Relaxed);
        drop(hosts);
        // Outside the lock: dropping the last handle frees the fabric.
        drop(host);
    }
}
