//! A completion queue of the software device.
//!
//! There is no ring of completions that all writers would contend for. A completion queue knows the queues attached to
//! it, and polling walks them: a finished receive stands in its slot, a finished send below the queue pair's count. An
//! idle queue costs its poller two loads of lines that nobody writes.

use super::context::SoftContext;
use super::fork::Birth;
use super::matching;
use super::object::CqObject;
use super::overrun::{self, Fill};
use super::post::flushed;
use super::prefetch;
use super::queue_pair::{Apart, Attention, Body, Done, INLINE, LOST, Slot, SoftQp};
use super::quota::Ticket;
use super::registry::{Kind, Object};
use super::report::report;
use super::shared::exchange;
use super::shared::inbound::{Inbound, Next};
use super::small;
use crate::verbs::latch::Latch;
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use rdma_sys as sys;
use std::sync::Arc;
use sys::{ibv_wc_opcode as opcode, ibv_wc_status as status};

/// Its latch is written at each poll, and the peer's poster reads `fill`: they share no cache line.
#[repr(C)]
pub(crate) struct SoftCq {
    pub(crate) abi: CqObject,
    pub(crate) birth: Birth,
    pub(crate) ticket: Ticket,
    pub(crate) context: Arc<SoftContext>,
    /// How many queue pairs use it, each of their two queues counted.
    pub(crate) users: AtomicU32,
    pub(crate) fill: Fill,
    /// Whether there is a plan of faults.
    pub(crate) faulty: bool,
    pub(crate) poll: Apart<Latch<Sources>>,
}

// SAFETY: the ABI prefix is never written after it was made; its raw pointers are kept by the Arcs beside it.
unsafe impl Sync for SoftCq {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for SoftCq {}

// SAFETY: repr(C), and the first field is the CqObject, whose first field is the ibv_cq.
unsafe impl Object for SoftCq {
    type Abi = sys::ibv_cq;
    const KIND: Kind = Kind::CompletionQueue;
}

/// The queues attached to a completion queue, and how far each has been polled.
#[derive(Default)]
pub(crate) struct Sources {
    list: Vec<Source>,
    /// Where the next poll begins, so that a busy queue does not starve the others.
    turn: usize,
}

/// Written by the poller alone, in lines of its own.
#[repr(align(128))]
struct Source {
    qp: Arc<SoftQp>,
    side: Side,
    /// What of [`Attention`] its poller is to look after.
    flags: u8,
    /// The first request that has not been looked at.
    next: u64,
    /// The places of all requests before it.
    places: u64,
    /// Of sends: as `next` and `places`, but of unsignaled ones, which are retired by a later one that is signaled, too.
    looked: (u64, u64),
    /// In a shared fabric: the connection from which a receive queue gets its messages.
    inbound: Option<Box<Inbound>>,
    /// With `inbound`: the messages of receives before this one were taken ahead of polling.
    settled: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Send,
    Receive,
}

impl Side {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Send => "send",
            Side::Receive => "receive",
        }
    }
}

impl SoftCq {
    /// How many completions it holds.
    pub(crate) fn capacity(&self) -> u32 {
        self.abi.prefix.cqe as u32
    }

    pub(crate) fn attach(&self, qp: &Arc<SoftQp>, side: Side) {
        let mut sources = self.poll.0.lock();
        let flags = match side {
            Side::Send => Attention::WAITS,
            // In a shared fabric nobody else helps this side's sends: who polls for the answer only must, too.
            Side::Receive if qp.presence.is_some() && !Arc::ptr_eq(&qp.send_cq, &qp.receive_cq) => {
                Attention::AWAITED | Attention::WAITS
            }
            Side::Receive => Attention::AWAITED,
        };
        let flags = flags | Attention::ERRAND;
        sources.list.push(Source {
            qp: qp.clone(),
            side,
            flags,
            next: 0,
            places: 0,
            looked: (0, 0),
            inbound: None,
            settled: 0,
        });
        self.fill.divide(self.capacity(), sources.list.len());
        // What is in flight was posted when the share was larger.
        if sources.most_in_flight() > self.fill.share() {
            self.fill.watch(|| sources.waiting());
        }
    }

