//! The device through its function table: for questions that the safe API rightly keeps a program from asking. All the
//! `unsafe` of this program is here.
//!
//! Objects hold their parents, queue pairs hold the regions that were posted to them, and each is destroyed when nobody
//! holds it any more: so children go before parents, and regions after the queue pairs. What cannot be destroyed is said in
//! [`Opened::troubles`], and keeps its memory.
#![allow(unsafe_code)]

use crate::memory::Memory;
use rdma::{Context, Errno, Provider};
use rdma_sys as sys;
use std::cell::RefCell;
use std::ffi::{c_int, c_uint};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{NonNull, null_mut};
use std::rc::Rc;
use std::time::Duration;

/// What a call answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The number that it returned, and `errno`, for where that is −1.
    Number(c_int, c_int),
    /// A null pointer, with `errno`.
    Null(c_int),
}

impl Answer {
    fn of(returned: c_int) -> Self {
        Answer::Number(returned, last_errno())
    }

    /// The errno, if the call failed.
    pub(crate) fn errno(self) -> Option<c_int> {
        match self {
            Answer::Number(returned, errno) => sys::errno_of(returned, || errno),
            Answer::Null(errno) => Some(errno),
        }
    }

    pub(crate) fn is_ok(self) -> bool {
        self.errno().is_none()
    }

    pub(crate) fn is(self, errno: c_int) -> bool {
        self.errno() == Some(errno)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.errno(), self) {
            (None, _) => out.write_str("success"),
            (Some(errno), Answer::Null(_)) => write!(out, "{} ({errno})", Errno::from_raw(errno).name()),
            (Some(errno), Answer::Number(returned, _)) => {
                write!(out, "{} (returned {returned})", Errno::from_raw(errno).name())
            }
        }
    }
}

fn last_errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The pointer that a call returned, or why there is none.
fn made<T>(pointer: *mut T) -> Result<NonNull<T>, Answer> {
    NonNull::new(pointer).ok_or_else(|| Answer::Null(last_errno()))
}

/// The library in a file.
pub(crate) fn library(path: &str) -> rdma::Result<Provider> {
    // SAFETY: whoever names the file vouches for it, as --help says.
    unsafe { Provider::library(path) }
}

/// An open device.
pub(crate) struct Opened {
    pub(crate) context: Context,
    verbs: sys::Verbs,
    /// What could not be destroyed.
    pub(crate) troubles: RefCell<Vec<String>>,
}

impl Opened {
    pub(crate) fn new(provider: &Provider, context: Context) -> Rc<Self> {
        Rc::new(Opened { context, verbs: *provider.verbs(), troubles: RefCell::default() })
    }

    fn raw(&self) -> *mut sys::ibv_context {
        // SAFETY: the pointer is used while `self` holds the context, and never to close it.
        unsafe { self.context.as_raw() }
    }

    fn destroyed(&self, what: &str, returned: c_int) -> bool {
        let answer = Answer::of(returned);
        if !answer.is_ok() {
            self.troubles.borrow_mut().push(format!("{what}: {answer}"));
        }
        answer.is_ok()
    }

    pub(crate) fn device_attributes(&self) -> Result<sys::ibv_device_attr, Answer> {
        let mut attributes = sys::ibv_device_attr::default();
        // SAFETY: an open context, and a structure of the ABI's size.
        let answer = Answer::of(unsafe { (self.verbs.query_device)(self.raw(), &mut attributes) });
        if answer.is_ok() { Ok(attributes) } else { Err(answer) }
    }

