//! RDMA over Thunderbolt for Rust.
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
mod memory;
mod memory_region;
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
pub use memory::{Memory, Receivable, Sendable};
pub use memory_region::{MemoryRegion, SharedRegion};
pub use port::{Mtu, Port, PortState};
pub use protection_domain::ProtectionDomain;
pub use provider::Provider;
pub use queue_pair::{
    Capacities, PostError, PreparedQueuePair, QueuePair, QueuePairBuilder, QueuePairState, QueuePairType, Unfinished,
};
pub use rules::{DepthUnit, DeviceRules};
pub use verbs::owner::{SharedMemory, StableMemory};
