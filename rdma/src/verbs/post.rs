//! Posting: the hot path.

use super::domain::RawDomain;
use super::latch::Held;
use super::parcel::{Parcel, RawParcel};
use super::queue::{RawQueue, Table, request_id};
use super::queue_pair::{Poster, RawQueuePair};
use super::slots::{Lane, Posted};
use crate::error::catalogue::states;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Extent, Packed, Payload};
use crate::queue_pair::bounds;
use core::ffi::c_int;
use core::ops::RangeBounds;
use core::ptr::null_mut;
use rdma_sys as sys;

/// A post that did not happen, and the memory that it would have taken.
pub(crate) struct Rejected<M> {
    pub(crate) error: Error,
    pub(crate) memory: Option<M>,
}

/// What a send is besides its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendKind {
    pub(crate) unsignaled: bool,
    pub(crate) immediate: Option<u32>,
}

/// Why a post did not happen, and whether its memory is the caller's again.
struct Refusal {
    error: Error,
    returned: bool,
}

impl From<Error> for Refusal {
    #[inline]
    fn from(error: Error) -> Self {
        Refusal { error, returned: true }
    }
}

/// A request, in the form in which the compiler keeps it in registers.
#[derive(Clone, Copy)]
struct Wanted {
    parcel: RawParcel,
    extent: Extent,
    start: usize,
    length: u32,
    token: u64,
}

/// Takes memory apart, and puts it together again if the post does not happen.
#[inline(always)]
fn with_parts<M: Payload>(
    memory: M,
    range: &impl RangeBounds<usize>,
    token: u64,
    post: impl FnOnce(Wanted) -> Result<(), Refusal>,
) -> Result<(), Rejected<M>> {
    let extent = memory.extent();
    let parcel = memory.into_parcel().0.into_raw();
    let result = match bounds(range, extent.length) {
        Ok((start, length)) => post(Wanted { parcel, extent, start, length, token }),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(()) => Ok(()),
        Err(refusal) => Err(rejected(refusal, parcel)),
    }
}

#[cold]
fn rejected<M: Payload>(refusal: Refusal, parcel: RawParcel) -> Rejected<M> {
    let memory = refusal.returned.then(|| {
        // SAFETY: the words were taken from the memory, and whoever refused it has given up what it had of them.
        Packed(unsafe { Parcel::from_raw(parcel) })
    });
    Rejected { error: refusal.error, memory: memory.and_then(M::from_parcel) }
}

impl RawQueuePair {
    /// Posts one receive.
    #[inline(always)]
    pub(crate) fn post_recv<M: Payload>(
        &mut self,
        memory: M,
        range: &impl RangeBounds<usize>,
        token: u64,
    ) -> Result<(), Rejected<M>> {
        with_parts(memory, range, token, |wanted| self.receive_one(&wanted))
    }

    /// Posts one send.
    #[inline(always)]
    pub(crate) fn post_send<M: Payload>(
        &mut self,
        memory: M,
        range: &impl RangeBounds<usize>,
        token: u64,
        kind: SendKind,
    ) -> Result<(), Rejected<M>> {
        with_parts(memory, range, token, |wanted| self.send_one(&wanted, kind))
    }

    #[inline(always)]
    fn receive_one(&mut self, wanted: &Wanted) -> Result<(), Refusal> {
        let &Wanted { parcel, extent, start, length, token } = wanted;
        let depth = self.admit(&extent, start, length, false, (0, 0))?;
        let (slot, generation) = (self.receive.next, self.receive.generation);
        let posted = Posted { memory: parcel, token, start, length, depth, run: 0 };
        // SAFETY: we are the poster (`&mut self`), and `admit` found the slot free. The slot owns the memory now: if the post
        // fails, `undo` takes it back.
        unsafe { self.slots.receive.fill(slot, generation, posted) };
        let mut sge = sys::ibv_sge { addr: extent.address + start as u64, length, lkey: extent.key };
        let mut request = sys::ibv_recv_wr {
            wr_id: request_id(self.receive.base, slot, generation),
            next: null_mut(),
            sg_list: &raw mut sge,
            num_sge: 1,
        };
        let mut bad = null_mut();
        let held = self.serialised.then(|| self.queues[1].lock());
        // SAFETY: a live queue pair; a chain of one request over memory that is registered (the span in the slot keeps the
        // region) and ours (the slot keeps the span) until the completion.
        let returned = unsafe { sys::ibv_post_recv(self.as_ptr(), &mut request, &mut bad) };
        if returned != 0 {
            return Err(self.undo("ibv_post_recv", returned, held, false));
        }
        drop(held);
        self.receive.advance(depth, &self.slots.receive);
        Ok(())
    }

