//! A queue pair: making it, its states, closing it.

use super::call;
use super::domain::RawDomain;
use super::parcel::Parcel;
use super::queue::{Membership, RawQueue};
use super::slots::{Posted, Slots};
use crate::completion::Direction;
use crate::error::{Error, Result};
use crate::queue_pair::QueuePairType;
use core::ffi::c_int;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};
use rdma_sys::{self as sys, QpAttrMask as Mask};
use std::cell::Cell;
use std::sync::Arc;

/// Owns an `ibv_qp`, and is the one poster of its two queues.
pub(crate) struct RawQueuePair {
    pub(super) raw: NonNull<sys::ibv_qp>,
    pub(crate) domain: Arc<RawDomain>,
    pub(super) queues: [Arc<RawQueue>; 2],
    pub(super) slots: Arc<Slots>,
    pub(super) send: Poster,
    pub(super) receive: Poster,
    /// Whether posts take the completion queue's latch.
    pub(super) serialised: bool,
    /// The registrations that the device knows this queue pair may use.
    pub(super) known_regions: u64,
    members: [Membership; 2],
    kind: sys::ibv_qp_type,
    granted: sys::ibv_qp_cap,
    live: bool,
    /// One owner posts: `Send`, not `Sync`.
    _not_sync: PhantomData<Cell<()>>,
}

// SAFETY: the object may be used from any thread, by one at a time (`Cell` in it keeps it from being Sync).
unsafe impl Send for RawQueuePair {}

/// The poster's account of one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poster {
    /// The slot of the next request.
    pub(super) next: u32,
    /// Counts requests.
    pub(super) generation: u32,
    /// Depth that requests have taken since the beginning, and, as far as known, that completions have given back.
    pub(super) taken: u64,
    pub(super) returned: u64,
    /// The granted depth.
    pub(super) depth: u32,
    /// What all ids of this direction begin with.
    pub(super) base: u64,
    /// Unsignaled requests since the last signaled one, and the depth that they take.
    pub(super) run: u16,
    pub(super) run_depth: u32,
}

impl Poster {
    fn new(depth: u32, base: u64) -> Self {
        Poster { next: 0, generation: 0, taken: 0, returned: 0, depth, base, run: 0, run_depth: 0 }
    }
}

/// A request that had no completion when its queue pair was destroyed.
pub(crate) struct Returned {
    pub(crate) token: u64,
    pub(crate) memory: Parcel,
}

/// What to ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) kind: sys::ibv_qp_type,
    /// In the device's unit.
    pub(crate) send_depth: u32,
    pub(crate) receive_depth: u32,
    /// Requests in flight.
    pub(crate) sends: u32,
    pub(crate) receives: u32,
}

