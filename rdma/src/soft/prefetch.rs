//! Asking for a cache line before it is needed.

/// Asks for the line that a place lies in, to be read. It may be any place: nothing is accessed, and nothing waits.
#[inline(always)]
pub(crate) fn to_read<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, of any address; every x86-64 has it.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(place.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint, of any address; every ARMv8 has it.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// Asks for the first lines of a message, to be read. (A processor that sees so many read in order asks for the others by
/// itself.)
#[inline(always)]
pub(crate) fn bytes(place: *const u8) {
    for line in 0..4 {
        to_read(place.wrapping_add(64 * line));
    }
}

/// Asks for the line that a place lies in, to be written: it leaves the caches of other processors.
#[inline(always)]
pub(crate) fn to_write<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, of any address; every x86-64 has it, if only as an instruction that does nothing.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint, of any address; every ARMv8 has it.
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}
