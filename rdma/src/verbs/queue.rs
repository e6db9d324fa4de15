//! A completion queue, and whose completions it carries.
//!
//! The latch around the [`Table`] is what polling, attaching and closing exclude one another with. Where the device wants
//! posts and polls serialised (Apple's does: concurrent use lost completions, jonathan308/ThunderMLX), posts take it, too.

use super::call;
use super::context::RawContext;
use super::latch::{Held, Latch};
use super::parcel::Parcel;
use super::slots::{Fault, GENERATION_BITS, INDEX_BITS, Lane, Slots};
use crate::completion::{Completion, Direction, Report, Sort, Status, Two};
use crate::error::{Error, ErrorKind, Result};
use core::ffi::c_int;
use core::fmt;
use core::ptr::{NonNull, null_mut};
use rdma_sys as sys;
use std::sync::Arc;

/// Owns an `ibv_cq`.
///
/// Its latch is written at each poll and each post, so it shares no cache line (nor the neighbour that processors fetch with
/// it) with what another thread reads.
#[repr(align(128))]
pub(crate) struct RawQueue {
    pub(crate) context: Arc<RawContext>,
    raw: NonNull<sys::ibv_cq>,
    live: bool,
    capacity: u32,
    /// What a wait ends with that nothing came of: made once, because it is no rare thing.
    pub(crate) no_completion: Error,
    table: Latch<Table>,
}

// SAFETY: verbs libraries may be called from any thread; where a device needs its calls serialised, the latch does it.
unsafe impl Send for RawQueue {}
// SAFETY: as above.
unsafe impl Sync for RawQueue {}

/// The queue pairs of a completion queue.
#[derive(Default)]
pub(crate) struct Table {
    entries: Vec<Entry>,
    free: Vec<u16>,
    /// Requests that queue pairs have reserved of the capacity.
    reserved: u32,
    /// Completions of queue pairs that are gone.
    stale: u64,
}

struct Entry {
    generation: u16,
    slots: Option<Arc<Slots>>,
}

/// A queue pair's place in a completion queue: the high bits of its work requests' ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    index: u16,
    generation: u16,
}

const MEMBER_BITS: u32 = 12;
const MEMBER_GENERATION_BITS: u32 = 16;
const _: () = assert!(MEMBER_BITS + MEMBER_GENERATION_BITS + 1 + INDEX_BITS + GENERATION_BITS == 64);

impl Membership {
    /// The id of a request: member | generation of the member | direction | slot | generation of the slot.
    #[inline]
    pub(crate) fn base(self, direction: Direction) -> u64 {
        let member = u64::from(self.index) << MEMBER_GENERATION_BITS | u64::from(self.generation);
        (member << 1 | u64::from(direction == Direction::Receive)) << (INDEX_BITS + GENERATION_BITS)
    }
}

/// The low part of an id.
#[inline]
pub(crate) fn request_id(base: u64, slot: u32, generation: u32) -> u64 {
    base | u64::from(slot) << GENERATION_BITS | u64::from(generation & ((1 << GENERATION_BITS) - 1))
}

struct Id {
    member: Membership,
    direction: Direction,
    slot: u32,
    generation: u32,
}

#[inline]
fn parse(id: u64) -> Id {
    let low = |bits: u32| (1_u64 << bits) - 1;
    let rest = id >> GENERATION_BITS;
    let high = rest >> INDEX_BITS;
    let member = high >> 1;
    Id {
        member: Membership { index: (member >> MEMBER_GENERATION_BITS) as u16, generation: member as u16 },
        direction: if high & 1 == 1 { Direction::Receive } else { Direction::Send },
        slot: (rest & low(INDEX_BITS)) as u32,
        generation: (id & low(GENERATION_BITS)) as u32,
    }
}

/// What became of one completion of the provider, where it is not simply a completion.
pub(crate) enum Detour {
    /// Of a queue pair that has been closed.
    Stale,
    /// An unsignaled request ended with it, and comes first; the provider's completion is still to be routed.
    Earlier(Completion),
    /// It broke the rules.
    Fault(Error),
}