    #[inline(always)]
    fn send_one(&mut self, wanted: &Wanted, kind: SendKind) -> Result<(), Refusal> {
        let &Wanted { parcel, extent, start, length, token } = wanted;
        let depth = self.admit(&extent, start, length, true, (0, 0))?;
        let signaled = !kind.unsignaled || self.send.must_signal(depth, &self.slots.send);
        let run = if signaled { self.send.run } else { 0 };
        let (slot, generation) = (self.send.next, self.send.generation);
        let posted = Posted { memory: parcel, token, start, length, depth, run };
        // SAFETY: we are the poster (`&mut self`), and `admit` found the slot free. The slot owns the memory now: if the post
        // fails, `undo` takes it back.
        unsafe { self.slots.send.fill(slot, generation, posted) };
        let mut sge = sys::ibv_sge { addr: extent.address + start as u64, length, lkey: extent.key };
        let mut request = send_request(kind, signaled);
        request.wr_id = request_id(self.send.base, slot, generation);
        request.sg_list = &raw mut sge;
        let mut bad = null_mut();
        let held = self.serialised.then(|| self.queues[0].lock());
        // SAFETY: a live queue pair; a chain of one request over memory that is registered (the span in the slot keeps the
        // region) and that nobody writes (the slot keeps the span) until the completion.
        let returned = unsafe { sys::ibv_post_send(self.as_ptr(), &mut request, &mut bad) };
        if returned != 0 {
            return Err(self.undo("ibv_post_send", returned, held, true));
        }
        drop(held);
        self.send.advance(depth, &self.slots.send);
        self.send.count_run(signaled, depth);
        Ok(())
    }

    /// Checks a request before anything is touched. Returns the depth that it takes. `ahead` are requests and depth that are
    /// spoken for by a batch.
    #[inline(always)]
    pub(crate) fn admit(
        &mut self,
        extent: &Extent,
        start: usize,
        length: u32,
        send: bool,
        ahead: (u32, u32),
    ) -> Result<u16> {
        if self.slots.is_poisoned() {
            return Err(self.poisoned());
        }
        if !core::ptr::eq(extent.domain, &raw const *self.domain) || extent.serial > self.known_regions {
            return Err(self.foreign(extent.domain));
        }
        debug_assert!(start as u64 + u64::from(length) <= extent.length as u64);
        let rules = &self.domain.rules;
        if u64::from(length) > rules.max_message() || (length == 0 && !rules.allows_empty()) {
            return Err(self.bad_length(length));
        }
        let depth = rules.depth_of(length);
        let (poster, lane) =
            if send { (&mut self.send, &self.slots.send) } else { (&mut self.receive, &self.slots.receive) };
        if poster.admits(depth, ahead, lane) { Ok(depth) } else { Err(self.full(depth, send)) }
    }

    #[cold]
    fn poisoned(&self) -> Error {
        let why = "the queue pair takes no more work, because the device or a failed batch broke its bookkeeping";
        self.about(Error::new(ErrorKind::Poisoned, why).with_hint("close it, which returns its memory"))
    }

    #[cold]
    fn bad_length(&self, length: u32) -> Error {
        self.about(self.domain.rules.bad_length(u64::from(length)))
    }

    #[cold]
    fn full(&self, depth: u16, send: bool) -> Error {
        let poster = if send { &self.send } else { &self.receive };
        if u32::from(depth) > poster.depth {
            return self.about(
                Error::argument(format!(
                    "the message takes {depth} places of the queue, which has {} in all",
                    poster.depth
                ))
                .with_hint("ask for more depth in QueuePairBuilder, or send it in pieces"),
            );
        }
        if send { Error::SEND_QUEUE_FULL } else { Error::RECEIVE_QUEUE_FULL }
    }

