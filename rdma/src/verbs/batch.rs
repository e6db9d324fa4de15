//! Posting a chain of requests with one call.
//!
//! Nothing of the queue pair changes before `submit`: a batch that is dropped or forgotten has only held memory.

use super::parcel::Parcel;
use super::post::SendKind;
use super::queue::request_id;
use super::queue_pair::{Poster, RawQueuePair};
use super::slots::{Lane, Posted};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Extent, Memory};
use core::ffi::c_int;
use core::ptr::null_mut;
use rdma_sys as sys;

/// Chains the first `count` requests, each with its element.
macro_rules! link {
    ($requests:ident, $sges:ident, $count:ident) => {
        let first = $requests.as_mut_ptr();
        for index in 0..$count {
            $requests[index].sg_list = &raw mut $sges[index];
            $requests[index].next = if index + 1 < $count { first.wrapping_add(index + 1) } else { null_mut() };
        }
    };
}

/// A request of a batch, checked and not posted.
#[derive(Debug)]
pub(crate) struct Item {
    memory: Parcel,
    address: u64,
    key: u32,
    start: usize,
    length: u32,
    token: u64,
    depth: u16,
    kind: SendKind,
}

/// The requests of a batch, on the stack.
#[derive(Debug)]
pub(crate) struct Items<const N: usize> {
    list: [Option<Item>; N],
    length: usize,
    depth: u32,
}

/// What became of a chain that failed.
pub(crate) struct Broken {
    pub(crate) error: Error,
    /// How many are in flight.
    pub(crate) posted: usize,
    /// What certainly is not.
    pub(crate) returned: Vec<(u64, Memory)>,
}

impl<const N: usize> Items<N> {
    pub(crate) fn new() -> Self {
        Items { list: [const { None }; N], length: 0, depth: 0 }
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Whether there is room for another one in the batch itself.
    pub(crate) fn is_full(&self) -> bool {
        self.length == N
    }

    /// Adds a request that [`RawQueuePair::admit`] has let in.
    pub(crate) fn push(
        &mut self,
        memory: Parcel,
        extent: &Extent,
        (start, length): (usize, u32),
        token: u64,
        depth: u16,
        kind: SendKind,
    ) {
        let item =
            Item { memory, address: extent.address + start as u64, key: extent.key, start, length, token, depth, kind };
        self.list[self.length] = Some(item);
        self.length += 1;
        self.depth += u32::from(depth);
    }

    /// Requests and depth that it will take.
    pub(crate) fn ahead(&self) -> (u32, u32) {
        (self.length as u32, self.depth)
    }
}

/// A request as it was posted: what is needed to count it, or to take it back.
#[derive(Clone, Copy, Default)]
struct Mark {
    slot: u32,
    generation: u32,
    depth: u16,
    signaled: bool,
}

impl RawQueuePair {
    /// Posts the batch as one chain of sends.
    pub(crate) fn submit_sends<const N: usize>(&mut self, mut items: Items<N>) -> Result<(), Broken> {
        let mut marks = [Mark::default(); N];
        let mut sges = [sys::ibv_sge::default(); N];
        let mut requests = [sys::ibv_send_wr::default(); N];
        let before = self.send;
        let count = items.length;
        for index in 0..count {
            let Some(item) = items.list[index].take() else { break };
            let signaled = !item.kind.unsignaled || self.send.must_signal(item.depth, &self.slots.send);
            let run = if signaled { self.send.run } else { 0 };
            sges[index] = sys::ibv_sge { addr: item.address, length: item.length, lkey: item.key };
            requests[index] = super::post::send_request(item.kind, signaled);
            requests[index].wr_id = request_id(self.send.base, self.send.next, self.send.generation);
            marks[index] = fill(&mut self.send, &self.slots.send, item, signaled, run);
        }
        link!(requests, sges, count);
        let mut bad = null_mut();
        let held = self.serialised.then(|| self.queues[0].lock());
        // SAFETY: a live queue pair; a chain of requests over memory that is registered (the spans in the slots keep the
        // regions) and that nobody writes (the slots keep the spans) until the completions.
        let returned = unsafe { sys::ibv_post_send(self.as_ptr(), requests.as_mut_ptr(), &mut bad) };
        drop(held);
        if returned == 0 {
            return Ok(());
        }
        let failed = requests[..count].iter().position(|request| core::ptr::eq(request, bad));
        Err(self.broken("ibv_post_send", returned, before, &marks[..count], failed, true))
    }

