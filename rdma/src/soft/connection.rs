//! The states of a queue pair, and who is connected to whom.
//!
//! Masks and values are those of TN3205; the errors are those of the field (ml-explore/mlx issues 3389, 3467 and pull
//! request 4530: EINVAL for a GID that is empty or an index that holds none, ETIMEDOUT for one that is not on this cable
//! or of the other family). A refused transition changes nothing.

use super::completion_queue::Side;
use super::faults::State;
use super::portability::{Caller, Habit};
use super::post::flushed;
use super::queue_pair::{Attention, Attributes, Body, ReceiveQueue, SendQueue, Slot, SoftQp};
use super::shared::exchange::{self, Prepared};
use super::wiring::Still;
use super::{matching, overrun};
use crate::{Gid, GidKind};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use rdma_sys as sys;
use std::sync::{Arc, PoisonError};
use sys::QpAttrMask as Mask;
use sys::ibv_qp_state as state;

const TO_INIT: Mask = Mask::STATE.union(Mask::PKEY_INDEX).union(Mask::PORT).union(Mask::ACCESS_FLAGS);
const TO_RTR: Mask = Mask::STATE.union(Mask::AV).union(Mask::PATH_MTU).union(Mask::DEST_QPN).union(Mask::RQ_PSN);
const TO_RTS: Mask = Mask::STATE.union(Mask::SQ_PSN);

/// The access flags that a UC queue pair may be given. TN3205 gives none, MLX and LLAMA all three.
const ACCESS: u32 = sys::IBV_ACCESS_LOCAL_WRITE | sys::IBV_ACCESS_REMOTE_WRITE | sys::IBV_ACCESS_REMOTE_READ;

/// `ibv_modify_qp`.
pub(crate) fn modify(qp: &Arc<SoftQp>, wanted: &sys::ibv_qp_attr, mask: c_int) -> Result<(), c_int> {
    let mask = Mask::from_bits_retain(mask as u32);
    let wiring = qp.device.wiring.lock();
    let mut attributes = qp.attributes.lock().unwrap_or_else(PoisonError::into_inner);
    if !mask.contains(Mask::STATE) || !exists(&wiring, qp) {
        return Err(libc::EINVAL);
    }
    let mut prepared = None;
    match (attributes.state, wanted.qp_state) {
        (_, state::IBV_QPS_RESET) if mask == Mask::STATE => {
            part(&wiring, qp, state::IBV_QPS_RESET);
            attributes.set = Default::default();
            attributes.known_regions = u64::MAX;
        }
        (_, state::IBV_QPS_ERR) if mask == Mask::STATE => part(&wiring, qp, state::IBV_QPS_ERR),
        (state::IBV_QPS_RESET, state::IBV_QPS_INIT) if mask == TO_INIT => to_init(qp, &mut attributes, wanted)?,
        (state::IBV_QPS_INIT, state::IBV_QPS_RTR) if mask == TO_RTR => {
            half_made(qp, &mut attributes)?;
            prepared = to_rtr(qp, &mut attributes, wanted)?;
        }
        (state::IBV_QPS_RTR, state::IBV_QPS_RTS) if mask == TO_RTS => attributes.set.sq_psn = wanted.sq_psn,
        _ => return Err(libc::EINVAL),
    }
    let next = wanted.qp_state;
    attributes.state = next;
    // SAFETY: `abi.state` is written here only, under the attributes lock; C code may read it at any time, as with every
    // provider.
    unsafe { (*qp.abi.get()).prefix.state = next };
    let mut receive = qp.receive.0.lock();
    (receive.state, receive.known_regions) = (next, attributes.known_regions);
    receive.early_regions = attributes.early_regions;
    drop(receive);
    let mut send = qp.send.0.lock();
    (send.state, send.known_regions) = (next, attributes.known_regions);
    send.early_regions = attributes.early_regions;
    if let Some(faults) = qp.device.wiring.faults() {
        (send.used, send.dead) = (faults.now(), false);
    }
    drop(send);
    match (&qp.presence, prepared) {
        (Some(presence), Some(prepared)) => exchange::enter(qp, presence, prepared),
        _ if next == state::IBV_QPS_RTR => connect(&wiring, qp, &attributes),
        _ => {}
    }
    Ok(())
}

/// Whether a queue pair has not been destroyed meanwhile. What others see of it is somebody else's then.
fn exists(_wiring: &Still, qp: &Arc<SoftQp>) -> bool {
    qp.device.find(qp.number).is_some_and(|known| Arc::ptr_eq(&known, qp))
}

