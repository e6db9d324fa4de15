//! A device through its function table alone, as a C program sees it.
#![allow(unsafe_code)]

use super::fabrics;
use rdma::Provider;
use rdma::soft::Fabric;
use rdma_sys::{self as sys, QpAttrMask as Mask, Verbs, ibv_qp_state as state};
use std::alloc::Layout;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The thread's errno.
pub fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// One open device, with a protection domain and a completion queue. Frees what it made when dropped, and panics if a call
/// for that fails.
pub struct Host {
    pub provider: Provider,
    pub verbs: Verbs,
    pub context: *mut sys::ibv_context,
    pub pd: *mut sys::ibv_pd,
    pub cq: *mut sys::ibv_cq,
    memory: Vec<Memory>,
    queue_pairs: Vec<*mut sys::ibv_qp>,
}

/// Registered memory.
#[derive(Clone, Copy)]
pub struct Memory {
    pub mr: *mut sys::ibv_mr,
    pub base: *mut u8,
    layout: Layout,
}

impl Memory {
    pub fn key(self) -> u32 {
        // SAFETY: registered, and the host frees it last.
        unsafe { (*self.mr).lkey }
    }

    pub fn sge(self, offset: usize, length: usize) -> sys::ibv_sge {
        sys::ibv_sge { addr: self.base as u64 + offset as u64, length: length as u32, lkey: self.key() }
    }

    /// The bytes now.
    pub fn read(self, offset: usize, length: usize) -> Vec<u8> {
        // SAFETY: within the allocation, and the tests do not read while a message may arrive there.
        unsafe { std::slice::from_raw_parts(self.base.add(offset), length).to_vec() }
    }

    pub fn write(self, offset: usize, bytes: &[u8]) {
        // SAFETY: within the allocation, and the tests do not write while a message may leave from there.
        unsafe { self.base.add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

/// Memory that is never freed, on purpose. Leak detection takes it as in use while it stands here.
static KEPT: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());

fn keep(base: *mut u8) {
    KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(base.expose_provenance());
}

/// Memory where Apple's device takes it: from a page on, and within one stretch of 4 GiB. An allocator knows nothing of the
/// second, so what it places across a border is kept out of its way, and it is asked again.
fn allocate(layout: Layout) -> *mut u8 {
    loop {
        // SAFETY: the tests ask for no length of 0.
        let base = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!base.is_null());
        let (first, last) = (base.addr() as u64, (base.addr() + layout.size() - 1) as u64);
        if first >> 32 == last >> 32 {
            return base;
        }
        keep(base);
    }
}

/// Such memory, never freed.
pub fn aligned(length: usize) -> *mut u8 {
    let base = allocate(Layout::from_size_align(length, 16384).unwrap());
    keep(base);
    base
}

impl Host {
    /// The first device of a host of a fabric.
    pub fn open(fabric: &Fabric, host: usize) -> Host {
        Host::open_device(fabric, host, 0)
    }

    pub fn open_device(fabric: &Fabric, host: usize, device: usize) -> Host {
        let provider = Provider::soft(&fabric.host(host).unwrap()).unwrap();
        let verbs = *provider.verbs();
        // SAFETY: calls as the ABI has them; each result is checked.
        unsafe {
            let mut count = 0;
            let list = (verbs.get_device_list)(&mut count);
            assert!(!list.is_null() && device < count as usize);
            let context = (verbs.open_device)(*list.add(device));
            (verbs.free_device_list)(list);
            assert!(!context.is_null());
            let pd = (verbs.alloc_pd)(context);
            assert!(!pd.is_null());
            let cq = (verbs.create_cq)(context, 4096, null_mut(), null_mut(), 0);
            assert!(!cq.is_null());
            Host { provider, verbs, context, pd, cq, memory: Vec::new(), queue_pairs: Vec::new() }
        }
    }

    /// Registers fresh memory.
    pub fn memory(&mut self, length: usize) -> Memory {
        self.memory_with(length, sys::IBV_ACCESS_LOCAL_WRITE)
    }

    pub fn memory_with(&mut self, length: usize, access: u32) -> Memory {
        let layout = Layout::from_size_align(length, 16384).unwrap();
        let base = allocate(layout);
        // SAFETY: a live domain and an allocation of that length.
        let mr = unsafe { (self.verbs.reg_mr)(self.pd, base.cast::<c_void>(), length, access as c_int) };
        assert!(!mr.is_null(), "errno {}", errno());
        let memory = Memory { mr, base, layout };
        self.memory.push(memory);
        memory
    }

    pub fn init_attr(&self, depth: u32) -> sys::ibv_qp_init_attr {
        sys::ibv_qp_init_attr {
            send_cq: self.cq,
            recv_cq: self.cq,
            cap: sys::ibv_qp_cap {
                max_send_wr: depth,
                max_recv_wr: depth,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 0,
            },
            qp_type: sys::ibv_qp_type::IBV_QPT_UC,
            sq_sig_all: 0,
            ..Default::default()
        }
    }

