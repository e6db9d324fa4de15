//! Looking a verbs library up at run time.

use core::fmt;
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

/// The environment variable that names the library to load instead of the platform's: `RDMA_LIBRARY`. Empty is unset.
pub const LIBRARY_VARIABLE: &str = "RDMA_LIBRARY";

/// One file that was tried, and what the dynamic loader said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The name that was given to `dlopen`.
    pub path: PathBuf,
    /// The text of `dlerror`, or why the loader was not asked.
    pub reason: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.path.display(), self.reason)
    }
}

/// Why there is no function table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No candidate could be loaded.
    #[error("no verbs library: tried {}", list(.tried))]
    NotFound {
        /// Every file that was tried, in order.
        tried: Vec<Attempt>,
    },
    /// A library was loaded, but it lacks a call that cannot be done without.
    #[error("{} is not a usable verbs library: it has no symbol {symbol}", .path.display())]
    MissingSymbol {
        /// The library.
        path: PathBuf,
        /// The symbol that it lacks.
        symbol: &'static str,
    },
}

fn list(tried: &[Attempt]) -> String {
    tried.iter().map(Attempt::to_string).collect::<Vec<_>>().join(", ")
}

/// The files to try, in order. An empty choice is none: `RDMA_LIBRARY= program` is how a shell takes a variable back.
pub(crate) fn system_candidates(chosen: Option<OsString>) -> Vec<PathBuf> {
    candidates(chosen, cfg!(target_os = "macos"))
}

fn candidates(chosen: Option<OsString>, macos: bool) -> Vec<PathBuf> {
    match chosen.filter(|path| !path.is_empty()) {
        Some(path) => vec![PathBuf::from(path)],
        None if macos => vec!["/usr/lib/librdma.dylib".into(), "librdma.dylib".into()],
        None => vec!["libibverbs.so.1".into()],
    }
}

/// A loaded library. It stays loaded: function pointers into it are copied about freely.
pub(crate) struct Library {
    handle: ManuallyDrop<libloading::os::unix::Library>,
    path: PathBuf,
}

impl Library {
    /// # Safety
    ///
    /// As for [`crate::Verbs::load`], for each of the paths.
    pub(crate) unsafe fn open(paths: &[impl AsRef<Path>]) -> Result<Library, LoadError> {
        use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
        // With lazy and local binding, ibv_get_device_name hung on the second device of a Mac (0xDaizz/RMLX);
        // MLX opens with these flags. On Linux the symbols must not shadow those of a libibverbs in the program.
        let flags = RTLD_NOW | if cfg!(target_os = "macos") { RTLD_GLOBAL } else { RTLD_LOCAL };
        let mut tried = Vec::new();
        for path in paths.iter().map(AsRef::as_ref) {
            if path.as_os_str().is_empty() {
                // To dlopen this would be the program itself.
                tried.push(Attempt { path: path.to_owned(), reason: "an empty path".into() });
                continue;
            }
            // SAFETY: promised by the caller.
            match unsafe { Handle::open(Some(path), flags) } {
                Ok(handle) => return Ok(Library { handle: ManuallyDrop::new(handle), path: path.to_owned() }),
                Err(error) => tried.push(Attempt { path: path.to_owned(), reason: reason(path, &error) }),
            }
        }
        Err(LoadError::NotFound { tried })
    }

    /// # Safety
    ///
    /// `F` is the function pointer type of the C function `symbol`.
    pub(crate) unsafe fn required<F: Copy>(&self, symbol: &'static str) -> Result<F, LoadError> {
        // SAFETY: passed on to the caller.
        unsafe { self.optional(symbol) }.ok_or_else(|| LoadError::MissingSymbol { path: self.path.clone(), symbol })
    }

    /// # Safety
    ///
    /// `F` is the function pointer type of the C function `symbol`.
    pub(crate) unsafe fn optional<F: Copy>(&self, symbol: &str) -> Option<F> {
        // SAFETY: the caller promises that F is this function's pointer type.
        let found = unsafe { self.handle.get::<F>(symbol.as_bytes()) }.ok()?;
        // A symbol may resolve to null (an absolute symbol, a resolver that declines). It counts as missing, and it must
        // do so before it is read as an F: a null function pointer is undefined behaviour by merely existing.
        (!found.clone().as_raw_ptr().is_null()).then(|| *found)
    }
}

/// The loader's own words, without the wrapping of the loading crate, and without the name of the file that they may begin
/// with (glibc's do): the attempt names it already.
fn reason(path: &Path, error: &libloading::Error) -> String {
    use std::error::Error;
    let words = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let named = path.to_str().and_then(|path| words.strip_prefix(path)?.strip_prefix(": "));
    named.map_or(words.clone(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{candidates, system_candidates};
    use std::path::PathBuf;

    #[test]
    fn a_chosen_library_is_the_only_one_tried() {
        assert_eq!(system_candidates(Some("/a/b.so".into())), [PathBuf::from("/a/b.so")]);
    }

    #[test]
    fn an_empty_choice_is_none() {
        assert_eq!(system_candidates(Some("".into())), system_candidates(None));
    }

    #[test]
    fn each_platform_has_a_default() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(candidates(None, true), paths(&["/usr/lib/librdma.dylib", "librdma.dylib"]));
        assert_eq!(candidates(None, false), paths(&["libibverbs.so.1"]));
        for macos in [true, false] {
            assert_eq!(candidates(Some("".into()), macos), candidates(None, macos));
            assert_eq!(candidates(Some("/a/b.so".into()), macos), paths(&["/a/b.so"]));
        }
    }
}
