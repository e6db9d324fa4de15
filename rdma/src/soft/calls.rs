//! The exported calls of the software device: arguments checked, errno set, the work done elsewhere.

mod memory;
mod queue;

use super::context::SoftContext;
use super::device::SoftDevice;
use super::fabric::Host;
use super::fork::Birth;
use super::hosts::GetDeviceList;
use super::protection_domain::SoftPd;
use super::registry::{self, Kind};
use core::ffi::{c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};
use rdma_sys as sys;
use std::sync::Arc;

/// The table of the host whose devices `get_device_list` lists.
pub(crate) const fn table(get_device_list: GetDeviceList) -> sys::Verbs {
    sys::Verbs {
        get_device_list,
        free_device_list,
        get_device_name,
        open_device,
        close_device,
        query_device,
        query_port,
        query_gid,
        alloc_pd,
        dealloc_pd,
        reg_mr: memory::reg_mr,
        dereg_mr: memory::dereg_mr,
        create_cq: queue::create_cq,
        destroy_cq: queue::destroy_cq,
        create_qp: queue::create_qp,
        modify_qp: queue::modify_qp,
        query_qp: queue::query_qp,
        destroy_qp: queue::destroy_qp,
        get_device_guid: Some(get_device_guid),
        query_pkey: Some(query_pkey),
        reg_mr_iova2: Some(memory::reg_mr_iova2),
        rereg_mr: None,
        reg_dmabuf_mr: None,
        // TN3205 passes no channel, and no report tells of an event: polling only.
        create_comp_channel: None,
        destroy_comp_channel: None,
        get_cq_event: None,
        ack_cq_events: None,
        resize_cq: None,
        get_async_event: None,
        ack_async_event: None,
        query_qp_data_in_order: Some(queue::query_qp_data_in_order),
        fork_init: None,
        wc_status_str: Some(super::text::wc_status_str),
        port_state_str: Some(super::text::port_state_str),
        node_type_str: Some(super::text::node_type_str),
        event_type_str: Some(super::text::event_type_str),
    }
}

pub(crate) use crate::verbs::call::set_errno;

/// For calls that return a pointer: null and `errno` for an error.
fn pointer<T>(result: Result<*mut T, c_int>) -> *mut T {
    result.unwrap_or_else(|errno| {
        set_errno(errno);
        null_mut()
    })
}

/// For calls that return the errno: it is left in `errno`, too.
fn number(result: Result<(), c_int>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(errno) => {
            set_errno(errno);
            errno
        }
    }
}

/// For calls that return −1 and set `errno`.
fn minus_one(result: Result<(), c_int>) -> c_int {
    if number(result) == 0 { 0 } else { -1 }
}

/// EPERM in a child of the process that made the object.
fn here(birth: Birth) -> Result<(), c_int> {
    if birth.is_here() { Ok(()) } else { Err(libc::EPERM) }
}

/// Counts a user of a parent, for EBUSY when the parent is to go.
fn hold(users: &AtomicU32) {
    users.fetch_add(1, Ordering::Relaxed);
}

fn let_go(users: &AtomicU32) {
    users.fetch_sub(1, Ordering::Relaxed);
}

/// Takes a parent out of the registry if nothing that was made from it exists.
fn retire_unused<T: registry::Object>(
    pointer: *mut T::Abi,
    birth: impl Fn(&T) -> Birth,
    users: impl Fn(&T) -> &AtomicU32,
) -> Result<Arc<T>, c_int> {
    let object = registry::borrow::<T>(pointer)?;
    here(birth(&object))?;
    if users(&object).load(Ordering::Relaxed) != 0 {
        return Err(libc::EBUSY);
    }
    registry::retire::<T>(pointer)
}

fn context(pointer: *mut sys::ibv_context) -> Result<Arc<SoftContext>, c_int> {
    let context = registry::borrow::<SoftContext>(pointer)?;
    here(context.birth)?;
    Ok(context)
}

fn domain(pointer: *mut sys::ibv_pd) -> Result<Arc<SoftPd>, c_int> {
    let domain = registry::borrow::<SoftPd>(pointer)?;
    here(domain.context.birth)?;
    Ok(domain)
}

/// `ibv_get_device_list`, once it is known whose.
///
/// # Safety
///
/// `count` is null or may be written.
pub(crate) unsafe fn device_list(host: Option<&Host>, count: *mut c_int) -> *mut *mut sys::ibv_device {
    if host.is_some_and(|host| !host.fabric.birth.is_here()) {
        set_errno(libc::EPERM);
        return null_mut();
    }
    if let Some(Err(errno)) = host.map(|host| host.fabric.wiring.called("ibv_get_device_list")) {
        set_errno(errno);
        return null_mut();
    }
    let devices = host.map_or(&[][..], Host::devices);
    // Each entry of the array keeps its device, and the array is null-terminated.
    let mut list: Vec<*mut sys::ibv_device> = Vec::with_capacity(devices.len() + 1);
    list.extend(devices.iter().map(|device| Arc::into_raw(device.clone()).cast_mut().cast()));
    list.push(null_mut());
    if !count.is_null() {
        // SAFETY: may be written, promised by the caller.
        unsafe { *count = devices.len() as c_int };
    }
    let list = Box::into_raw(list.into_boxed_slice()).cast::<*mut sys::ibv_device>();
    registry::enter(list.addr(), Kind::DeviceList);
    list
}

