//! Files of software fabrics that nobody uses: killed processes leave them, with their memory.

// For asking about locks, which nothing safe does.
#![allow(unsafe_code)]

use crate::finding::Finding;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const CHECK: &str = "fabric-files";

/// To be called before this process is in a fabric: a process that closes a file loses all its locks on it.
pub(crate) fn check() -> Option<Finding> {
    let folder = folder();
    let mut left = left(&folder).ok()?;
    if left.is_empty() {
        return None;
    }
    left.sort();
    let bytes: u64 = left.iter().map(|(_, bytes)| bytes).sum();
    let files: Vec<_> = left.iter().map(|(name, bytes)| format!("{name} ({})", size(*bytes))).collect();
    let summary = format!("{} of software fabrics that no process uses hold {}", count(left.len()), size(bytes));
    let remedy = format!(
        "remove them in {} (`rm`), unless a process is about to use them; the next fabric of the same name replaces its own",
        folder.display()
    );
    Some(Finding::warning(CHECK, summary, remedy).evidence(files.join(", ")))
}

fn count(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

fn size(bytes: u64) -> String {
    if bytes < 1 << 20 {
        format!("{} KiB", bytes.div_ceil(1 << 10))
    } else {
        format!("{:.1} MiB", bytes as f64 / 1048576.0)
    }
}

/// Where the library has them: docs/soft.md.
fn folder() -> PathBuf {
    match std::env::var_os("RDMA_SOFT_DIRECTORY") {
        Some(folder) if !folder.is_empty() => folder.into(),
        _ if Path::new("/dev/shm").is_dir() => "/dev/shm".into(),
        _ => std::env::temp_dir(),
    }
}

/// The names of this user's that no process has a lock on, and how much memory is behind each.
fn left(folder: &Path) -> io::Result<Vec<(String, u64)>> {
    let prefix = format!("rdma-soft-{}-", rustix::process::geteuid().as_raw());
    let mut left = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // What cannot be asked has gone meanwhile, or is no fabric.
        if name.starts_with(&prefix)
            && let Ok(known) = entry.metadata()
            && known.is_file()
            && let Ok(file) = File::open(entry.path())
            && is_unused(&file)
        {
            left.push((name, known.blocks() * 512));
        }
    }
    Ok(left)
}

/// Who is in a fabric has locks on bytes far beyond the end of its file, as long as it lives.
#[allow(clippy::unnecessary_cast, reason = "the widths differ between targets")]
fn is_unused(file: &File) -> bool {
    // SAFETY: it is plain numbers; zero is a value of each.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as _;
    lock.l_whence = libc::SEEK_SET as _;
    // From the first byte to the last that there could be.
    (lock.l_start, lock.l_len) = (0, 0);
    // SAFETY: the descriptor is open, and the argument is the structure that F_GETLK takes and fills.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) };
    result == 0 && i32::from(lock.l_type) == libc::F_UNLCK as i32
}
