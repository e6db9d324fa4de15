//! Queue pairs: built, connected, posted to, closed.

mod batch;
mod builder;
mod post_error;
mod prepared;

pub use batch::{BatchError, ReceiveBatch, SendBatch};
pub use builder::QueuePairBuilder;
pub use post_error::PostError;
pub use prepared::PreparedQueuePair;

use crate::completion::Direction;
use crate::endpoint::Endpoint;
use crate::error::{Error, Result};
use crate::memory::{Memory, Receivable, Sendable};
use crate::verbs::post::SendKind;
use crate::verbs::queue_pair::{RawQueuePair, Returned};
use core::fmt;
use core::ops::{Bound, RangeBounds};
use rdma_sys as sys;

/// The type of a queue pair.
#[doc(alias = "ibv_qp_type")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueuePairType(u32);

impl QueuePairType {
    /// Unreliable connection: the only type of Apple's device.
    pub const UC: QueuePairType = QueuePairType(sys::ibv_qp_type::IBV_QPT_UC.0);
    /// Reliable connection.
    pub const RC: QueuePairType = QueuePairType(sys::ibv_qp_type::IBV_QPT_RC.0);
    /// Unreliable datagram.
    pub const UD: QueuePairType = QueuePairType(sys::ibv_qp_type::IBV_QPT_UD.0);

    pub(crate) fn raw(self) -> sys::ibv_qp_type {
        sys::ibv_qp_type(self.0)
    }

    pub(crate) fn from_raw(raw: sys::ibv_qp_type) -> Self {
        QueuePairType(raw.0)
    }
}

impl fmt::Display for QueuePairType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            QueuePairType::UC => out.write_str("UC"),
            QueuePairType::RC => out.write_str("RC"),
            QueuePairType::UD => out.write_str("UD"),
            QueuePairType(number) => write!(out, "type {number}"),
        }
    }
}

/// The state of a queue pair, as the device has it.
#[doc(alias = "ibv_qp_state")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueuePairState(u32);

impl QueuePairState {
    /// Fresh.
    pub const RESET: QueuePairState = QueuePairState(sys::ibv_qp_state::IBV_QPS_RESET.0);
    /// It takes receives.
    pub const INIT: QueuePairState = QueuePairState(sys::ibv_qp_state::IBV_QPS_INIT.0);
    /// Ready to receive.
    pub const RTR: QueuePairState = QueuePairState(sys::ibv_qp_state::IBV_QPS_RTR.0);
    /// Ready to send, too: connected.
    pub const RTS: QueuePairState = QueuePairState(sys::ibv_qp_state::IBV_QPS_RTS.0);
    /// In error: what is posted is flushed.
    pub const ERR: QueuePairState = QueuePairState(sys::ibv_qp_state::IBV_QPS_ERR.0);
}

impl fmt::Display for QueuePairState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            QueuePairState::RESET => "RESET",
            QueuePairState::INIT => "INIT",
            QueuePairState::RTR => "RTR",
            QueuePairState::RTS => "RTS",
            QueuePairState::ERR => "ERR",
            _ => "unknown",
        };
        write!(out, "{name} ({})", self.0)
    }
}

impl fmt::Debug for QueuePairState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// What a queue pair was granted, read back from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacities {
    /// The depth of the send queue, in the device's [unit](crate::DepthUnit).
    pub send_depth: u32,
    /// The depth of the receive queue.
    pub receive_depth: u32,
    /// Sends that may be in flight at once.
    pub send_requests: u32,
    /// Receives that may be in flight at once.
    pub receive_requests: u32,
}

/// A connected queue pair: one owner posts to it. Completions come out of its completion queues, in another thread if
/// that is where they are.
///
/// Memory that is posted belongs to the queue pair until its completion. Dropping or [closing](Self::close) the queue pair
/// destroys it first, so that the device is done, and then lets the memory go. Leaking it leaks the memory.
#[doc(alias = "ibv_qp")]
pub struct QueuePair {
    raw: RawQueuePair,
    peer: Endpoint,
}

impl QueuePair {
    pub(crate) fn new(raw: RawQueuePair, peer: Endpoint) -> Self {
        QueuePair { raw, peer }
    }

    pub(crate) fn raw(&self) -> &RawQueuePair {
        &self.raw
    }

