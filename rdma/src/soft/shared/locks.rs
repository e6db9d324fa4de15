//! Locks on bytes of the fabric's file.
//!
//! Record locks (`fcntl`, POSIX) are a process's: the kernel drops them when it dies, however it dies, and a child does
//! not inherit them. It also drops all of them when the process closes *any* descriptor of the file, so the file is
//! opened in one place, once per process ([`membership`](super::membership)).
//!
//! The bytes are far beyond the end of the file: a lock needs no byte to be there.

use core::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

const BASE: i64 = 1 << 61;

/// The byte that is locked while somebody joins or leaves.
const GATE: i64 = BASE;
/// A byte for each member, locked as long as its process lives.
const FIRST_MEMBER: i64 = BASE + 1;

/// A byte for each member, locked until it says that it needs the file no more. A process that exits says so while its other
/// threads may still be in the middle of something.
const FIRST_STAY: i64 = BASE + (1 << 32);

/// How long joining waits for somebody else who joins or leaves at the same time.
const PATIENCE: Duration = Duration::from_secs(10);

fn range(kind: c_int, start: i64, length: i64) -> libc::flock {
    // SAFETY: flock is plain numbers; zero is a value of each.
    let mut lock: libc::flock = unsafe { core::mem::zeroed() };
    lock.l_type = kind as _;
    lock.l_whence = libc::SEEK_SET as _;
    lock.l_start = start;
    lock.l_len = length;
    lock
}

fn set(file: BorrowedFd<'_>, kind: c_int, start: i64) -> bool {
    let lock = range(kind, start, 1);
    // SAFETY: the descriptor is open, and the argument is the structure that F_SETLK takes.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) == 0 }
}

/// Whether another process has locked any of the bytes.
#[allow(clippy::unnecessary_cast, reason = "the widths differ between targets")]
fn taken(file: BorrowedFd<'_>, start: i64, length: i64) -> bool {
    let mut lock = range(libc::F_WRLCK as c_int, start, length);
    // SAFETY: the descriptor is open, and the argument is the structure that F_GETLK takes and fills.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) };
    // If it cannot be told, everybody is taken to be alive.
    result != 0 || i32::from(lock.l_type) != libc::F_UNLCK as i32
}

/// The right to join or leave; given back when dropped.
pub(crate) struct Gate<'a>(BorrowedFd<'a>);

impl<'a> Gate<'a> {
    /// Waits for the gate, not for ever: whoever holds it may have been stopped.
    pub(crate) fn enter(file: BorrowedFd<'a>) -> Option<Self> {
        crate::wait::poll_until(PATIENCE, Duration::from_millis(1), || Gate::try_enter(file))
    }

    pub(crate) fn try_enter(file: BorrowedFd<'a>) -> Option<Self> {
        set(file, libc::F_WRLCK as c_int, GATE).then_some(Gate(file))
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        set(self.0, libc::F_UNLCK as c_int, GATE);
    }
}

/// Becomes a member, for the rest of this process's life unless it gives that up. Fails if another process is this one.
pub(crate) fn become_member(file: BorrowedFd<'_>, index: u32) -> bool {
    set(file, libc::F_WRLCK as c_int, FIRST_MEMBER + i64::from(index))
        && set(file, libc::F_WRLCK as c_int, FIRST_STAY + i64::from(index))
}

/// Says that this member needs the file no more.
pub(crate) fn stay_no_more(file: BorrowedFd<'_>, index: u32) {
    set(file, libc::F_UNLCK as c_int, FIRST_STAY + i64::from(index));
}

/// Whether another process is this member.
pub(crate) fn is_member(file: BorrowedFd<'_>, index: u32) -> bool {
    taken(file, FIRST_MEMBER + i64::from(index), 1)
}

/// Whether any other process stays in the fabric.
pub(crate) fn has_members(file: BorrowedFd<'_>, count: u32) -> bool {
    taken(file, FIRST_STAY, i64::from(count))
}

/// Whether this process is a member already, with another copy of this library: the crate in a program that loads the C
/// library, say. Each of the two would give up the other's locks. Told on Linux only.
#[cfg(target_os = "linux")]
pub(crate) fn has_other_copy(file: BorrowedFd<'_>, count: u32) -> bool {
    let end = FIRST_MEMBER + i64::from(count);
    let mut start = FIRST_MEMBER;
    while start < end {
        let mut lock = range(libc::F_WRLCK, start, end - start);
        // SAFETY: the descriptor is open, and the argument is the structure that F_OFD_GETLK takes and fills. Unlike
        // F_GETLK it tells this process's own locks, too.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
        if result != 0 || i32::from(lock.l_type) == libc::F_UNLCK {
            return false;
        }
        if u32::try_from(lock.l_pid) == Ok(std::process::id()) {
            return true;
        }
        start = lock.l_start.max(start) + lock.l_len.max(1);
    }
    false
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn has_other_copy(_: BorrowedFd<'_>, _: u32) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn another_copy_in_this_process_is_seen() {
        let path = std::env::temp_dir().join(format!("locks-{}", std::process::id()));
        let open =
            || std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        let (one, other) = (open(), open());
        std::fs::remove_file(&path).unwrap();
        assert!(!has_other_copy(other.as_fd(), 10));
        assert!(become_member(one.as_fd(), 9));
        assert!(has_other_copy(other.as_fd(), 10) && !has_other_copy(other.as_fd(), 9));
        assert!(!has_members(other.as_fd(), 10), "a process does not see its own locks");
        drop(one);
        assert!(!has_other_copy(other.as_fd(), 10), "closing a descriptor drops the locks");
    }
}