/// In a shared fabric: enters a new connection with the same peer, if it has left the one that there is.
pub(crate) fn renew(qp: &Arc<SoftQp>) {
    let _wiring = qp.device.wiring.lock();
    let attributes = qp.attributes.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(presence) = &qp.presence
        && matches!(attributes.state, state::IBV_QPS_RTR | state::IBV_QPS_RTS)
        // That may have been noticed on the one before. A queue pair that was destroyed meanwhile has none.
        && qp.receive_cq.is_deserted(qp)
    {
        match exchange::prepare(qp, presence, attributes.set.dest_qp_num) {
            Ok(prepared) => exchange::enter(qp, presence, prepared),
            // No memory: the next call tries again.
            Err(_) => qp.attention.0.set(Attention::DESERTED),
        }
    }
}

/// The error state, entered from within.
pub(crate) fn enter_error(qp: &Arc<SoftQp>) {
    let to_error = sys::ibv_qp_attr { qp_state: state::IBV_QPS_ERR, ..Default::default() };
    // From every state, so it cannot fail unless the queue pair is no more.
    let _ = modify(qp, &to_error, sys::IBV_QP_STATE as c_int);
}

fn to_init(qp: &SoftQp, attributes: &mut Attributes, wanted: &sys::ibv_qp_attr) -> Result<(), c_int> {
    if wanted.pkey_index != 0 || wanted.port_num != 1 || wanted.qp_access_flags & !ACCESS != 0 {
        return Err(libc::EINVAL);
    }
    attributes.set.pkey_index = 0;
    attributes.set.port_num = 1;
    attributes.set.qp_access_flags = wanted.qp_access_flags;
    attributes.early_regions = qp.device.regions.serial();
    // What is registered from now on is unknown to the queue pair (ANE, ADU: −EFAULT at post).
    attributes.known_regions = if qp.device.profile.register_first { attributes.early_regions } else { u64::MAX };
    Ok(())
}

/// A transition that failed half-way is not to be tried again ("TX already started": SQCU).
fn half_made(qp: &SoftQp, attributes: &mut Attributes) -> Result<(), c_int> {
    if attributes.half_made {
        return Err(libc::EINVAL);
    }
    match qp.device.wiring.faults().and_then(State::half) {
        None => Ok(()),
        Some(errno) => {
            attributes.half_made = true;
            Err(errno)
        }
    }
}

fn to_rtr(qp: &SoftQp, attributes: &mut Attributes, wanted: &sys::ibv_qp_attr) -> Result<Option<Prepared>, c_int> {
    let path = &wanted.ah_attr;
    let mtu = sys::ibv_mtu::IBV_MTU_256.0..=sys::ibv_mtu::IBV_MTU_4096.0;
    if !mtu.contains(&wanted.path_mtu.0) || path.is_global != 1 || path.port_num != 1 {
        return Err(libc::EINVAL);
    }
    // SAFETY: both forms of the union are plain bytes.
    let remote = Gid::from_bytes(unsafe { path.grh.dgid.raw });
    let own = qp.device.gids();
    let local = own.get(usize::from(path.grh.sgid_index)).copied().unwrap_or(Gid::ZERO);
    if local.is_zero() || remote.is_zero() {
        return Err(libc::EINVAL);
    }
    if !qp.device.is_active() {
        return Err(libc::ETIMEDOUT);
    }
    if qp.device.profile.refuses_loopback && own.contains(&remote) {
        return Err(libc::EINVAL);
    }
    // The destination is resolved on the link: what is not there does not answer.
    let known = qp.device.far().is_some_and(|far| far.gids().contains(&remote));
    if !known || family(local) != family(remote) {
        return Err(libc::ETIMEDOUT);
    }
    if path.grh.sgid_index == 0
        && let Some(lint) = qp.device.wiring.lint()
    {
        lint.note(Habit::FirstGid, Caller { end: qp.device.end, call: "ibv_modify_qp", wr_id: None });
    }
    let prepared = match &qp.presence {
        Some(presence) => Some(exchange::prepare(qp, presence, wanted.dest_qp_num)?),
        None => None,
    };
    attributes.set.ah_attr = *path;
    attributes.set.path_mtu = wanted.path_mtu;
    attributes.set.dest_qp_num = wanted.dest_qp_num;
    attributes.set.rq_psn = wanted.rq_psn;
    Ok(prepared)
}

/// Both ends of a connection use addresses of one family.
fn family(gid: Gid) -> bool {
    gid.kind() == GidKind::Ipv4Mapped
}

