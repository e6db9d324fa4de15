//! Completion queues and queue pairs.

use super::{context, domain, here, hold, let_go, number, pointer, retire_unused};
use crate::soft::completion_queue::{Side, SoftCq, Sources};
use crate::soft::connection;
use crate::soft::fork::Birth;
use crate::soft::object::{CqObject, QpObject};
use crate::soft::overrun::{self, Fill};
use crate::soft::queue_pair::{
    Apart, Attention, Attributes, INLINE, Limits, ReceiveQueue, Released, SendQueue, Slot, SoftQp,
};
use crate::soft::registry;
use crate::soft::ring::Ring;
use crate::soft::rules;
use crate::soft::shared::link::Presence;
use crate::soft::stream::Pace;
use crate::verbs::latch::Latch;
use crate::verbs::sync::AtomicU64;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::AtomicU32;
use core::time::Duration;
use rdma_sys as sys;
use std::sync::{Arc, Mutex, PoisonError};

const IBV_QPS_RESET: sys::ibv_qp_state = sys::ibv_qp_state::IBV_QPS_RESET;

pub(super) unsafe extern "C" fn create_cq(
    pointer_: *mut sys::ibv_context,
    capacity: c_int,
    cq_context: *mut c_void,
    channel: *mut sys::ibv_comp_channel,
    vector: c_int,
) -> *mut sys::ibv_cq {
    pointer(context(pointer_).and_then(|context| {
        if !channel.is_null() {
            return Err(libc::EOPNOTSUPP);
        }
        if capacity < 1 || capacity as u32 > context.device.profile.max_cqe || vector != 0 {
            return Err(libc::EINVAL);
        }
        context.device.called("ibv_create_cq")?;
        let faulty = context.device.wiring.faults().is_some();
        let ticket = context.device.completion_queues.take().ok_or(libc::ENOMEM)?;
        let abi = sys::ibv_cq { context: context.pointer(), channel, cq_context, handle: 0, cqe: capacity };
        Ok(registry::publish(Arc::new(SoftCq {
            abi: CqObject::new(abi),
            birth: Birth::now(),
            ticket,
            context,
            users: AtomicU32::new(0),
            fill: Fill::default(),
            faulty,
            poll: Apart(Latch::new(Sources::default())),
        })))
    }))
}

pub(super) unsafe extern "C" fn destroy_cq(cq: *mut sys::ibv_cq) -> c_int {
    let called = registry::borrow::<SoftCq>(cq).and_then(|cq| cq.context.device.called("ibv_destroy_cq"));
    number(called.and_then(|()| retire_unused::<SoftCq>(cq, |cq| cq.birth, |cq| &cq.users)).map(|cq| {
        cq.context.device.completion_queues.give_back(&cq.ticket);
    }))
}

pub(super) unsafe extern "C" fn create_qp(pd: *mut sys::ibv_pd, init: *mut sys::ibv_qp_init_attr) -> *mut sys::ibv_qp {
    // SAFETY: init is null or a structure of the caller's, as the call asks for. It is not written: what was granted is
    // to be read with ibv_query_qp (TN3205; hellas-ai/thunderbolt-ibverbs pull request 41).
    pointer(match unsafe { init.as_ref() } {
        Some(init) => create(pd, init),
        None => Err(libc::EINVAL),
    })
}