    /// Its number, which completions carry.
    #[doc(alias = "qp_num")]
    pub fn number(&self) -> u32 {
        self.raw.number()
    }

    /// How many sends have been posted, modulo 2³².
    pub(crate) fn sends(&self) -> u32 {
        self.raw.sends()
    }

    /// The endpoint it is connected to.
    pub fn peer(&self) -> &Endpoint {
        &self.peer
    }

    /// What it was granted.
    pub fn capacities(&self) -> Capacities {
        capacities(&self.raw)
    }

    /// Its type, as the device has it.
    pub fn queue_pair_type(&self) -> QueuePairType {
        QueuePairType::from_raw(self.raw.kind())
    }

    /// Its state, asked of the device now.
    ///
    /// # Errors
    ///
    /// What `ibv_query_qp` reports.
    #[doc(alias = "ibv_query_qp")]
    pub fn state(&self) -> Result<QueuePairState> {
        Ok(QueuePairState(self.raw.query()?.qp_state.0))
    }

    /// Whether it takes no more work because the device broke a rule: see [`Poisoned`](crate::ErrorKind::Poisoned).
    pub fn is_poisoned(&self) -> bool {
        self.raw.is_poisoned()
    }

    /// Posts a receive into the whole of `memory`. Its completion carries `token`.
    ///
    /// On Thunderbolt a message must have the receive's number of 4 KiB frames ([`DeviceRules::places`]), so agree with the
    /// peer on the length class of each message.
    ///
    /// Never waits, allocates nothing.
    ///
    /// # Errors
    ///
    /// Each returns the memory. [`QueueFull`](crate::ErrorKind::QueueFull): poll, then try again.
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): memory of another protection domain or registered too late,
    /// a length that the device or the queue cannot take. [`Poisoned`](crate::ErrorKind::Poisoned). What `ibv_post_recv`
    /// reports.
    ///
    /// [`DeviceRules::places`]: crate::DeviceRules::places
    #[doc(alias = "ibv_post_recv")]
    #[inline]
    pub fn post_recv<M: Receivable>(&mut self, memory: M, token: u64) -> Result<(), PostError<M>> {
        self.post_recv_range(memory, .., token)
    }

    /// Posts a receive into a range of `memory`. The completion returns the whole.
    ///
    /// # Errors
    ///
    /// As for [`post_recv`](Self::post_recv); a range that `memory` does not have is an
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument).
    #[inline]
    pub fn post_recv_range<M: Receivable>(
        &mut self,
        memory: M,
        range: impl RangeBounds<usize>,
        token: u64,
    ) -> Result<(), PostError<M>> {
        self.raw.post_recv(memory, &range, token).map_err(PostError::from)
    }

    /// Posts a send of a range of `memory`. The completion, with `token`, returns the whole; over UC it says that the
    /// bytes left this host, not that they arrived.
    ///
    /// Never waits, allocates nothing. (Over Thunderbolt the *message* waits until the peer has posted a receive.)
    ///
    /// # Errors
    ///
    /// As for [`post_recv_range`](Self::post_recv_range).
    #[doc(alias = "ibv_post_send")]
    #[inline]
    pub fn post_send<M: Sendable>(
        &mut self,
        memory: M,
        range: impl RangeBounds<usize>,
        token: u64,
    ) -> Result<(), PostError<M>> {
        self.send(memory, range, token, SendKind::default())
    }

    /// Posts a send that makes no completion of its own: its memory comes back with that of the next signaled send, as a
    /// completion before it. Saves the device work where only the end of a series matters.
    ///
    /// So that the queue cannot fill up for good, at least every second half of it is signaled, whatever was asked for.
    ///
    /// # Errors
    ///
    /// As for [`post_send`](Self::post_send).
    #[inline]
    pub fn post_send_unsignaled<M: Sendable>(
        &mut self,
        memory: M,
        range: impl RangeBounds<usize>,
        token: u64,
    ) -> Result<(), PostError<M>> {
        self.send(memory, range, token, SendKind { unsignaled: true, immediate: None })
    }

    /// Posts a send with four bytes of immediate data, which the receiver finds in
    /// [`Transfer::immediate`](crate::Transfer::immediate).
    ///
    /// # Errors
    ///
    /// As for [`post_send`](Self::post_send); [`Unsupported`](crate::ErrorKind::Unsupported) over Thunderbolt, which has
    /// SEND alone (Apple TN3205).
    #[inline]
    pub fn post_send_immediate<M: Sendable>(
        &mut self,
        memory: M,
        range: impl RangeBounds<usize>,
        immediate: u32,
        token: u64,
    ) -> Result<(), PostError<M>> {
        self.send(memory, range, token, SendKind { unsignaled: false, immediate: Some(immediate) })
    }

    #[inline]
    fn send<M: Sendable>(
        &mut self,
        memory: M,
        range: impl RangeBounds<usize>,
        token: u64,
        kind: SendKind,
    ) -> Result<(), PostError<M>> {
        self.raw.post_send(memory, &range, token, kind).map_err(PostError::from)
    }

    /// Destroys the queue pair and returns all memory that was in flight. When `ibv_destroy_qp` has returned, the device
    /// does not touch that memory any more.
    ///
    /// # Errors
    ///
    /// If the device refuses, the queue pair and that memory are leaked.
    #[doc(alias = "ibv_destroy_qp")]
    pub fn close(self) -> Result<Vec<Unfinished>> {
        self.raw.close().map(unfinished)
    }
}