    /// The port's attributes, and how many bytes from the start of the structure the call wrote, at least.
    pub(crate) fn port(&self, number: u8) -> Result<(sys::ibv_port_attr, usize), Answer> {
        #[repr(C)]
        union Room {
            attributes: sys::ibv_port_attr,
            bytes: [u8; 128],
        }
        let (mut one, mut other) = (Room { bytes: [0; 128] }, Room { bytes: [0xa5; 128] });
        let mut answer = Answer::Number(0, 0);
        for room in [&mut one, &mut other] {
            if answer.is_ok() {
                // SAFETY: an open context, and more room than the structure has in any version of the library.
                answer = Answer::of(unsafe { (self.verbs.query_port)(self.raw(), number, &mut room.attributes) });
            }
        }
        if !answer.is_ok() {
            return Err(answer);
        }
        // SAFETY: both rooms were filled with bytes, and are plain integers in either form.
        let (attributes, bytes, others) = unsafe { (one.attributes, one.bytes, other.bytes) };
        let untouched = bytes.iter().zip(&others).rev().take_while(|&(zero, mark)| (*zero, *mark) == (0, 0xa5)).count();
        Ok((attributes, bytes.len() - untouched))
    }

    pub(crate) fn gid(&self, index: c_int) -> Result<[u8; 16], Answer> {
        let mut gid = sys::ibv_gid { raw: [0; 16] };
        // SAFETY: an open context and a GID to fill.
        let answer = Answer::of(unsafe { (self.verbs.query_gid)(self.raw(), 1, index, &mut gid) });
        // SAFETY: every form of the union is plain bytes.
        if answer.is_ok() { Ok(unsafe { gid.raw }) } else { Err(answer) }
    }

    pub(crate) fn has_channels(&self) -> bool {
        self.verbs.create_comp_channel.is_some() && self.verbs.get_cq_event.is_some()
    }

    /// The descriptor for asynchronous events, and the one that commands go through.
    pub(crate) fn descriptors(&self) -> (c_int, c_int) {
        // SAFETY: an open context: both fields are of the part whose layout the ABI fixes.
        unsafe { ((*self.raw()).async_fd, (*self.raw()).cmd_fd) }
    }
}

/// A protection domain.
pub(crate) struct Domain {
    raw: NonNull<sys::ibv_pd>,
    pub(crate) opened: Rc<Opened>,
}

impl Domain {
    pub(crate) fn new(opened: &Rc<Opened>) -> Result<Rc<Self>, Answer> {
        // SAFETY: an open context.
        let raw = made(unsafe { (opened.verbs.alloc_pd)(opened.raw()) })?;
        Ok(Rc::new(Domain { raw, opened: opened.clone() }))
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: live, made by this library, and its children held us until they were destroyed.
        let returned = unsafe { (self.opened.verbs.dealloc_pd)(self.raw.as_ptr()) };
        self.opened.destroyed("ibv_dealloc_pd", returned);
    }
}

/// Registered memory.
pub(crate) struct Region {
    raw: NonNull<sys::ibv_mr>,
    pub(crate) memory: ManuallyDrop<Rc<Memory>>,
    offset: usize,
    pub(crate) length: usize,
    domain: Rc<Domain>,
}

impl Region {
    /// Registers a part of the memory; under another device address than its own, if there is one.
    pub(crate) fn new(
        domain: &Rc<Domain>,
        memory: &Rc<Memory>,
        (offset, length): (usize, usize),
        access: u32,
        iova: Option<u64>,
    ) -> Result<Rc<Self>, Answer> {
        let base = memory.part(offset, length);
        let (verbs, pd) = (&domain.opened.verbs, domain.raw.as_ptr());
        let raw = match (iova, verbs.reg_mr_iova2) {
            // SAFETY: a live domain, and memory that is ours for as long as the region holds it.
            (None, _) => unsafe { (verbs.reg_mr)(pd, base.cast(), length, access as c_int) },
            // SAFETY: as above.
            (Some(iova), Some(register)) => unsafe { register(pd, base.cast(), length, iova, access as c_uint) },
            (Some(_), None) => return Err(Answer::Null(libc::ENOSYS)),
        };
        let raw = made(raw)?;
        let memory = ManuallyDrop::new(memory.clone());
        Ok(Rc::new(Region { raw, memory, offset, length, domain: domain.clone() }))
    }

    /// The local and the remote key.
    pub(crate) fn keys(&self) -> (u32, u32) {
        // SAFETY: a live region.
        unsafe { (self.raw.as_ref().lkey, self.raw.as_ref().rkey) }
    }