    /// Posts the batch as one chain of receives.
    pub(crate) fn submit_receives<const N: usize>(&mut self, mut items: Items<N>) -> Result<(), Broken> {
        let mut marks = [Mark::default(); N];
        let mut sges = [sys::ibv_sge::default(); N];
        let mut requests = [sys::ibv_recv_wr::default(); N];
        let before = self.receive;
        let count = items.length;
        for index in 0..count {
            let Some(item) = items.list[index].take() else { break };
            sges[index] = sys::ibv_sge { addr: item.address, length: item.length, lkey: item.key };
            requests[index].num_sge = 1;
            requests[index].wr_id = request_id(self.receive.base, self.receive.next, self.receive.generation);
            marks[index] = fill(&mut self.receive, &self.slots.receive, item, true, 0);
        }
        link!(requests, sges, count);
        let mut bad = null_mut();
        let held = self.serialised.then(|| self.queues[1].lock());
        // SAFETY: a live queue pair; a chain of requests over memory that is registered (the spans in the slots keep the
        // regions) and ours (the slots keep the spans) until the completions.
        let returned = unsafe { sys::ibv_post_recv(self.as_ptr(), requests.as_mut_ptr(), &mut bad) };
        drop(held);
        if returned == 0 {
            return Ok(());
        }
        let failed = requests[..count].iter().position(|request| core::ptr::eq(request, bad));
        Err(self.broken("ibv_post_recv", returned, before, &marks[..count], failed, false))
    }

    /// Sorts a chain that failed into what is in flight and what is not. Only a `bad_wr` that points into the chain tells;
    /// Apple's provider does not set it (SQCU/mesh), and then everything stays where it is.
    #[cold]
    fn broken(
        &mut self,
        call: &'static str,
        returned: c_int,
        before: Poster,
        marks: &[Mark],
        failed: Option<usize>,
        send: bool,
    ) -> Broken {
        let error = match super::call::status(call, returned) {
            Err(error) => self.about(error),
            Ok(()) => self.about(Error::new(ErrorKind::Other, format!("{call} failed without a reason"))),
        };
        let Some(posted) = failed else {
            self.slots.poison();
            let error = error
                .with_kind(ErrorKind::Poisoned)
                .with_detail("the device does not say which requests of the chain it took");
            return Broken {
                error: error.with_hint("close the queue pair, which returns its memory"),
                posted: 0,
                returned: Vec::new(),
            };
        };
        let (poster, lane, queue) = if send {
            (&mut self.send, &self.slots.send, &self.queues[0])
        } else {
            (&mut self.receive, &self.slots.receive, &self.queues[1])
        };
        // Count again what was posted, from where the batch began.
        *poster = before;
        for mark in &marks[..posted] {
            poster.advance(mark.depth, lane);
            poster.count_run(mark.signaled, mark.depth);
        }
        let held = queue.lock();
        let returned = marks[posted..]
            .iter()
            .filter_map(|mark| {
                // SAFETY: we are the poster and hold the latch of the lane's completion queue.
                let posted = unsafe { lane.withdraw(mark.slot, mark.generation) }?;
                // SAFETY: the words came from the slot, which owned the memory and has given it up.
                Some((posted.token, unsafe { Parcel::from_raw(posted.memory) }.into_memory()))
            })
            .collect();
        drop(held);
        Broken { error, posted, returned }
    }
}

/// Puts an item into the poster's next slot, and counts it.
#[inline]
fn fill(poster: &mut Poster, lane: &Lane, item: Item, signaled: bool, run: u16) -> Mark {
    let mark = Mark { slot: poster.next, generation: poster.generation, depth: item.depth, signaled };
    let posted = Posted {
        memory: item.memory.into_raw(),
        token: item.token,
        start: item.start,
        length: item.length,
        depth: item.depth,
        run,
    };
    // SAFETY: the caller is the poster, and `admit` found this slot free when the item was pushed; the batch has borrowed
    // the queue pair since then.
    unsafe { lane.fill(mark.slot, mark.generation, posted) };
    poster.advance(item.depth, lane);
    poster.count_run(signaled, item.depth);
    mark
}
