//! Messages between queue pairs of a shared fabric: the counterpart of [`matching`](crate::soft::matching).

use super::descriptor::Message;
use super::inbound::{Inbound, Next};
use super::link::Presence;
use super::outbound::Target;
use crate::soft::matching::{self, judge};
use crate::soft::overrun;
use crate::soft::profile::Matching;
use crate::soft::queue_pair::{Attention, Limits, Posted, ReceiveQueue, ReceiveRecord, SendQueue, SoftQp};
use crate::soft::rules::{self, Meeting};
use core::sync::atomic::Ordering;
use rdma_sys::ibv_wc_status as status;

/// Writes as many of a queue pair's sends as there is room for, and completes those that have a receive. `send` is its
/// send queue, so the caller holds the latch; those from `new` on were posted since it was taken (see
/// [`advance_new`](matching::advance_new)).
#[inline]
pub(crate) fn advance(qp: &SoftQp, presence: &Presence, send: &mut SendQueue, new: u64) {
    loop {
        if send.outbound.as_ref().is_some_and(|outbound| !outbound.stands()) {
            abandon(qp, presence, send);
        }
        write(qp, presence, send, new);
        complete(qp, presence, send);
        if send.matched == send.posted {
            if qp.attention.0.has(Attention::WAITS) {
                qp.attention.0.clear(Attention::WAITS);
            }
            return;
        }
        if send.outbound.as_mut().is_none_or(|outbound| outbound.is_worth_waiting()) {
            break;
        }
        abandon(qp, presence, send);
    }
    if !qp.attention.0.has(Attention::WAITS) {
        qp.attention.0.set(Attention::WAITS);
    }
}

#[inline]
fn write(qp: &SoftQp, presence: &Presence, send: &mut SendQueue, new: u64) {
    while send.written != send.posted {
        // SAFETY: a record between `matched` and `posted` was written by a holder of the send latch, which we hold, and
        // the poller does not read it before `completed` passes it.
        let record = unsafe { &mut *qp.sends.at(send.written) };
        if record.status == status::IBV_WC_SUCCESS.0 {
            if send.outbound.is_none() {
                match presence.find(send.peer_number, &send.left) {
                    Target::Open(outbound) => send.outbound = Some(outbound),
                    Target::Absent => {}
                    Target::Later => return,
                }
            }
            if send.outbound.is_some() && presence.is_dark() {
                return;
            }
            if qp.limits.special {
                if send.outbound.is_some() && matching::is_there(qp, record) && !rules::write(qp, send, record) {
                    return;
                }
            } else if let Some(outbound) = &mut send.outbound
                && (send.written >= new || matching::is_there(qp, record))
            {
                // SAFETY: the region was checked to hold the range when it was posted, was still registered when we had
                // the send latch (found when it was posted under it, or above), and cannot go while we hold the send latch: ibv_dereg_mr takes it before it returns (fence.rs).
                let written = unsafe { outbound.write(record.address as *const u8, record.length, record.immediate) };
                if written.is_none() {
                    return;
                }
                record.message = written;
            }
        }
        if qp.limits.special {
            send.fate = None;
        }
        send.written += 1;
    }
}

#[inline]
fn complete(qp: &SoftQp, presence: &Presence, send: &mut SendQueue) {
    while send.matched != send.written {
        // SAFETY: as in `write`.
        let record = unsafe { &mut *qp.sends.at(send.matched) };
        if let (Some(_), Some(outbound)) = (record.message, &mut send.outbound) {
            let receives = if qp.limits.matching == Matching::Packets { Limits::frames_of(record.length) } else { 1 };
            let receives = if record.doubled { 2 * receives } else { receives };
            if !outbound.covered(receives, || presence.is_dark()) {
                return;
            }
            outbound.use_up(receives);
        }
        if qp.limits.special {
            rules::after_send(qp, record);
        }
        if record.has_completion() && !overrun::admit(&qp.send_cq, qp) {
            record.lost = true;
        }
        send.matched += 1;
        qp.completed.0.store(send.matched, Ordering::Release);
    }
}

/// The peer has left the connection, or exists no more: what waits for it is lost, which its sender cannot tell.
#[cold]
fn abandon(qp: &SoftQp, presence: &Presence, send: &mut SendQueue) {
    if let Some(outbound) = send.outbound.take() {
        let count = outbound.written();
        outbound.leave(count);
    }
    forget_messages(qp, send);
    complete(qp, presence, send);
}

/// What was written and has no receive is nobody's message any more.
fn forget_messages(qp: &SoftQp, send: &mut SendQueue) {
    for counter in send.matched..send.written {
        // SAFETY: as in `write`.
        unsafe { (*qp.sends.at(counter)).message = None };
    }
}