impl RawQueue {
    pub(crate) fn create(context: &Arc<RawContext>, capacity: u32) -> Result<Arc<Self>> {
        let on_device = |error: Error| error.on_device(context.device());
        let Ok(asked) = c_int::try_from(capacity) else {
            let detail = format!("a completion queue of {capacity} entries: at most {} can be asked for", c_int::MAX);
            return Err(on_device(Error::argument(detail)));
        };
        // SAFETY: an open context; no cookie, no channel, vector 0.
        let raw = call::pointer("ibv_create_cq", || unsafe {
            (context.library().verbs.create_cq)(context.as_ptr(), asked, null_mut(), null_mut(), 0)
        })
        .map_err(|error| on_device(error).or_detail(|| format!("{capacity} entries")))?;
        // SAFETY: a live completion queue. The capacity that was granted, which is what counts.
        let granted = unsafe { (*raw.as_ptr()).cqe };
        Ok(Arc::new(RawQueue {
            context: context.clone(),
            raw,
            live: true,
            capacity: u32::try_from(granted).unwrap_or(0),
            no_completion: on_device(Error::NO_COMPLETION).kept(),
            table: Latch::new(Table::default()),
        }))
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_cq {
        self.raw.as_ptr()
    }

    /// How many completions it holds.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// How many requests can still be reserved.
    pub(crate) fn unreserved(&self) -> u32 {
        self.capacity - self.lock().reserved
    }

    /// Completions that came for queue pairs that had been closed.
    pub(crate) fn stale(&self) -> u64 {
        self.lock().stale
    }

    #[inline]
    pub(crate) fn lock(&self) -> Held<'_, Table> {
        self.table.lock()
    }

    /// Reserves requests for a queue pair's slots and gives it a place.
    pub(crate) fn attach(&self, slots: &Arc<Slots>, requests: u32) -> Result<Membership> {
        let mut table = self.lock();
        let left = self.capacity - table.reserved;
        if requests > left {
            return Err(Error::new(
                ErrorKind::LimitReached,
                format!(
                    "{requests} requests, sends and receives together, may complete at once, but the completion queue has room for {left} of its {}",
                    self.capacity
                ),
            )
            .on_device(self.context.device())
            .with_hint("ask for fewer requests in QueuePairBuilder, or make the completion queue larger"));
        }
        let index = match table.free.pop() {
            Some(index) => index,
            None if table.entries.len() < 1 << MEMBER_BITS => {
                // Generation 0 is the first, so an id of 0 is a valid one; what is never issued differs in the slot.
                table.entries.push(Entry { generation: 0, slots: None });
                (table.entries.len() - 1) as u16
            }
            None => {
                return Err(Error::new(
                    ErrorKind::LimitReached,
                    format!("a completion queue serves {} queue pairs", 1 << MEMBER_BITS),
                )
                .on_device(self.context.device())
                .with_hint("make another completion queue"));
            }
        };
        table.reserved += requests;
        let entry = &mut table.entries[usize::from(index)];
        entry.slots = Some(slots.clone());
        Ok(Membership { index, generation: entry.generation })
    }

    /// Takes a queue pair out. Its completions are stale from now on.
    pub(crate) fn detach(&self, table: &mut Table, member: Membership, requests: u32) {
        table.reserved -= requests;
        let entry = &mut table.entries[usize::from(member.index)];
        entry.slots = None;
        if let Some(next) = entry.generation.checked_add(1) {
            entry.generation = next;
            table.free.push(member.index);
        }
        // A place whose generations are used up stays empty: an old id never becomes valid again.
    }

    /// Takes what the provider has. The caller holds the table.
    #[inline(always)]
    pub(crate) fn poll(&self, _table: &mut Table, out: &mut [sys::ibv_wc]) -> Result<usize> {
        let room = out.len().min(c_int::MAX as usize) as c_int;
        // SAFETY: a live completion queue, and room for that many completions.
        let count = unsafe { sys::ibv_poll_cq(self.as_ptr(), room, out.as_mut_ptr()) };
        if count < 0 || count > room { Err(self.poll_failed(count, room)) } else { Ok(count as usize) }
    }

    #[cold]
    fn poll_failed(&self, count: c_int, room: c_int) -> Error {
        let error = match call::status("ibv_poll_cq", count) {
            Err(error) if count < 0 => error,
            _ => Error::new(
                ErrorKind::Other,
                format!("ibv_poll_cq took {count} completions although {room} were asked for"),
            ),
        };
        error.on_device(self.context.device())
    }

    /// Finds out whose a completion is and takes the memory out of its slot.
    #[inline(always)]
    pub(crate) fn route(&self, table: &mut Table, wc: &sys::ibv_wc) -> Result<Completion, Detour> {
        let id = parse(wc.wr_id);
        let entry = table.entries.get(usize::from(id.member.index));
        let Some((slots, generation)) = entry.and_then(|entry| Some((entry.slots.as_deref()?, entry.generation)))
        else {
            return Err(self.nobody(table, wc));
        };
        if generation != id.member.generation || slots.is_poisoned() {
            return Err(self.nobody(table, wc));
        }
        let receive = id.direction == Direction::Receive;
        let lane = if receive { &slots.receive } else { &slots.send };
        // SAFETY: `table` is borrowed from this queue's latch, for longer than what is returned.
        let Some(slot) = (unsafe { lane.occupied(id.slot, id.generation) }) else {
            return Err(self.fault(Some(slots), wc, Fault::NeverIssued));
        };
        let posted = slot.posted();
        if posted.run != 0
            && let Some(completion) = earlier(lane, wc.wr_id, posted.run, slots.number)
        {
            return Err(Detour::Earlier(completion));
        }
        let success = wc.status == sys::ibv_wc_status::IBV_WC_SUCCESS;
        if receive && success && wc.byte_len > posted.length {
            return Err(self.fault(Some(slots), wc, Fault::TooLong));
        }
        // Only a receive says how much it is; what a send's completion says there is undefined.
        let length = if receive { wc.byte_len } else { posted.length };
        let immediate = success && wc.wc_flags & sys::IBV_WC_WITH_IMM != 0;
        let (memory, token, start) = (posted.memory, posted.token, posted.start);
        slot.release();
        Ok(Completion(Report {
            // SAFETY: the words came from a slot that owned the memory and has given it up.
            memory: unsafe { Parcel::from_raw(memory) },
            token,
            start,
            length_and_queue_pair: Two::new(length, slots.number),
            status_and_extra: Two::new(wc.status.0, if success { u32::from_be(wc.imm_data) } else { wc.vendor_err }),
            sort: Sort::new(receive, immediate),
        }))
    }

