//! Return values of C calls, made into results.

use crate::error::{Errno, Error, ErrorKind, Result};
use core::cell::RefCell;
use core::ffi::c_int;
use core::ptr::NonNull;

/// Sets the thread's `errno`.
pub(crate) fn set_errno(errno: c_int) {
    #[cfg(target_vendor = "apple")]
    // SAFETY: the function gives the address of this thread's errno.
    let place = unsafe { libc::__error() };
    #[cfg(not(target_vendor = "apple"))]
    // SAFETY: the function gives the address of this thread's errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it is an int of this thread.
    unsafe { *place = errno };
}

thread_local! {
    /// What the software device has to say about the failure of a call, which C's `errno` cannot carry.
    static EXPLANATION: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Leaves an explanation for the call that is about to fail in this thread.
#[cfg(feature = "soft")]
pub(crate) fn explain(error: Error) {
    EXPLANATION.with(|place| place.replace(Some(error)));
}

/// The error of a failed control call, with what the software device said.
fn failure(call: &'static str, errno: Errno) -> Error {
    let error = Error::call(call, errno);
    match EXPLANATION.with(RefCell::take) {
        Some(known) => error.explained_by(known),
        None => error,
    }
}

/// Makes a control call that returns an `int`. `errno` is cleared first: a value left there by something else must not
/// explain the failure.
pub(crate) fn number(call: &'static str, work: impl FnOnce() -> c_int) -> Result<()> {
    set_errno(0);
    EXPLANATION.with(RefCell::take);
    match rdma_sys::errno_of(work(), || Errno::last().raw()) {
        None => Ok(()),
        Some(errno) => Err(failure(call, Errno::from_raw(errno))),
    }
}

/// The result of a call that returned an `int`, in any of the styles.
#[inline]
pub(crate) fn status(call: &'static str, returned: c_int) -> Result<()> {
    match rdma_sys::errno_of(returned, || Errno::last().raw()) {
        None => Ok(()),
        Some(errno) => Err(Error::call(call, Errno::from_raw(errno))),
    }
}

/// Makes a control call that returns a pointer, null for failure.
pub(crate) fn pointer<T>(call: &'static str, work: impl FnOnce() -> *mut T) -> Result<NonNull<T>> {
    set_errno(0);
    EXPLANATION.with(RefCell::take);
    NonNull::new(work()).ok_or_else(|| match Errno::last() {
        errno if errno.raw() == 0 => {
            Error::call(call, errno).with_kind(ErrorKind::Other).with_detail("null, and no reason given")
        }
        errno => failure(call, errno),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_errno_explains_nothing() {
        set_errno(libc::ENOENT);
        let error = pointer::<u8>("ibv_alloc_pd", core::ptr::null_mut).unwrap_err();
        assert!(!error.to_string().contains("ENOENT"), "{error}");
    }

    #[test]
    fn a_full_queue_looks_the_same_in_each_style() {
        for returned in [libc::ENOMEM, -libc::ENOMEM, -1] {
            set_errno(libc::ENOMEM);
            let error = status("ibv_post_recv", returned).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::QueueFull);
            assert_eq!(error.errno(), Some(Errno::from_raw(libc::ENOMEM)));
        }
        set_errno(libc::EINVAL);
        assert_eq!(status("ibv_post_recv", -1).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}