/// Leaves the connection as its sender: messages that have no receive by now are withdrawn.
pub(crate) fn leave(qp: &SoftQp, presence: &Presence, send: &mut SendQueue) {
    advance(qp, presence, send, u64::MAX);
    let Some(outbound) = send.outbound.take() else { return };
    let mut waiting = (send.matched..send.written).filter_map(|counter| {
        // SAFETY: as in `write`.
        unsafe { (*qp.sends.at(counter)).message }
    });
    let count = waiting.next().unwrap_or(outbound.written());
    // The others have been noticed, or their other ends are no more.
    send.left.retain(|&link| presence.is_announced(link));
    send.left.push(outbound.link());
    outbound.leave(count);
    forget_messages(qp, send);
}

/// What a receive ends with.
pub(crate) struct Outcome {
    pub(crate) status: status,
    pub(crate) length: u32,
    pub(crate) immediate: Option<u32>,
    /// There is to be no completion.
    pub(crate) lost: bool,
}

/// Takes the message for a receive that was posted, if it is there.
#[inline(always)]
pub(crate) fn receive(
    qp: &SoftQp,
    inbound: &Inbound,
    counter: u64,
    record: &ReceiveRecord,
    posted: &Posted,
) -> Option<Outcome> {
    if qp.presence.as_ref().is_some_and(|presence| presence.is_unheard(counter)) {
        return None;
    }
    let message = match inbound.next(counter) {
        Next::Nothing => return None,
        Next::End => {
            qp.attention.0.set(Attention::DESERTED);
            return None;
        }
        Next::Message(message) => message,
    };
    let Some(places) = qp.limits.places(message.length) else { return Some(garbled(qp)) };
    if qp.limits.special {
        return Some(receive_by_rules(qp, inbound, counter, record, posted, message));
    }
    let verdict = judge(qp, message.length, places, posted);
    if verdict == status::IBV_WC_SUCCESS && message.length != 0 {
        // SAFETY: `judge` found the receive to be as long as the message, its range writable and its region live; the region
        // cannot go while we hold the poll latch: ibv_dereg_mr takes it before it returns (fence.rs).
        if !unsafe { inbound.copy(counter, message, message.length, record.address as *mut u8) } {
            return Some(garbled(qp));
        }
    }
    Some(Outcome { status: verdict, length: message.length, immediate: None, lost: false })
}

/// As `receive`, where the profile's rules are others.
#[cold]
fn receive_by_rules(
    qp: &SoftQp,
    inbound: &Inbound,
    counter: u64,
    record: &ReceiveRecord,
    posted: &Posted,
    message: Message,
) -> Outcome {
    let immediate = message.immediate.filter(|_| qp.limits.takes_immediate);
    let Meeting { ending, rest } = rules::meet(qp, inbound.rest_of(message), immediate, posted);
    if ending.copied != 0 {
        // SAFETY: `meet` found the receive to be so long, its range writable and its region live, as in `receive`.
        if !unsafe { inbound.copy(counter, message, ending.copied, record.address as *mut u8) } {
            return garbled(qp);
        }
    }
    inbound.leave(message, rest);
    Outcome { status: ending.status, length: ending.length, immediate: ending.immediate, lost: ending.lost }
}

/// The peer's process writes what no sender writes.
#[cold]
fn garbled(qp: &SoftQp) -> Outcome {
    qp.attention.0.set(Attention::FAILING);
    Outcome { status: status::IBV_WC_GENERAL_ERR, length: 0, immediate: None, lost: false }
}

/// Says how many receives there are, after some were posted.
#[inline]
pub(crate) fn say_credit(qp: &SoftQp, presence: &Presence, receive: &ReceiveQueue, before: u64) {
    let Some((generation, base)) = receive.connection else { return };
    presence.credit(generation, receive.posted - base);
    if presence.is_dark() && presence.begin_darkness(before) {
        // Somebody has to look whether there is light again.
        qp.attention.0.set(Attention::AWAITED);
    }
}

/// Looks whether there is light again.
pub(crate) fn look_for_light(qp: &SoftQp, presence: &Presence) {
    if !presence.is_dark() && qp.attention.0.clear(Attention::AWAITED) {
        presence.end_darkness();
    }
}

/// A connection that is ready to be announced.
pub(crate) struct Prepared {
    inbound: Inbound,
    generation: u32,
    base: u64,
    peer: u32,
}

/// Prepares a queue pair's connection with the queue pair `peer` of the far device.
pub(crate) fn prepare(qp: &SoftQp, presence: &Presence, peer: u32) -> Result<Prepared, i32> {
    let base = qp.receive_cq.next_receive(qp);
    let (inbound, generation) = presence.prepare(peer, base)?;
    Ok(Prepared { inbound, generation, base, peer })
}

/// Enters the connection. From now on messages are taken.
pub(crate) fn enter(qp: &SoftQp, presence: &Presence, prepared: Prepared) {
    let Prepared { inbound, generation, base, peer } = prepared;
    let mut receive = qp.receive.0.lock();
    receive.connection = Some((generation, base));
    qp.receive_cq.set_inbound(qp, Some(inbound));
    presence.credit(generation, receive.posted - base);
    presence.announce(generation, peer);
    drop(receive);
    qp.send.0.lock().peer_number = peer;
}
