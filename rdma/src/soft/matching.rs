//! Pairing sends with receives, and the copy.
//!
//! The rules are those of the device: a send without a receive waits; without a connected peer it is lost, and completes
//! with success; counts of frames that differ are a length error at the receiver and a success at the sender (TN3205:
//! both must post the same number of frames, otherwise the receive fails; the statuses are ADU's and SQCU's reports).
//! Each send and each receive is used once, in order. What other profiles do differently is in `rules.rs`.

use super::overrun;
use super::prefetch;
use super::queue_pair::{Attention, Done, INLINE, LOST, Posted, SendQueue, SendRecord, Slot, SoftQp};
use super::rules;
use super::shared::exchange;
use super::small;
use super::stream::Pace;
use core::sync::atomic::Ordering;
use rdma_sys::ibv_wc_status as status;

/// Matches as many of a queue pair's sends as can be. `send` is its send queue, so the caller holds the latch.
pub(crate) fn advance(qp: &SoftQp, send: &mut SendQueue) {
    advance_new(qp, send, u64::MAX);
}

/// As [`advance`], where the sends from `new` on were posted, and their regions found live, since the caller took the latch:
/// whoever deregisters one waits for the latch of every queue pair of its device.
#[inline(always)]
pub(crate) fn advance_new(qp: &SoftQp, send: &mut SendQueue, new: u64) {
    if let Some(presence) = &qp.presence {
        return exchange::advance(qp, presence, send, new);
    }
    while send.matched != send.posted {
        // SAFETY: a record between `matched` and `posted` was written by a holder of the send latch, which we hold, and
        // the poller does not read it before `completed` passes it.
        let record = unsafe { &mut *qp.sends.at(send.matched) };
        if record.status == status::IBV_WC_SUCCESS.0 {
            match &send.peer {
                // Nobody is there: the frames leave the host and are lost, which the sender cannot tell.
                None => {}
                // No light in the cable: silence.
                Some(peer) if qp.attention.0.has(Attention::DARK) => return hold(qp, peer),
                // Its error state is only a matter of time: see overrun.rs.
                Some(peer) if peer.attention.0.has(Attention::FAILING) => {}
                Some(peer) if qp.limits.special => {
                    let peer = peer.clone();
                    if !rules::step(qp, &peer, send, record) {
                        return;
                    }
                }
                Some(peer) => {
                    let slot = peer.slots.at(send.next_slot);
                    // SAFETY: the slot exists for the life of the ring, which `peer` keeps.
                    let slot = unsafe { &*slot };
                    let lap = peer.slots.lap(send.next_slot);
                    if slot.mark.load(Ordering::Acquire) != Slot::posted(lap) {
                        if wait(qp, peer, slot, lap) {
                            return;
                        }
                        continue;
                    }
                    let is_there = send.matched >= new || is_there(qp, record);
                    if is_there {
                        transfer(peer, record, slot, lap, &mut send.pace);
                        send.next_slot += 1;
                        if record.length > INLINE as u32 && send.matched + 1 == send.posted {
                            // It says where the next message is to go, which will probably be as long. (Of a short one the
                            // slot is all that is written, and to ask for it twice costs more than it saves.)
                            prefetch::to_read(peer.slots.at(send.next_slot));
                        }
                    }
                }
            }
        }
        if qp.limits.special {
            rules::after_send(qp, record);
            (send.delivered, send.fate) = (0, None);
        }
        if record.has_completion() && !overrun::admit(&qp.send_cq, qp) {
            record.lost = true;
        }
        send.matched += 1;
        qp.completed.0.store(send.matched, Ordering::Release);
    }
    if qp.attention.0.has(Attention::WAITS) {
        settle(qp, send);
    }
}

/// Asks for the line that the next send will write, so that it is on its way while the request is looked at.
#[inline]
pub(crate) fn prepare(send: &SendQueue) {
    if let Some(peer) = &send.peer {
        prefetch::to_write(peer.slots.at(send.next_slot));
    } else if let Some(outbound) = &send.outbound {
        outbound.prepare();
    }
}

/// Leaves the send waiting. Returns false if the receive came in the meantime.
///
/// The two flags are hints: a receive that is posted at this very moment may miss them, and this side may miss the
/// receive. Whoever polls next looks at the flags and calls `advance` again, so nobody who can observe a completion
/// misses it, and posting a receive needs no memory fence.
#[cold]
pub(crate) fn wait(qp: &SoftQp, peer: &SoftQp, slot: &Slot, lap: u32) -> bool {
    qp.attention.0.set(Attention::WAITS);
    peer.attention.0.set(Attention::AWAITED);
    slot.mark.load(Ordering::SeqCst) != Slot::posted(lap)
}

/// Leaves the sends waiting for something else than a receive.
#[cold]
pub(crate) fn hold(qp: &SoftQp, peer: &SoftQp) {
    qp.attention.0.set(Attention::WAITS);
    peer.attention.0.set(Attention::AWAITED);
}

/// Takes the hints back once nothing waits.
#[cold]
fn settle(qp: &SoftQp, send: &SendQueue) {
    qp.attention.0.clear(Attention::WAITS);
    if let Some(peer) = &send.peer {
        peer.attention.0.clear(Attention::AWAITED);
    }
}