    /// A completion for a queue pair that is not there, or not believed any more.
    #[cold]
    fn nobody(&self, table: &mut Table, wc: &sys::ibv_wc) -> Detour {
        let id = parse(wc.wr_id);
        let Some(entry) = table.entries.get(usize::from(id.member.index)) else {
            return self.fault(None, wc, Fault::NeverIssued);
        };
        let current = entry.generation == id.member.generation && entry.slots.is_some();
        // A generation that has been, or the last one of a place that was used up. (A current one is a poisoned queue pair's:
        // what it has in flight comes back from close().)
        if current || id.member.generation < entry.generation || entry.generation == u16::MAX {
            table.stale += 1;
            return Detour::Stale;
        }
        self.fault(None, wc, Fault::NeverIssued)
    }

    #[cold]
    fn fault(&self, slots: Option<&Slots>, wc: &sys::ibv_wc, fault: Fault) -> Detour {
        let what = match fault {
            Fault::NeverIssued => format!("a completion for work request {:#x}, which is not in flight", wc.wr_id),
            Fault::TooLong => format!("a receive of {} bytes, more than were posted", wc.byte_len),
        };
        let mut error = Error::new(ErrorKind::Poisoned, format!("the device reported {what}"))
            .on_device(self.context.device())
            .with_hint("nothing that this queue pair has in flight can be trusted: close it, which returns its memory");
        if let Some(slots) = slots {
            slots.poison();
            error = error.on_queue_pair(slots.number);
        }
        Detour::Fault(error)
    }

    fn destroy(&mut self) -> Result<()> {
        self.live = false;
        // SAFETY: a live completion queue, destroyed once: `live` was true. Queue pairs hold it, so there are none.
        call::number("ibv_destroy_cq", || unsafe { (self.context.library().verbs.destroy_cq)(self.as_ptr()) })
            .map_err(|error| error.on_device(self.context.device()))
    }

    /// Destroys the queue and says whether that worked. If not, its context is leaked.
    pub(crate) fn close(mut self) -> Result<()> {
        self.destroy().inspect_err(|_| core::mem::forget(self.context.clone()))
    }
}

impl Drop for RawQueue {
    fn drop(&mut self) {
        if self.live && self.destroy().is_err() {
            core::mem::forget(self.context.clone());
        }
    }
}

/// The completion of the oldest of the unsignaled sends that end with the send `id`, if one is left.
#[cold]
fn earlier(lane: &Lane, id: u64, run: u16, queue_pair: u32) -> Option<Completion> {
    let id = parse(id);
    let capacity = lane.capacity();
    (1..=u32::from(run)).rev().find_map(|back| {
        let slot = (id.slot + capacity - back % capacity) % capacity;
        // SAFETY: the caller of `route` holds the queue's latch.
        let slot = unsafe { lane.occupied(slot, id.generation.wrapping_sub(back))? };
        let posted = *slot.posted();
        slot.release();
        Some(Completion(Report {
            // SAFETY: the slot owned the memory, and has given it up.
            memory: unsafe { Parcel::from_raw(posted.memory) },
            token: posted.token,
            start: posted.start,
            length_and_queue_pair: Two::new(posted.length, queue_pair),
            status_and_extra: Two::new(Status::SUCCESS.raw(), 0),
            sort: Sort::Send,
        }))
    })
}

impl fmt::Debug for RawQueue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RawQueue")
            .field("context", &self.context)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_what_was_put_in() {
        for (index, generation) in [(0, 0), (1, 2), (4095, 65535)] {
            for direction in [Direction::Send, Direction::Receive] {
                for (slot, count) in [(0, 0), (7, 9), (32767, (1 << 20) - 1)] {
                    let member = Membership { index, generation };
                    let id = parse(request_id(member.base(direction), slot, count));
                    assert_eq!((id.member, id.direction, id.slot, id.generation), (member, direction, slot, count));
                }
            }
        }
    }
}
