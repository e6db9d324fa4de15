use core::ffi::c_int;

/// The errno behind the return value of a verbs call that returns `int`, or `None` if it succeeded.
///
/// The manual says "0 or the value of errno"; Apple's provider and some others return the *negative* errno (−12 from
/// `ibv_post_recv` with a full queue: hellas-ai/thunderbolt-ibverbs pull request 35), and older providers return −1
/// and set `errno` (ofiwg/libfabric pull request 824). `errno_now` is asked only for −1, so that a stale `errno` never
/// explains a failure that named its own reason; when it has nothing to say either, −1 is −`EPERM`.
#[inline]
pub fn errno_of(returned: c_int, errno_now: impl FnOnce() -> c_int) -> Option<c_int> {
    match returned {
        0 => None,
        -1 => Some(match errno_now() {
            0 => libc::EPERM,
            errno => errno,
        }),
        c_int::MIN => Some(libc::EINVAL),
        other => Some(other.abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::errno_of;

    #[test]
    fn the_three_styles_agree() {
        let unused = || panic!("errno must not be read");
        assert_eq!(errno_of(0, unused), None);
        assert_eq!(errno_of(libc::ENOMEM, unused), Some(libc::ENOMEM));
        assert_eq!(errno_of(-libc::ENOMEM, unused), Some(libc::ENOMEM));
        assert_eq!(errno_of(-1, || libc::ENOMEM), Some(libc::ENOMEM));
        assert_eq!(errno_of(-1, || libc::EINVAL), Some(libc::EINVAL));
        assert_eq!(errno_of(-1, || 0), Some(libc::EPERM));
        assert_eq!(errno_of(i32::MIN, unused), Some(libc::EINVAL));
    }
}
