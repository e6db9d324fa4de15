//! What is compared, as far as it is a library of Rust.

pub(crate) mod copy;
pub(crate) mod iceoryx;
pub(crate) mod ring;
pub(crate) mod verbs;

use clap::ValueEnum;

/// A contestant that this program plays by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contestant {
    /// A copy into shared memory and a flag, between processes: the least that a message takes
    Copy,
    /// This library, between threads
    RdmaThreads,
    /// This library, between processes
    RdmaProcesses,
    /// rtrb, a ring for one producer and one consumer, between threads
    Rtrb,
    /// iceoryx2, between processes
    Iceoryx2,
}

impl Contestant {
    /// As in the results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Contestant::Copy => "copy and flag",
            Contestant::RdmaThreads => "rdma, threads",
            Contestant::RdmaProcesses => "rdma, processes",
            Contestant::Rtrb => "rtrb, threads",
            Contestant::Iceoryx2 => "iceoryx2",
        }
    }
}
