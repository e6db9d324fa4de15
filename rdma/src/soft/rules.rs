//! Where a profile's rules differ from those of Apple's device on macOS 26: one message may take several receives, or a
//! message without a receive may be lost. See [`Matching`].

use super::completion_queue::Side;
use super::faults::Fate;
use super::matching::{self, Ending};
use super::portability::{Caller, Habit};
use super::profile::{FRAME, Matching, Profile};
use super::queue_pair::{Attention, Limits, Posted, ReceiveQueue, SendQueue, SendRecord, Slot, SoftQp};
use core::sync::atomic::Ordering;
use rdma_sys as sys;
use sys::ibv_wc_status as status;

/// What becomes of a receive, and of the message that has met it.
pub(crate) struct Meeting {
    pub(crate) ending: Ending,
    /// The bytes of the message that are left for the next receive.
    pub(crate) rest: u32,
}

/// A message of which `rest` bytes are left meets a receive of `receiver`.
pub(crate) fn meet(receiver: &SoftQp, rest: u32, immediate: Option<u32>, posted: &Posted) -> Meeting {
    let limits = &receiver.limits;
    let faults = receiver.device.wiring.faults();
    let lost = faults.is_some_and(|faults| faults.silences(receiver.device.end, Side::Receive));
    let frames = Limits::frames_of(rest);
    let whole = |verdict| {
        let copied = if verdict == status::IBV_WC_SUCCESS { rest } else { 0 };
        Meeting { ending: Ending { status: verdict, copied, length: rest, immediate, lost }, rest: 0 }
    };
    match limits.matching {
        // In the unit of the profile's depth, as `matching` has it.
        Matching::Frames => whole(matching::judge(receiver, rest, limits.places(rest).unwrap_or(frames), posted)),
        Matching::Mispairing => {
            let room = if limits.frames { posted.places } else { Limits::frames_of(posted.length) };
            let mut meeting = whole(matching::judge(receiver, rest, limits.places(rest).unwrap_or(frames), posted));
            if frames > room {
                // The frames that had no place go on into the next receive (reports of messages that pair wrongly after a
                // mismatch: adurham/exo, jonathan308/ThunderMLX, SQCU/mesh).
                meeting.rest = rest - room * FRAME as u32;
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
                lost,
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
            } else if Limits::frames_of(posted.length) != frames
                && let Some(lint) = receiver.device.wiring.lint()
            {
                let caller = Caller { end: receiver.device.end, call: "ibv_post_recv", wr_id: None };
                lint.note(Habit::LooseReceive, caller);
            }
            whole(verdict)
        }
    }
}

/// Whether a receive's memory may be written.
fn is_permitted(receiver: &SoftQp, posted: &Posted) -> bool {
    posted.forbidden == 0 && (posted.length == 0 || receiver.device.regions.is_live(posted.key))
}

/// Before sends are posted: whether the queue pair was idle for too long.
#[cold]
pub(crate) fn use_again(qp: &SoftQp, send: &mut SendQueue) {
    if let Some(faults) = qp.device.wiring.faults()
        && !send.dead
    {
        send.dead = faults.decayed(qp.device.end, qp.number, send.used);
        send.used = faults.now();
    }
}

/// Whether a send may leave the host now.
enum Departure {
    Now(Fate),
    NotYet,
    /// Its frames are lost.
    Never,
}

fn departure(qp: &SoftQp, send: &mut SendQueue, record: &mut SendRecord) -> Departure {
    if record.length == 0 && qp.limits.loses_empty {
        record.lost = true;
        return Departure::Never;
    }
    let Some(faults) = qp.device.wiring.faults() else { return Departure::Now(Fate::default()) };
    if send.dead {
        return Departure::NotYet;
    }
    let fate = send.fate.get_or_insert_with(|| faults.fate(qp.device.end, Limits::frames_of(record.length)));
    if fate.is_held() {
        return Departure::NotYet;
    }
    if fate.lost { Departure::Never } else { Departure::Now(*fate) }
}

