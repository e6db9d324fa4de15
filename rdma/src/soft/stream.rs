//! Copying much, past the cache where that pays.
//!
//! A message that is written with ordinary stores lies in the writer's cache, and its reader fetches it from there line by
//! line; before that, the writer had to fetch the lines from the reader's. Between cores that are close that is the
//! fastest way. Between cores that are far apart it is the slowest: stores that bypass the cache then bring 64 KiB across
//! in 8 µs instead of 34 (AMD EPYC 9004). Which of the two it is shows in how long an ordinary copy takes the writer, so
//! now and then one is timed.

/// From this length on the choice matters.
#[cfg(target_arch = "x86_64")]
const LONG: usize = 4 * 1024;

/// Bytes a tick of the time-stamp counter that a copy between close cores makes at least: they are seven and more there,
/// and about two between far ones.
#[cfg(target_arch = "x86_64")]
const CLOSE: u64 = 4;

/// Bytes that bypass the cache before an ordinary copy is tried again.
#[cfg(target_arch = "x86_64")]
const STRETCH: usize = 4 << 20;

/// How a writer copies: as its last ordinary copy suggests.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// So many bytes more are to bypass the cache.
    #[cfg(target_arch = "x86_64")]
    left: usize,
    /// The last ordinary copy was slow. One alone may have been interrupted.
    #[cfg(target_arch = "x86_64")]
    was_slow: bool,
}

impl Pace {
    /// Copies `length` bytes. Whoever sees a store with release order that is made afterwards sees them.
    ///
    /// # Safety
    ///
    /// `source` may be read and `target` written for `length` bytes. They may overlap.
    #[inline]
    pub(crate) unsafe fn copy(&mut self, source: *const u8, target: *mut u8, length: usize) {
        #[cfg(target_arch = "x86_64")]
        if length >= LONG && source.addr().abs_diff(target.addr()) >= length {
            // SAFETY: passed on to the caller; they do not overlap.
            return unsafe { self.copy_long(source, target, length) };
        }
        // SAFETY: passed on to the caller.
        unsafe { core::ptr::copy(source, target, length) }
    }

    /// # Safety
    ///
    /// As for `copy`, and they do not overlap.
    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    unsafe fn copy_long(&mut self, source: *const u8, target: *mut u8, length: usize) {
        if self.left != 0 {
            self.left = self.left.saturating_sub(length);
            // SAFETY: passed on to the caller.
            return unsafe { past_the_cache(source, target, length) };
        }
        // SAFETY: reading the counter has no conditions; the rest is passed on to the caller.
        let ticks = unsafe {
            let start = core::arch::x86_64::_rdtsc();
            core::ptr::copy_nonoverlapping(source, target, length);
            core::arch::x86_64::_rdtsc().wrapping_sub(start)
        };
        let is_slow = ticks.saturating_mul(CLOSE) > length as u64;
        if is_slow && self.was_slow {
            self.left = STRETCH;
        }
        self.was_slow = is_slow;
    }
}

/// # Safety
///
/// As for `Pace::copy`, and they do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn past_the_cache(mut source: *const u8, mut target: *mut u8, mut length: usize) {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const STEP: usize = size_of::<[__m128i; 4]>();
    let head = target.align_offset(STEP).min(length);
    // SAFETY: every access lies within the ranges, of which `length` bytes are left; the target is aligned after the head;
    // these instructions are part of every x86-64.
    unsafe {
        core::ptr::copy_nonoverlapping(source, target, head);
        (source, target, length) = (source.add(head), target.add(head), length - head);
        while length >= STEP {
            let words: [__m128i; 4] =
                core::array::from_fn(|index| _mm_loadu_si128(source.cast::<__m128i>().add(index)));
            for (index, word) in words.into_iter().enumerate() {
                _mm_stream_si128(target.cast::<__m128i>().add(index), word);
            }
            (source, target, length) = (source.add(STEP), target.add(STEP), length - STEP);
        }
        // These stores are ordered with nothing else, not even with a release.
        _mm_sfence();
        core::ptr::copy_nonoverlapping(source, target, length);
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    /// Both ways, in turn.
    fn paces() -> impl Iterator<Item = Pace> {
        #[cfg(target_arch = "x86_64")]
        let paces = [Pace::default(), Pace { left: 1 << 20, was_slow: true }];
        #[cfg(not(target_arch = "x86_64"))]
        let paces = [Pace::default()];
        paces.into_iter()
    }

    #[test]
    fn all_bytes_and_no_others() {
        let source: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
        for length in [0, 1, 63, 64, 4095, 4096, 4097, 65_536, 99_000] {
            for offset in [0, 1, 17, 63] {
                for mut pace in paces() {
                    let mut target = vec![255_u8; length + 200];
                    // SAFETY: both are long enough, and two allocations.
                    unsafe { pace.copy(source.as_ptr().add(offset), target.as_mut_ptr().add(64 + offset), length) };
                    assert!(target[64 + offset..][..length] == source[offset..][..length]);
                    assert!(
                        target[..64 + offset].iter().chain(&target[64 + offset + length..]).all(|&byte| byte == 255)
                    );
                }
            }
        }
    }

    #[test]
    fn ranges_may_overlap() {
        for (from, to) in [(0, 100), (100, 0), (50, 50)] {
            for mut pace in paces() {
                let mut bytes: Vec<u8> = (0..40_000_u32).map(|number| (number % 251) as u8).collect();
                let expected = bytes[from..][..30_000].to_vec();
                let start = bytes.as_mut_ptr();
                // SAFETY: both ranges lie within the vector.
                unsafe { pace.copy(start.add(from), start.add(to), 30_000) };
                assert!(bytes[to..][..30_000] == expected);
            }
        }
    }
}
