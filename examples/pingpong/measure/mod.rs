//! The measuring core: two connected ends, and what they do to each other.
//!
//! Nothing in here parses arguments or prints, so that benchmarks can use it as well. How a run goes:
//!
//! * [`Opened::open`] takes a device and all memory that the [`Plan`] needs, because memory must be registered before a
//!   queue pair is connected; [`Opened::connect`] connects it over a TCP stream and compares the two plans.
//! * One end runs [`call`], the other [`serve`], which does as the first says. Then both finish.
//! * They work in *batches*: the client announces one, the server posts all receives that it needs and answers, and then
//!   messages flow. Between batches, outside of every timed interval, both ends look at every byte that they got.

mod bandwidth;
mod client;
mod clock;
mod end;
mod floor;
mod latency;
mod memory;
mod message;
mod pattern;
mod pinning;
mod plan;
mod server;
mod statistics;
mod stop;

pub(crate) use bandwidth::Bandwidth;
pub(crate) use client::{Audience, Measured, call};
pub(crate) use clock::Clock;
pub(crate) use end::{Choice, Opened, Patience};
pub(crate) use floor::Line;
pub(crate) use latency::Latency;
pub(crate) use pinning::Cores;
pub(crate) use plan::{Mode, Plan, Sizes};
pub(crate) use server::{Served, serve};
pub(crate) use statistics::Sorted;
pub(crate) use stop::Stop;
