//! A memory region: registered memory and the ranges of it that are in use.

use super::call;
use super::domain::RawDomain;
use super::owner::{SharedMemory, StableMemory};
use super::pages::Pages;
use super::ranges::Ranges;
use crate::error::catalogue::states;
use crate::error::{Error, ErrorKind, Result};
use crate::rules::DeviceRules;
use core::ffi::c_int;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use rdma_sys::{self as sys, AccessFlags};
use std::sync::{Arc, Mutex, PoisonError};

/// Owns an `ibv_mr` and the memory behind it.
pub(crate) struct RawRegion {
    pub(crate) domain: Arc<RawDomain>,
    raw: NonNull<sys::ibv_mr>,
    live: bool,
    base: NonNull<u8>,
    length: usize,
    key: u32,
    /// Which registration of its domain's device this is, as counted here.
    serial: u64,
    ranges: Mutex<Ranges>,
    memory: ManuallyDrop<Memory>,
}

/// Who the memory belongs to. It is kept as it is until the region is deregistered.
enum Memory {
    Pages { _pages: Pages },
    Stable { _owner: Box<dyn StableMemory> },
    Shared { _owner: Box<dyn SharedMemory> },
}

// SAFETY: the memory is reached only through spans, each of which has its range to itself; the owner behind `memory` is
// Send + Sync and is not used between registration and drop; verbs libraries may be called from any thread.
unsafe impl Send for RawRegion {}
// SAFETY: as above.
unsafe impl Sync for RawRegion {}

impl RawRegion {
    /// Maps new memory and registers it.
    pub(crate) fn allocate(domain: &Arc<RawDomain>, length: usize) -> Result<Arc<Self>> {
        let rules = &domain.rules;
        let on_device = |error: Error| error.on_device(domain.context.device());
        if length == 0 {
            return Err(on_device(empty()));
        }
        if let Some(window) = rules.address_window().filter(|&window| length as u64 > window) {
            return Err(on_device(too_long_for_window(length, window)));
        }
        check_length(rules, length).map_err(on_device)?;
        let pages = Pages::map(length, rules.alignment(), rules.address_window())
            .map_err(|error| error.with_detail(format!("no room for a region of {length} bytes")))?;
        let (base, mapped) = (pages.base(), pages.length());
        RawRegion::register(domain, Memory::Pages { _pages: pages }, base, length, mapped)
    }

    /// Registers memory of which the owner has sole access.
    pub(crate) fn stable(domain: &Arc<RawDomain>, owner: Box<dyn StableMemory>) -> Result<Arc<Self>> {
        let (base, length) = checked(domain, owner.bytes())?;
        RawRegion::register(domain, Memory::Stable { _owner: owner }, base, length, length)
    }

    /// Registers memory that others may touch at any time.
    pub(crate) fn shared(domain: &Arc<RawDomain>, owner: Box<dyn SharedMemory>) -> Result<Arc<Self>> {
        let (base, length) = checked(domain, owner.bytes())?;
        RawRegion::register(domain, Memory::Shared { _owner: owner }, base, length, length)
    }

