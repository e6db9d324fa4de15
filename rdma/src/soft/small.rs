//! Copying a few bytes without a call.

/// Copies `length` bytes, at most 48, as two overlapping halves of a fixed size: for lengths that are known only at run
/// time `memcpy` costs several times as much.
///
/// # Safety
///
/// `source` may be read and `target` written for `length` bytes, and they do not overlap. `length` is at most 48.
#[inline(always)]
pub(crate) unsafe fn copy(source: *const u8, target: *mut u8, length: usize) {
    // SAFETY: each piece lies within the first or the last bytes of a range that is at least as long as the piece.
    unsafe {
        match length {
            0 => {}
            1..=3 => {
                let (first, middle, last) = (*source, *source.add(length / 2), *source.add(length - 1));
                *target = first;
                *target.add(length / 2) = middle;
                *target.add(length - 1) = last;
            }
            4..=7 => halves::<u32>(source, target, length),
            8..=15 => halves::<u64>(source, target, length),
            16..=32 => halves::<u128>(source, target, length),
            _ => {
                halves::<[u64; 3]>(source, target, length);
            }
        }
    }
}

/// # Safety
///
/// As for [`copy`]; `length` is between one and two times the size of `T`.
#[inline(always)]
unsafe fn halves<T: Copy>(source: *const u8, target: *mut u8, length: usize) {
    let rest = length - size_of::<T>();
    // SAFETY: the first and the last `size_of::<T>()` bytes of ranges that are at least that long.
    unsafe {
        let first = source.cast::<T>().read_unaligned();
        let last = source.add(rest).cast::<T>().read_unaligned();
        target.cast::<T>().write_unaligned(first);
        target.add(rest).cast::<T>().write_unaligned(last);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_length_is_copied_exactly() {
        let source: Vec<u8> = (1..=48).collect();
        for length in 0..=48 {
            let mut target = [0_u8; 50];
            // SAFETY: both are long enough.
            unsafe { super::copy(source.as_ptr(), target.as_mut_ptr().add(1), length) };
            assert_eq!(target[1..=length], source[..length]);
            assert!(target[0] == 0 && target[length + 1..].iter().all(|&byte| byte == 0), "{length}");
        }
    }
}
