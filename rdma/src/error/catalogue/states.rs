//! What the library sees without a failed call, and what requests complete with.

use super::{Entry, Hardware, System, When};
use crate::{ErrorKind, Status};
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

macro_rules! states {
    ($( $name:ident = $when:expr, $device:expr, $system:expr => $kind:ident { $cause:expr, $remedy:expr, $again:expr, $source:expr } )*) => {
        $( pub(crate) static $name: Entry = Entry {
            when: $when,
            device: $device,
            system: $system,
            kind: ErrorKind::$kind,
            cause: $cause,
            remedy: $remedy,
            again: $again,
            source: $source,
        }; )*

        /// All of them, in the order of the document.
        pub(super) static ALL: &[&Entry] = &[$( &$name ),*];
    };
}

const THUNDERBOLT: Option<Hardware> = Some(Hardware::Thunderbolt);
const MACOS: Option<System> = Some(System::MacOs);
const LINUX: Option<System> = Some(System::Linux);
const NEW_QUEUE_PAIR: Option<&str> = Some("with a new queue pair, once that is done");

states! {
    NAMED_LIBRARY = When::State("no library: RDMA_LIBRARY names the file"), None, None => LibraryNotFound {
        "the file is not there, or is no verbs library",
        "RDMA_LIBRARY names this file: correct it, or unset it to use the system's library",
        None,
        "this library"
    }
    GIVEN_LIBRARY = When::State("no library: the program names the file"), None, None => LibraryNotFound {
        "the file is not there, or needs another that is not",
        "check the path, and what the file itself needs",
        None,
        "dlopen(3)"
    }
    OTHER_LIBRARY = When::State("no library: a function is missing"), None, None => LibraryNotFound {
        "the file is no verbs library, or an old one",
        "it is something else of that name, or an old version",
        None,
        "dlsym(3)"
    }
    NO_LIBRARY_ON_MAC = When::State("no library"), None, MACOS => LibraryNotFound {
        "macOS before 26.2 has none; later ones have it in the system's cache, not as a file",
        "RDMA over Thunderbolt needs macOS 26.2 or later; RDMA_PROVIDER=soft runs on the software device",
        None,
        "Apple TN3205; ggml-org/llama.cpp pull request 27815"
    }
    NO_LIBRARY_ON_LINUX = When::State("no library"), None, LINUX => LibraryNotFound {
        "libibverbs is not installed",
        "install libibverbs (Debian: libibverbs1), or set RDMA_PROVIDER=soft to run on the software device",
        None,
        "rdma-core"
    }
    NO_DEVICES_ON_MAC = When::State("no devices"), None, MACOS => NoDevices {
        "the Mac has no Thunderbolt 5, whatever `rdma_ctl status` says; or RDMA is switched off; or the driver failed",
        "only Macs with Thunderbolt 5 have devices: on any other `rdma_ctl status` may say enabled, and nothing brings one; with \
         Thunderbolt 5, if it says disabled, switch it on in Recovery, and if it says enabled, restart the Mac",
        None,
        "ml-explore/mlx issue 3777; exo-explore/exo issues 1636 and 2186; jundot/omlx issue 3037"
    }
    NO_DEVICES_ON_LINUX = When::State("no devices"), None, LINUX => NoDevices {
        "no RDMA hardware, or no driver for it",
        "there is no RDMA hardware here: RDMA_PROVIDER=soft runs on the software device",
        None,
        "ibv_get_device_list(3)"
    }
    PORT_DOWN = When::State("a port, or every one, is not ACTIVE"), None, None => PortDown {
        "no cable, or RDMA is switched off at the other end, or the two run different builds of macOS",
        "check the cable, and that RDMA is enabled on both ends",
        Some("when the port is ACTIVE (Port::wait_active)"),
        "Apple TN3205; exo-explore/exo, README"
    }
    NO_GID_ON_MAC = When::State("the port has no usable GID"), None, MACOS => NoUsableGid {
        "the interface has no IPv4 address, so the table holds no IPv4-mapped entry",
        "GIDs mirror the interface's addresses: give it one, for example with \
         `sudo ifconfig IFACE inet 192.168.100.1 netmask 255.255.255.252`",
        Some("when it has one (Port::wait_gid)"),
        "ml-explore/mlx issue 3467, pull request 4191"
    }
    NO_GID_ON_LINUX = When::State("the port has no usable GID"), None, LINUX => NoUsableGid {
        "the interface has no address, so the table holds no entry for it",
        "GIDs mirror the interface's addresses: give it one (on a Mac for example with \
         `sudo ifconfig IFACE inet 192.168.100.1 netmask 255.255.255.252`, on Linux with `ip address add`)",
        Some("when it has one (Port::wait_gid)"),
        "ml-explore/mlx issue 3467, pull request 4191"
    }
    EMPTY_PEER_GID = When::State("the peer's GID is empty"), None, None => NoUsableGid {
        "the peer sent a GID that it never set",
        "the peer's interface has no address yet, or its program sent an unset value",
        NEW_QUEUE_PAIR,
        "ml-explore/mlx issue 3467"
    }
    TWO_KINDS_OF_GID = When::State("the two GIDs are of different kinds"), None, None => NoUsableGid {
        "one end chose its IPv4-mapped GID, the other its link-local one",
        "both ends must choose the same kind: Port::gid_of_kind",
        NEW_QUEUE_PAIR,
        "ml-explore/mlx pull request 3468"
    }
    OWN_GID = When::State("the peer's GID is the port's own"), THUNDERBOLT, None => UnreachablePeer {
        "a device connects to its own port, which hung on Macs",
        "Thunderbolt joins two hosts; a queue pair cannot be connected to its own port. In the software fabric: are both programs the same host? RDMA_SOFT_HOST tells them apart",
        None,
        "tmc/gojaccl, commit 0b2b965"
    }
    STALE_GID = When::State("the GID is no longer at its index"), None, None => StaleGid {
        "the interface's address changed between publishing and connecting",
        "the interface's address changed: read the GID table again and connect a new queue pair",
        NEW_QUEUE_PAIR,
        "ml-explore/mlx issue 3467; exo-explore/exo issue 1847"
    }
    SEND_QUEUE_FULL = When::State("the send queue is full"), None, None => QueueFull {
        "as many requests are in flight as were asked for, or as much as the device granted, in frames of 4 KiB over Thunderbolt",
        "poll the completion queue, then post again; if it stays full, the peer posts no receives. For more at once: QueuePairBuilder::requests and depth",
        Some("after polling"),
        "Apple TN3205"
    }
    RECEIVE_QUEUE_FULL = When::State("the receive queue is full"), None, None => QueueFull {
        "as many requests are in flight as were asked for, or as much as the device granted, in frames of 4 KiB over Thunderbolt",
        "poll the completion queue, then post again. For more at once: QueuePairBuilder::requests and depth",
        Some("after polling"),
        "Apple TN3205; hellas-ai/thunderbolt-ibverbs pull request 35"
    }
    REGISTERED_LATE = When::State("memory was registered after the queue pair was connected"), THUNDERBOLT, None => InvalidArgument {
        "the device does not know it, and would fail with EFAULT",
        "register all memory first, then connect",
        None,
        "Anemll/mlx-rdma"
    }
    ACROSS_4_GIB = When::State("memory crosses a multiple of 4 GiB"), THUNDERBOLT, None => InvalidArgument {
        "the device keeps the low 32 bits of an address: what is received would land 4 GiB too low",
        "this device knows the low 32 bits of an address only: register the two parts as regions of their own",
        None,
        "SQCU/mesh"
    }
    NO_COMPLETION = When::State("no completion within the time given"), None, None => TimedOut {
        "the peer posts nothing, or died, which no device reports; or the link is stuck",
        "nothing was given up: a later wait may still return it; that a peer died no device reports: wait with a Patience that asks connect::Link::is_alive",
        Some("while the peer is alive (connect::Link::is_alive)"),
        "ml-explore/mlx issues 3910 and 4278; adurham/exo"
    }
    LOC_LEN_ERR = When::Completion(Status::LOC_LEN_ERR), None, None => Failed {
        "the message and its receive differ in frames of 4 KiB; later ones pair up one off",
        "on Thunderbolt a message and its receive must have the same number of 4 KiB frames, elsewhere the receive must be as long: agree on one size class",
        Some("the next message, once both ends agree"),
        "Apple TN3205; adurham/exo; SQCU/mesh"
    }
    LOC_PROT_ERR = When::Completion(Status::LOC_PROT_ERR), None, None => Failed {
        "the memory is unknown to the device; seen after a fault of the kernel, too",
        "the memory is not registered for this: register it before the queue pair is connected, and keep it",
        NEW_QUEUE_PAIR,
        "SQCU/mesh"
    }
    LOC_ACCESS_ERR = When::Completion(Status::LOC_ACCESS_ERR), None, None => Failed {
        "the memory was registered without local write",
        "the memory is not registered for this: register it before the queue pair is connected, and keep it",
        NEW_QUEUE_PAIR,
        "ibv_poll_cq(3)"
    }
    WR_FLUSH_ERR = When::Completion(Status::WR_FLUSH_ERR), None, None => Failed {
        "the queue pair went to the error state before the request's turn",
        "the queue pair is in the error state: close it and connect a new one",
        NEW_QUEUE_PAIR,
        "ibv_poll_cq(3)"
    }
    RETRY_EXC_ERR = When::Completion(Status::RETRY_EXC_ERR), None, None => Failed {
        "the peer did not answer (RC)",
        "the peer is gone, or has posted no receive: connect a new queue pair",
        NEW_QUEUE_PAIR,
        "ibv_poll_cq(3)"
    }
    RNR_RETRY_EXC_ERR = When::Completion(Status::RNR_RETRY_EXC_ERR), None, None => Failed {
        "the peer posted no receive in time (RC)",
        "the peer is gone, or has posted no receive: connect a new queue pair",
        NEW_QUEUE_PAIR,
        "ibv_poll_cq(3)"
    }
}

