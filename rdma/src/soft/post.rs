//! `ibv_post_send` and `ibv_post_recv` of the software device, reached through `context->ops`.

use super::profile::{Matching, ReturnStyle};
use super::queue_pair::{
    Attention, Done, INLINE, InlineCell, LOST, Posted, ReceiveQueue, ReceiveRecord, SendQueue, SendRecord, Slot, SoftQp,
};
use super::ring::Ring;
use super::shared::exchange;
use super::{matching, overrun, rules};
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::Ordering;
use rdma_sys as sys;
use sys::{ibv_qp_state as state, ibv_wc_status as status};

/// The errno in the profile's style.
#[cold]
pub(crate) fn in_style(style: ReturnStyle, errno: c_int) -> c_int {
    match style {
        ReturnStyle::Errno => errno,
        ReturnStyle::NegativeErrno => -errno,
        ReturnStyle::MinusOne => {
            super::calls::set_errno(errno);
            -1
        }
    }
}

/// One element of a request's scatter list, checked: only one is supported (`max_sge` is 1).
///
/// # Safety
///
/// If `count` is 1, `list` is null or points to one element.
#[inline]
unsafe fn element(list: *const sys::ibv_sge, count: c_int) -> Result<sys::ibv_sge, c_int> {
    match count {
        0 => Ok(sys::ibv_sge { addr: 0, length: 0, lkey: 0 }),
        1 if !list.is_null() => {
            // SAFETY: promised by the caller.
            Ok(unsafe { *list })
        }
        _ => Err(libc::EINVAL),
    }
}

/// # Safety
///
/// As for [`sys::ibv_post_send`], except that null pointers are refused.
pub(crate) unsafe extern "C" fn post_send(
    qp: *mut sys::ibv_qp,
    mut wr: *mut sys::ibv_send_wr,
    bad_wr: *mut *mut sys::ibv_send_wr,
) -> c_int {
    // SAFETY: a non-null qp is a live queue pair, promised by the caller, and those of this table's contexts are SoftQp.
    let Some(qp) = (unsafe { qp.cast::<SoftQp>().as_ref() }) else { return libc::EINVAL };
    if !qp.birth.is_here() {
        return libc::EPERM;
    }
    if qp.attention.0.has(Attention::ERRAND) {
        overrun::run_errand(qp);
    }
    if qp.limits.special
        && let Err(errno) = qp.device.called("ibv_post_send")
    {
        if qp.device.profile.sets_bad_wr && !bad_wr.is_null() {
            // SAFETY: bad_wr may be written, promised by the caller.
            unsafe { *bad_wr = wr };
        }
        return in_style(qp.device.profile.post_errors, errno);
    }
    let mut send = qp.send.0.lock();
    matching::prepare(&send);
    if qp.limits.special {
        rules::use_again(qp, &mut send);
    }
    let (new, mut result) = (send.posted, 0);
    // SAFETY: wr is null or starts a chain of valid requests, promised by the caller.
    while let Some(request) = unsafe { wr.as_ref() } {
        // SAFETY: the request is valid, so its list is as long as it says.
        if let Err(errno) = unsafe { enqueue_send(qp, &mut send, request) } {
            let profile = &qp.device.profile;
            if profile.sets_bad_wr && !bad_wr.is_null() {
                // SAFETY: bad_wr may be written, promised by the caller.
                unsafe { *bad_wr = wr };
            }
            result = in_style(profile.post_errors, errno);
            break;
        }
        wr = request.next;
    }
    matching::advance_new(qp, &mut send, new);
    result
}

