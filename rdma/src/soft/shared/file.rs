//! The file of a fabric, and windows into it.

use crate::{Error, ErrorKind, Result};
use core::ptr::NonNull;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The variable that names the folder of fabrics.
const FOLDER: &str = "RDMA_SOFT_DIRECTORY";

/// The longest name of a fabric, in bytes.
const NAME: usize = 100;

/// Where the fabric of a name is: in memory where the system has such a file system, in the user's own temporary folder
/// otherwise (macOS, whose names of shared memory objects are too short: 31 characters).
pub(crate) fn path(name: &str) -> Result<PathBuf> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || name.len() > NAME || !name.bytes().all(plain) {
        return Err(Error::argument(format!("{name:?} cannot be the name of a fabric"))
            .with_hint("a name is 1 to 100 letters, digits, '-', '_' and '.'"));
    }
    let folder = folder(std::env::var_os(FOLDER), Path::new("/dev/shm"));
    // However it is spelled, and whatever the current folder becomes: a process opens a file once (locks.rs).
    let folder = folder.canonicalize().unwrap_or(folder);
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    Ok(folder.join(format!("rdma-soft-{user}-{name}")))
}

/// The chosen folder, else the one `in_memory` where it exists, else that for temporary files.
fn folder(chosen: Option<OsString>, in_memory: &Path) -> PathBuf {
    match chosen {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder),
        _ if in_memory.is_dir() => in_memory.to_owned(),
        _ => std::env::temp_dir(),
    }
}

fn failed(path: &Path, what: &str, error: &io::Error) -> Error {
    let kind = match error.raw_os_error() {
        Some(libc::ENOSPC | libc::ENOMEM | libc::EDQUOT | libc::EFBIG) => ErrorKind::OutOfMemory,
        _ => ErrorKind::InvalidArgument,
    };
    Error::new(kind, format!("the software fabric's file {} cannot be {what}: {error}", path.display()))
}

/// Opens the file, or makes it. Only this user may use it, and only a plain file is used.
pub(crate) fn open(path: &Path) -> Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)
        .map_err(|error| failed(path, "opened", &error))?;
    let known = file.metadata().map_err(|error| failed(path, "examined", &error))?;
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    if !known.is_file() || known.uid() != user || known.permissions().mode() & 0o077 != 0 {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "{} is not a file that only this user can use, so no software fabric is kept in it",
                path.display()
            ),
        )
        .with_hint("remove it, or choose another name for the fabric"));
    }
    Ok(file)
}

/// Whether the path still names this file.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let same =
        |one: &std::fs::Metadata, other: &std::fs::Metadata| one.dev() == other.dev() && one.ino() == other.ino();
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => same(&open, &named),
        _ => false,
    }
}

/// Makes the file this long, without memory behind it.
pub(crate) fn set_length(file: &File, path: &Path, length: u64) -> Result<()> {
    // SAFETY: rlimit is plain numbers; zero is a value of each.
    let mut limit: libc::rlimit = unsafe { core::mem::zeroed() };
    // SAFETY: the structure is ours to fill.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY && limit.rlim_cur < length {
        // To try would end the process with SIGXFSZ.
        let message = format!(
            "the software fabric's file {} is {} MiB long, and this process may have files of {} MiB",
            path.display(),
            length >> 20,
            limit.rlim_cur >> 20
        );
        return Err(Error::new(ErrorKind::OutOfMemory, message)
            .with_hint("raise the limit with ulimit -f; the file has holes, and takes no such space"));
    }
    file.set_len(length).map_err(|error| failed(path, "extended", &error))
}

/// Makes sure that there is memory behind a range, so that touching it later cannot fail (a full file system would be a
/// SIGBUS). Contents stay.
pub(crate) fn reserve(file: &File, path: &Path, offset: u64, length: u64) -> Result<()> {
    if length == 0 {
        return Ok(());
    }
    allocate(file, offset, length).map_err(|error| {
        let mut message =
            format!("{} KiB of shared memory cannot be reserved in {}: {error}", length.div_ceil(1024), path.display());
        if let Some(free) = free_bytes(file) {
            message.push_str(&format!(" ({} KiB are free there)", free / 1024));
        }
        Error::new(ErrorKind::OutOfMemory, message).with_hint(
            "make that file system larger (docker: --shm-size), ask for less depth, or set RDMA_SOFT_DIRECTORY to another folder",
        )
    })
}