/// What is known of a request that completed with this status.
pub(crate) fn status(status: Status) -> Option<&'static Entry> {
    ALL.iter().copied().find(|entry| matches!(entry.when, When::Completion(of) if of == status))
}

/// What is known of a library that cannot be loaded.
pub(crate) fn no_library(error: &LoadError, chosen: Chosen) -> &'static Entry {
    match (error, chosen, System::HERE) {
        (_, Chosen::Variable, _) => &NAMED_LIBRARY,
        (LoadError::MissingSymbol { .. }, ..) => &OTHER_LIBRARY,
        (_, Chosen::Program, _) => &GIVEN_LIBRARY,
        (.., System::MacOs) => &NO_LIBRARY_ON_MAC,
        (.., System::Linux) => &NO_LIBRARY_ON_LINUX,
    }
}

/// A library that lists no device.
pub(crate) fn no_devices(system: System) -> &'static Entry {
    match system {
        System::MacOs => &NO_DEVICES_ON_MAC,
        System::Linux => &NO_DEVICES_ON_LINUX,
    }
}

/// A port with no GID to connect with. `IFACE` in the remedy stands for the interface.
pub(crate) fn no_gid() -> &'static Entry {
    match System::HERE {
        System::MacOs => &NO_GID_ON_MAC,
        System::Linux => &NO_GID_ON_LINUX,
    }
}
