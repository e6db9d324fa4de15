//! The software device for programs in C: what the `librdma` of this repository exports.
//!
//! Not for use from Rust, and not part of the crate's interface: see `docs/c-api.md` of the repository.

use super::calls::{self, set_errno};
use super::environment;
use crate::ErrorKind;
use core::ffi::c_int;
use rdma_sys as sys;
use std::io::Write;

/// The device page for programs in C: theirs align to their machine's page, which on most is this.
const PAGE: usize = 4096;

/// The table of the host that the environment describes, when its devices are first listed.
pub const VERBS: sys::Verbs = calls::table(get_device_list);

unsafe extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut sys::ibv_device {
    match environment::host(Some(PAGE)) {
        // SAFETY: `count` is null or may be written, as the caller of ibv_get_device_list promises.
        Ok(host) => unsafe { calls::device_list(Some(&host), count) },
        Err(error) => {
            // The program will say that there are no devices; what is wrong with the variables it cannot know.
            let _ = writeln!(std::io::stderr(), "librdma: {error}");
            set_errno(match error.kind() {
                ErrorKind::OutOfMemory => libc::ENOMEM,
                ErrorKind::TimedOut => libc::ETIMEDOUT,
                ErrorKind::UnknownDevice => libc::ENODEV,
                _ => libc::EINVAL,
            });
            core::ptr::null_mut()
        }
    }
}
