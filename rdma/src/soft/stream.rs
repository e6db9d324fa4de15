//! Copying much, past the cache.
//!
//! A long message that is written with ordinary stores lies in the writer's cache, and the reader fetches it from there,
//! line by line: slow where the two cores are far apart. Stores that bypass the cache cost the writer a little more, and
//! the reader gets the data from memory at full speed.

/// From how many bytes on.
#[cfg(target_arch = "x86_64")]
const LONG: usize = 16 * 1024;

/// Copies `length` bytes. Whoever sees a store with release order that is made afterwards sees them.
///
/// # Safety
///
/// `source` may be read and `target` written for `length` bytes, and they do not overlap.
#[inline]
pub(crate) unsafe fn copy(source: *const u8, target: *mut u8, length: usize) {
    #[cfg(target_arch = "x86_64")]
    if length >= LONG {
        // SAFETY: passed on to the caller.
        return unsafe { past_the_cache(source, target, length) };
    }
    // SAFETY: passed on to the caller.
    unsafe { core::ptr::copy_nonoverlapping(source, target, length) }
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
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
    use super::copy;

    #[test]
    fn all_bytes_and_no_others() {
        let source: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
        for length in [0, 1, 63, 64, 16_383, 16_384, 16_385, 65_536, 99_000] {
            for offset in [0, 1, 17, 63] {
                let mut target = vec![255_u8; length + 200];
                // SAFETY: both are long enough, and two allocations.
                unsafe { copy(source.as_ptr().add(offset), target.as_mut_ptr().add(64 + offset), length) };
                assert!(target[64 + offset..][..length] == source[offset..][..length]);
                assert!(target[..64 + offset].iter().chain(&target[64 + offset + length..]).all(|&byte| byte == 255));
            }
        }
    }
}
