//! Calls that failed. The first entry that fits counts.

use super::{Entry, Hardware, System, When};
use crate::ErrorKind;
use libc::{
    EACCES, EAGAIN, EBUSY, EFAULT, EHOSTUNREACH, EINVAL, EMFILE, ENETUNREACH, ENFILE, ENODATA, ENODEV, ENOMEM, ENOSYS,
    ENXIO, EOPNOTSUPP, EPERM, ESRCH, ETIMEDOUT,
};

const THUNDERBOLT: Option<Hardware> = Some(Hardware::Thunderbolt);
const ADAPTER: Option<Hardware> = Some(Hardware::Adapter);
const LINUX: Option<System> = Some(System::Linux);

const NEW_QUEUE_PAIR: Option<&str> = Some("with a new queue pair, once that is done");

macro_rules! entries {
    ($( $calls:expr, $errnos:expr, $device:expr, $system:expr => $kind:ident { $cause:expr, $remedy:expr, $again:expr, $source:expr } )*) => {
        pub(super) static ALL: &[Entry] = &[$( Entry {
            when: When::Call(&$calls, &$errnos),
            device: $device,
            system: $system,
            kind: ErrorKind::$kind,
            cause: $cause,
            remedy: $remedy,
            again: $again,
            source: $source,
        } ),*];
    };
}

