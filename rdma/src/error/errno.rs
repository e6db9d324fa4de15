use core::ffi::c_int;
use core::fmt;

/// An error number of the operating system.
///
/// The numbers differ between systems (`ETIMEDOUT` is 60 on macOS and 110 on Linux), so compare with the constants of
/// `libc` or look at [`name`](Errno::name), never at a literal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(c_int);

impl Errno {
    /// The errno with this number.
    pub const fn from_raw(number: c_int) -> Self {
        Errno(number)
    }

    /// The errno of this name (`"EINVAL"`), if it is one that a verbs library returns.
    pub fn from_name(name: &str) -> Option<Self> {
        number(name).map(Errno)
    }

    /// The number, as this system counts.
    pub const fn raw(self) -> c_int {
        self.0
    }

    /// What `errno` holds in this thread.
    pub(crate) fn last() -> Self {
        Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }

    /// The name (`"EINVAL"`), or `"errno"` for a number without one.
    pub fn name(self) -> &'static str {
        names(self.0)
    }

    /// The system's own words.
    pub fn description(self) -> String {
        let text = std::io::Error::from_raw_os_error(self.0).to_string();
        match text.rfind(" (os error") {
            Some(end) => text[..end].to_owned(),
            None => text,
        }
    }
}

macro_rules! names {
    ($($name:ident)*) => {
        fn names(number: c_int) -> &'static str {
            match number {
                $( libc::$name => stringify!($name), )*
                // On Linux the same number as EOPNOTSUPP.
                #[cfg(target_vendor = "apple")]
                libc::ENOTSUP => "ENOTSUP",
                _ => "errno",
            }
        }

        fn number(name: &str) -> Option<c_int> {
            match name {
                $( stringify!($name) => Some(libc::$name), )*
                _ => None,
            }
        }
    };
}

names! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV ENODEV EINVAL ENFILE
    EMFILE EFBIG ENOSPC EPIPE ERANGE EDEADLK ENAMETOOLONG ENOSYS EPROTO EOVERFLOW EMSGSIZE EOPNOTSUPP EADDRINUSE
    EADDRNOTAVAIL ENETDOWN ENETUNREACH ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ETIMEDOUT ECONNREFUSED
    EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE ECANCELED ENODATA ETIME ENOTSOCK EAFNOSUPPORT EPROTONOSUPPORT
}

impl fmt::Display for Errno {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.name(), self.0)
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Errno({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::Errno;

    #[test]
    fn names_are_those_of_the_system() {
        assert_eq!(Errno::from_raw(libc::EINVAL).to_string(), "EINVAL (22)");
        assert_eq!(Errno::from_raw(libc::ETIMEDOUT).name(), "ETIMEDOUT");
        assert_eq!((Errno::from_name("EBUSY").map(Errno::raw), Errno::from_name("busy")), (Some(libc::EBUSY), None));
        assert_eq!(Errno::from_raw(99_999).name(), "errno");
        assert!(!Errno::from_raw(libc::EINVAL).description().contains("os error"));
    }
}