    /// `registered` bytes are given to the device, of which `length` can be used.
    fn register(
        domain: &Arc<RawDomain>,
        memory: Memory,
        base: NonNull<u8>,
        length: usize,
        registered: usize,
    ) -> Result<Arc<Self>> {
        let verbs = &domain.context.library().verbs;
        let register = |access: AccessFlags| {
            // SAFETY: a live protection domain; the range is mapped memory that `memory` keeps, by what Pages does or by
            // the contract of StableMemory and SharedMemory.
            call::pointer("ibv_reg_mr", || unsafe {
                (verbs.reg_mr)(domain.as_ptr(), base.as_ptr().cast(), registered, access.bits() as c_int)
            })
        };
        let narrow = AccessFlags::LOCAL_WRITE;
        let raw = match register(narrow) {
            // TN3205 registers for local write alone; two users report builds that refuse this and take all three flags
            // (ggml-org/llama.cpp, Anemll/mlx-rdma). The rkey is 0 there: no peer can make use of it.
            Err(error) if domain.rules.may_widen_access() && is_refusal(&error) => {
                register(narrow | AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ).map_err(|_| error)
            }
            first => first,
        }
        .map_err(|error| {
            error.on_device(domain.context.device()).or_detail(|| format!("{registered} bytes at {base:?}"))
        })?;
        Ok(Arc::new(RawRegion {
            // SAFETY: a live region, whose keys the library does not change.
            key: unsafe { (*raw.as_ptr()).lkey },
            serial: domain.context.next_registration(),
            domain: domain.clone(),
            raw,
            live: true,
            base,
            length,
            ranges: Mutex::new(Ranges::new(length)),
            memory: ManuallyDrop::new(memory),
        }))
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_mr {
        self.raw.as_ptr()
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The local key.
    #[inline]
    pub(crate) fn key(&self) -> u32 {
        self.key
    }

    #[inline]
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// Whether its memory can be seen as slices.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(&*self.memory, Memory::Shared { .. })
    }

    /// Takes a free range. It is the caller's until given back.
    pub(crate) fn take(&self, length: usize) -> Option<usize> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).take(length)
    }

    /// Gives back a range that was taken, or a part of one.
    pub(crate) fn give_back(&self, start: usize, length: usize) {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).give_back(start, length);
    }

    /// Bytes that are free, and the longest free range.
    pub(crate) fn available(&self) -> (usize, usize) {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).available()
    }

    fn destroy(&mut self) -> Result<()> {
        self.live = false;
        let verbs = &self.domain.context.library().verbs;
        // SAFETY: a live region, deregistered once: `live` was true. Spans hold the region, so none is in flight or held.
        let result = call::number("ibv_dereg_mr", || unsafe { (verbs.dereg_mr)(self.as_ptr()) });
        match result {
            Ok(()) => {
                // SAFETY: dropped once, because `live` was true; ibv_dereg_mr has returned, so the device is done with it.
                unsafe { ManuallyDrop::drop(&mut self.memory) };
                Ok(())
            }
            Err(error) => {
                // The device may still use the memory: it and the domain are leaked.
                core::mem::forget(self.domain.clone());
                Err(error
                    .on_device(self.domain.context.device())
                    .with_detail(format!("{} bytes stay registered and are leaked", self.length)))
            }
        }
    }

    /// Deregisters the region and says whether that worked. If not, the memory is leaked.
    pub(crate) fn close(mut self) -> Result<()> {
        self.destroy()
    }
}

/// Whether a registration was refused for what it asked, so that asking for something else makes sense.
fn is_refusal(error: &Error) -> bool {
    error.errno().is_some_and(|errno| [libc::EINVAL, libc::EOPNOTSUPP, libc::EACCES].contains(&errno.raw()))
}

fn too_long_for_window(length: usize, window: u64) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!("a region of {length} bytes cannot lie within one stretch of {window} bytes of addresses"),
    )
    .with_hint("this device knows the low 32 bits of an address only: make several regions")
}

fn check_length(rules: &DeviceRules, length: usize) -> Result<()> {
    let Some(longest) = rules.max_region().filter(|&longest| length as u64 > longest) else { return Ok(()) };
    Err(Error::argument(format!("a region of {length} bytes, where {longest} is the most"))
        .with_hint("make several regions: DeviceRules::pieces says where to cut"))
}

fn empty() -> Error {
    Error::argument("a region of no bytes: a memory region has at least one")
}

/// The owner's range, if the device can register it.
fn checked(domain: &RawDomain, bytes: NonNull<[u8]>) -> Result<(NonNull<u8>, usize)> {
    check(&domain.rules, bytes).map_err(|error| error.on_device(domain.context.device()))
}

fn check(rules: &DeviceRules, bytes: NonNull<[u8]>) -> Result<(NonNull<u8>, usize)> {
    let (base, length) = (bytes.cast::<u8>(), bytes.len());
    if length == 0 {
        return Err(empty());
    }
    check_length(rules, length)?;
    let address = base.addr().get();
    if address % rules.alignment() != 0 {
        return Err(Error::argument(format!(
            "the memory starts at {address:#x}, which is no multiple of the device's page"
        ))
        .with_hint(format!("align it to {} bytes, or let ProtectionDomain::allocate do it", rules.alignment())));
    }
    let Some(last) = address.checked_add(length - 1) else {
        return Err(Error::argument("the memory goes past the end of the address space"));
    };
    if let Some(window) = rules.address_window()
        && address as u64 / window != last as u64 / window
    {
        let border = (address as u64 / window + 1) * window;
        let detail = format!("the memory {address:#x}..={last:#x} crosses a multiple of {window} bytes at {border:#x}");
        return Err(Error::known(&states::ACROSS_4_GIB, detail));
    }
    Ok((base, length))
}

impl Drop for RawRegion {
    fn drop(&mut self) {
        if self.live {
            // A failure has leaked what it must; there is nobody to tell.
            let _ = self.destroy();
        }
    }
}

impl fmt::Debug for RawRegion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RawRegion")
            .field("base", &self.base)
            .field("length", &self.length)
            .field("key", &format_args!("{:#x}", self.key))
            .finish_non_exhaustive()
    }
}