entries! {
    ["ibv_get_device_list"], [ENOSYS], None, LINUX => NoDevices {
        "the kernel has no RDMA",
        "the kernel has no RDMA: load ib_uverbs and the device's driver, or set RDMA_PROVIDER=soft to run on the software device",
        None,
        "ibv_get_device_list(3)"
    }
    ["ibv_get_device_list", "ibv_open_device"], [EACCES, EPERM], None, LINUX => Other {
        "the user may not open the device",
        "the process may not use the device: see who may open /dev/infiniband",
        None,
        "ibv_open_device(3)"
    }
    [], [EACCES], None, None => Other {
        "a permission is missing",
        "the process may not use the device",
        None,
        "the system's manual"
    }
    [], [EPERM], None, None => WrongProcess {
        "the object was made by the process that forked this one, or a permission is missing",
        "nothing of verbs survives a fork: open the device again in the child process; if there was no fork, the process lacks a permission",
        None,
        "ibv_fork_init(3)"
    }
    ["ibv_alloc_pd"], [EOPNOTSUPP, ESRCH], THUNDERBOLT, None => PortDown {
        "the port is not ACTIVE",
        "a port that is not ACTIVE has no protection domain: check the cable, and that RDMA is enabled on both ends",
        Some("when the port is ACTIVE (Port::wait_active)"),
        "ml-explore/mlx pull request 4530; adurham/exo"
    }
    ["ibv_alloc_pd"], [ENOMEM, EBUSY], THUNDERBOLT, None => LimitReached {
        "protection domains of killed processes were not reaped",
        "the device's protection domains are used up: make one and share it; processes that were killed may hold some until the Mac is restarted",
        None,
        "ml-explore/mlx issue 3207"
    }
    ["ibv_alloc_pd"], [ENOMEM, EBUSY], ADAPTER, None => LimitReached {
        "the device has no protection domain left",
        "the device's protection domains are used up: make one and share it",
        None,
        "ibv_alloc_pd(3)"
    }
    ["ibv_create_cq"], [EINVAL], None, None => InvalidArgument {
        "a capacity that the device does not have",
        "the capacity is 1 to the device's max_cqe",
        None,
        "ibv_create_cq(3)"
    }
    ["ibv_create_cq", "ibv_create_qp"], [ENOMEM], ADAPTER, LINUX => LimitReached {
        "the device is full, or the process may lock no more memory: queues are locked memory",
        "the device's queues are used up, or the limit of locked memory is too low: see `ulimit -l`, and raise it (memlock in /etc/security/limits.conf)",
        None,
        "ibv_create_cq(3), getrlimit(2)"
    }
    ["ibv_create_cq"], [ENOMEM, EBUSY], None, None => LimitReached {
        "the device has no completion queue left",
        "the device's completion queues are used up: share one between queue pairs",
        None,
        "ibv_create_cq(3)"
    }
    ["ibv_create_qp"], [EBUSY], THUNDERBOLT, None => LimitReached {
        "the device's queue pairs (10, on some Macs 3) are used up; it looks transient, and is not",
        "the device's queue pairs are used up, across all processes; retrying cannot help: close one, or use another cable",
        None,
        "Apple TN3205; ml-explore/mlx pull request 4209; adurham/exo"
    }
    ["ibv_create_qp"], [EBUSY], ADAPTER, None => LimitReached {
        "the device has no queue pair left",
        "the device's queue pairs are used up, across all processes: close one",
        None,
        "ibv_create_qp(3)"
    }
    ["ibv_create_qp"], [EOPNOTSUPP], THUNDERBOLT, None => Unsupported {
        "the type is not UC",
        "RDMA over Thunderbolt has queue pairs of type UC only",
        None,
        "Apple TN3205; ml-explore/mlx pull request 4530"
    }
    ["ibv_create_qp"], [EOPNOTSUPP], ADAPTER, None => Unsupported {
        "the device does not have this type of queue pair",
        "the device has no queue pairs of this type: try QueuePairType::RC, which most adapters have",
        None,
        "ibv_create_qp(3)"
    }
    ["ibv_create_qp"], [EINVAL], None, None => InvalidArgument {
        "a capacity that the device does not have",
        "a capacity is beyond what the device has: see DeviceRules and the device's attributes",
        None,
        "ibv_create_qp(3)"
    }
    ["ibv_reg_mr"], [ENOMEM], THUNDERBOLT, None => LimitReached {
        "the 101st region of the device, or memory that cannot be wired",
        "the device holds about 100 regions, and the memory must fit into the machine's: cut one large region into many buffers",
        None,
        "ml-explore/mlx issue 3162; SQCU/mesh"
    }
    ["ibv_reg_mr"], [ENOMEM, EAGAIN], ADAPTER, LINUX => LimitReached {
        "the process may not lock so much memory",
        "the limit of locked memory is too low: see `ulimit -l`, and raise it (memlock in /etc/security/limits.conf, LimitMEMLOCK= of a systemd service)",
        None,
        "ibv_reg_mr(3), getrlimit(2)"
    }
    ["ibv_reg_mr"], [EINVAL], THUNDERBOLT, None => InvalidArgument {
        "memory that is not aligned, is empty, crosses 4 GiB, or on macOS 27 is longer than max_mr_size",
        "registered memory starts at a page of the device, is not empty, and lies within one 4 GiB stretch of addresses; macOS 27 has a limit of 16384000 bytes a region",
        None,
        "Apple TN3205; SQCU/mesh; Aileuxe/MCDMA"
    }
    ["ibv_reg_mr"], [EINVAL], ADAPTER, None => InvalidArgument {
        "a length or access flags that the device does not take",
        "registered memory is not empty, and no longer than the device's max_mr_size",
        None,
        "ibv_reg_mr(3)"
    }
    ["ibv_reg_mr"], [EFAULT], None, None => InvalidArgument {
        "memory that is not there, or is read-only",
        "part of the range is not mapped, or not writable although local write was asked for",
        None,
        "ibv_reg_mr(3)"
    }
    ["ibv_modify_qp"], [EINVAL], THUNDERBOLT, None => InvalidArgument {
        "the GID at the index is not usable, because the interface has no address or got another, or the peer's GID is empty; seen after a process was killed, too",
        "usually the GID: the local index holds no usable entry (the interface has no address yet), or the peer's is empty; if it stays with good GIDs, restart the Mac",
        NEW_QUEUE_PAIR,
        "ml-explore/mlx issues 3467 and 2944, pull request 3389; exo-explore/exo issues 1390 and 1847"
    }
    ["ibv_modify_qp"], [EINVAL], ADAPTER, None => InvalidArgument {
        "an attribute that the transition does not take",
        "usually the GID or the path MTU: choose the GID of the interface's own address (Port::gid), and an MTU that both ports have",
        NEW_QUEUE_PAIR,
        "ibv_modify_qp(3)"
    }
    ["ibv_modify_qp"], [ETIMEDOUT, EHOSTUNREACH, ENETUNREACH], THUNDERBOLT, None => UnreachablePeer {
        "the peer's address does not answer on this link: the wrong cable, or GIDs of two kinds",
        "the peer's GID is not at the other end of this cable: check which device is cabled to which, and that both GIDs are of one kind. In the software fabric: do both programs name the same RDMA_SOFT_FABRIC?",
        NEW_QUEUE_PAIR,
        "ml-explore/mlx pull requests 3468 and 4530; exo-explore/exo issue 1847"
    }
    ["ibv_modify_qp"], [ETIMEDOUT, EHOSTUNREACH, ENETUNREACH], ADAPTER, None => UnreachablePeer {
        "the peer's address does not answer on this network",
        "the peer's GID cannot be reached from this port: check that the two interfaces reach each other (`ping`), and that both GIDs are of one kind",
        NEW_QUEUE_PAIR,
        "ibv_modify_qp(3)"
    }
    ["ibv_modify_qp"], [EBUSY], THUNDERBOLT, None => LimitReached {
        "receive queues of the controller are used up, or those of a killed process are not reaped yet",
        "receive queues of the controller are used up, or those of a killed process are not reaped yet: wait half a minute, then restart the Mac",
        Some("once, after half a minute, with a new queue pair"),
        "SQCU/mesh; adurham/exo"
    }
    ["ibv_modify_qp"], [EFAULT], THUNDERBOLT, None => OutOfMemory {
        "the controller's pool for registered memory is drained",
        "the controller's pool for registered memory is drained: register less; a restart refills it",
        None,
        "SQCU/mesh"
    }
    ["ibv_modify_qp"], [ENODATA], THUNDERBOLT, None => LimitReached {
        "seen when protection domains were used up, and after a night without traffic",
        "the driver has run out of something that only a restart of the Mac gives back",
        None,
        "exo-explore/exo issue 1973"
    }
    ["ibv_post_send", "ibv_post_recv"], [ENOMEM, EAGAIN], THUNDERBOLT, None => QueueFull {
        "the queue is full: it counts frames of 4 KiB",
        "poll the completion queue, then post again",
        Some("after polling"),
        "hellas-ai/thunderbolt-ibverbs pull requests 35 and 39; Apple TN3205"
    }
    ["ibv_post_send", "ibv_post_recv"], [ENOMEM, EAGAIN], ADAPTER, None => QueueFull {
        "the queue is full",
        "poll the completion queue, then post again; requests that are not signaled leave it with a later one that is",
        Some("after polling"),
        "ibv_post_send(3)"
    }
    ["ibv_post_send", "ibv_post_recv"], [EFAULT], None, None => InvalidArgument {
        "memory that the device does not know for this queue pair",
        "the region was registered after the queue pair left RESET: register first, then connect",
        None,
        "Anemll/mlx-rdma"
    }
    ["ibv_post_recv"], [EINVAL], THUNDERBOLT, None => InvalidArgument {
        "some builds take receives in RTS only; or the request has more than one element",
        "post receives once the queue pair is connected, each of one element and of 1 byte or more",
        None,
        "ggml-org/llama.cpp, its transport for Apple; SQCU/mesh"
    }
    ["ibv_post_send"], [EOPNOTSUPP], THUNDERBOLT, None => Unsupported {
        "something else than SEND",
        "RDMA over Thunderbolt has SEND alone: no immediate data, no one-sided verbs",
        None,
        "Apple TN3205"
    }
    ["accept", "recv", "send", "setsockopt", "fcntl"], [EMFILE, ENFILE], None, None => OutOfMemory {
        "the process or the system has too many files open",
        "too many files are open (`ulimit -n`)",
        None,
        "accept(2)"
    }
    [], [ENODEV, ENXIO], None, None => UnknownDevice {
        "the device is gone",
        "the device is gone: was the cable pulled?",
        None,
        "ibv_open_device(3)"
    }
    [], [EBUSY], None, None => Busy {
        "something that was made from the object still exists",
        "something that was made from it still exists: close that first",
        None,
        "ibv_dealloc_pd(3), ibv_destroy_cq(3)"
    }
    [], [ENOMEM], None, None => OutOfMemory {
        "memory has run out",
        "memory has run out: free some, or register less",
        None,
        "the system's manual"
    }
}