/// Brings the send that is next to its receives, for the holder of the send latch. Returns false if it has to wait.
#[cold]
pub(crate) fn step(qp: &SoftQp, peer: &SoftQp, send: &mut SendQueue, record: &mut SendRecord) -> bool {
    let mut fate = match departure(qp, send, record) {
        Departure::Now(fate) => fate,
        Departure::NotYet => {
            matching::hold(qp, peer);
            return false;
        }
        Departure::Never => return true,
    };
    loop {
        // SAFETY: the slot exists for the life of the ring, which `peer` keeps.
        let slot = unsafe { &*peer.slots.at(send.next_slot) };
        let lap = peer.slots.lap(send.next_slot);
        if slot.mark.load(Ordering::Acquire) != Slot::posted(lap) {
            if qp.limits.matching == Matching::Messages {
                return true;
            }
            if matching::wait(qp, peer, slot, lap) {
                seen_waiting(qp, record);
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
        // SAFETY: `is_there` has said so.
        let spoiled = unsafe { fate.spoil(record.address as *const u8, record.length as usize) };
        let start = spoiled.as_ref().map_or(record.address as *const u8, |bytes| bytes.as_ptr());
        let source = start.wrapping_add(send.delivered as usize);
        // SAFETY: `is_there` and `meet` have said so; we are the matcher.
        unsafe { matching::deliver(peer, slot, lap, &posted, source, &ending, &mut send.pace) };
        send.next_slot += 1;
        send.delivered = record.length - rest;
        if rest == 0 {
            if !fate.again {
                return true;
            }
            fate.again = false;
            (send.delivered, send.fate) = (0, Some(fate));
        }
    }
}

/// In a shared fabric: writes the send that is next to the peer's area, which is there. Returns false if it has to wait.
#[cold]
pub(crate) fn write(qp: &SoftQp, send: &mut SendQueue, record: &mut SendRecord) -> bool {
    let mut fate = match departure(qp, send, record) {
        Departure::Now(fate) => fate,
        Departure::NotYet => return false,
        Departure::Never => return true,
    };
    let Some(outbound) = &mut send.outbound else { return true };
    if !outbound.has_receive() {
        if qp.limits.matching == Matching::Messages {
            return true;
        }
        seen_waiting(qp, record);
    }
    loop {
        // SAFETY: the caller found the payload to be there, and holds the send latch.
        let spoiled = unsafe { fate.spoil(record.address as *const u8, record.length as usize) };
        let source = spoiled.as_ref().map_or(record.address as *const u8, |bytes| bytes.as_ptr());
        // SAFETY: as above.
        let Some(message) = (unsafe { outbound.write(source, record.length, record.immediate) }) else { return false };
        record.message.get_or_insert(message);
        if !fate.again {
            return true;
        }
        fate.again = false;
        record.doubled = true;
        send.fate = Some(fate);
    }
}

/// Looks at a queue pair that was made.
pub(crate) fn seen_queue_pair(qp: &SoftQp) {
    let Some(lint) = qp.device.wiring.lint() else { return };
    if qp.device.all().len() > Profile::thunderbolt_27().queue_pairs as usize {
        lint.note(Habit::ManyQueuePairs, Caller { end: qp.device.end, call: "ibv_create_qp", wr_id: None });
    }
}

/// Looks at a send that was posted.
#[cold]
pub(crate) fn seen_send(qp: &SoftQp, send: &SendQueue, request: &sys::ibv_send_wr, sge: &sys::ibv_sge) {
    let Some(lint) = qp.device.wiring.lint() else { return };
    let inline = request.send_flags & sys::IBV_SEND_INLINE != 0;
    let checks = [
        (u64::from(sge.length) > FRAME, Habit::ManyFrames),
        (sge.length == 0, Habit::EmptyMessage),
        (inline, Habit::Inline),
        (request.opcode == sys::ibv_wr_opcode::IBV_WR_SEND_WITH_IMM, Habit::Immediate),
        (!qp.signal_all && request.send_flags & sys::IBV_SEND_SIGNALED == 0, Habit::Unsignaled),
        (!inline && is_late(qp, sge, send.early_regions), Habit::LateRegistration),
    ];
    lint.note_all(&checks, Caller { end: qp.device.end, call: "ibv_post_send", wr_id: Some(request.wr_id) });
}

/// Looks at a receive that was posted.
#[cold]
pub(crate) fn seen_receive(qp: &SoftQp, receive: &ReceiveQueue, request: &sys::ibv_recv_wr, sge: &sys::ibv_sge) {
    let Some(lint) = qp.device.wiring.lint() else { return };
    let checks = [
        (u64::from(sge.length) > FRAME, Habit::ManyFrames),
        (receive.state.0 < sys::ibv_qp_state::IBV_QPS_RTS.0, Habit::EarlyReceive),
        (is_late(qp, sge, receive.early_regions), Habit::LateRegistration),
    ];
    lint.note_all(&checks, Caller { end: qp.device.end, call: "ibv_post_recv", wr_id: Some(request.wr_id) });
}

fn is_late(qp: &SoftQp, sge: &sys::ibv_sge, early: u64) -> bool {
    sge.length != 0 && qp.device.regions.find(sge.lkey).is_some_and(|region| region.serial > early)
}

/// Looks at a send that waits for its receive.
fn seen_waiting(qp: &SoftQp, record: &SendRecord) {
    if let Some(lint) = qp.device.wiring.lint() {
        let caller = Caller { end: qp.device.end, call: "ibv_post_send", wr_id: Some(record.wr_id) };
        lint.note(Habit::LateReceive, caller);
    }
}

/// After a send was carried out, or has failed. On a network adapter a failure ends the queue pair.
#[cold]
pub(crate) fn after_send(qp: &SoftQp, record: &mut SendRecord) {
    if let Some(faults) = qp.device.wiring.faults() {
        record.lost |= record.signaled && faults.silences(qp.device.end, Side::Send);
    }
    let failed = ![status::IBV_WC_SUCCESS.0, status::IBV_WC_WR_FLUSH_ERR.0].contains(&record.status);
    if failed && qp.limits.matching == Matching::Messages {
        qp.attention.0.set(Attention::FAILING);
    }
}
