//! An open device.

use super::call;
use super::library::{Library, RawDevice};
use crate::error::Result;
use core::ffi::c_int;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use rdma_sys as sys;
use std::sync::Arc;

/// Owns an `ibv_context`.
pub(crate) struct RawContext {
    device: RawDevice,
    raw: NonNull<sys::ibv_context>,
    open: bool,
    /// Counts memory registrations.
    registrations: AtomicU64,
}

// SAFETY: verbs libraries may be called with one context from several threads.
unsafe impl Send for RawContext {}
// SAFETY: as above.
unsafe impl Sync for RawContext {}

/// Room for more than the structure we know: newer libraries have longer ones, and an exported `ibv_query_port` that
/// filled the newest must not write past the end (facebook's torchcomms pull request 697 is such a case).
#[repr(C)]
#[derive(Default)]
struct Roomy<T> {
    value: T,
    slack: [u64; 16],
}

impl RawContext {
    pub(crate) fn open(device: &RawDevice) -> Result<Arc<Self>> {
        // SAFETY: a device of a live list.
        let raw = call::pointer("ibv_open_device", || unsafe { (device.library().verbs.open_device)(device.as_ptr()) })
            .map_err(|error| error.on_device(device))?;
        Ok(Arc::new(RawContext { device: device.clone(), raw, open: true, registrations: AtomicU64::new(0) }))
    }

    pub(crate) fn library(&self) -> &Library {
        self.device.library()
    }

    pub(crate) fn device(&self) -> &RawDevice {
        &self.device
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_context {
        self.raw.as_ptr()
    }

    /// A number for a memory registration that has just been made.
    pub(crate) fn next_registration(&self) -> u64 {
        self.registrations.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of the latest registration.
    pub(crate) fn registrations(&self) -> u64 {
        self.registrations.load(Ordering::Relaxed)
    }

    pub(crate) fn query_device(&self) -> Result<sys::ibv_device_attr> {
        let mut answer = Roomy::<sys::ibv_device_attr>::default();
        // SAFETY: an open context, and a structure with room to spare.
        call::number("ibv_query_device", || unsafe {
            (self.library().verbs.query_device)(self.as_ptr(), &raw mut answer.value)
        })
        .map_err(|error| error.on_device(&self.device))?;
        Ok(answer.value)
    }

    pub(crate) fn query_port(&self, port: u8) -> Result<sys::ibv_port_attr> {
        // Zeroed first: the exported symbol leaves what lies behind the old structure alone.
        let mut answer = Roomy::<sys::ibv_port_attr>::default();
        // SAFETY: an open context, and a structure with room to spare.
        call::number("ibv_query_port", || unsafe {
            (self.library().verbs.query_port)(self.as_ptr(), port, &raw mut answer.value)
        })
        .map_err(|error| error.on_device(&self.device).on_port(port))?;
        Ok(answer.value)
    }

    pub(crate) fn query_gid(&self, port: u8, index: u8) -> Result<[u8; 16]> {
        let mut gid = sys::ibv_gid::default();
        // SAFETY: an open context, and a structure to fill.
        call::number("ibv_query_gid", || unsafe {
            (self.library().verbs.query_gid)(self.as_ptr(), port, c_int::from(index), &mut gid)
        })
        .map_err(|error| error.on_device(&self.device).on_port(port))?;
        // SAFETY: both forms of the union are plain bytes, and it was zeroed.
        Ok(unsafe { gid.raw })
    }

    fn destroy(&mut self) -> Result<()> {
        self.open = false;
        // SAFETY: an open context, closed once: `open` was true. Children hold it, so there are none.
        call::number("ibv_close_device", || unsafe { (self.library().verbs.close_device)(self.as_ptr()) })
            .map_err(|error| error.on_device(&self.device))
    }

    /// Closes the device and says whether that worked.
    pub(crate) fn close(mut self) -> Result<()> {
        self.destroy()
    }
}

impl Drop for RawContext {
    fn drop(&mut self) {
        if self.open && self.destroy().is_err() {
            // The library may still use the device: keep the list.
            core::mem::forget(self.device.clone());
        }
    }
}

impl fmt::Debug for RawContext {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RawContext").field("device", &self.device.name).finish_non_exhaustive()
    }
}