impl RawQueuePair {
    pub(crate) fn create(
        domain: &Arc<RawDomain>,
        send_queue: &Arc<RawQueue>,
        receive_queue: &Arc<RawQueue>,
        request: Request,
    ) -> Result<Self> {
        let on_device = |error: Error| error.on_device(domain.context.device());
        let verbs = &domain.context.library().verbs;
        let mut init = sys::ibv_qp_init_attr {
            send_cq: send_queue.as_ptr(),
            recv_cq: receive_queue.as_ptr(),
            cap: sys::ibv_qp_cap {
                max_send_wr: request.send_depth,
                max_recv_wr: request.receive_depth,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 0,
            },
            qp_type: request.kind,
            sq_sig_all: 0,
            ..Default::default()
        };
        // SAFETY: a live protection domain; attributes whose completion queues are live, as this object keeps them.
        let raw = call::pointer("ibv_create_qp", || unsafe { (verbs.create_qp)(domain.as_ptr(), &mut init) }).map_err(
            |error| {
                let Request { kind, send_depth, receive_depth, .. } = request;
                let (kind, unit) = (QueuePairType::from_raw(kind), domain.rules.depth_unit());
                on_device(error).or_detail(|| format!("{kind}, of depth {send_depth} and {receive_depth} {unit}"))
            },
        )?;
        // SAFETY: a live queue pair.
        let number = unsafe { (*raw.as_ptr()).qp_num };
        let unattached = Unattached { domain, raw: Some(raw) };
        // What was granted is not what was asked for (TN3205).
        let granted = query(domain, raw)?.0.cap;
        let (sends, receives) = (request.sends.min(granted.max_send_wr), request.receives.min(granted.max_recv_wr));
        let slots = Arc::new(Slots::new(number, sends, receives));
        let (send_member, receive_member) = if Arc::ptr_eq(send_queue, receive_queue) {
            let member = send_queue.attach(&slots, sends + receives)?;
            (member, member)
        } else {
            let member = send_queue.attach(&slots, sends)?;
            let other = receive_queue.attach(&slots, receives);
            (member, other.inspect_err(|_| send_queue.detach(&mut send_queue.lock(), member, sends))?)
        };
        unattached.keep();
        Ok(RawQueuePair {
            raw,
            domain: domain.clone(),
            queues: [send_queue.clone(), receive_queue.clone()],
            send: Poster::new(granted.max_send_wr, send_member.base(Direction::Send)),
            receive: Poster::new(granted.max_recv_wr, receive_member.base(Direction::Receive)),
            serialised: domain.rules.serialised(),
            known_regions: u64::MAX,
            slots,
            members: [send_member, receive_member],
            kind: request.kind,
            granted,
            live: true,
            _not_sync: PhantomData,
        })
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_qp {
        self.raw.as_ptr()
    }

    pub(crate) fn number(&self) -> u32 {
        self.slots.number
    }

    pub(crate) fn kind(&self) -> sys::ibv_qp_type {
        self.kind
    }

    pub(crate) fn granted(&self) -> sys::ibv_qp_cap {
        self.granted
    }

    pub(crate) fn requests(&self) -> (u32, u32) {
        (self.slots.send.capacity(), self.slots.receive.capacity())
    }

    /// How many sends have been posted, modulo 2³².
    pub(crate) fn sends(&self) -> u32 {
        self.send.generation
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.slots.is_poisoned()
    }

    /// The error with what it is about.
    pub(crate) fn about(&self, error: Error) -> Error {
        error.on_device(self.domain.context.device()).on_queue_pair(self.number())
    }

    pub(crate) fn query(&self) -> Result<sys::ibv_qp_attr> {
        Ok(query(&self.domain, self.raw)?.0)
    }

    /// `ibv_modify_qp`.
    pub(crate) fn modify(&mut self, attributes: &mut sys::ibv_qp_attr, mask: Mask) -> Result<()> {
        let modify = self.domain.context.library().verbs.modify_qp;
        // SAFETY: a live queue pair and complete attributes.
        call::number("ibv_modify_qp", || unsafe { modify(self.as_ptr(), attributes, mask.bits() as c_int) })
            .map_err(|error| self.about(error))
    }

    /// Notes what is registered, for devices to which later registrations are unknown. Just before INIT.
    pub(crate) fn note_registrations(&mut self) {
        if self.domain.rules.registers_first() {
            self.known_regions = self.domain.context.registrations();
        }
    }

    /// Destroys the queue pair, and then takes all memory out of its slots: sends first, each queue oldest first.
    pub(crate) fn close(mut self) -> Result<[Vec<Returned>; 2]> {
        self.destroy()
    }

    fn destroy(&mut self) -> Result<[Vec<Returned>; 2]> {
        self.live = false;
        let [send_queue, receive_queue] = &self.queues;
        let same = Arc::ptr_eq(send_queue, receive_queue);
        // In the order of their addresses, so that two queue pairs that share two queues the other way round do not wait
        // for each other.
        let in_order = send_queue.as_ptr() < receive_queue.as_ptr();
        let (first, second) = if in_order { (send_queue, receive_queue) } else { (receive_queue, send_queue) };
        let mut first_table = first.lock();
        let mut second_table = if same { None } else { Some(second.lock()) };
        let destroy = self.domain.context.library().verbs.destroy_qp;
        // SAFETY: a live queue pair, destroyed once: `live` was true.
        let result = call::number("ibv_destroy_qp", || unsafe { destroy(self.raw.as_ptr()) });
        if let Err(error) = result {
            // It may still be at work: everything that it uses is leaked, and its place in the tables stays taken, so that
            // a late completion finds its slot.
            drop((first_table, second_table));
            self.slots.poison();
            for parent in &self.queues {
                core::mem::forget(parent.clone());
            }
            core::mem::forget(self.domain.clone());
            core::mem::forget(self.slots.clone());
            return Err(self.about(error).with_detail("the queue pair and the memory it has in flight are leaked"));
        }
        let (sends, receives) = (self.slots.send.capacity(), self.slots.receive.capacity());
        let [send_member, receive_member] = self.members;
        match &mut second_table {
            None => first.detach(&mut first_table, send_member, sends + receives),
            Some(second_table) => {
                let (send_table, receive_table) = if in_order {
                    (&mut *first_table, &mut **second_table)
                } else {
                    (&mut **second_table, &mut *first_table)
                };
                send_queue.detach(send_table, send_member, sends);
                receive_queue.detach(receive_table, receive_member, receives);
            }
        }
        // SAFETY: we are the poster, hold the latches of both completion queues, and the queue pair has been destroyed, so
        // the device is done with the memory.
        let (sends, receives) =
            unsafe { (self.slots.send.drain(self.send.next), self.slots.receive.drain(self.receive.next)) };
        drop((first_table, second_table));
        let owned = |posted: Posted| Returned {
            token: posted.token,
            // SAFETY: the words came from a slot that owned the memory and has given it up.
            memory: unsafe { Parcel::from_raw(posted.memory) },
        };
        Ok([sends, receives].map(|lane| lane.into_iter().map(owned).collect()))
    }
}

impl Drop for RawQueuePair {
    fn drop(&mut self) {
        if self.live {
            // A failure has leaked what it must; there is nobody to tell.
            let _ = self.destroy();
        }
    }
}

/// A queue pair that has no slots yet: destroyed if it does not get them.
struct Unattached<'a> {
    domain: &'a Arc<RawDomain>,
    raw: Option<NonNull<sys::ibv_qp>>,
}