unsafe extern "C" fn free_device_list(list: *mut *mut sys::ibv_device) {
    if !registry::leave(list.addr(), Kind::DeviceList) {
        return;
    }
    let mut length = 0;
    // SAFETY: a live device list is an array that `device_list` made, null-terminated.
    while unsafe { !(*list.add(length)).is_null() } {
        length += 1;
    }
    // SAFETY: it was a boxed slice of this length, and has just been taken out of the registry, so only once.
    let list = unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(list, length + 1)) };
    for &device in list.iter().take(length) {
        // SAFETY: each entry carries a count of the device's Arc.
        drop(unsafe { Arc::from_raw(device.cast::<SoftDevice>().cast_const()) });
    }
}

unsafe extern "C" fn get_device_name(device: *mut sys::ibv_device) -> *const c_char {
    match registry::borrow::<SoftDevice>(device) {
        // The name lives as long as the device, which the caller's list or context keeps.
        Ok(device) => device.abi.name.as_ptr(),
        Err(errno) => pointer::<c_char>(Err(errno)),
    }
}

unsafe extern "C" fn get_device_guid(device: *mut sys::ibv_device) -> u64 {
    registry::borrow::<SoftDevice>(device).map_or(0, |device| u64::from_ne_bytes(device.guid.to_bytes()))
}

unsafe extern "C" fn open_device(device: *mut sys::ibv_device) -> *mut sys::ibv_context {
    pointer(registry::borrow::<SoftDevice>(device).and_then(|device| {
        here(device.birth)?;
        device.called("ibv_open_device")?;
        Ok(registry::publish(SoftContext::new(device)))
    }))
}

unsafe extern "C" fn close_device(context: *mut sys::ibv_context) -> c_int {
    // As in rdma-core, nobody asks whether anything was made from it; what was keeps it in memory.
    let called = self::context(context).and_then(|known| known.device.called("ibv_close_device"));
    number(called.and_then(|()| registry::retire::<SoftContext>(context)).map(drop))
}

unsafe extern "C" fn query_device(pointer: *mut sys::ibv_context, attributes: *mut sys::ibv_device_attr) -> c_int {
    number(context(pointer).and_then(|context| {
        if attributes.is_null() {
            return Err(libc::EINVAL);
        }
        context.device.called("ibv_query_device")?;
        // SAFETY: not null, and a structure of the caller's, as the call asks for.
        unsafe { attributes.write(context.device.attributes()) };
        Ok(())
    }))
}

/// The part of `ibv_port_attr` that the exported symbol of this name writes: all before `port_cap_flags2`.
const PORT_BYTES: usize = core::mem::offset_of!(sys::ibv_port_attr, port_cap_flags2);

unsafe extern "C" fn query_port(
    pointer: *mut sys::ibv_context,
    port: u8,
    attributes: *mut sys::ibv_port_attr,
) -> c_int {
    number(context(pointer).and_then(|context| {
        if attributes.is_null() || port != 1 {
            return Err(libc::EINVAL);
        }
        context.device.called("ibv_query_port")?;
        let answer = context.device.port();
        // SAFETY: the caller's structure has at least the old size, and only that much is written.
        unsafe {
            core::ptr::copy_nonoverlapping((&raw const answer).cast::<u8>(), attributes.cast::<u8>(), PORT_BYTES)
        };
        Ok(())
    }))
}

unsafe extern "C" fn query_gid(
    pointer: *mut sys::ibv_context,
    port: u8,
    index: c_int,
    gid: *mut sys::ibv_gid,
) -> c_int {
    minus_one(context(pointer).and_then(|context| {
        context.device.called("ibv_query_gid")?;
        let table = context.device.gids();
        let entry = usize::try_from(index).ok().and_then(|index| table.get(index)).ok_or(libc::EINVAL)?;
        if gid.is_null() || port != 1 {
            return Err(libc::EINVAL);
        }
        // SAFETY: not null, and a structure of the caller's, as the call asks for.
        unsafe { gid.write(sys::ibv_gid { raw: entry.to_bytes() }) };
        Ok(())
    }))
}

unsafe extern "C" fn query_pkey(pointer: *mut sys::ibv_context, port: u8, index: c_int, pkey: *mut u16) -> c_int {
    minus_one(context(pointer).and_then(|context| {
        if pkey.is_null() || port != 1 || index != 0 {
            return Err(libc::EINVAL);
        }
        context.device.called("ibv_query_pkey")?;
        // SAFETY: not null, and the caller's, as the call asks for. The default key, full membership.
        unsafe { pkey.write(0xffff_u16.to_be()) };
        Ok(())
    }))
}

unsafe extern "C" fn alloc_pd(pointer_: *mut sys::ibv_context) -> *mut sys::ibv_pd {
    pointer(context(pointer_).and_then(|context| {
        context.device.called("ibv_alloc_pd")?;
        // A port that is DOWN: null with errno 102, EOPNOTSUPP on macOS (ml-explore/mlx pull request 4530).
        if !context.device.is_active() {
            return Err(libc::EOPNOTSUPP);
        }
        let ticket = context.device.domains.take().ok_or(libc::ENOMEM)?;
        let abi = sys::ibv_pd { context: context.pointer(), handle: 0 };
        Ok(registry::publish(Arc::new(SoftPd { abi, ticket, context, users: AtomicU32::new(0) })))
    }))
}

unsafe extern "C" fn dealloc_pd(pointer: *mut sys::ibv_pd) -> c_int {
    let called = registry::borrow::<SoftPd>(pointer).and_then(|domain| domain.context.device.called("ibv_dealloc_pd"));
    let unused = || retire_unused::<SoftPd>(pointer, |domain| domain.context.birth, |domain| &domain.users);
    number(called.and_then(|()| unused()).map(|domain| {
        domain.context.device.domains.give_back(&domain.ticket);
    }))
}
