//! A Thunderbolt fabric in software: hosts, cables, and a device that behaves like Apple's.
//!
//! It is reached through a function table like any other verbs library's, with real `ibv_*` objects behind it, so the
//! code that drives a Mac's controller is line for line the code that runs here. Limits, refusals and oddities are the
//! device's, each with its source; see `docs/device.md` of the repository for what a program has to know.
//!
//! How it works: there is no engine thread. Within a process a message is copied once, from the sender's memory to the
//! receiver's, by whoever completes the match of a send and a receive, inside that call; payloads of up to 48 bytes travel in
//! the cache line of the completion and reach the receiver's buffer when it polls. Between processes it is copied twice: by
//! the sender into memory that both map, when it posts, and by the receiver out of it, when it polls.

// The trusted base of the software device: raw objects for C callers, and memory that two threads share.
#![allow(unsafe_code)]

mod address;
#[doc(hidden)]
pub mod c_face;
mod calls;
mod completion_queue;
mod connection;
mod context;
mod device;
pub(crate) mod environment;
mod fabric;
mod faults;
mod fence;
mod fork;
mod hosts;
mod matching;
mod object;
mod overrun;
mod portability;
mod post;
mod prefetch;
mod profile;
mod profile_text;
mod protection_domain;
mod queue_pair;
mod quota;
mod region;
mod registry;
mod report;
mod ring;
mod rules;
#[cfg(all(loom, test))]
mod schedules;
mod shared;
mod small;
mod stream;
mod text;
mod text_file;
mod topology;
mod topology_text;
mod wiring;

pub use fabric::{Fabric, Host};
pub use faults::{Faults, Trace};
pub use portability::{Finding, Habit};
pub use profile::{Profile, ReturnStyle};
pub use topology::{End, Topology};

pub(crate) use calls::table;
pub(crate) use hosts::Place;