    /// Forgets a queue pair; what it had completed and nobody polled is gone with it, as on Apple's device, where polling
    /// walks the queue pair's own ring (SQCU, from the provider's code).
    pub(crate) fn detach(&self, qp: &SoftQp) {
        let mut sources = self.poll.0.lock();
        sources.list.retain(|source| !ptr::eq(&*source.qp, qp));
        sources.turn = 0;
        self.fill.divide(self.capacity(), sources.list.len());
        self.fill.recount(|| sources.waiting());
    }

    /// Takes the queues of a queue pair as polled up to what was posted, when it goes back to RESET.
    pub(crate) fn skip(&self, qp: &SoftQp, side: Side, posted: u64, places: u64) {
        let mut sources = self.poll.0.lock();
        for source in sources.list.iter_mut().filter(|source| ptr::eq(&*source.qp, qp) && source.side == side) {
            source.next = posted;
            source.places = places;
            source.looked = (posted, places);
        }
        self.fill.recount(|| sources.waiting());
    }

    /// Lets what has arrived for a queue pair go to its receives.
    pub(crate) fn settle_arrivals(&self, qp: &SoftQp) {
        if let Some(source) = self.poll.0.lock().receives_of(qp) {
            source.settle_arrivals();
        }
    }

    /// The first receive of a queue pair that no message was taken for.
    pub(crate) fn next_receive(&self, qp: &SoftQp) -> u64 {
        self.poll.0.lock().receives_of(qp).map_or(0, |source| source.next.max(source.settled))
    }

    /// Whether the peer has left the connection, and all that it sent before was taken.
    pub(crate) fn is_deserted(&self, qp: &SoftQp) -> bool {
        let mut sources = self.poll.0.lock();
        sources.receives_of(qp).is_some_and(|source| {
            let next = source.next.max(source.settled);
            source.inbound.as_ref().is_some_and(|inbound| matches!(inbound.next(next), Next::End))
        })
    }

    /// Says where a queue pair's receives get their messages from. Once it returns, they get none from elsewhere.
    pub(crate) fn set_inbound(&self, qp: &SoftQp, inbound: Option<Inbound>) {
        let mut sources = self.poll.0.lock();
        if let Some(source) = sources.receives_of(qp) {
            source.inbound = inbound.map(Box::new);
        }
    }
}

impl Sources {
    fn receives_of(&mut self, qp: &SoftQp) -> Option<&mut Source> {
        self.list.iter_mut().find(|source| ptr::eq(&*source.qp, qp) && source.side == Side::Receive)
    }

    /// How many completions nobody has polled: not of unsignaled requests, nor of those whose completion is lost. Requests
    /// complete in order, so a queue's end at the first that has not.
    pub(crate) fn waiting(&self) -> u64 {
        let of = |source: &Source| match source.side {
            Side::Send => {
                let sends = &source.qp.sends;
                // SAFETY: below `completed`, loaded with acquire, and not released: the poller's, whose latch we hold.
                let counts = |&counter: &u64| unsafe { (*sends.at(counter)).has_completion() };
                (source.next..source.qp.completed.0.load(Ordering::Acquire)).filter(counts).count()
            }
            Side::Receive => {
                let slots = &source.qp.slots;
                // SAFETY: slots exist for the life of the ring.
                let slot = |counter: u64| unsafe { &*slots.at(counter) };
                let done =
                    |&counter: &u64| slot(counter).mark.load(Ordering::Acquire) == Slot::done(slots.lap(counter));
                // SAFETY: done, loaded with acquire: the poller's.
                let counts = |&counter: &u64| unsafe { (*slot(counter).body.get()).done.status } != LOST;
                (source.next..).take_while(done).filter(counts).count()
            }
        };
        self.list.iter().map(of).sum::<usize>() as u64
    }

