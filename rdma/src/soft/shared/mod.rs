//! The fabric between processes: one file in memory that all of them map.
//!
//! Who writes what:
//!
//! * A [`QpBlock`](blocks::QpBlock) is its queue pair's own: whether it is connected and to whom, how many receives it
//!   has posted, how many messages it has taken. Others read it.
//! * An [`Area`](area::Area) belongs to a receiving queue pair, and its connected peer writes messages into it. Its owner
//!   reads each word once, bounds it, and then uses it: whatever stands there, no memory outside the area and the posted
//!   receive is touched.
//! * Work requests, completion queues and registered memory stay private to their process.
//!
//! There is no lock in that memory. A process that is killed at any instruction leaves words that others can go on from:
//! each has one writer, and what is to be believed together is published by one store. Who is alive is told by locks of
//! the kernel on bytes of the file ([`locks`]), which it drops at death and which a fork does not inherit.
//!
//! How a message crosses: the sender copies it into the peer's area, at the latest position that was free (so that a
//! conversation stays in the same cache lines), and writes its descriptor last. It completes when the peer's count of
//! posted receives covers it. The receiver finds the descriptor when it polls, checks, copies, and counts it as taken. So
//! neither needs a call of the other's.
//!
//! A sender that is stopped in the middle of a copy may go on much later. So an area that a living sender holds
//! ([`QpBlock::hold`](blocks::QpBlock)) is never used for another connection: see [`area`].

pub(crate) mod area;
pub(crate) mod blocks;
pub(crate) mod descriptor;
#[cfg(test)]
mod distrust;
pub(crate) mod exchange;
mod file;
pub(crate) mod inbound;
#[cfg(test)]
mod interleavings;
pub(crate) mod layout;
pub(crate) mod link;
mod locks;
pub(crate) mod membership;
pub(crate) mod outbound;
pub(crate) mod owners;
#[cfg(all(loom, test))]
mod schedules;
