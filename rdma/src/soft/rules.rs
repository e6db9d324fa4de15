//! Where a profile's rules differ from those of Apple's device on macOS 26: one message may take several receives, or a
//! message without a receive may be lost. See [`Matching`].

use super::matching::{self, Ending};
use super::profile::{FRAME, Matching};
use super::queue_pair::{Attention, Limits, Posted, SendQueue, SendRecord, Slot, SoftQp};
use core::sync::atomic::Ordering;
use rdma_sys::ibv_wc_status as status;

/// What becomes of a receive, and of the message that has met it.
pub(crate) struct Meeting {
    pub(crate) ending: Ending,
    /// The bytes of the message that are left for the next receive.
    pub(crate) rest: u32,
}

/// A message of which `rest` bytes are left meets a receive of `receiver`.
pub(crate) fn meet(receiver: &SoftQp, rest: u32, immediate: Option<u32>, posted: &Posted) -> Meeting {
    let limits = &receiver.limits;
    let frames = Limits::frames_of(rest);
    let whole = |verdict| {
        let copied = if verdict == status::IBV_WC_SUCCESS { rest } else { 0 };
        Meeting { ending: Ending { status: verdict, copied, length: rest, immediate }, rest: 0 }
    };
    match limits.matching {
        Matching::Frames => whole(matching::judge(receiver, rest, frames, posted)),
        Matching::Mispairing => {
            let mut meeting = whole(matching::judge(receiver, rest, frames, posted));
            if frames > posted.places {
                // The frames that had no place go on into the next receive (reports of messages that pair wrongly after a
                // mismatch: adurham/exo, jonathan308/ThunderMLX, SQCU/mesh).
                meeting.rest = rest - posted.places * FRAME as u32;
            }
            meeting
        }
        Matching::Packets => {
            let length = rest.min(FRAME as u32);
            let fits = posted.length <= FRAME as u32 && length <= posted.length;
            let permitted = is_permitted(receiver, posted);
            let last = length == rest;
            let ending = Ending {
                status: match (fits, permitted) {
                    (true, true) if last => status::IBV_WC_SUCCESS,
                    (true, false) => status::IBV_WC_LOC_PROT_ERR,
                    _ => status::IBV_WC_LOC_LEN_ERR,
                },
                copied: if fits && permitted { length } else { 0 },
                length,
                immediate,
            };
            Meeting { ending, rest: rest - length }
        }
        Matching::Messages => {
            let verdict = if rest > posted.length {
                status::IBV_WC_LOC_LEN_ERR
            } else if !is_permitted(receiver, posted) {
                status::IBV_WC_LOC_PROT_ERR
            } else {
                status::IBV_WC_SUCCESS
            };
            if verdict != status::IBV_WC_SUCCESS {
                receiver.attention.0.set(Attention::FAILING);
            }
            whole(verdict)
        }
    }
}

/// Whether a receive's memory may be written.
fn is_permitted(receiver: &SoftQp, posted: &Posted) -> bool {
    posted.forbidden == 0 && (posted.length == 0 || receiver.device.regions.is_live(posted.key))
}

/// Brings the send that is next to its receives, for the holder of the send latch. Returns false if it has to wait.
#[cold]
pub(crate) fn step(qp: &SoftQp, peer: &SoftQp, send: &mut SendQueue, record: &mut SendRecord) -> bool {
    if record.length == 0 && qp.limits.loses_empty {
        record.lost = true;
        return true;
    }
    loop {
        // SAFETY: the slot exists for the life of the ring, which `peer` keeps.
        let slot = unsafe { &*peer.slots.at(send.next_slot) };
        let lap = peer.slots.lap(send.next_slot);
        if slot.mark.load(Ordering::Acquire) != Slot::posted(lap) {
            if qp.limits.matching == Matching::Messages {
                return true;
            }
            if matching::wait(qp, peer, slot, lap) {
                return false;
            }
            continue;
        }
        if !matching::is_there(qp, record) {
            return true;
        }
        // SAFETY: the mark says posted, with acquire, and we are the matcher, as in `matching::transfer`.
        let posted = unsafe { (*slot.body.get()).posted };
        let Meeting { ending, rest } = meet(peer, record.length - send.delivered, record.immediate, &posted);
        let source = (record.address as *const u8).wrapping_add(send.delivered as usize);
        // SAFETY: `is_there` and `meet` have said so; we are the matcher.
        unsafe { matching::deliver(peer, slot, lap, &posted, source, &ending) };
        send.next_slot += 1;
        send.delivered = record.length - rest;
        if rest == 0 {
            return true;
        }
    }
}

/// In a shared fabric: whether a send's message leaves the host, or is lost.
#[inline]
pub(crate) fn is_sent(qp: &SoftQp, record: &mut SendRecord, has_receive: impl FnOnce() -> bool) -> bool {
    !qp.limits.special || is_sent_by_rules(qp, record, has_receive)
}

#[cold]
fn is_sent_by_rules(qp: &SoftQp, record: &mut SendRecord, has_receive: impl FnOnce() -> bool) -> bool {
    if record.length == 0 && qp.limits.loses_empty {
        record.lost = true;
        return false;
    }
    qp.limits.matching != Matching::Messages || has_receive()
}

/// After a send was carried out, or has failed. On a network adapter a failure ends the queue pair.
#[cold]
pub(crate) fn after_send(qp: &SoftQp, record: &SendRecord) {
    let failed = ![status::IBV_WC_SUCCESS.0, status::IBV_WC_WR_FLUSH_ERR.0].contains(&record.status);
    if failed && qp.limits.matching == Matching::Messages {
        qp.attention.0.set(Attention::FAILING);
    }
}