    /// The most requests that one of the queues has in flight, as far as can be told.
    fn most_in_flight(&self) -> u64 {
        let of = |source: &Source| {
            let posted = match source.side {
                Side::Send => source.qp.send.0.try_lock().map(|send| send.posted),
                Side::Receive => source.qp.receive.0.try_lock().map(|receive| receive.posted),
            };
            posted.map_or(u64::MAX, |posted| posted - source.next)
        };
        self.list.iter().map(of).max().unwrap_or(0)
    }
}

/// # Safety
///
/// As for [`sys::ibv_poll_cq`], except that null pointers and negative counts are refused.
pub(crate) unsafe extern "C" fn poll_cq(cq: *mut sys::ibv_cq, count: c_int, wc: *mut sys::ibv_wc) -> c_int {
    // SAFETY: a non-null cq is a live completion queue, promised by the caller, and those of this table's contexts are
    // SoftCq.
    let Some(cq) = (unsafe { cq.cast::<SoftCq>().as_ref() }) else { return -libc::EINVAL };
    if !cq.birth.is_here() {
        return -libc::EPERM;
    }
    if cq.faulty
        && let Err(errno) = cq.context.device.called("ibv_poll_cq")
    {
        return -errno;
    }
    if count < 0 || (wc.is_null() && count != 0) {
        return -libc::EINVAL;
    }
    let wanted = count as usize;
    let mut sources = cq.poll.0.lock();
    let Sources { list, turn } = &mut *sources;
    let (mut taken, mut failing) = (0, None);
    let length = list.len();
    let (mut last, mut part) = list.split_at_mut((*turn).min(length));
    let mut index = *turn;
    'full: loop {
        for source in part {
            index += 1;
            let attention = source.qp.attention.0.has(source.flags);
            if !attention && source.is_idle() {
                continue;
            }
            // SAFETY: wc has room for `count` completions, promised by the caller, and `taken` is at most that.
            let out = unsafe { wc.add(taken) };
            let room = wanted - taken;
            if attention {
                failing = source.attend().or(failing);
            }
            taken += match source.side {
                // SAFETY: `out` has `room` cells left.
                Side::Send => unsafe { source.poll_sends(out, room) },
                // SAFETY: as above.
                Side::Receive => unsafe {
                    if source.inbound.is_some() && cq.fill.is_watched() {
                        source.settle_arrivals();
                    }
                    source.poll_receives(out, room)
                },
            };
            if taken == wanted {
                *turn = if index >= length { index - length } else { index };
                break 'full;
            }
        }
        if last.is_empty() {
            break;
        }
        part = core::mem::take(&mut last);
    }
    if taken != 0 {
        cq.fill.polled(taken as u64);
    }
    drop(sources);
    if cq.faulty
        && taken < wanted
        && let Some(wr_id) = cq.context.device.stray(taken)
    {
        // SAFETY: wc has room for `count` completions, and `taken` is less.
        unsafe { wc.add(taken).write(sys::ibv_wc { wr_id, ..Default::default() }) };
        taken += 1;
    }
    if let Some(qp) = failing {
        overrun::run_errand_now(&qp);
    }
    taken as c_int
}

impl Source {
    /// Whether there is nothing to poll, as far as one load tells.
    #[inline]
    fn is_idle(&self) -> bool {
        let qp = &*self.qp;
        match self.side {
            Side::Send => qp.completed.0.load(Ordering::Acquire) == self.looked.0,
            Side::Receive => {
                // SAFETY: the slot exists for the life of the ring.
                let mark = unsafe { &(*qp.slots.at(self.next)).mark };
                self.inbound.is_none() && mark.load(Ordering::Acquire) != Slot::done(qp.slots.lap(self.next))
            }
        }
    }