/// # Safety
///
/// `request.sg_list` has `num_sge` elements, or is null.
#[inline]
unsafe fn enqueue_send(qp: &SoftQp, send: &mut SendQueue, request: &sys::ibv_send_wr) -> Result<(), c_int> {
    // SAFETY: passed on to the caller.
    let sge = unsafe { element(request.sg_list, request.num_sge)? };
    let mut outcome = status::IBV_WC_SUCCESS;
    match send.state {
        state::IBV_QPS_RTS => {}
        // As on classic verbs: accepted, and flushed. Inferred for Thunderbolt.
        state::IBV_QPS_ERR => outcome = status::IBV_WC_WR_FLUSH_ERR,
        _ => return Err(libc::EINVAL),
    }
    let flags = request.send_flags;
    let immediate = match request.opcode {
        sys::ibv_wr_opcode::IBV_WR_SEND => None,
        sys::ibv_wr_opcode::IBV_WR_SEND_WITH_IMM if qp.limits.takes_immediate => Some(request.imm_data),
        // TN3205: SEND and RECV only.
        _ => return Err(libc::EOPNOTSUPP),
    };
    let inline = flags & sys::IBV_SEND_INLINE != 0;
    if inline && (qp.inline.is_none() || sge.length > qp.limits.max_inline) {
        // As much as was granted: on Thunderbolt, 0.
        return Err(libc::EINVAL);
    }
    let places = qp.limits.places(sge.length).ok_or(libc::EINVAL)?;
    if request.num_sge != 0 && sge.length != 0 && !inline {
        match qp.device.regions.find(sge.lkey) {
            Some(region) if region.domain == qp.domain.identity() && region.serial <= send.known_regions => {
                if !region.holds(sge.addr, sge.length) && outcome == status::IBV_WC_SUCCESS {
                    outcome = status::IBV_WC_LOC_PROT_ERR;
                }
            }
            // On a network adapter it is found out when the request is carried out.
            _ if qp.limits.matching == Matching::Messages => {
                if outcome == status::IBV_WC_SUCCESS {
                    outcome = status::IBV_WC_LOC_PROT_ERR;
                }
            }
            _ => return Err(libc::EFAULT),
        }
    }
    if send.posted_places - send.returned_places + u64::from(places) > u64::from(send.depth) {
        send.returned_places = qp.released.0.send_places.load(Ordering::Acquire);
        if send.posted_places - send.returned_places + u64::from(places) > u64::from(send.depth) {
            return if qp.limits.loses_excess { Ok(()) } else { Err(libc::ENOMEM) };
        }
    }
    if send.posted - send.returned >= qp.send_cq.fill.share() {
        send.returned = qp.released.0.sends.load(Ordering::Relaxed);
        if send.posted - send.returned >= qp.send_cq.fill.share() {
            overrun::watch(&qp.send_cq);
        }
    }
    if qp.limits.special {
        rules::seen_send(qp, send, request, &sge);
    }
    let address = match &qp.inline {
        // SAFETY: inline data can be read during this call, promised by the caller.
        Some(cells) if inline => unsafe { keep(cells, send.posted, &sge) },
        _ => sge.addr,
    };
    let record = SendRecord {
        wr_id: request.wr_id,
        address,
        length: sge.length,
        key: sge.lkey,
        places,
        status: outcome.0,
        signaled: qp.signal_all || flags & sys::IBV_SEND_SIGNALED != 0,
        lost: false,
        owned: inline,
        doubled: false,
        immediate,
        message: None,
    };
    // SAFETY: the cell's last use is over: the ring has at least `depth` cells, each request takes a place at least, and
    // the check above (with acquire) says that the poller is done with all but `depth` places. We hold the send latch.
    unsafe { qp.sends.at(send.posted).write(record) };
    send.posted += 1;
    send.posted_places += u64::from(places);
    Ok(())
}

/// Takes inline data, which is the caller's again after the call. Returns where it is kept.
///
/// # Safety
///
/// The range of `sge` can be read, and is at most as long as a cell. The cell's last use is over.
#[cold]
unsafe fn keep(cells: &Ring<InlineCell>, counter: u64, sge: &sys::ibv_sge) -> u64 {
    let cell = cells.at(counter).cast::<u8>();
    // SAFETY: promised by the caller. The source is the caller's, the cell ours.
    unsafe { ptr::copy_nonoverlapping(sge.addr as *const u8, cell, sge.length as usize) };
    cell.addr() as u64
}

/// # Safety
///
/// As for [`sys::ibv_post_recv`], except that null pointers are refused.
pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut sys::ibv_qp,
    mut wr: *mut sys::ibv_recv_wr,
    bad_wr: *mut *mut sys::ibv_recv_wr,
) -> c_int {
    // SAFETY: a non-null qp is a live queue pair, promised by the caller, and those of this table's contexts are SoftQp.
    let Some(qp) = (unsafe { qp.cast::<SoftQp>().as_ref() }) else { return libc::EINVAL };
    if !qp.birth.is_here() {
        return libc::EPERM;
    }
    if qp.attention.0.has(Attention::ERRAND) {
        overrun::run_errand(qp);
    }
    if qp.limits.special
        && let Err(errno) = qp.device.called("ibv_post_recv")
    {
        if qp.device.profile.sets_bad_wr && !bad_wr.is_null() {
            // SAFETY: bad_wr may be written, promised by the caller.
            unsafe { *bad_wr = wr };
        }
        return in_style(qp.device.profile.post_errors, errno);
    }
    let mut receive = qp.receive.0.lock();
    let before = receive.posted;
    let mut result = 0;
    // SAFETY: wr is null or starts a chain of valid requests, promised by the caller.
    while let Some(request) = unsafe { wr.as_ref() } {
        // SAFETY: the request is valid, so its list is as long as it says.
        if let Err(errno) = unsafe { enqueue_receive(qp, &mut receive, request) } {
            let profile = &qp.device.profile;
            if profile.sets_bad_wr && !bad_wr.is_null() {
                // SAFETY: bad_wr may be written, promised by the caller.
                unsafe { *bad_wr = wr };
            }
            result = in_style(profile.post_errors, errno);
            break;
        }
        wr = request.next;
    }
    if let Some(presence) = &qp.presence {
        exchange::say_credit(qp, presence, &receive, before);
    }
    if qp.attention.0.has(Attention::AWAITED)
        && let Some(peer) = &receive.peer
    {
        matching::help_peer(peer);
    }
    result
}