    fn element(&self, (offset, length): (usize, usize)) -> sys::ibv_sge {
        assert!(offset <= self.length && length <= self.length - offset, "within the region");
        let addr = self.memory.part(self.offset + offset, length).expose_provenance() as u64;
        sys::ibv_sge { addr, length: u32::try_from(length).expect("regions are small"), lkey: self.keys().0 }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: live, and the queue pairs that it was posted to held it until they were destroyed.
        let returned = unsafe { (self.domain.opened.verbs.dereg_mr)(self.raw.as_ptr()) };
        if self.domain.opened.destroyed("ibv_dereg_mr", returned) {
            // SAFETY: once, here. Otherwise the device may still write, and the memory stays.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

/// A completion queue, with a channel if one was asked for.
pub(crate) struct Queue {
    raw: NonNull<sys::ibv_cq>,
    channel: *mut sys::ibv_comp_channel,
    opened: Rc<Opened>,
}

impl Queue {
    pub(crate) fn new(opened: &Rc<Opened>, entries: c_int) -> Result<Rc<Self>, Answer> {
        Queue::on(opened, entries, null_mut())
    }

    /// With a completion channel.
    pub(crate) fn with_channel(opened: &Rc<Opened>, entries: c_int) -> Result<Rc<Self>, Answer> {
        let Some(create) = opened.verbs.create_comp_channel else { return Err(Answer::Null(libc::ENOSYS)) };
        // SAFETY: an open context.
        let channel = made(unsafe { create(opened.raw()) })?;
        Queue::on(opened, entries, channel.as_ptr()).inspect_err(|_| destroy_channel(opened, channel.as_ptr()))
    }

    fn on(opened: &Rc<Opened>, entries: c_int, channel: *mut sys::ibv_comp_channel) -> Result<Rc<Self>, Answer> {
        // SAFETY: an open context, and a channel of it or none.
        let raw = made(unsafe { (opened.verbs.create_cq)(opened.raw(), entries, null_mut(), channel, 0) })?;
        Ok(Rc::new(Queue { raw, channel, opened: opened.clone() }))
    }

    /// Up to 16 completions.
    pub(crate) fn poll(&self) -> Result<Vec<sys::ibv_wc>, Answer> {
        let mut wc = [sys::ibv_wc::default(); 16];
        // SAFETY: a live queue, and room for 16.
        let count = unsafe { sys::ibv_poll_cq(self.raw.as_ptr(), 16, wc.as_mut_ptr()) };
        match usize::try_from(count) {
            Ok(count) => Ok(wc[..count.min(16)].to_vec()),
            Err(_) => Err(Answer::of(count)),
        }
    }

    pub(crate) fn request_notification(&self) -> Answer {
        // SAFETY: a live queue.
        Answer::of(unsafe { sys::ibv_req_notify_cq(self.raw.as_ptr(), 0) })
    }

    /// Whether the channel has an event, which is then taken and acknowledged. Never waits longer than told.
    pub(crate) fn event(&self, timeout: Duration) -> Result<bool, String> {
        let (Some(get), Some(acknowledge)) = (self.opened.verbs.get_cq_event, self.opened.verbs.ack_cq_events) else {
            return Err("the library has no ibv_get_cq_event".to_owned());
        };
        if self.channel.is_null() {
            return Err("no channel".to_owned());
        }
        // SAFETY: a live channel.
        let descriptor = unsafe { (*self.channel).fd };
        let mut interest = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        let timeout = c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX);
        // SAFETY: one entry.
        let ready = unsafe { libc::poll(&mut interest, 1, timeout) };
        if ready <= 0 {
            return Ok(false);
        }
        if interest.revents & libc::POLLIN == 0 {
            return Err(format!(
                "the channel's descriptor {descriptor} cannot be waited for ({:#x})",
                interest.revents
            ));
        }
        let (mut queue, mut user) = (null_mut(), null_mut());
        // SAFETY: a live channel with an event, and two pointers to fill.
        let answer = Answer::of(unsafe { get(self.channel, &mut queue, &mut user) });
        if !answer.is_ok() {
            return Err(answer.to_string());
        }
        // SAFETY: a live queue, whose one event was taken.
        unsafe { acknowledge(self.raw.as_ptr(), 1) };
        Ok(queue == self.raw.as_ptr())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: live, and its queue pairs held it until they were destroyed.
        let returned = unsafe { (self.opened.verbs.destroy_cq)(self.raw.as_ptr()) };
        if self.opened.destroyed("ibv_destroy_cq", returned) && !self.channel.is_null() {
            destroy_channel(&self.opened, self.channel);
        }
    }
}

fn destroy_channel(opened: &Opened, channel: *mut sys::ibv_comp_channel) {
    if let Some(destroy) = opened.verbs.destroy_comp_channel {
        // SAFETY: live, and no queue uses it.
        let returned = unsafe { destroy(channel) };
        opened.destroyed("ibv_destroy_comp_channel", returned);
    }
}

/// What a queue pair is asked to be.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) kind: sys::ibv_qp_type,
    pub(crate) depth: u32,
    pub(crate) elements: u32,
    pub(crate) inline: u32,
    pub(crate) signal_all: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Shape { kind: sys::ibv_qp_type::IBV_QPT_UC, depth: 64, elements: 1, inline: 0, signal_all: false }
    }
}

