//! The provider, and what it is told to do.
#![allow(unsafe_code)]

use crate::support::fabrics;
use rdma::Provider;
use rdma::soft::{Profile, Topology};
use rdma_sys::{self as sys, Verbs};
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the calls do instead of what they should.
#[derive(Clone, Copy, Default)]
pub struct Plan {
    /// Called with each batch of completions, which it may change; returns how many there are.
    pub poll: Option<fn(&mut [sys::ibv_wc], usize) -> c_int>,
    /// What posting returns, and whether it posts all the same. `bad_wr` is set to the second request of the chain.
    pub post: Option<(c_int, bool)>,
    pub bad_wr: Option<usize>,
    pub destroy_qp: Option<c_int>,
    pub destroy_cq: Option<c_int>,
    pub dereg_mr: Option<c_int>,
    pub dealloc_pd: Option<c_int>,
    pub close_device: Option<c_int>,
    pub modify_qp: Option<(sys::ibv_qp_state, c_int)>,
    pub query_qp: Option<fn(&mut sys::ibv_qp_attr)>,
    /// A call that makes something and gives null instead, with this errno.
    pub refuse: Option<(&'static str, c_int)>,
    /// How often each was called.
    pub calls: Calls,
}

/// Counts of calls that reached the provider.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Calls {
    pub post_send: usize,
    pub post_recv: usize,
    pub reg_mr: usize,
    pub dereg_mr: usize,
    pub open: usize,
    pub close: usize,
    pub alloc_pd: usize,
    pub dealloc_pd: usize,
}

static PLAN: Mutex<Plan> = Mutex::new(Plan {
    poll: None,
    post: None,
    bad_wr: None,
    destroy_qp: None,
    destroy_cq: None,
    dereg_mr: None,
    dealloc_pd: None,
    close_device: None,
    modify_qp: None,
    query_qp: None,
    refuse: None,
    calls: Calls { post_send: 0, post_recv: 0, reg_mr: 0, dereg_mr: 0, open: 0, close: 0, alloc_pd: 0, dealloc_pd: 0 },
});
static TABLE: Mutex<Option<Verbs>> = Mutex::new(None);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// One test at a time has the provider; the plan is empty when it begins.
pub struct Turn {
    _turn: MutexGuard<'static, ()>,
    /// Keeps the host's device list.
    _keep: Provider,
    pub hostile: Provider,
    /// The other host, which behaves.
    pub other: Provider,
}

pub fn turn() -> Turn {
    turn_with(Profile::default())
}

/// The same with devices of a profile.
pub fn turn_with(profile: Profile) -> Turn {
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    *plan() = Plan::default();
    let fabric = fabrics::new(Topology::mesh(2).unwrap(), profile);
    let keep = Provider::soft(&fabric.host(0).unwrap()).unwrap();
    let good = *keep.verbs();
    *TABLE.lock().unwrap() = Some(good);
    let bad = Verbs {
        get_device_list,
        open_device,
        create_cq,
        create_qp,
        destroy_qp,
        destroy_cq,
        dereg_mr,
        reg_mr,
        alloc_pd,
        dealloc_pd,
        close_device,
        modify_qp,
        query_qp,
        ..good
    };
    // SAFETY: the calls pass on to the software device, whose provider `Turn` keeps.
    let hostile = unsafe { Provider::from_verbs(bad) };
    let other = Provider::soft(&fabric.host(1).unwrap()).unwrap();
    Turn { _turn: turn, _keep: keep, hostile, other }
}

/// The plan, to change it.
pub fn plan() -> MutexGuard<'static, Plan> {
    PLAN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn good() -> Verbs {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner).expect("a turn sets it")
}

/// The software device's own operations.
#[derive(Clone, Copy)]
struct Ops {
    poll_cq: unsafe extern "C" fn(*mut sys::ibv_cq, c_int, *mut sys::ibv_wc) -> c_int,
    post_send: unsafe extern "C" fn(*mut sys::ibv_qp, *mut sys::ibv_send_wr, *mut *mut sys::ibv_send_wr) -> c_int,
    post_recv: unsafe extern "C" fn(*mut sys::ibv_qp, *mut sys::ibv_recv_wr, *mut *mut sys::ibv_recv_wr) -> c_int,
}

static OPS: Mutex<Option<Ops>> = Mutex::new(None);

fn ops() -> Ops {
    OPS.lock().unwrap_or_else(PoisonError::into_inner).expect("opening sets it")
}

// SAFETY of all that follows: each call passes its arguments on to the software device's call of the same name, so what
// its caller promises is what that one asks for.

/// Whether this call is to fail; then errno is set.
fn refuses(call: &str) -> bool {
    match plan().refuse {
        Some((refused, errno)) if refused == call => {
            #[cfg(target_vendor = "apple")]
            // SAFETY: the function gives the address of this thread's errno.
            let place = unsafe { libc::__error() };
            #[cfg(not(target_vendor = "apple"))]
            // SAFETY: the function gives the address of this thread's errno.
            let place = unsafe { libc::__errno_location() };
            // SAFETY: it is an int of this thread.
            unsafe { *place = errno };
            true
        }
        _ => false,
    }
}

unsafe extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut sys::ibv_device {
    if refuses("ibv_get_device_list") {
        return std::ptr::null_mut();
    }
    // SAFETY: see above.
    unsafe { (good().get_device_list)(count) }
}