#[cfg(target_os = "linux")]
fn allocate(file: &File, offset: u64, length: u64) -> io::Result<()> {
    loop {
        // SAFETY: the descriptor is open.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as i64, length as i64) } == 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EINTR) => {}
            error if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return touch(file, offset, length),
            error => return Err(error),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(file: &File, offset: u64, length: u64) -> io::Result<()> {
    touch(file, offset, length)
}

/// Where files cannot be told to allocate: writes to every page what it holds. Nobody else writes there meanwhile, or only
/// the one peer that this memory is for, before it has been told that it may.
fn touch(file: &File, offset: u64, length: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut piece = vec![0; 1 << 20];
    let mut done = 0;
    while done < length {
        let bytes = &mut piece[..(length - done).min(1 << 20) as usize];
        file.read_exact_at(bytes, offset + done)?;
        file.write_all_at(bytes, offset + done)?;
        done += bytes.len() as u64;
    }
    Ok(())
}

fn free_bytes(file: &File) -> Option<u64> {
    // SAFETY: statvfs is plain numbers; zero is a value of each.
    let mut known: libc::statvfs = unsafe { core::mem::zeroed() };
    // SAFETY: the descriptor is open, and the structure is ours to fill.
    if unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut known) } != 0 {
        return None;
    }
    #[allow(clippy::unnecessary_cast, reason = "the widths differ between targets")]
    Some(known.f_bavail as u64 * known.f_frsize as u64)
}

/// A range of the file in memory, shared with other processes.
#[derive(Debug)]
pub(crate) struct Window {
    base: NonNull<u8>,
    length: usize,
}

#[cfg(all(loom, test))]
impl Window {
    /// Ordinary memory, as page-aligned as a mapping.
    pub(crate) fn on_heap(length: usize) -> Self {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that exists.
        let address = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(core::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        assert_ne!(address, libc::MAP_FAILED);
        Window { base: NonNull::new(address.cast()).unwrap(), length }
    }
}

// SAFETY: a window is an address range that stays mapped while it lives; who may touch which word how is the protocol of
// the modules above, which use atomics, or plain copies of bytes whose values nothing depends on.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

impl Window {
    /// Maps a range, of which what is touched must have memory behind it. Offset and length are multiples of the host's page.
    pub(crate) fn map(file: &File, path: &Path, offset: u64, length: usize) -> Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that exists.
        let address = unsafe {
            libc::mmap(core::ptr::null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), offset as libc::off_t)
        };
        match NonNull::new(address.cast::<u8>()) {
            Some(base) if address != libc::MAP_FAILED => Ok(Window { base, length }),
            _ => Err(failed(path, "mapped", &io::Error::last_os_error())),
        }
    }

    /// The address of a byte of the window.
    ///
    /// # Panics
    ///
    /// If the value of type `T` there would not lie in the window, or not be aligned.
    pub(crate) fn at<T>(&self, offset: usize) -> NonNull<T> {
        assert!(offset.is_multiple_of(align_of::<T>()) && offset + size_of::<T>() <= self.length, "beyond the window");
        // SAFETY: the offset lies in the mapping.
        unsafe { self.base.add(offset).cast() }
    }

    /// As [`at`](Self::at), unchecked.
    ///
    /// # Safety
    ///
    /// The value lies in the window and is aligned there.
    #[inline]
    pub(crate) unsafe fn at_unchecked<T>(&self, offset: usize) -> NonNull<T> {
        debug_assert!(offset.is_multiple_of(align_of::<T>()) && offset + size_of::<T>() <= self.length);
        // SAFETY: promised by the caller.
        unsafe { self.base.add(offset).cast() }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and whoever took addresses from it keeps the window.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// macOS has no file system in memory, and 31 characters for the name of a shared memory object: a file serves there,
    /// whose name may be as long as any.
    #[test]
    fn there_is_a_folder_without_one_in_memory() {
        let nowhere = Path::new("/nowhere/at/all");
        assert_eq!(folder(None, nowhere), std::env::temp_dir());
        assert_eq!(folder(Some("".into()), nowhere), std::env::temp_dir());
        assert_eq!(folder(Some("/some/where".into()), nowhere), Path::new("/some/where"));
        assert_eq!(folder(None, Path::new("/")), Path::new("/"));
        assert!(path(&"n".repeat(NAME)).is_ok());
        for wrong in ["", "a/b", "..\0", "ä", &"n".repeat(NAME + 1)] {
            assert!(path(wrong).is_err(), "{wrong:?}");
        }
    }

    /// What reserves memory where the system cannot be told to: macOS.
    #[test]
    fn touching_reserves_and_keeps_contents() {
        let path = folder(None, Path::new("/dev/shm")).join(format!("rdma-touch-{}", std::process::id()));
        let file = open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let length = 3 << 20;
        file.set_len(length).unwrap();
        file.write_all_at(b"kept", 1 << 20).unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 < length);
        touch(&file, 16384, length - 16384).unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 >= length - 16384);
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 1 << 20).unwrap();
        assert_eq!(&bytes, b"kept");
        assert!(touch(&file, length, 1).is_err(), "beyond the end");
    }
}
