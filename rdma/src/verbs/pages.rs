//! Memory in whole pages, for regions that the library allocates.

use crate::error::{Errno, Error, Result};
use core::ptr::{NonNull, null_mut};

/// An anonymous private mapping: zeroed, aligned as asked, given back when dropped.
#[derive(Debug)]
pub(crate) struct Pages {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: owned memory, reached through this value only.
unsafe impl Send for Pages {}
// SAFETY: as above; a shared reference gives out nothing but an address.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps at least `length` bytes, a multiple of `alignment` (a power of two, at least the host's page) that starts at
    /// one. With `window`, no multiple of `window` (a larger power of two) lies inside.
    pub(crate) fn map(length: usize, alignment: usize, window: Option<u64>) -> Result<Self> {
        let too_long = || Error::argument(format!("{length} bytes cannot be mapped"));
        let length = length.checked_next_multiple_of(alignment).filter(|&length| length != 0).ok_or_else(too_long)?;
        if let Some(window) = window.filter(|&window| length as u64 > window) {
            return Err(Error::argument(format!("{length} bytes do not fit between two multiples of {window}")));
        }
        // Room to move to the next multiple of the alignment; where the window is in the way, to the next window.
        for slack in [alignment, alignment.saturating_add(length)] {
            let total = length.checked_add(slack).ok_or_else(too_long)?;
            let mapped = map(total)?;
            let low = mapped.addr().get();
            let mut start = low.next_multiple_of(alignment);
            if let Some(window) = window
                && start as u64 / window != (start + length - 1) as u64 / window
            {
                start = (start as u64).next_multiple_of(window) as usize;
            }
            if start + length > low + total {
                unmap(mapped, total);
                continue;
            }
            // SAFETY: start lies in the mapping.
            let base = unsafe { mapped.add(start - low) };
            // SAFETY: so does its end, which may be the mapping's end.
            let end = unsafe { base.add(length) };
            unmap(mapped, start - low);
            unmap(end, low + total - (start + length));
            return Ok(Pages { base, length });
        }
        // The second round has room for every placement.
        Err(too_long())
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        unmap(self.base, self.length);
    }
}

fn map(length: usize) -> Result<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping touches no memory that exists.
    let address = unsafe { libc::mmap(null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    match NonNull::new(address.cast::<u8>()) {
        Some(base) if address != libc::MAP_FAILED => Ok(base),
        _ => Err(Error::call("mmap", Errno::last()).with_detail(format!("{length} bytes"))),
    }
}

/// Gives whole pages of a mapping of ours back.
fn unmap(base: NonNull<u8>, length: usize) {
    if length != 0 {
        // SAFETY: the range is part of a mapping that `map` made and nobody else knows, and is not used any more: the
        // callers are the cutting of fresh mappings and the drop of the last owner.
        unsafe { libc::munmap(base.as_ptr().cast(), length) };
    }
}

/// The size of the host's pages.
pub(crate) fn host_page() -> usize {
    // SAFETY: sysconf has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) })
        .ok()
        .filter(|page| page.is_power_of_two())
        .unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_aligned_zeroed_and_whole() {
        for alignment in [host_page(), 16 * 1024, 1 << 21] {
            for length in [1, alignment - 1, alignment, 3 * alignment] {
                let pages = Pages::map(length, alignment, None).unwrap();
                assert_eq!(pages.base().addr().get() % alignment, 0);
                assert_eq!(pages.length(), length.next_multiple_of(alignment));
                // SAFETY: the mapping is ours and that long.
                let bytes = unsafe { core::slice::from_raw_parts_mut(pages.base().as_ptr(), pages.length()) };
                assert!(bytes.iter().all(|&byte| byte == 0));
                bytes.fill(1);
            }
        }
    }

    #[test]
    fn a_window_is_not_crossed() {
        let page = host_page();
        // A window that every second mapping of this length would cross.
        let window = (8 * page as u64).next_power_of_two();
        for _ in 0..50 {
            let pages = Pages::map(5 * page, page, Some(window)).unwrap();
            let (first, last) =
                (pages.base().addr().get() as u64, (pages.base().addr().get() + pages.length() - 1) as u64);
            assert_eq!(first / window, last / window);
        }
        assert!(Pages::map(16 * page, page, Some(window)).is_err());
    }

    #[test]
    fn impossible_lengths_are_errors() {
        assert!(Pages::map(0, 4096, None).is_err());
        assert!(Pages::map(usize::MAX, 4096, None).is_err());
        assert!(Pages::map(usize::MAX / 2, 4096, None).is_err());
    }
}