/// # Safety
///
/// `request.sg_list` has `num_sge` elements, or is null.
#[inline]
unsafe fn enqueue_receive(qp: &SoftQp, receive: &mut ReceiveQueue, request: &sys::ibv_recv_wr) -> Result<(), c_int> {
    // SAFETY: passed on to the caller.
    let sge = unsafe { element(request.sg_list, request.num_sge)? };
    // From INIT on, as on classic verbs (HEL and MCD post there on Macs; LLAMA says RTS).
    if receive.state.0 < qp.limits.first_receive.0 {
        return Err(libc::EINVAL);
    }
    let places = qp.limits.places(sge.length).ok_or(libc::EINVAL)?;
    let mut forbidden = false;
    if request.num_sge != 0 && sge.length != 0 {
        match qp.device.regions.find(sge.lkey) {
            Some(region) if region.domain == qp.domain.identity() && region.serial <= receive.known_regions => {
                forbidden = !region.holds(sge.addr, sge.length) || region.access & sys::IBV_ACCESS_LOCAL_WRITE == 0;
            }
            _ if qp.limits.matching == Matching::Messages => forbidden = true,
            _ => return Err(libc::EFAULT),
        }
    }
    if receive.posted_places - receive.returned_places + u64::from(places) > u64::from(receive.depth) {
        receive.returned_places = qp.released.0.receive_places.load(Ordering::Acquire);
        if receive.posted_places - receive.returned_places + u64::from(places) > u64::from(receive.depth) {
            return if qp.limits.loses_excess { Ok(()) } else { Err(libc::ENOMEM) };
        }
    }
    if receive.posted - receive.returned >= qp.receive_cq.fill.share() {
        receive.returned = qp.released.0.receives.load(Ordering::Relaxed);
        if receive.posted - receive.returned >= qp.receive_cq.fill.share() {
            overrun::watch(&qp.receive_cq);
        }
    }
    if qp.limits.special {
        rules::seen_receive(qp, receive, request, &sge);
    }
    let record = ReceiveRecord { wr_id: request.wr_id, address: sge.addr, key: sge.lkey, places };
    let counter = receive.posted;
    // SAFETY: the cell's last use is over, as explained in `enqueue_send`. We hold the receive latch.
    unsafe { qp.receives.at(counter).write(record) };
    // SAFETY: the slot exists for the life of the ring.
    let slot = unsafe { &*qp.slots.at(counter) };
    let lap = qp.slots.lap(counter);
    let body = slot.body.get();
    let mark = if receive.state == state::IBV_QPS_ERR {
        receive.consumed = counter + 1;
        let done = flushed(overrun::admit(&qp.receive_cq, qp));
        // SAFETY: the slot is the owner's: the poller released its last use (checked above), and no matcher takes it before
        // the mark says posted.
        unsafe { (&raw mut (*body).done).write(done) };
        Slot::done(lap)
    } else {
        let posted =
            Posted { address: sge.addr, length: sge.length, key: sge.lkey, places, forbidden: u32::from(forbidden) };
        // SAFETY: as above.
        unsafe { (&raw mut (*body).posted).write(posted) };
        Slot::posted(lap)
    };
    slot.mark.store(mark, Ordering::Release);
    receive.posted += 1;
    receive.posted_places += u64::from(places);
    Ok(())
}

/// What is left of a receive that was flushed, if there is room for its completion.
pub(crate) fn flushed(room: bool) -> Done {
    let outcome = if room { status::IBV_WC_WR_FLUSH_ERR.0 as u16 } else { LOST };
    Done { status: outcome, flags: 0, length: 0, immediate: 0, payload: [0; INLINE] }
}