    #[cold]
    fn foreign(&self, domain: *const RawDomain) -> Error {
        let error = if core::ptr::eq(domain, &raw const *self.domain) {
            let detail =
                "the memory was registered after the queue pair was connected, and the device does not know it";
            Error::known(&states::REGISTERED_LATE, detail)
        } else {
            Error::argument("the memory is registered in another protection domain")
                .with_hint("register memory in the protection domain that the queue pair was made in")
        };
        self.about(error)
    }

    /// Takes the memory out of its slot after a single post that failed.
    #[cold]
    fn undo(&self, call: &'static str, returned: c_int, held: Option<Held<'_, Table>>, send: bool) -> Refusal {
        let (poster, lane, queue): (_, _, &RawQueue) = if send {
            (&self.send, &self.slots.send, &self.queues[0])
        } else {
            (&self.receive, &self.slots.receive, &self.queues[1])
        };
        let error = match super::call::status(call, returned) {
            Err(error) => self.about(error),
            Ok(()) => self.about(Error::new(ErrorKind::Other, format!("{call} failed without a reason"))),
        };
        let held = held.unwrap_or_else(|| queue.lock());
        // SAFETY: we are the poster and hold the latch of the lane's completion queue.
        let withdrawn = unsafe { lane.withdraw(poster.next, poster.generation) };
        drop(held);
        if withdrawn.is_some() {
            return Refusal { error, returned: true };
        }
        // The device reported a failed post as completed: the memory went with that completion.
        self.slots.poison();
        Refusal { error: error.with_kind(ErrorKind::Poisoned), returned: false }
    }
}

/// A send of one element, without its id and element.
#[inline]
pub(super) fn send_request(kind: SendKind, signaled: bool) -> sys::ibv_send_wr {
    sys::ibv_send_wr {
        num_sge: 1,
        opcode: match kind.immediate {
            None => sys::ibv_wr_opcode::IBV_WR_SEND,
            Some(_) => sys::ibv_wr_opcode::IBV_WR_SEND_WITH_IMM,
        },
        send_flags: if signaled { sys::IBV_SEND_SIGNALED } else { 0 },
        imm_data: kind.immediate.map_or(0, u32::to_be),
        ..Default::default()
    }
}

impl Poster {
    /// Whether a request of this depth has room.
    #[inline(always)]
    fn admits(&mut self, depth: u16, (requests, places): (u32, u32), lane: &Lane) -> bool {
        let wanted = u64::from(places) + u64::from(depth);
        if self.taken - self.returned + wanted > u64::from(self.depth) {
            self.returned = lane.returned();
            if self.taken - self.returned + wanted > u64::from(self.depth) {
                return false;
            }
        }
        let mut slot = self.next + requests;
        if slot >= lane.capacity() {
            slot -= lane.capacity();
        }
        requests < lane.capacity() && lane.is_free(slot)
    }

    /// Counts a request that was posted.
    #[inline]
    pub(super) fn advance(&mut self, depth: u16, lane: &Lane) {
        self.taken += u64::from(depth);
        self.generation = self.generation.wrapping_add(1);
        self.next += 1;
        if self.next == lane.capacity() {
            self.next = 0;
        }
    }

    /// Whether a send must be signaled, because otherwise requests or depth could run out before any completion comes.
    #[inline]
    pub(super) fn must_signal(&self, depth: u16, lane: &Lane) -> bool {
        u32::from(self.run) + 1 >= lane.capacity().div_ceil(2).min(u32::from(u16::MAX))
            || self.run_depth + u32::from(depth) >= self.depth.div_ceil(2)
    }

    #[inline]
    pub(super) fn count_run(&mut self, signaled: bool, depth: u16) {
        if signaled {
            (self.run, self.run_depth) = (0, 0);
        } else {
            self.run += 1;
            self.run_depth += u32::from(depth);
        }
    }
}