fn create(pd: *mut sys::ibv_pd, init: &sys::ibv_qp_init_attr) -> Result<*mut sys::ibv_qp, c_int> {
    let domain = domain(pd)?;
    let device = domain.context.device.clone();
    device.called("ibv_create_qp")?;
    let queue = |cq| {
        let cq = registry::borrow::<SoftCq>(cq)?;
        // One open of the device: its objects do not mix with those of another.
        if Arc::ptr_eq(&cq.context, &domain.context) { Ok(cq) } else { Err(libc::EINVAL) }
    };
    let (send_cq, receive_cq) = (queue(init.send_cq)?, queue(init.recv_cq)?);
    match init.qp_type {
        sys::ibv_qp_type::IBV_QPT_UC => {}
        // Apple's device makes UC only: errno 102 there (ml-explore/mlx pull request 4530; SQCU; ADU; MCD).
        sys::ibv_qp_type::IBV_QPT_RC | sys::ibv_qp_type::IBV_QPT_UD => return Err(libc::EOPNOTSUPP),
        _ => return Err(libc::EINVAL),
    }
    let asked = &init.cap;
    if !init.srq.is_null() || asked.max_send_sge > 1 || asked.max_recv_sge > 1 {
        return Err(libc::EINVAL);
    }
    let grant = |asked| device.profile.grant(asked).ok_or(libc::EINVAL);
    let (send_depth, receive_depth) = (grant(asked.max_send_wr)?, grant(asked.max_recv_wr)?);
    // In a fabric between processes the limit is all members'.
    let presence = match device.wiring.membership() {
        Some(membership) => {
            let far = device.wiring.topology.far_end(device.end);
            let cable = device.wiring.topology.cable_of(device.end);
            Some(Presence::take(membership, device.end, far, cable, send_depth, receive_depth)?)
        }
        None => None,
    };
    let ticket = match presence {
        Some(_) => None,
        None => Some(device.queue_pairs.take().ok_or(libc::EBUSY)?),
    };
    let number = presence.as_ref().map_or_else(|| device.number(), Presence::number);
    let granted = sys::ibv_qp_cap {
        max_send_wr: send_depth,
        max_recv_wr: receive_depth,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: device.profile.max_inline,
    };
    let abi = sys::ibv_qp {
        context: domain.context.pointer(),
        qp_context: init.qp_context,
        pd,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        srq: null_mut(),
        handle: 0,
        qp_num: number,
        state: IBV_QPS_RESET,
        qp_type: init.qp_type,
    };
    hold(&domain.users);
    hold(&send_cq.users);
    hold(&receive_cq.users);
    let qp = Arc::new(SoftQp {
        abi: UnsafeCell::new(QpObject::new(abi)),
        birth: Birth::now(),
        number,
        signal_all: init.sq_sig_all != 0,
        limits: Limits::of(&device.profile),
        attributes: Mutex::new(Attributes {
            state: IBV_QPS_RESET,
            set: sys::ibv_qp_attr::default(),
            init: sys::ibv_qp_init_attr { cap: granted, ..*init },
            known_regions: u64::MAX,
            early_regions: u64::MAX,
            half_made: false,
        }),
        sends: Ring::new(send_depth, Default::default),
        inline: (granted.max_inline_data != 0).then(|| Ring::new(send_depth, || [0; INLINE])),
        receives: Ring::new(receive_depth, Default::default),
        slots: Ring::of_shared(receive_depth, Slot::empty),
        send: Apart(Latch::new(SendQueue {
            state: IBV_QPS_RESET,
            peer: None,
            known_regions: u64::MAX,
            early_regions: u64::MAX,
            depth: send_depth,
            posted: 0,
            posted_places: 0,
            returned: 0,
            returned_places: 0,
            matched: 0,
            next_slot: 0,
            pace: Pace::default(),
            delivered: 0,
            fate: None,
            used: Duration::ZERO,
            dead: false,
            written: 0,
            outbound: None,
            peer_number: 0,
            left: Vec::new(),
        })),
        receive: Apart(Latch::new(ReceiveQueue {
            state: IBV_QPS_RESET,
            peer: None,
            known_regions: u64::MAX,
            early_regions: u64::MAX,
            depth: receive_depth,
            posted: 0,
            posted_places: 0,
            returned: 0,
            returned_places: 0,
            consumed: 0,
            connection: None,
        })),
        completed: Apart(AtomicU64::new(0)),
        released: Apart(Released::default()),
        attention: Apart(Attention::default()),
        presence,
        ticket,
        device,
        domain,
        send_cq,
        receive_cq,
    });
    qp.device.enter(&qp);
    rules::seen_queue_pair(&qp);
    // Sends first: a message's own completion is seen before the answer to it.
    qp.send_cq.attach(&qp, Side::Send);
    qp.receive_cq.attach(&qp, Side::Receive);
    Ok(registry::publish(qp))
}

pub(super) unsafe extern "C" fn modify_qp(
    qp: *mut sys::ibv_qp,
    attributes: *mut sys::ibv_qp_attr,
    mask: c_int,
) -> c_int {
    // SAFETY: attributes is null or a structure of the caller's, as the call asks for.
    let wanted = unsafe { attributes.as_ref() };
    number(registry::borrow::<SoftQp>(qp).and_then(|qp| {
        here(qp.birth)?;
        qp.device.called("ibv_modify_qp")?;
        connection::modify(&qp, wanted.ok_or(libc::EINVAL)?, mask)
    }))
}

pub(super) unsafe extern "C" fn query_qp(
    qp: *mut sys::ibv_qp,
    attributes: *mut sys::ibv_qp_attr,
    _mask: c_int,
    init: *mut sys::ibv_qp_init_attr,
) -> c_int {
    number(registry::borrow::<SoftQp>(qp).and_then(|qp| {
        here(qp.birth)?;
        if attributes.is_null() || init.is_null() {
            return Err(libc::EINVAL);
        }
        qp.device.called("ibv_query_qp")?;
        overrun::run_errand_now(&qp);
        let known = qp.attributes.lock().unwrap_or_else(PoisonError::into_inner);
        let state = known.state;
        let answer = sys::ibv_qp_attr { qp_state: state, cur_qp_state: state, cap: known.init.cap, ..known.set };
        // SAFETY: neither is null, and both are structures of the caller's, as the call asks for.
        unsafe {
            attributes.write(answer);
            init.write(known.init);
        }
        Ok(())
    }))
}

pub(super) unsafe extern "C" fn destroy_qp(qp: *mut sys::ibv_qp) -> c_int {
    number(registry::borrow::<SoftQp>(qp).and_then(|borrowed| {
        here(borrowed.birth)?;
        borrowed.device.called("ibv_destroy_qp")?;
        drop(borrowed);
        let qp = registry::retire::<SoftQp>(qp)?;
        {
            let wiring = qp.device.wiring.lock();
            qp.device.leave(&qp);
            connection::part(&wiring, &qp, IBV_QPS_RESET);
            // Nobody matches for it any more; once the pollers have let go of it, its memory is the caller's again. Whoever
            // deregisters that memory meanwhile waits for the wiring, because it does not find the queue pair.
            qp.send_cq.detach(&qp);
            qp.receive_cq.detach(&qp);
        }
        if let Some(ticket) = &qp.ticket {
            qp.device.queue_pairs.give_back(ticket);
        }
        if let Some(presence) = &qp.presence {
            presence.retire();
        }
        let_go(&qp.send_cq.users);
        let_go(&qp.receive_cq.users);
        let_go(&qp.domain.users);
        Ok(())
    }))
}

/// 0: data of a message does not arrive in memory in order (MCD saw that answer).
pub(super) unsafe extern "C" fn query_qp_data_in_order(_: *mut sys::ibv_qp, _: sys::ibv_wr_opcode, _: u32) -> c_int {
    0
}
