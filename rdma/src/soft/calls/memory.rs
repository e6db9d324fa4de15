//! Registering memory.

use super::{domain, here, hold, let_go, number, pointer};
use crate::soft::fence;
use crate::soft::profile::Access;
use crate::soft::protection_domain::SoftMr;
use crate::soft::registry;
#[cfg(target_os = "linux")]
use crate::verbs::pages::Pages;
use crate::verbs::pages::host_page;
use core::ffi::{c_int, c_uint, c_void};
use rdma_sys as sys;
use std::sync::Arc;

/// The access flags there are.
const KNOWN: u32 = sys::IBV_ACCESS_LOCAL_WRITE
    | sys::IBV_ACCESS_REMOTE_WRITE
    | sys::IBV_ACCESS_REMOTE_READ
    | sys::IBV_ACCESS_REMOTE_ATOMIC;

/// Bits that a provider may ignore (`IBV_ACCESS_OPTIONAL_RANGE` of rdma-core).
const OPTIONAL: u32 = 0x3ff0_0000;

pub(super) unsafe extern "C" fn reg_mr(
    pd: *mut sys::ibv_pd,
    address: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut sys::ibv_mr {
    pointer(register(pd, address, length, access as u32))
}

pub(super) unsafe extern "C" fn reg_mr_iova2(
    pd: *mut sys::ibv_pd,
    address: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> *mut sys::ibv_mr {
    // The address under which the device knows the memory must be its own (SQCU: −102).
    if iova != address.addr() as u64 {
        return pointer(Err(libc::EOPNOTSUPP));
    }
    pointer(register(pd, address, length, access))
}

fn register(pd: *mut sys::ibv_pd, address: *mut c_void, length: usize, access: u32) -> Result<*mut sys::ibv_mr, c_int> {
    let domain = domain(pd)?;
    let device = &domain.context.device;
    device.called("ibv_reg_mr")?;
    let profile = &device.profile;
    let access = access & !OPTIONAL;
    let remote_write = sys::IBV_ACCESS_REMOTE_WRITE | sys::IBV_ACCESS_REMOTE_ATOMIC;
    if access & !KNOWN != 0 || (access & remote_write != 0 && access & sys::IBV_ACCESS_LOCAL_WRITE == 0) {
        return Err(libc::EINVAL);
    }
    let all = sys::IBV_ACCESS_LOCAL_WRITE | sys::IBV_ACCESS_REMOTE_WRITE | sys::IBV_ACCESS_REMOTE_READ;
    let permitted = match profile.access {
        Access::Any => true,
        Access::LocalOnly => access == sys::IBV_ACCESS_LOCAL_WRITE,
        Access::AllThree => access & all == all,
    };
    if !permitted || (profile.enforces_mr_size && length as u64 > profile.max_mr_size) {
        return Err(libc::EINVAL);
    }
    let base = address.addr();
    let Some(last) = length.checked_sub(1).and_then(|rest| base.checked_add(rest)) else { return Err(libc::EINVAL) };
    if base == 0 || !base.is_multiple_of(profile.page) {
        return Err(libc::EINVAL);
    }
    if profile.four_gib_rule && base as u64 >> 32 != last as u64 >> 32 {
        return Err(libc::EINVAL);
    }
    make_present(address, length, access & sys::IBV_ACCESS_LOCAL_WRITE != 0)?;
    let ticket = device.registrations.take().ok_or(libc::ENOMEM)?;
    let Some(key) = device.regions.insert(base, length, access, domain.identity()) else {
        device.registrations.give_back(&ticket);
        return Err(libc::ENOMEM);
    };
    if let Some(lint) = device.wiring.lint() {
        lint.region(base, length, access, device.regions.count(), device.end);
    }
    hold(&domain.users);
    let abi = sys::ibv_mr {
        context: domain.context.pointer(),
        pd,
        addr: address,
        length,
        handle: key,
        lkey: key,
        // Always 0 on Macs, whatever access was asked for (tmc/gojaccl).
        rkey: 0,
    };
    Ok(registry::publish(Arc::new(SoftMr { abi, ticket, domain })))
}

/// Brings the range into memory, as registering with a real device does, and finds out whether it can be used: EFAULT if
/// part of it is not mapped, or not writable although it is to be written.
fn make_present(address: *mut c_void, length: usize, write: bool) -> Result<(), c_int> {
    let host_page = host_page();
    let length = length.checked_next_multiple_of(host_page).ok_or(libc::EINVAL)?;
    #[cfg(target_os = "linux")]
    if let Some(result) = populate(address, length, write) {
        return result;
    }
    let _ = write;
    // One byte of answer a page, in pieces, so that a large region needs no large answer.
    let mut answer = [0; 1024];
    for offset in (0..length).step_by(answer.len() * host_page) {
        let piece = (length - offset).min(answer.len() * host_page);
        // SAFETY: the answer has a byte for each page of the piece; the kernel refuses what is not mapped.
        let result = unsafe {
            libc::mincore(address.cast::<u8>().wrapping_add(offset).cast(), piece, answer.as_mut_ptr().cast())
        };
        if result != 0 {
            return Err(libc::EFAULT);
        }
    }
    Ok(())
}

/// `madvise(MADV_POPULATE_…)`, or `None` where the kernel (before Linux 5.14) does not know it.
#[cfg(target_os = "linux")]
fn populate(address: *mut c_void, length: usize, write: bool) -> Option<Result<(), c_int>> {
    static KNOWN: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    // SAFETY: populating changes no contents; a range that is not mapped, or not so, is refused by the kernel.
    let advise = |address, length, advice| unsafe { libc::madvise(address, length, advice) } == 0;
    let advice = if write { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
    if advise(address, length, advice) {
        return Some(Ok(()));
    }
    let errno = std::io::Error::last_os_error().raw_os_error();
    match errno {
        // Either the advice is unknown, or the mapping does not permit the access: a page that does tells which.
        Some(libc::EINVAL) => {
            let known = *KNOWN.get_or_init(|| match Pages::map(1, host_page(), None) {
                Ok(page) => advise(page.base().as_ptr().cast(), page.length(), libc::MADV_POPULATE_READ),
                Err(_) => false,
            });
            known.then_some(Err(libc::EFAULT))
        }
        Some(libc::EAGAIN | libc::EHWPOISON) => Some(Err(libc::ENOMEM)),
        _ => Some(Err(libc::EFAULT)),
    }
}

pub(super) unsafe extern "C" fn dereg_mr(mr: *mut sys::ibv_mr) -> c_int {
    number(registry::borrow::<SoftMr>(mr).and_then(|region| {
        here(region.domain.context.birth)?;
        region.domain.context.device.called("ibv_dereg_mr")?;
        drop(region);
        let region = registry::retire::<SoftMr>(mr)?;
        let device = &region.domain.context.device;
        let wiring = device.wiring.lock();
        // First no new copies, then none that are under way. Requests that name the region fail when their turn comes.
        device.regions.revoke(region.abi.lkey);
        // Of all domains: a request may name a key of another one, and reading an entry takes more than a moment.
        for qp in &device.all() {
            fence::wait_for_copies(&wiring, qp);
        }
        device.regions.release(region.abi.lkey);
        device.registrations.give_back(&region.ticket);
        let_go(&region.domain.users);
        Ok(())
    }))
}
