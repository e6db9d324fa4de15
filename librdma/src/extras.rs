//! Calls that programs make beside those of the device, and that can be answered.

use core::ffi::{CStr, c_char, c_int, c_uint};
use rdma_sys::*;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use thunderbolt::soft::c_face::VERBS;

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

/// An entry of a GID table, as rdma-core describes it in `struct ibv_gid_entry`.
#[repr(C)]
pub struct GidEntry {
    gid: ibv_gid,
    gid_index: u32,
    port_num: u32,
    gid_type: u32,
    ndev_ifindex: u32,
}

const _: () = assert!(size_of::<GidEntry>() == 32);

/// `IBV_GID_TYPE_ROCE_V2`: the entries are made of IP addresses, which is what programs look for.
const GID_TYPE: u32 = 2;

/// Reads an entry of a GID table (`ibv_query_gid_ex` is an inline function over it). ENODATA: the entry is empty.
///
/// # Safety
///
/// `context` is one of this library; `entry` has room for `entry_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ibv_query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    index: u32,
    entry: *mut GidEntry,
    flags: u32,
    entry_size: usize,
) -> c_int {
    let (Ok(small), Ok(number)) = (u8::try_from(port), c_int::try_from(index)) else { return libc::EINVAL };
    if entry.is_null() || flags != 0 || entry_size < size_of::<GidEntry>() {
        return libc::EINVAL;
    }
    let mut gid = ibv_gid { raw: [0; 16] };
    // SAFETY: the context is the caller's promise, the GID is ours.
    if unsafe { (VERBS.query_gid)(context, small, number, &mut gid) } != 0 {
        return libc::EINVAL;
    }
    // SAFETY: every pattern is a value of the bytes.
    if unsafe { gid.raw } == [0; 16] {
        return libc::ENODATA;
    }
    let answer = GidEntry { gid, gid_index: index, port_num: port, gid_type: GID_TYPE, ndev_ifindex: 0 };
    // SAFETY: there is room, as the caller promises and the size confirms.
    unsafe { entry.write(answer) };
    0
}

/// The type of an entry of a GID table, in the numbering of sysfs: 1, RoCE v2.
///
/// # Safety
///
/// `context` is one of this library; `kind` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_gid_type(
    context: *mut ibv_context,
    port: u8,
    index: c_uint,
    kind: *mut c_uint,
) -> c_int {
    let mut gid = ibv_gid { raw: [0; 16] };
    let Ok(index) = c_int::try_from(index) else {
        set_errno(libc::EINVAL);
        return -1;
    };
    if kind.is_null() {
        set_errno(libc::EINVAL);
        return -1;
    }
    // SAFETY: the context is the caller's promise, the GID is ours.
    let result = unsafe { (VERBS.query_gid)(context, port, index, &mut gid) };
    if result == 0 {
        // SAFETY: not null, and may be written, as the caller promises.
        unsafe { *kind = 1 };
    }
    result
}

/// The index of a partition key (network byte order): 0 for the one there is.
///
/// # Safety
///
/// `context` is one of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_pkey_index(context: *mut ibv_context, port: u8, pkey: u16) -> c_int {
    let Some(query) = VERBS.query_pkey else { return -1 };
    let mut known = 0;
    // SAFETY: the context is the caller's promise, the key is ours.
    if unsafe { query(context, port, 0, &mut known) } == 0 && known == pkey {
        return 0;
    }
    set_errno(libc::EINVAL);
    -1
}

/// The kernel's number of the device: it has none.
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_index(_: *mut ibv_device) -> c_int {
    -1
}

/// Reads a file below a folder, without its last line end. Devices of this library have none; others are as they were.
///
/// # Safety
///
/// `folder` and `file` are texts, `buffer` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_read_sysfs_file(
    folder: *const c_char,
    file: *const c_char,
    buffer: *mut c_char,
    size: usize,
) -> c_int {
    if folder.is_null() || file.is_null() || buffer.is_null() || size == 0 {
        set_errno(libc::EINVAL);
        return -1;
    }
    // SAFETY: neither is null, and both are texts, as the caller promises.
    let path = unsafe { [CStr::from_ptr(folder), CStr::from_ptr(file)] }
        .map(|text| Path::new(std::ffi::OsStr::from_bytes(text.to_bytes())).to_owned());
    if path[0].as_os_str().is_empty() {
        set_errno(libc::ENOENT);
        return -1;
    }
    match std::fs::read(path[0].join(&path[1])) {
        Ok(mut bytes) => {
            bytes.truncate(size - 1);
            if bytes.last() == Some(&b'\n') {
                bytes.pop();
            }
            // SAFETY: there is room for `size`, as the caller promises, and one byte is left for the end.
            unsafe {
                buffer.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                buffer.add(bytes.len()).write(0);
            }
            bytes.len() as c_int
        }
        Err(error) => {
            set_errno(error.raw_os_error().unwrap_or(libc::EIO));
            -1
        }
    }
}

/// Prepares for fork: there is nothing to prepare. A child cannot use its parent's objects.
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_fork_init() -> c_int {
    0
}
