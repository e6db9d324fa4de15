//! Which pointers are live objects, so that a call with a null, freed or invented pointer gets an errno.
//!
//! Control calls look here; posting and polling do not (they check for null and trust the rest, as every provider
//! does). An object is an `Arc` of which C code holds one count as a raw pointer: the registry knows that count.

use super::fork::{Birth, PerProcess};
use core::ffi::c_int;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What kind of object an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    DeviceList,
    Context,
    ProtectionDomain,
    MemoryRegion,
    CompletionQueue,
    QueuePair,
}

/// A type whose values are handed to C as pointers.
///
/// # Safety
///
/// The type is `repr(C)` with the ABI's structure `Abi` as its first field, in an `UnsafeCell` if C or the library
/// writes to it later, and no other type has this `KIND`.
pub(crate) unsafe trait Object: Sized + Send + Sync {
    type Abi;
    const KIND: Kind;
}

/// The registry of this process.
static LIVE: PerProcess<Mutex<HashMap<usize, Kind>>> = PerProcess::new();

fn with<T>(work: impl FnOnce(&mut HashMap<usize, Kind>) -> T) -> T {
    work(&mut LIVE.get_or_init(Default::default).lock().unwrap_or_else(PoisonError::into_inner))
}

/// The errno for a pointer that is not a live object.
fn unknown() -> c_int {
    if Birth::after_fork() { libc::EPERM } else { libc::EINVAL }
}

/// Hands an object to C: its pointer carries one count of the `Arc`.
pub(crate) fn publish<T: Object>(object: Arc<T>) -> *mut T::Abi {
    let pointer = Arc::into_raw(object);
    with(|live| live.insert(pointer as usize, T::KIND));
    pointer.cast_mut().cast()
}

/// The object behind a pointer that C gave us, with a count of its own.
pub(crate) fn borrow<T: Object>(pointer: *mut T::Abi) -> Result<Arc<T>, c_int> {
    with(|live| {
        if live.get(&(pointer as usize)) != Some(&T::KIND) {
            return Err(unknown());
        }
        let pointer = pointer.cast::<T>().cast_const();
        // SAFETY: the address is registered as a live T, so the count that `publish` put there exists, and it cannot go
        // while the registry is locked; one more is added for the Arc made here.
        unsafe {
            Arc::increment_strong_count(pointer);
            Ok(Arc::from_raw(pointer))
        }
    })
}

/// Takes the object back from C. From now on its pointer is unknown.
pub(crate) fn retire<T: Object>(pointer: *mut T::Abi) -> Result<Arc<T>, c_int> {
    with(|live| {
        if live.get(&(pointer as usize)) != Some(&T::KIND) {
            return Err(unknown());
        }
        live.remove(&(pointer as usize));
        // SAFETY: the address was registered as a live T, so the count that `publish` put there exists; having removed
        // the entry, this is the only place that takes it.
        Ok(unsafe { Arc::from_raw(pointer.cast::<T>().cast_const()) })
    })
}

/// Registers an address that is not an `Arc` of ours (the array of a device list).
pub(crate) fn enter(address: usize, kind: Kind) {
    with(|live| live.insert(address, kind));
}

/// Forgets such an address. Returns whether it was known.
pub(crate) fn leave(address: usize, kind: Kind) -> bool {
    with(|live| live.get(&address) == Some(&kind) && live.remove(&address).is_some())
}