unsafe extern "C" fn create_cq(
    context: *mut sys::ibv_context,
    entries: c_int,
    own: *mut std::ffi::c_void,
    channel: *mut sys::ibv_comp_channel,
    vector: c_int,
) -> *mut sys::ibv_cq {
    if refuses("ibv_create_cq") {
        return std::ptr::null_mut();
    }
    // SAFETY: see above.
    unsafe { (good().create_cq)(context, entries, own, channel, vector) }
}

unsafe extern "C" fn create_qp(pd: *mut sys::ibv_pd, init: *mut sys::ibv_qp_init_attr) -> *mut sys::ibv_qp {
    if refuses("ibv_create_qp") {
        return std::ptr::null_mut();
    }
    // SAFETY: see above.
    unsafe { (good().create_qp)(pd, init) }
}

unsafe extern "C" fn open_device(device: *mut sys::ibv_device) -> *mut sys::ibv_context {
    plan().calls.open += 1;
    if refuses("ibv_open_device") {
        return std::ptr::null_mut();
    }
    // SAFETY: see above; the operations of the fresh context are replaced before anybody uses them.
    unsafe {
        let context = (good().open_device)(device);
        if !context.is_null() {
            let table = &raw mut (*context).ops;
            let (poll, send, receive) = ((*table).poll_cq, (*table).post_send, (*table).post_recv);
            *OPS.lock().unwrap() =
                Some(Ops { poll_cq: poll.unwrap(), post_send: send.unwrap(), post_recv: receive.unwrap() });
            (*table).poll_cq = Some(poll_cq);
            (*table).post_send = Some(post_send);
            (*table).post_recv = Some(post_recv);
        }
        context
    }
}

unsafe extern "C" fn poll_cq(cq: *mut sys::ibv_cq, room: c_int, wc: *mut sys::ibv_wc) -> c_int {
    // SAFETY: see above.
    let count = unsafe { (ops().poll_cq)(cq, room, wc) };
    let change = plan().poll;
    match change {
        Some(change) if count >= 0 => {
            // SAFETY: the caller's array has `room` cells.
            let all = unsafe { std::slice::from_raw_parts_mut(wc, room as usize) };
            change(all, count as usize)
        }
        _ => count,
    }
}

macro_rules! post {
    ($name:ident, $wr:ident) => {
        unsafe extern "C" fn $name(qp: *mut sys::ibv_qp, wr: *mut sys::$wr, bad: *mut *mut sys::$wr) -> c_int {
            let now = {
                let mut plan = plan();
                plan.calls.$name += 1;
                *plan
            };
            if now.post.is_none_or(|(_, really)| really) {
                // SAFETY: see above.
                let returned = unsafe { (ops().$name)(qp, wr, bad) };
                if now.post.is_none() {
                    return returned;
                }
            }
            if let Some(index) = now.bad_wr {
                // SAFETY: the chain is the caller's, and `bad` may be written.
                unsafe {
                    let mut request = wr;
                    for _ in 0..index {
                        request = if request.is_null() { request } else { (*request).next };
                    }
                    *bad = request;
                }
            }
            now.post.map_or(0, |(returned, _)| returned)
        }
    };
}

post!(post_send, ibv_send_wr);
post!(post_recv, ibv_recv_wr);

macro_rules! may_fail {
    ($name:ident($type:ident), $($count:ident)?) => {
        unsafe extern "C" fn $name(object: *mut sys::$type) -> c_int {
            let fails = {
                #[allow(unused_mut)]
                let mut plan = plan();
                $( plan.calls.$count += 1; )?
                plan.$name
            };
            match fails {
                Some(errno) => errno,
                // SAFETY: see above.
                None => unsafe { (good().$name)(object) },
            }
        }
    };
}

may_fail!(destroy_qp(ibv_qp),);
may_fail!(destroy_cq(ibv_cq),);
may_fail!(dereg_mr(ibv_mr), dereg_mr);
may_fail!(dealloc_pd(ibv_pd), dealloc_pd);
may_fail!(close_device(ibv_context), close);

unsafe extern "C" fn reg_mr(
    pd: *mut sys::ibv_pd,
    address: *mut std::ffi::c_void,
    length: usize,
    access: c_int,
) -> *mut sys::ibv_mr {
    plan().calls.reg_mr += 1;
    if refuses("ibv_reg_mr") {
        return std::ptr::null_mut();
    }
    // SAFETY: see above.
    unsafe { (good().reg_mr)(pd, address, length, access) }
}

unsafe extern "C" fn alloc_pd(context: *mut sys::ibv_context) -> *mut sys::ibv_pd {
    plan().calls.alloc_pd += 1;
    if refuses("ibv_alloc_pd") {
        return std::ptr::null_mut();
    }
    // SAFETY: see above.
    unsafe { (good().alloc_pd)(context) }
}

unsafe extern "C" fn modify_qp(qp: *mut sys::ibv_qp, attributes: *mut sys::ibv_qp_attr, mask: c_int) -> c_int {
    let fails = plan().modify_qp;
    // SAFETY: see above.
    unsafe {
        match fails {
            Some((state, errno)) if (*attributes).qp_state == state => errno,
            _ => (good().modify_qp)(qp, attributes, mask),
        }
    }
}

unsafe extern "C" fn query_qp(
    qp: *mut sys::ibv_qp,
    attributes: *mut sys::ibv_qp_attr,
    mask: c_int,
    init: *mut sys::ibv_qp_init_attr,
) -> c_int {
    let change = plan().query_qp;
    // SAFETY: see above.
    unsafe {
        let returned = (good().query_qp)(qp, attributes, mask, init);
        if let Some(change) = change {
            change(&mut *attributes);
        }
        returned
    }
}
