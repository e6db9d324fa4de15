//! Files that people write: short, and text.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Reads a file of at most so many bytes. Not a pipe or a device, which could hold the caller up or never end.
pub(crate) fn read(path: &Path, longest: u64) -> Result<String> {
    let refused = |reason: String| Error::new(ErrorKind::InvalidInput, reason);
    if path.as_os_str().is_empty() {
        return Err(refused("its path is empty".to_owned()));
    }
    if !std::fs::metadata(path)?.is_file() {
        return Err(refused("it is no file".to_owned()));
    }
    let mut text = String::new();
    File::open(path)?.take(longest + 1).read_to_string(&mut text)?;
    if text.len() as u64 > longest {
        return Err(refused(format!("it is longer than {longest} bytes")));
    }
    Ok(text)
}