impl fmt::Debug for QueuePair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("QueuePair")
            .field("number", &format_args!("{:#08x}", self.number()))
            .field("capacities", &self.capacities())
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// A work request that had no completion when its queue pair was closed.
#[derive(Debug)]
pub struct Unfinished {
    /// The number that was given when it was posted.
    pub token: u64,
    /// Whether it was a send or a receive.
    pub direction: Direction,
    /// The whole memory that was posted. What a receive's holds is not known.
    pub memory: Memory,
}

fn unfinished([sends, receives]: [Vec<Returned>; 2]) -> Vec<Unfinished> {
    let one = |direction| {
        move |item: Returned| Unfinished { token: item.token, direction, memory: item.memory.into_memory() }
    };
    let sends = sends.into_iter().map(one(Direction::Send));
    sends.chain(receives.into_iter().map(one(Direction::Receive))).collect()
}

fn capacities(raw: &RawQueuePair) -> Capacities {
    let granted = raw.granted();
    let (send_requests, receive_requests) = raw.requests();
    Capacities { send_depth: granted.max_send_wr, receive_depth: granted.max_recv_wr, send_requests, receive_requests }
}

/// Start and length of a range, if `available` bytes have it and a work request can take it.
#[inline]
pub(crate) fn bounds(range: &impl RangeBounds<usize>, available: usize) -> Result<(usize, u32)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(available),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= available => match u32::try_from(end - start) {
            Ok(length) => Ok((start, length)),
            Err(_) => Err(too_long(end - start)),
        },
        _ => Err(no_such_range(start, end, available)),
    }
}

#[cold]
fn too_long(length: usize) -> Error {
    Error::argument(format!("a message of {length} bytes: a work request takes at most {}", u32::MAX))
        .with_hint("send it in pieces")
}

#[cold]
fn no_such_range(start: Option<usize>, end: Option<usize>, available: usize) -> Error {
    let show = |bound: Option<usize>| bound.map_or("?".to_owned(), |bound| bound.to_string());
    Error::argument(format!("there is no range {}..{} in a buffer of {available} bytes", show(start), show(end)))
}

#[cfg(test)]
mod tests {
    use super::bounds;

    #[test]
    fn ranges_are_those_of_slices() {
        assert_eq!(bounds(&.., 10).unwrap(), (0, 10));
        assert_eq!(bounds(&(2..=4), 10).unwrap(), (2, 3));
        assert_eq!(bounds(&(10..), 10).unwrap(), (10, 0));
        #[allow(clippy::reversed_empty_ranges)]
        for wrong in [11..11, 5..4, 0..11] {
            assert!(bounds(&wrong, 10).is_err(), "{wrong:?}");
        }
        assert!(bounds(&(0..=usize::MAX), 10).is_err());
    }

    #[test]
    fn a_slice_beyond_four_gib_is_not_cut() {
        let available = (1_usize << 32) + 4096;
        assert_eq!(bounds(&(1 << 32..(1 << 32) + 10), available).unwrap(), (1 << 32, 10));
        assert!(bounds(&.., available).is_err());
    }
}