impl Unattached<'_> {
    fn keep(mut self) {
        self.raw = None;
    }
}

impl Drop for Unattached<'_> {
    fn drop(&mut self) {
        if let Some(raw) = self.raw {
            let destroy = self.domain.context.library().verbs.destroy_qp;
            // SAFETY: a live queue pair that nobody else has.
            if call::number("ibv_destroy_qp", || unsafe { destroy(raw.as_ptr()) }).is_err() {
                core::mem::forget(self.domain.clone());
            }
        }
    }
}

fn query(domain: &RawDomain, raw: NonNull<sys::ibv_qp>) -> Result<(sys::ibv_qp_attr, sys::ibv_qp_init_attr)> {
    let mut attributes = sys::ibv_qp_attr::default();
    let mut init = sys::ibv_qp_init_attr { recv_cq: null_mut(), ..Default::default() };
    let mask = Mask::STATE | Mask::CAP | Mask::AV | Mask::PATH_MTU | Mask::DEST_QPN | Mask::RQ_PSN | Mask::SQ_PSN;
    let query = domain.context.library().verbs.query_qp;
    // SAFETY: a live queue pair and two structures to fill.
    call::number("ibv_query_qp", || unsafe { query(raw.as_ptr(), &mut attributes, mask.bits() as c_int, &mut init) })
        .map_err(|error| error.on_device(domain.context.device()))?;
    Ok((attributes, init))
}

impl fmt::Debug for RawQueuePair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RawQueuePair")
            .field("number", &format_args!("{:#08x}", self.number()))
            .field("granted", &self.granted)
            .finish_non_exhaustive()
    }
}