    /// A queue pair in RESET.
    pub fn queue_pair(&mut self, depth: u32) -> *mut sys::ibv_qp {
        let mut init = self.init_attr(depth);
        // SAFETY: live objects.
        let qp = unsafe { (self.verbs.create_qp)(self.pd, &mut init) };
        assert!(!qp.is_null(), "errno {}", errno());
        self.queue_pairs.push(qp);
        qp
    }

    /// Destroys one of them now.
    pub fn destroy(&mut self, qp: *mut sys::ibv_qp) {
        self.queue_pairs.retain(|&other| other != qp);
        // SAFETY: live, and forgotten now.
        assert_eq!(unsafe { (self.verbs.destroy_qp)(qp) }, 0);
    }

    /// Deregisters memory now (and never frees it, so that late writes would not corrupt anything else).
    pub fn deregister(&mut self, memory: Memory) {
        self.memory.retain(|other| other.mr != memory.mr);
        keep(memory.base);
        // SAFETY: live, and forgotten now.
        assert_eq!(unsafe { (self.verbs.dereg_mr)(memory.mr) }, 0);
    }

    pub fn modify(&self, qp: *mut sys::ibv_qp, mut attributes: sys::ibv_qp_attr, mask: Mask) -> c_int {
        // SAFETY: a live queue pair.
        unsafe { (self.verbs.modify_qp)(qp, &mut attributes, mask.bits() as c_int) }
    }

    pub fn query(&self, qp: *mut sys::ibv_qp) -> (sys::ibv_qp_attr, sys::ibv_qp_init_attr) {
        let (mut attributes, mut init) = Default::default();
        // SAFETY: a live queue pair and two structures.
        assert_eq!(unsafe { (self.verbs.query_qp)(qp, &mut attributes, Mask::CAP.bits() as c_int, &mut init) }, 0);
        (attributes, init)
    }

    pub fn state(&self, qp: *mut sys::ibv_qp) -> state {
        self.query(qp).0.qp_state
    }

    pub fn gid(&self, index: u8) -> sys::ibv_gid {
        let mut gid = sys::ibv_gid::default();
        // SAFETY: an open context.
        assert_eq!(unsafe { (self.verbs.query_gid)(self.context, 1, c_int::from(index), &mut gid) }, 0);
        gid
    }

    pub fn port(&self) -> sys::ibv_port_attr {
        let mut port = sys::ibv_port_attr::default();
        // SAFETY: an open context.
        assert_eq!(unsafe { (self.verbs.query_port)(self.context, 1, &mut port) }, 0);
        port
    }

    /// Posts one receive. Returns what the call does.
    pub fn post_recv(&self, qp: *mut sys::ibv_qp, wr_id: u64, sge: sys::ibv_sge) -> c_int {
        let mut sge = sge;
        let mut wr = sys::ibv_recv_wr { wr_id, next: null_mut(), sg_list: &mut sge, num_sge: 1 };
        let mut bad = null_mut();
        // SAFETY: a live queue pair and a request over registered memory.
        unsafe { sys::ibv_post_recv(qp, &mut wr, &mut bad) }
    }

    /// Posts one signaled send.
    pub fn post_send(&self, qp: *mut sys::ibv_qp, wr_id: u64, sge: sys::ibv_sge) -> c_int {
        self.post_send_flags(qp, wr_id, sge, sys::IBV_SEND_SIGNALED)
    }

    pub fn post_send_flags(&self, qp: *mut sys::ibv_qp, wr_id: u64, sge: sys::ibv_sge, flags: u32) -> c_int {
        let mut sge = sge;
        let mut wr = send_wr(wr_id, &mut sge, flags);
        let mut bad = null_mut();
        // SAFETY: a live queue pair and a request over registered memory.
        unsafe { sys::ibv_post_send(qp, &mut wr, &mut bad) }
    }

    /// Takes up to 64 completions.
    pub fn poll(&self) -> Vec<sys::ibv_wc> {
        let mut wc = [sys::ibv_wc::default(); 64];
        // SAFETY: a live queue, and room for 64.
        let count = unsafe { sys::ibv_poll_cq(self.cq, 64, wc.as_mut_ptr()) };
        assert!(count >= 0, "poll: {count}");
        wc[..count as usize].to_vec()
    }

    /// Waits for this many completions.
    #[track_caller]
    pub fn wait(&self, count: usize) -> Vec<sys::ibv_wc> {
        let mut all = Vec::new();
        super::eventually(&format!("{count} completions"), || {
            all.extend(self.poll());
            all.len() >= count
        });
        assert_eq!(all.len(), count);
        all
    }