/// A queue pair.
pub(crate) struct Pair {
    raw: NonNull<sys::ibv_qp>,
    domain: Rc<Domain>,
    _queue: Rc<Queue>,
    posted: ManuallyDrop<RefCell<Vec<Rc<Region>>>>,
}

impl Pair {
    /// The queue pair, and the capacities that the call wrote into its argument.
    pub(crate) fn new(domain: &Rc<Domain>, queue: &Rc<Queue>, shape: Shape) -> Result<(Self, sys::ibv_qp_cap), Answer> {
        let cap = sys::ibv_qp_cap {
            max_send_wr: shape.depth,
            max_recv_wr: shape.depth,
            max_send_sge: shape.elements,
            max_recv_sge: shape.elements,
            max_inline_data: shape.inline,
        };
        let raw = queue.raw.as_ptr();
        let mut init = sys::ibv_qp_init_attr { send_cq: raw, recv_cq: raw, cap, ..Default::default() };
        init.qp_type = shape.kind;
        init.sq_sig_all = c_int::from(shape.signal_all);
        // SAFETY: a live domain and queue of one context.
        let raw = made(unsafe { (domain.opened.verbs.create_qp)(domain.raw.as_ptr(), &mut init) })?;
        let posted = ManuallyDrop::default();
        Ok((Pair { raw, domain: domain.clone(), _queue: queue.clone(), posted }, init.cap))
    }

    pub(crate) fn number(&self) -> u32 {
        // SAFETY: a live queue pair; the field is of the part whose layout the ABI fixes.
        unsafe { self.raw.as_ref().qp_num }
    }

    pub(crate) fn modify(&self, mut attributes: sys::ibv_qp_attr, mask: sys::QpAttrMask) -> Answer {
        // SAFETY: a live queue pair.
        Answer::of(unsafe {
            (self.domain.opened.verbs.modify_qp)(self.raw.as_ptr(), &mut attributes, mask.bits() as c_int)
        })
    }

    pub(crate) fn query(&self) -> Result<(sys::ibv_qp_attr, sys::ibv_qp_init_attr), Answer> {
        let (mut attributes, mut init) = (sys::ibv_qp_attr::default(), sys::ibv_qp_init_attr::default());
        let mask = (sys::QpAttrMask::STATE | sys::QpAttrMask::CAP).bits() as c_int;
        let query = self.domain.opened.verbs.query_qp;
        // SAFETY: a live queue pair and two structures to fill.
        let answer = Answer::of(unsafe { query(self.raw.as_ptr(), &mut attributes, mask, &mut init) });
        if answer.is_ok() { Ok((attributes, init)) } else { Err(answer) }
    }