    /// Looks after what is out of the ordinary. Returns the queue pair if there is something to do that cannot be done under
    /// the latch.
    #[cold]
    fn attend(&self) -> Option<Arc<SoftQp>> {
        match self.side {
            Side::Send => matching::help_sends(&self.qp),
            Side::Receive => match &self.qp.presence {
                Some(presence) => {
                    exchange::look_for_light(&self.qp, presence);
                    matching::help_sends(&self.qp);
                }
                None => matching::help_receives(&self.qp),
            },
        }
        self.qp.attention.0.has(Attention::ERRAND).then(|| self.qp.clone())
    }

    /// In a shared fabric messages are taken when somebody looks for them. Here they all are: those that have arrived go to
    /// their receives, as long as the completion queue has room.
    #[cold]
    fn settle_arrivals(&mut self) {
        let qp = &*self.qp;
        self.settled = self.settled.max(self.next);
        while let Some(inbound) = &self.inbound {
            let counter = self.settled;
            // SAFETY: the slot exists for the life of the ring.
            let slot = unsafe { &*qp.slots.at(counter) };
            let lap = qp.slots.lap(counter);
            if slot.mark.load(Ordering::Acquire) != Slot::posted(lap) {
                break;
            }
            // SAFETY: posted, loaded with acquire, so the owner's writes are visible; in a shared fabric the poller is the one
            // who matches, and slot and record are its until we release their places.
            let (record, posted) = unsafe { (&*qp.receives.at(counter), (*slot.body.get()).posted) };
            let Some(outcome) = exchange::receive(qp, inbound, counter, record, &posted) else { break };
            let room = outcome.lost || overrun::admit(&qp.receive_cq, qp);
            let ending = if room && !outcome.lost { outcome.status.0 as u16 } else { LOST };
            let flags = if outcome.immediate.is_some() { Done::IMMEDIATE } else { 0 };
            let immediate = outcome.immediate.unwrap_or(0);
            let done = Done { status: ending, flags, length: outcome.length, immediate, ..flushed(room) };
            // SAFETY: as above.
            unsafe { slot.body.get().write(Body { done }) };
            slot.mark.store(Slot::done(lap), Ordering::Release);
            self.settled += 1;
            inbound.taken(self.settled);
            if !room {
                // The queue pair is about to fail: nothing arrives any more.
                self.inbound = None;
            }
        }
    }

    /// # Safety
    ///
    /// `out` has room for `room` completions.
    #[inline]
    unsafe fn poll_sends(&mut self, out: *mut sys::ibv_wc, room: usize) -> usize {
        let qp = &*self.qp;
        let completed = qp.completed.0.load(Ordering::Acquire);
        let ((mut next, mut places), mut taken) = (self.looked, 0);
        while taken < room && next != completed {
            // SAFETY: the record lies below `completed`, loaded with acquire, so the matcher's writes are visible and
            // over; it is not written again before we release its places below.
            let record = unsafe { &*qp.sends.at(next) };
            next += 1;
            places += u64::from(record.places);
            // An unsignaled request is retired by a later signaled one, not by itself.
            if record.lost {
                (self.next, self.places) = (next, places);
                continue;
            }
            if record.has_completion() {
                let completion = sys::ibv_wc {
                    wr_id: record.wr_id,
                    status: status(record.status),
                    opcode: opcode::IBV_WC_SEND,
                    byte_len: record.length,
                    qp_num: qp.number,
                    ..Default::default()
                };
                // SAFETY: `taken` is below `room`.
                unsafe { report(qp, out.add(taken), completion) };
                taken += 1;
                (self.next, self.places) = (next, places);
            }
        }
        self.looked = (next, places);
        if taken != 0 {
            qp.released.0.sends.store(self.next, Ordering::Relaxed);
            qp.released.0.send_places.store(self.places, Ordering::Release);
        }
        taken
    }

