//! Owners of the raw objects: the only part of the safe layer that may hold `unsafe`.
//!
//! Everything above this folder is checked by the compiler alone. What is relied on here, and where it is established:
//!
//! * A raw object lives as long as its owner, and an owner holds its parents' (`Arc`), so parents are destroyed last. If
//!   destroying fails, the parents are leaked.
//! * Memory in flight belongs to a slot of its queue pair ([`slots`]). It leaves only with the completion that names it,
//!   with a post that did not happen, or after the queue pair was destroyed.
//! * A [`Span`](span::Span) is the only access to its bytes: the ranges that a region has given out are disjoint
//!   ([`region`]), and a region is registered for local access only.
//! * Post, poll and teardown of one completion queue exclude one another where the device asks for it ([`queue`]).
#![allow(unsafe_code)]

pub(crate) mod batch;
pub(crate) mod call;
pub(crate) mod context;
pub(crate) mod domain;
mod doors;
#[cfg(all(loom, test))]
pub(crate) mod explore;
pub(crate) mod latch;
pub(crate) mod library;
pub(crate) mod owner;
pub(crate) mod pages;
pub(crate) mod parcel;
pub(crate) mod post;
pub(crate) mod queue;
pub(crate) mod queue_pair;
pub(crate) mod ranges;
pub(crate) mod region;
#[cfg(all(loom, test))]
mod schedules;
pub(crate) mod slots;
pub(crate) mod span;
pub(crate) mod sync;
