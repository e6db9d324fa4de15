//! What a failed call means: from (call, errno) to a kind and a remedy.
//!
//! Sources: Apple TN3205; the failure reports of ml-explore/mlx (issues 2944, 3162, 3207, 3467, 3777, pull requests
//! 4209, 4530), exo-explore/exo (issues 1847, 1973), adurham/exo, SQCU/mesh, hellas-ai/thunderbolt-ibverbs (pull
//! requests 35, 39), Anemll/mlx-rdma.

use super::{Errno, ErrorKind};

use rdma_sys::LoadError;

/// Who said which library to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// Nobody: it is the platform's.
    Platform,
    /// The variable `RDMA_LIBRARY`.
    Variable,
    /// The program.
    Program,
}

/// What to do about a library that cannot be loaded.
pub(super) fn library(error: &LoadError, chosen: Chosen) -> &'static str {
    match error {
        _ if chosen == Chosen::Variable => {
            "RDMA_LIBRARY names this file: correct it, or unset it to use the system's library"
        }
        LoadError::MissingSymbol { .. } => "it is something else of that name, or an old version",
        _ if chosen == Chosen::Program => "check the path, and what the file itself needs",
        _ if cfg!(target_os = "macos") => {
            "RDMA over Thunderbolt needs macOS 26.2 or later; RDMA_PROVIDER=soft runs on the software device"
        }
        _ => "install libibverbs (Debian: libibverbs1), or set RDMA_PROVIDER=soft to run on the software device",
    }
}

/// The kind and the remedy of a failed call. An empty remedy means: none is known.
pub(super) fn explain(call: &'static str, errno: Errno) -> (ErrorKind, &'static str) {
    match (call, errno.raw()) {
        // ibv_get_device_list(3): "No kernel support for RDMA". On a Mac nobody has seen it.
        ("ibv_get_device_list", libc::ENOSYS) => (
            ErrorKind::NoDevices,
            "the kernel has no RDMA: load ib_uverbs and the device's driver, or set RDMA_PROVIDER=soft to run on the software device",
        ),
        (_, libc::EACCES) | ("ibv_get_device_list", libc::EPERM) => {
            (ErrorKind::Other, "the process may not use the device (on Linux: see who may open /dev/infiniband)")
        }
        (_, libc::EPERM) => (
            ErrorKind::WrongProcess,
            "nothing of verbs survives a fork: open the device again in the child process; if there was no fork, the process \
             lacks a permission",
        ),
        ("ibv_alloc_pd", libc::EOPNOTSUPP | libc::ESRCH) => (
            ErrorKind::PortDown,
            "a port that is not ACTIVE has no protection domain: check the cable, and that RDMA is enabled on both ends",
        ),
        ("ibv_alloc_pd", libc::ENOMEM | libc::EBUSY) => (
            ErrorKind::LimitReached,
            "the device's protection domains are used up; processes that were killed may hold some until the Mac is restarted",
        ),
        ("ibv_create_qp", libc::EBUSY) => (
            ErrorKind::LimitReached,
            "the device's queue pairs are used up, across all processes; retrying cannot help: close one, or use another cable",
        ),
        ("ibv_create_qp", libc::EOPNOTSUPP) => {
            (ErrorKind::Unsupported, "RDMA over Thunderbolt has queue pairs of type UC only")
        }
        ("ibv_create_qp", libc::EINVAL) => (
            ErrorKind::InvalidArgument,
            "a capacity is beyond what the device has: see DeviceRules and the device's attributes",
        ),
        ("ibv_create_cq", libc::EINVAL) => (ErrorKind::InvalidArgument, "the capacity is 1 to the device's max_cqe"),
        ("ibv_create_cq", libc::ENOMEM | libc::EBUSY) => {
            (ErrorKind::LimitReached, "the device's completion queues are used up: share one between queue pairs")
        }
        ("ibv_reg_mr", libc::ENOMEM) => (
            ErrorKind::LimitReached,
            "the device holds about 100 regions, and the system limits locked memory (`ulimit -l`): cut one large region into \
             many buffers",
        ),
        ("ibv_reg_mr", libc::EINVAL) => (
            ErrorKind::InvalidArgument,
            "registered memory starts at a page of the device, is not empty, and lies within one 4 GiB stretch of addresses",
        ),
        ("ibv_reg_mr", libc::EFAULT) => (
            ErrorKind::InvalidArgument,
            "part of the range is not mapped, or not writable although local write was asked for",
        ),
        ("ibv_post_send" | "ibv_post_recv", libc::ENOMEM | libc::EAGAIN) => {
            (ErrorKind::QueueFull, "poll the completion queue, then post again")
        }
        ("ibv_post_send" | "ibv_post_recv", libc::EFAULT) => (
            ErrorKind::InvalidArgument,
            "the region was registered after the queue pair left RESET: register first, then connect",
        ),
        ("ibv_post_send", libc::EOPNOTSUPP) => {
            (ErrorKind::Unsupported, "RDMA over Thunderbolt has SEND alone: no immediate data, no one-sided verbs")
        }
        ("ibv_modify_qp", libc::EINVAL) => (
            ErrorKind::InvalidArgument,
            "usually the GID: the local index holds no usable entry (the interface has no address yet), or the peer's is empty",
        ),
        ("ibv_modify_qp", libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH) => (
            ErrorKind::UnreachablePeer,
            "the peer's GID is not at the other end of this cable: check which device is cabled to which, and that both GIDs are of one kind",
        ),
        ("ibv_modify_qp", libc::EBUSY) => (
            ErrorKind::LimitReached,
            "receive queues of the controller are used up, or those of a killed process are not reaped yet: wait half a minute, then restart the Mac",
        ),
        ("ibv_modify_qp", libc::EFAULT) => (
            ErrorKind::OutOfMemory,
            "the controller's pool for registered memory is drained: register less; a restart refills it",
        ),
        (_, libc::EOPNOTSUPP | libc::ENOSYS) => (ErrorKind::Unsupported, ""),
        (_, libc::ENOMEM) => (ErrorKind::OutOfMemory, ""),
        (_, libc::EBUSY) => (ErrorKind::Busy, "something that was made from it still exists"),
        (_, libc::EINVAL | libc::EFAULT | libc::ERANGE | libc::EMSGSIZE) => (ErrorKind::InvalidArgument, ""),
        (_, libc::ENODEV | libc::ENXIO) => (ErrorKind::UnknownDevice, "the device is gone: was the cable pulled?"),
        (_, libc::ETIMEDOUT) => (ErrorKind::TimedOut, ""),
        ("accept" | "recv" | "send" | "setsockopt" | "fcntl", libc::EMFILE | libc::ENFILE) => {
            (ErrorKind::OutOfMemory, "too many files are open (`ulimit -n`)")
        }
        _ => (ErrorKind::Other, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_errno_means_different_things_to_different_calls() {
        let kind = |call, number| explain(call, Errno::from_raw(number)).0;
        assert_eq!(kind("ibv_create_qp", libc::EBUSY), ErrorKind::LimitReached);
        assert_eq!(kind("ibv_destroy_cq", libc::EBUSY), ErrorKind::Busy);
        assert_eq!(kind("ibv_post_recv", libc::ENOMEM), ErrorKind::QueueFull);
        assert_eq!(kind("ibv_reg_mr", libc::ENOMEM), ErrorKind::LimitReached);
        assert_eq!(kind("ibv_query_port", libc::ENOMEM), ErrorKind::OutOfMemory);
        assert_eq!(kind("ibv_query_port", libc::EXDEV), ErrorKind::Other);
    }
}