/// Joins a queue pair that has reached RTR with its peer, if the peer has got there, too, and means this one.
fn connect(_wiring: &Still, qp: &Arc<SoftQp>, attributes: &Attributes) {
    let Some(peer) = qp.device.far().and_then(|far| far.find(attributes.set.dest_qp_num)) else { return };
    let theirs = peer.attributes.lock().unwrap_or_else(PoisonError::into_inner);
    let ready = matches!(theirs.state, state::IBV_QPS_RTR | state::IBV_QPS_RTS);
    if !ready || theirs.set.dest_qp_num != qp.number {
        return;
    }
    drop(theirs);
    for (one, other) in [(qp, &peer), (&peer, qp)] {
        let mut receive = other.receive.0.lock();
        receive.peer = Some(one.clone());
        let first = receive.consumed;
        drop(receive);
        let mut send = one.send.0.lock();
        send.peer = Some(other.clone());
        send.next_slot = first;
    }
}

/// Parts a queue pair from its peer and empties its queues: with flush completions where `next` is ERR (as on classic
/// verbs; inferred, no report says what Apple's device does), without any where it is RESET. Sends of the *peer* that
/// wait for this queue pair go on into nothing, which the peer sees as success.
///
/// When it returns, nobody copies into or out of the queue pair's memory any more, except the poller of its receive
/// completion queue.
pub(crate) fn part(_wiring: &Still, qp: &Arc<SoftQp>, next: state) {
    // Both latches are held to the end, so that nothing is posted in between. Waiting for the peer's while holding them
    // cannot deadlock: posters and pollers only *try* a second latch, and the wiring lock keeps out other callers of this.
    let mut receive = qp.receive.0.lock();
    receive.state = next;
    if let Some(presence) = &qp.presence {
        presence.close();
        receive.connection = None;
        if next == state::IBV_QPS_ERR {
            qp.receive_cq.settle_arrivals(qp);
        }
        qp.receive_cq.set_inbound(qp, None);
        // Not earlier: until now a poller may have taken messages.
        receive.consumed = qp.receive_cq.next_receive(qp);
    }
    if let Some(peer) = receive.peer.take() {
        let mut theirs = peer.send.0.lock();
        receive.consumed = theirs.next_slot;
        theirs.peer = None;
        matching::advance(&peer, &mut theirs);
        peer.attention.0.clear(Attention::WAITS);
        qp.attention.0.clear(Attention::AWAITED);
    }
    let mut send = qp.send.0.lock();
    send.state = next;
    if let Some(peer) = send.peer.take() {
        let mut theirs = peer.receive.0.lock();
        theirs.peer = None;
        theirs.consumed = send.next_slot;
        qp.attention.0.clear(Attention::WAITS);
        peer.attention.0.clear(Attention::AWAITED);
    }
    if let Some(presence) = &qp.presence {
        exchange::leave(qp, presence, &mut send);
    }
    if next == state::IBV_QPS_ERR {
        flush_sends(qp, &mut send);
        flush_receives(qp, &mut receive);
    } else {
        drop_sends(qp, &mut send);
        drop_receives(qp, &mut receive);
        // What was to become of the queue pair because of its old requests.
        qp.attention.0.clear(Attention::ERRAND);
    }
}

fn flush_sends(qp: &SoftQp, send: &mut SendQueue) {
    for counter in send.matched..send.posted {
        // SAFETY: between `matched` and `posted` the record belongs to the holder of the send latch, which is our caller.
        unsafe { (*qp.sends.at(counter)).status = sys::ibv_wc_status::IBV_WC_WR_FLUSH_ERR.0 };
    }
    matching::advance(qp, send);
}

fn flush_receives(qp: &SoftQp, receive: &mut ReceiveQueue) {
    for counter in receive.consumed..receive.posted {
        // SAFETY: the slot exists for the life of the ring.
        let slot = unsafe { &*qp.slots.at(counter) };
        // SAFETY: the queue pair is parted from its peer, so nobody matches with this slot, and the poller does not touch
        // it before the mark says done.
        unsafe { slot.body.get().write(Body { done: flushed(overrun::admit(&qp.receive_cq, qp)) }) };
        slot.mark.store(Slot::done(qp.slots.lap(counter)), Ordering::Release);
    }
    receive.consumed = receive.posted;
}

fn drop_sends(qp: &SoftQp, send: &mut SendQueue) {
    send.matched = send.posted;
    send.written = send.posted;
    // The one that was next may have been delivered in part.
    send.delivered = 0;
    qp.completed.0.store(send.posted, Ordering::Release);
    qp.send_cq.skip(qp, Side::Send, send.posted, send.posted_places);
    qp.released.0.sends.store(send.posted, Ordering::Relaxed);
    qp.released.0.send_places.store(send.posted_places, Ordering::Release);
}

fn drop_receives(qp: &SoftQp, receive: &mut ReceiveQueue) {
    receive.consumed = receive.posted;
    qp.receive_cq.skip(qp, Side::Receive, receive.posted, receive.posted_places);
    qp.released.0.receives.store(receive.posted, Ordering::Relaxed);
    qp.released.0.receive_places.store(receive.posted_places, Ordering::Release);
}