    /// The attributes and masks of TN3205.
    pub fn to_init(&self, qp: *mut sys::ibv_qp) -> c_int {
        let (attributes, mask) = init();
        self.modify(qp, attributes, mask)
    }

    pub fn to_rtr(&self, qp: *mut sys::ibv_qp, peer: &Host, peer_qp: *mut sys::ibv_qp) -> c_int {
        let (attributes, mask) = rtr(peer, peer_qp);
        self.modify(qp, attributes, mask)
    }

    pub fn to_rts(&self, qp: *mut sys::ibv_qp) -> c_int {
        let (attributes, mask) = rts();
        self.modify(qp, attributes, mask)
    }

    pub fn connect(&self, qp: *mut sys::ibv_qp, peer: &Host, peer_qp: *mut sys::ibv_qp) {
        assert_eq!(self.to_init(qp), 0);
        assert_eq!(self.to_rtr(qp, peer, peer_qp), 0);
        assert_eq!(self.to_rts(qp), 0);
    }
}

pub fn number(qp: *mut sys::ibv_qp) -> u32 {
    // SAFETY: the tests ask of live queue pairs only.
    unsafe { (*qp).qp_num }
}

pub fn send_wr(wr_id: u64, sge: *mut sys::ibv_sge, flags: u32) -> sys::ibv_send_wr {
    sys::ibv_send_wr {
        wr_id,
        sg_list: sge,
        num_sge: 1,
        opcode: sys::ibv_wr_opcode::IBV_WR_SEND,
        send_flags: flags,
        ..Default::default()
    }
}

pub fn init() -> (sys::ibv_qp_attr, Mask) {
    let attributes = sys::ibv_qp_attr { qp_state: state::IBV_QPS_INIT, port_num: 1, ..Default::default() };
    (attributes, Mask::STATE | Mask::PKEY_INDEX | Mask::PORT | Mask::ACCESS_FLAGS)
}

/// To the peer's GID 1 (IPv4-mapped), from our index 1.
pub fn rtr(peer: &Host, peer_qp: *mut sys::ibv_qp) -> (sys::ibv_qp_attr, Mask) {
    let mut path = sys::ibv_ah_attr { dlid: peer.port().lid, is_global: 1, port_num: 1, ..Default::default() };
    path.grh.dgid = peer.gid(1);
    path.grh.sgid_index = 1;
    path.grh.hop_limit = 1;
    let attributes = sys::ibv_qp_attr {
        qp_state: state::IBV_QPS_RTR,
        ah_attr: path,
        path_mtu: sys::ibv_mtu::IBV_MTU_4096,
        dest_qp_num: number(peer_qp),
        rq_psn: 7,
        ..Default::default()
    };
    (attributes, Mask::STATE | Mask::AV | Mask::PATH_MTU | Mask::DEST_QPN | Mask::RQ_PSN)
}

pub fn rts() -> (sys::ibv_qp_attr, Mask) {
    let attributes = sys::ibv_qp_attr { qp_state: state::IBV_QPS_RTS, sq_psn: 7, ..Default::default() };
    (attributes, Mask::STATE | Mask::SQ_PSN)
}

/// Two hosts with a queue pair each, connected, and a megabyte of memory.
pub struct Two {
    pub fabric: Fabric,
    pub a: Host,
    pub b: Host,
    pub qp_a: *mut sys::ibv_qp,
    pub qp_b: *mut sys::ibv_qp,
    pub mem_a: Memory,
    pub mem_b: Memory,
}

pub fn two() -> Two {
    two_on(fabrics::mesh(2), 1023)
}

pub fn two_on(fabric: Fabric, depth: u32) -> Two {
    two_with(fabric, depth, 1 << 20)
}

pub fn two_with(fabric: Fabric, depth: u32, memory: usize) -> Two {
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (mem_a, mem_b) = (a.memory(memory), b.memory(memory));
    let (qp_a, qp_b) = (a.queue_pair(depth), b.queue_pair(depth));
    a.connect(qp_a, &b, qp_b);
    b.connect(qp_b, &a, qp_a);
    Two { fabric, a, b, qp_a, qp_b, mem_a, mem_b }
}

impl Drop for Host {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // SAFETY: live objects, children before parents, each once.
        unsafe {
            for &qp in &self.queue_pairs {
                assert_eq!((self.verbs.destroy_qp)(qp), 0, "destroy_qp");
            }
            for memory in &self.memory {
                assert_eq!((self.verbs.dereg_mr)(memory.mr), 0, "dereg_mr");
                std::alloc::dealloc(memory.base, memory.layout);
            }
            assert_eq!((self.verbs.destroy_cq)(self.cq), 0, "destroy_cq");
            assert_eq!((self.verbs.dealloc_pd)(self.pd), 0, "dealloc_pd");
            assert_eq!((self.verbs.close_device)(self.context), 0, "close_device");
        }
    }
}