/// Moves one message, whose payload is there.
#[inline]
fn transfer(peer: &SoftQp, record: &SendRecord, slot: &Slot, lap: u32, pace: &mut Pace) {
    // SAFETY: the mark says posted, with acquire, so the owner's write of this form is visible, and from then on the
    // slot is the matcher's; we are the matcher, for we hold the send latch of the queue pair that it is paired with.
    let posted = unsafe { (*slot.body.get()).posted };
    let verdict = judge(peer, record.length, record.places, &posted);
    let copied = if verdict == status::IBV_WC_SUCCESS { record.length } else { 0 };
    let ending = Ending { status: verdict, copied, length: record.length, immediate: None, lost: false };
    // SAFETY: the payload is there, and `judge` has said that it can be written; we are the matcher.
    unsafe { deliver(peer, slot, lap, &posted, record.address as *const u8, &ending, pace) };
}

/// Whether a send's payload can still be read. If not, the send has failed.
#[inline]
pub(crate) fn is_there(qp: &SoftQp, record: &mut SendRecord) -> bool {
    if record.length != 0 && !record.owned && !qp.device.regions.is_live(record.key) {
        // Deregistered while the send waited: nothing left the host. Inferred.
        record.status = status::IBV_WC_LOC_PROT_ERR.0;
        return false;
    }
    true
}

/// How a receive ends.
pub(crate) struct Ending {
    pub(crate) status: status,
    /// The bytes that reach its memory.
    pub(crate) copied: u32,
    /// The bytes that its completion tells.
    pub(crate) length: u32,
    pub(crate) immediate: Option<u32>,
    /// There is to be no completion.
    pub(crate) lost: bool,
}

/// Ends a receive, with the bytes at `source`.
///
/// # Safety
///
/// The slot is the matcher's, who calls this, and says posted as `posted`. If bytes are copied, they can be read: the
/// sender's region was checked to hold the range when it was posted, is registered, and cannot go while the caller holds
/// the send latch, because `ibv_dereg_mr` takes it before it returns (fence.rs). And they can be written: `judge`, or
/// `rules::meet`, found the receive permitted, its region live and the range as long.
#[inline]
pub(crate) unsafe fn deliver(
    peer: &SoftQp,
    slot: &Slot,
    lap: u32,
    posted: &Posted,
    source: *const u8,
    ending: &Ending,
    pace: &mut Pace,
) {
    let length = ending.copied as usize;
    // SAFETY: the slot is the matcher's until the store of the mark below; `posted` has been read from it.
    let done = unsafe { &raw mut (*slot.body.get()).done };
    let mut flags = 0;
    if length != 0 {
        if length <= INLINE {
            flags = Done::INLINE;
            // SAFETY: the source can be read, promised by the caller; the payload has room for INLINE bytes.
            unsafe { small::copy(source, (&raw mut (*done).payload).cast(), length) };
        } else {
            let target = posted.address as *mut u8;
            // SAFETY: promised by the caller; the deregistration of the target's region waits for our latch, too. The
            // ranges may overlap if one process plays both hosts, which `Pace::copy` allows.
            unsafe { pace.copy(source, target, length) };
        }
    }
    if ending.immediate.is_some() {
        flags |= Done::IMMEDIATE;
    }
    let admitted = !ending.lost && overrun::admit(&peer.receive_cq, peer);
    let outcome = if admitted { ending.status.0 as u16 } else { LOST };
    // SAFETY: as for `done`.
    unsafe {
        (&raw mut (*done).status).write(outcome);
        (&raw mut (*done).flags).write(flags);
        (&raw mut (*done).length).write(ending.length);
        (&raw mut (*done).immediate).write(ending.immediate.unwrap_or(0));
    }
    slot.mark.store(Slot::done(lap), Ordering::Release);
}

/// The status with which a receive of `receiver` ends when a message of this length, in so many places, meets it.
#[inline]
pub(crate) fn judge(receiver: &SoftQp, length: u32, places: u32, posted: &Posted) -> status {
    if places != posted.places || length > posted.length {
        return status::IBV_WC_LOC_LEN_ERR;
    }
    if posted.forbidden != 0 || (posted.length != 0 && !receiver.device.regions.is_live(posted.key)) {
        return status::IBV_WC_LOC_PROT_ERR;
    }
    status::IBV_WC_SUCCESS
}

/// Lets a peer's send that waits for one of our receives go on. For whoever posts or polls receives.
#[cold]
pub(crate) fn help_peer(peer: &SoftQp) {
    // If somebody holds the latch, they are at it, or the next poll will be.
    if let Some(mut send) = peer.send.0.try_lock() {
        advance(peer, &mut send);
    }
}

/// The poller's turn: completes what can be completed of the sends that wait on either side.
#[cold]
pub(crate) fn help_sends(qp: &SoftQp) {
    if let Some(mut send) = qp.send.0.try_lock() {
        advance(qp, &mut send);
    }
}

/// As [`help_peer`], for the poller, which does not hold the receive latch.
#[cold]
pub(crate) fn help_receives(qp: &SoftQp) {
    let Some(receive) = qp.receive.0.try_lock() else { return };
    let peer = receive.peer.clone();
    drop(receive);
    if let Some(peer) = peer {
        help_peer(&peer);
    }
}