    /// Whether the bytes of a message arrive in order, if the library can be asked.
    pub(crate) fn data_in_order(&self) -> Option<c_int> {
        let query = self.domain.opened.verbs.query_qp_data_in_order?;
        // SAFETY: a live queue pair.
        Some(unsafe { query(self.raw.as_ptr(), sys::ibv_wr_opcode::IBV_WR_SEND, 0) })
    }

    /// Posts a chain of receives, each with an id and a part of the region.
    pub(crate) fn post_recvs(&self, region: &Rc<Region>, receives: &[(u64, (usize, usize))]) -> Answer {
        let mut elements: Vec<_> = receives.iter().map(|&(_, part)| region.element(part)).collect();
        let mut requests: Vec<_> = receives
            .iter()
            .zip(&mut elements)
            .map(|(&(wr_id, _), element)| sys::ibv_recv_wr { wr_id, next: null_mut(), sg_list: element, num_sge: 1 })
            .collect();
        let first = requests.as_mut_ptr();
        for index in 1..requests.len() {
            // SAFETY: both are elements of the vector, which does not move any more.
            unsafe { (*first.add(index - 1)).next = first.add(index) };
        }
        self.posted.borrow_mut().push(region.clone());
        // SAFETY: a live queue pair, a chain of valid requests, and the region is held until the queue pair is destroyed.
        Answer::of(unsafe { sys::ibv_post_recv(self.raw.as_ptr(), first, &mut null_mut()) })
    }

    pub(crate) fn post_recv(&self, region: &Rc<Region>, id: u64, part: (usize, usize)) -> Answer {
        self.post_recvs(region, &[(id, part)])
    }

    /// Posts a chain of sends.
    pub(crate) fn post_sends(&self, region: &Rc<Region>, sends: &[Send]) -> Answer {
        let mut elements: Vec<Vec<_>> =
            sends.iter().map(|send| send.parts.iter().map(|&part| region.element(part)).collect()).collect();
        let mut requests: Vec<_> = sends
            .iter()
            .zip(&mut elements)
            .map(|(send, elements)| sys::ibv_send_wr {
                wr_id: send.id,
                sg_list: elements.as_mut_ptr(),
                num_sge: elements.len() as c_int,
                opcode: send.opcode,
                send_flags: send.flags,
                ..Default::default()
            })
            .collect();
        let first = requests.as_mut_ptr();
        for index in 1..requests.len() {
            // SAFETY: both are elements of the vector, which does not move any more.
            unsafe { (*first.add(index - 1)).next = first.add(index) };
        }
        self.posted.borrow_mut().push(region.clone());
        // SAFETY: a live queue pair, a chain of valid requests, and the region is held until the queue pair is destroyed.
        Answer::of(unsafe { sys::ibv_post_send(self.raw.as_ptr(), first, &mut null_mut()) })
    }

    pub(crate) fn post_send(&self, region: &Rc<Region>, id: u64, part: (usize, usize)) -> Answer {
        self.post_sends(region, &[Send::new(id, part)])
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // SAFETY: live, once.
        let returned = unsafe { (self.domain.opened.verbs.destroy_qp)(self.raw.as_ptr()) };
        if self.domain.opened.destroyed("ibv_destroy_qp", returned) {
            // SAFETY: once, here. Otherwise the device may still write, and the regions stay registered.
            unsafe { ManuallyDrop::drop(&mut self.posted) };
        }
    }
}

/// A send to be posted.
#[derive(Clone)]
pub(crate) struct Send {
    pub(crate) id: u64,
    pub(crate) opcode: sys::ibv_wr_opcode,
    pub(crate) flags: u32,
    pub(crate) parts: Vec<(usize, usize)>,
}

impl Send {
    /// A signaled one.
    pub(crate) fn new(id: u64, part: (usize, usize)) -> Self {
        Send { id, opcode: sys::ibv_wr_opcode::IBV_WR_SEND, flags: sys::IBV_SEND_SIGNALED, parts: vec![part] }
    }
}
