//! A function table and what keeps it usable.

use super::call;
use crate::error::{Chosen, Error, Result};
use core::any::Any;
use core::ffi::{CStr, c_int};
use core::fmt;
use core::ptr::NonNull;
use rdma_sys as sys;
use std::sync::Arc;

/// A function table. It is valid for ever (a library is never unloaded) or while `_keep` lives (a software host's).
pub(crate) struct Library {
    pub(crate) verbs: sys::Verbs,
    _keep: Option<Box<dyn Any + Send + Sync>>,
}

impl Library {
    /// # Safety
    ///
    /// The table holds functions of one verbs library, callable from any thread and for ever.
    pub(crate) unsafe fn new(verbs: sys::Verbs) -> Arc<Self> {
        Arc::new(Library { verbs, _keep: None })
    }

    /// The platform's library.
    pub(crate) fn system() -> Result<Arc<Self>> {
        let verbs = sys::Verbs::system().map_err(|error| {
            let named = std::env::var_os(sys::LIBRARY_VARIABLE).is_some_and(|path| !path.is_empty());
            Error::no_library(&error, if named { Chosen::Variable } else { Chosen::Platform })
        })?;
        // SAFETY: a loaded library is never unloaded, and verbs libraries may be called from any thread.
        Ok(unsafe { Library::new(verbs) })
    }

    /// A host of a software fabric.
    #[cfg(feature = "soft")]
    pub(crate) fn soft(host: &crate::soft::Host) -> Result<Arc<Self>> {
        let place = crate::soft::Place::take(host)?;
        // The table's functions are ours, and the place, which holds the host, is kept with it.
        let verbs = crate::soft::table(place.get_device_list());
        Ok(Arc::new(Library { verbs, _keep: Some(Box::new(place)) }))
    }

    /// Lists the devices.
    pub(crate) fn devices(self: &Arc<Self>) -> Result<Vec<RawDevice>> {
        let mut count: c_int = 0;
        // SAFETY: the count may be written.
        let list = call::pointer("ibv_get_device_list", || unsafe { (self.verbs.get_device_list)(&mut count) })?;
        let list = Arc::new(List { library: self.clone(), list });
        let count = usize::try_from(count).unwrap_or(0);
        let mut devices = Vec::with_capacity(count);
        for index in 0..count {
            // SAFETY: the array has `count` entries and lives as long as the list.
            let Some(raw) = NonNull::new(unsafe { *list.list.as_ptr().add(index) }) else { break };
            // SAFETY: a device of a live list. Its name is a string that it owns.
            let name = unsafe {
                let name = (self.verbs.get_device_name)(raw.as_ptr());
                if name.is_null() { String::new() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
            };
            devices.push(RawDevice { list: list.clone(), raw, name: Arc::from(name) });
        }
        Ok(devices)
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Library").finish_non_exhaustive()
    }
}

/// A device list, freed when the last of its devices goes.
struct List {
    library: Arc<Library>,
    list: NonNull<*mut sys::ibv_device>,
}

// SAFETY: the array is not written after the library made it, and verbs libraries may be called from any thread.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the array came from this library's ibv_get_device_list and is freed once, here.
        unsafe { (self.library.verbs.free_device_list)(self.list.as_ptr()) }
    }
}

/// A device of a list, which it keeps.
#[derive(Clone)]
pub(crate) struct RawDevice {
    list: Arc<List>,
    raw: NonNull<sys::ibv_device>,
    pub(crate) name: Arc<str>,
}

// SAFETY: the device is the list's and is only read, by the library and here.
unsafe impl Send for RawDevice {}
// SAFETY: as above.
unsafe impl Sync for RawDevice {}

impl RawDevice {
    pub(crate) fn library(&self) -> &Arc<Library> {
        &self.list.library
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_device {
        self.raw.as_ptr()
    }

    /// The transport and node type, as the library wrote them.
    pub(crate) fn kind(&self) -> (sys::ibv_transport_type, sys::ibv_node_type) {
        // SAFETY: the device lives as long as its list. Both fields are integers of which any value is valid.
        unsafe { ((*self.raw.as_ptr()).transport_type, (*self.raw.as_ptr()).node_type) }
    }

    /// The node GUID as the library gives it, where it has that call.
    pub(crate) fn guid(&self) -> Option<u64> {
        // SAFETY: a device of a live list.
        self.library().verbs.get_device_guid.map(|get| unsafe { get(self.as_ptr()) })
    }
}
