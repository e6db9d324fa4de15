//! What failures mean: from where, which errno and on what device to the cause, the remedy, and whether to try again.
//!
//! docs/errors.md shows all of it; a test compares the two.

mod calls;
pub(crate) mod states;
#[cfg(test)]
mod tests;

use super::{Errno, ErrorKind};
use crate::Status;
use core::ffi::c_int;
use rdma_sys as sys;

/// One way to fail.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) when: When,
    /// The only device that it is about.
    pub(crate) device: Option<Hardware>,
    /// The only system that it is about.
    pub(crate) system: Option<System>,
    pub(crate) kind: ErrorKind,
    pub(crate) cause: &'static str,
    /// What a message says to do.
    pub(crate) remedy: &'static str,
    /// When the same may be tried again; `None` is never.
    pub(crate) again: Option<&'static str>,
    /// Who says so, for everybody to read.
    pub(crate) source: &'static str,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum When {
    /// One of these calls (none: any call) failed with one of these errnos.
    Call(&'static [&'static str], &'static [c_int]),
    /// A work request completed with this status.
    Completion(Status),
    /// What the library sees itself: for the document.
    State(#[cfg_attr(not(test), allow(dead_code))] &'static str),
}

/// The sorts of device that fail differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hardware {
    /// Transport 100: Apple's, or the software device.
    Thunderbolt,
    /// A network adapter.
    Adapter,
}

/// The systems on which remedies differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    MacOs,
    Linux,
}

impl Hardware {
    pub(crate) fn of(transport: sys::ibv_transport_type) -> Self {
        match transport {
            sys::ibv_transport_type::IBV_TRANSPORT_THUNDERBOLT => Hardware::Thunderbolt,
            _ => Hardware::Adapter,
        }
    }

    /// Before it is known.
    const fn usual(system: System) -> Self {
        match system {
            System::MacOs => Hardware::Thunderbolt,
            System::Linux => Hardware::Adapter,
        }
    }
}

impl System {
    /// This one. What is neither is taken for Linux.
    pub(crate) const HERE: System = if cfg!(target_os = "macos") { System::MacOs } else { System::Linux };
}

impl Entry {
    fn is_about(&self, call: &str, errno: c_int, device: Hardware, system: System) -> bool {
        let When::Call(calls, errnos) = self.when else { return false };
        (calls.is_empty() || calls.contains(&call))
            && errnos.contains(&errno)
            && self.device.is_none_or(|only| only == device)
            && self.system.is_none_or(|only| only == system)
    }
}

/// What is known of a failed call.
pub(super) fn of_call(call: &str, errno: Errno, device: Option<Hardware>) -> Option<&'static Entry> {
    find(call, errno, device, System::HERE)
}

fn find(call: &str, errno: Errno, device: Option<Hardware>, system: System) -> Option<&'static Entry> {
    // Two names, which are one number on Linux and two on macOS.
    let number = if errno.raw() == libc::ENOTSUP { libc::EOPNOTSUPP } else { errno.raw() };
    let device = device.unwrap_or(Hardware::usual(system));
    calls::ALL.iter().find(|entry| entry.is_about(call, number, device, system))
}

/// The kind of a failed call about which nothing more is known.
pub(super) fn kind_of(errno: Errno) -> ErrorKind {
    match errno.raw() {
        libc::ENOSYS => ErrorKind::Unsupported,
        number if number == libc::EOPNOTSUPP || number == libc::ENOTSUP => ErrorKind::Unsupported,
        libc::EINVAL | libc::EFAULT | libc::ERANGE | libc::EMSGSIZE => ErrorKind::InvalidArgument,
        libc::ETIMEDOUT => ErrorKind::TimedOut,
        _ => ErrorKind::Other,
    }
}
