//! RDMA over Thunderbolt for Rust: the verbs API of macOS 26.2 and later behind a sound interface that costs next to
//! nothing, and the same Thunderbolt fabric in software.
//!
//! ```text
//! Provider → Device → Context ─┬→ Port → GidEntry
//!                              ├→ ProtectionDomain → MemoryRegion → Buffer
//!                              └→ CompletionQueue → Completion
//! ProtectionDomain + CompletionQueue → QueuePairBuilder → PreparedQueuePair ── Endpoint ──▶ connect ──▶ QueuePair
//! ```
//!
//! * A [`Provider`] is the installed verbs library, looked up at run time, or a host of a [software fabric](soft). Whichever
//!   it is, the code that follows is the same.
//! * Memory is allocated and registered in a [`ProtectionDomain`], cut into [`Buffer`]s, and posted by value: the buffer
//!   goes into the queue pair, and comes back with its [`Completion`].
//! * A [`QueuePair`] is built, publishes an [`Endpoint`], is connected to a peer's, and takes work. [`connect`](mod@connect)
//!   does the exchange over TCP.
//! * What differs between devices is in [`DeviceRules`]. Over Thunderbolt: depth is counted in frames of 4 KiB, a message
//!   and its receive must have the same number of them, a send waits for its receive.
//! * An [`Error`] has a [kind](ErrorKind) to match on, and a text with the call, the device, the errno and the remedy.
//!
//! The repository's README has the whole of a first program; `docs/device.md` what to know about the device.

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod buffer;
mod completion;
mod completion_queue;
pub mod connect;
mod context;
mod device;
mod endpoint;
mod error;
mod gid;
mod keep_alive;
mod memory;
mod memory_region;
mod patience;
mod port;
mod protection_domain;
mod provider;
mod queue_pair;
mod rules;
#[cfg(feature = "soft")]
pub mod soft;
mod verbs;
mod wait;

pub use buffer::{Buffer, FrozenBuffer, SharedBuffer};
pub use completion::{Completion, Direction, Failure, Status, Transfer};
pub use completion_queue::{CompletionQueue, Completions};
pub use context::{Context, DeviceAttributes};
pub use device::{Device, Transport};
pub use endpoint::Endpoint;
pub use error::{Errno, Error, ErrorKind, Result, Subject};
pub use gid::{Gid, GidEntry, GidKind, Guid};
pub use keep_alive::KeepAlive;
pub use memory::{Memory, Receivable, Sendable};
pub use memory_region::{MemoryRegion, SharedRegion};
pub use patience::Patience;
pub use port::{Mtu, Port, PortState};
pub use protection_domain::ProtectionDomain;
pub use provider::Provider;
pub use queue_pair::{
    BatchError, Capacities, PostError, PreparedQueuePair, QueuePair, QueuePairBuilder, QueuePairState, QueuePairType,
    ReceiveBatch, SendBatch, Unfinished,
};
pub use rules::{DepthUnit, DeviceRules};
pub use verbs::owner::{SharedMemory, StableMemory};

/// The README's program is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