    /// # Safety
    ///
    /// `out` has room for `room` completions.
    #[inline]
    unsafe fn poll_receives(&mut self, out: *mut sys::ibv_wc, room: usize) -> usize {
        let qp = &*self.qp;
        let mut taken = 0;
        while taken < room {
            let counter = self.next;
            // SAFETY: the slot exists for the life of the ring.
            let slot = unsafe { &*qp.slots.at(counter) };
            let lap = qp.slots.lap(counter);
            let mark = slot.mark.load(Ordering::Acquire);
            if mark != Slot::done(lap) {
                // Where completions are counted, messages go to their receives beforehand: see `settle_arrivals`.
                let is_next = mark == Slot::posted(lap) && !qp.receive_cq.fill.is_watched();
                let Some(inbound) = self.inbound.as_deref().filter(|_| is_next) else { break };
                // SAFETY: posted, loaded with acquire, so the owner's writes are visible; in a shared fabric the poller is the
                // one who matches, and slot and record are its until we release their places.
                let (record, posted) = unsafe { (&*qp.receives.at(counter), (*slot.body.get()).posted) };
                let Some(outcome) = exchange::receive(qp, inbound, counter, record, &posted) else { break };
                if outcome.lost {
                    self.next += 1;
                    self.places += u64::from(record.places);
                    continue;
                }
                let completion = sys::ibv_wc {
                    wr_id: record.wr_id,
                    status: outcome.status,
                    opcode: opcode::IBV_WC_RECV,
                    byte_len: outcome.length,
                    imm_data: outcome.immediate.unwrap_or(0),
                    wc_flags: if outcome.immediate.is_some() { sys::IBV_WC_WITH_IMM } else { 0 },
                    qp_num: qp.number,
                    ..Default::default()
                };
                // SAFETY: `taken` is below `room`.
                unsafe { report(qp, out.add(taken), completion) };
                taken += 1;
                self.next += 1;
                self.places += u64::from(record.places);
                continue;
            }
            // SAFETY: done, loaded with acquire: slot and record are the poller's until we release their places.
            let (record, done) = unsafe { (&*qp.receives.at(counter), &(*slot.body.get()).done) };
            self.next += 1;
            self.places += u64::from(record.places);
            if done.status == LOST {
                continue;
            }
            if done.length > INLINE as u32 {
                // On their way while the completion is written and looked at.
                prefetch::bytes(record.address as *const u8);
            }
            let mut outcome = status(u32::from(done.status));
            if done.flags & Done::INLINE != 0 {
                if qp.device.regions.is_live(record.key) {
                    // SAFETY: the range was checked against the region when it was posted and `judge` found it writable;
                    // the region is still registered, and ibv_dereg_mr takes our latch before it returns (fence.rs).
                    // Inline payloads are short.
                    unsafe { small::copy(done.payload.as_ptr(), record.address as *mut u8, done.length as usize) };
                } else {
                    outcome = status::IBV_WC_LOC_PROT_ERR;
                }
            }
            let completion = sys::ibv_wc {
                wr_id: record.wr_id,
                status: outcome,
                opcode: opcode::IBV_WC_RECV,
                byte_len: done.length,
                imm_data: done.immediate,
                qp_num: qp.number,
                wc_flags: if done.flags & Done::IMMEDIATE != 0 { sys::IBV_WC_WITH_IMM } else { 0 },
                ..Default::default()
            };
            // SAFETY: `taken` is below `room`.
            unsafe { report(qp, out.add(taken), completion) };
            taken += 1;
        }
        if taken != 0 {
            if let Some(inbound) = &self.inbound {
                inbound.taken(self.next.max(self.settled));
            }
            qp.released.0.receives.store(self.next, Ordering::Relaxed);
            qp.released.0.receive_places.store(self.places, Ordering::Release);
        }
        taken
    }
}
