//! Function tables that know their host.
//!
//! Of all calls only `ibv_get_device_list` gets no object to tell which host is meant. So there are as many functions of
//! that name as there may be tables at once, each with its number built in, and a list of which host has which.

use super::calls;
use super::fabric::Host;
use crate::{Error, ErrorKind, Result};
use core::ffi::c_int;
use rdma_sys as sys;
use std::sync::{Mutex, PoisonError};

pub(crate) type GetDeviceList = unsafe extern "C" fn(*mut c_int) -> *mut *mut sys::ibv_device;

const ROWS: usize = 32;
const COLUMNS: usize = 32;

/// How many tables there can be at once in a process.
pub(crate) const LIMIT: usize = ROWS * COLUMNS;

static HOSTS: Mutex<[Option<Host>; LIMIT]> = Mutex::new([const { None }; LIMIT]);

unsafe extern "C" fn get_device_list<const ROW: usize, const COLUMN: usize>(
    count: *mut c_int,
) -> *mut *mut sys::ibv_device {
    let host = HOSTS.lock().unwrap_or_else(PoisonError::into_inner)[ROW * COLUMNS + COLUMN].clone();
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
        let mut hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
        match hosts.iter().position(Option::is_none) {
            Some(place) => {
                hosts[place] = Some(host.clone());
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
        let host = HOSTS.lock().unwrap_or_else(PoisonError::into_inner)[self.0].take();
        // Outside the lock: dropping the last handle frees the fabric.
        drop(host);
    }
}
