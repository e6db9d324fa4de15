//! Two ends of a connection, made of raw objects.
#![allow(unsafe_code)]

use crate::support::raw::{aligned, errno};
use crate::support::{SHORT, eventually, fabrics};
use rdma::Provider;
use rdma::soft::{Profile, Topology};
use rdma_sys::{self as sys, QpAttrMask as Mask, Verbs, ibv_qp_state as state, ibv_wc_status as status};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How much memory an end has registered.
pub(super) const MEMORY: usize = 64 << 10;

/// What the queues of both ends are to be like.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) depth: u32,
    pub(super) inline: u32,
    /// Entries of the completion queue of receives; sends have one of their own.
    pub(super) entries: c_int,
}

impl Default for Shape {
    fn default() -> Self {
        Shape { depth: 16, inline: 0, entries: 64 }
    }
}

pub(super) struct End {
    pub(super) verbs: Verbs,
    pub(super) context: *mut sys::ibv_context,
    pub(super) pd: *mut sys::ibv_pd,
    pub(super) send_cq: *mut sys::ibv_cq,
    pub(super) recv_cq: *mut sys::ibv_cq,
    pub(super) qp: *mut sys::ibv_qp,
    pub(super) mr: *mut sys::ibv_mr,
    pub(super) base: *mut u8,
    gid_index: u8,
    _provider: Provider,
}

/// Both ends, and the right to use the devices.
pub(super) struct Two {
    pub(super) a: End,
    pub(super) b: End,
    _turn: MutexGuard<'static, ()>,
}

/// Two providers and the names of their devices, if they are to be looked for by name.
fn providers() -> [(Provider, Option<String>); 2] {
    if std::env::var("RDMA_TEST_PROVIDER").is_ok_and(|provider| provider == "system") {
        let names = std::env::var("RDMA_TEST_DEVICES").expect("RDMA_TEST_DEVICES names the devices");
        let provider = Provider::system().unwrap();
        let mut names = names.split(',').map(str::to_owned);
        let first = names.next().unwrap();
        let second = names.next().unwrap_or_else(|| first.clone());
        return [first, second].map(|name| (provider.clone(), Some(name)));
    }
    let profile: Profile = "classic".parse().unwrap();
    let fabric = fabrics::new(Topology::mesh(2).unwrap(), profile);
    [0, 1].map(|host| (Provider::soft(&fabric.host(host).unwrap()).unwrap(), None))
}

/// Two ends in RESET.
pub(super) fn two(shape: Shape) -> Two {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let [a, b] = providers().map(|(provider, name)| End::open(provider, name.as_deref(), shape));
    Two { a, b, _turn: turn }
}

/// Two ends in RTS.
pub(super) fn connected(shape: Shape) -> Two {
    let two = two(shape);
    two.connect();
    two
}

impl Two {
    pub(super) fn connect(&self) {
        for (end, peer) in [(&self.a, &self.b), (&self.b, &self.a)] {
            assert_eq!(end.to_init(), 0);
            assert_eq!(end.to_rtr(peer, peer.number()), 0);
            assert_eq!(end.to_rts(), 0);
        }
    }
}

/// Lets everything arrive that is going to be dropped: nobody says when it was.
pub(super) fn settle() {
    std::thread::sleep(4 * SHORT);
}

impl End {
    fn open(provider: Provider, name: Option<&str>, shape: Shape) -> End {
        let verbs = *provider.verbs();
        // SAFETY: calls as the ABI has them; each result is checked.
        unsafe {
            let mut count = 0;
            let list = (verbs.get_device_list)(&mut count);
            assert!(!list.is_null());
            let device = (0..count as usize)
                .map(|index| *list.add(index))
                .find(|&device| {
                    let its = CStr::from_ptr((verbs.get_device_name)(device));
                    name.is_none_or(|name| its.to_bytes() == name.as_bytes())
                })
                .expect("no device of that name");
            let context = (verbs.open_device)(device);
            (verbs.free_device_list)(list);
            assert!(!context.is_null());
            let pd = (verbs.alloc_pd)(context);
            assert!(!pd.is_null());
            let send_cq = (verbs.create_cq)(context, 64, null_mut(), null_mut(), 0);
            let recv_cq = (verbs.create_cq)(context, shape.entries, null_mut(), null_mut(), 0);
            assert!(!send_cq.is_null() && !recv_cq.is_null());
            let base = aligned(MEMORY);
            let mr = (verbs.reg_mr)(pd, base.cast::<c_void>(), MEMORY, sys::IBV_ACCESS_LOCAL_WRITE as c_int);
            assert!(!mr.is_null(), "errno {}", errno());
            let mut init = sys::ibv_qp_init_attr {
                send_cq,
                recv_cq,
                cap: sys::ibv_qp_cap {
                    max_send_wr: shape.depth,
                    max_recv_wr: shape.depth,
                    max_send_sge: 1,
                    max_recv_sge: 1,
                    max_inline_data: shape.inline,
                },
                qp_type: sys::ibv_qp_type::IBV_QPT_UC,
                sq_sig_all: 0,
                ..Default::default()
            };
            let qp = (verbs.create_qp)(pd, &mut init);
            assert!(!qp.is_null(), "errno {}", errno());
            // The first address of the Internet's, as a program for Apple's device would choose it.
            let gid_index = (0..8)
                .find(|&index| {
                    let mut gid = sys::ibv_gid::default();
                    (verbs.query_gid)(context, 1, index, &mut gid) == 0
                        && gid.raw[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]
                })
                .expect("no IPv4-mapped GID") as u8;
            End { verbs, context, pd, send_cq, recv_cq, qp, mr, base, gid_index, _provider: provider }
        }
    }

    pub(super) fn number(&self) -> u32 {
        // SAFETY: live.
        unsafe { (*self.qp).qp_num }
    }

    pub(super) fn key(&self) -> u32 {
        // SAFETY: live.
        unsafe { (*self.mr).lkey }
    }

    pub(super) fn sge(&self, offset: usize, length: usize) -> sys::ibv_sge {
        assert!(offset + length <= MEMORY);
        sys::ibv_sge { addr: self.base as u64 + offset as u64, length: length as u32, lkey: self.key() }
    }

    pub(super) fn fill(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= MEMORY);
        // SAFETY: within the memory, from which nothing leaves at the moment.
        unsafe { self.base.add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    pub(super) fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        assert!(offset + length <= MEMORY);
        // SAFETY: within the memory, where nothing arrives at the moment.
        unsafe { std::slice::from_raw_parts(self.base.add(offset), length).to_vec() }
    }

    pub(super) fn modify(&self, mut attributes: sys::ibv_qp_attr, mask: Mask) -> c_int {
        // SAFETY: live.
        unsafe { (self.verbs.modify_qp)(self.qp, &mut attributes, mask.bits() as c_int) }
    }

    pub(super) fn to(&self, target: state) -> c_int {
        self.modify(sys::ibv_qp_attr { qp_state: target, ..Default::default() }, Mask::STATE)
    }

    pub(super) fn to_init(&self) -> c_int {
        let attributes = sys::ibv_qp_attr { qp_state: state::IBV_QPS_INIT, port_num: 1, ..Default::default() };
        self.modify(attributes, Mask::STATE | Mask::PKEY_INDEX | Mask::PORT | Mask::ACCESS_FLAGS)
    }

    pub(super) fn to_rtr(&self, peer: &End, number: u32) -> c_int {
        let mut path = sys::ibv_ah_attr { is_global: 1, port_num: 1, ..Default::default() };
        // SAFETY: open contexts, and structures to fill.
        unsafe {
            let mut port = sys::ibv_port_attr::default();
            assert_eq!((peer.verbs.query_port)(peer.context, 1, &mut port), 0);
            path.dlid = port.lid;
            let dgid = &mut path.grh.dgid;
            assert_eq!((peer.verbs.query_gid)(peer.context, 1, c_int::from(peer.gid_index), dgid), 0);
        }
        path.grh.sgid_index = self.gid_index;
        path.grh.hop_limit = 1;
        let attributes = sys::ibv_qp_attr {
            qp_state: state::IBV_QPS_RTR,
            ah_attr: path,
            path_mtu: sys::ibv_mtu::IBV_MTU_1024,
            dest_qp_num: number,
            rq_psn: 7,
            ..Default::default()
        };
        self.modify(attributes, Mask::STATE | Mask::AV | Mask::PATH_MTU | Mask::DEST_QPN | Mask::RQ_PSN)
    }

    pub(super) fn to_rts(&self) -> c_int {
        let attributes = sys::ibv_qp_attr { qp_state: state::IBV_QPS_RTS, sq_psn: 7, ..Default::default() };
        self.modify(attributes, Mask::STATE | Mask::SQ_PSN)
    }

    fn query(&self) -> (sys::ibv_qp_attr, sys::ibv_qp_init_attr) {
        let (mut attributes, mut init) = Default::default();
        let mask = (Mask::STATE | Mask::CAP).bits() as c_int;
        // SAFETY: a live queue pair and two structures.
        assert_eq!(unsafe { (self.verbs.query_qp)(self.qp, &mut attributes, mask, &mut init) }, 0);
        (attributes, init)
    }

    pub(super) fn state(&self) -> state {
        self.query().0.qp_state
    }

    pub(super) fn granted(&self) -> sys::ibv_qp_cap {
        self.query().0.cap
    }

    /// Waits until it has failed: on a real device that takes a moment.
    #[track_caller]
    pub(super) fn fails(&self) {
        eventually("the error state", || self.state() == state::IBV_QPS_ERR);
    }

    /// Posts a receive of `length` bytes at `offset`, whose number is `wr_id`.
    pub(super) fn post_recv(&self, wr_id: u64, offset: usize, length: usize) -> c_int {
        self.post_recv_of(wr_id, self.sge(offset, length))
    }

    pub(super) fn post_recv_of(&self, wr_id: u64, mut sge: sys::ibv_sge) -> c_int {
        let mut wr = sys::ibv_recv_wr { wr_id, next: null_mut(), sg_list: &mut sge, num_sge: 1 };
        let mut bad = null_mut();
        // SAFETY: live, and a request of one element.
        unsafe { sys::ibv_post_recv(self.qp, &mut wr, &mut bad) }.abs()
    }

    /// Posts a signaled send.
    pub(super) fn post_send(&self, wr_id: u64, offset: usize, length: usize) -> c_int {
        self.post_send_with(wr_id, self.sge(offset, length), |_| ())
    }

    /// Posts a send that `change` has changed.
    pub(super) fn post_send_with(
        &self,
        wr_id: u64,
        mut sge: sys::ibv_sge,
        change: impl FnOnce(&mut sys::ibv_send_wr),
    ) -> c_int {
        let mut wr = crate::support::raw::send_wr(wr_id, &mut sge, sys::IBV_SEND_SIGNALED);
        change(&mut wr);
        let mut bad = null_mut();
        // SAFETY: live, and a request of one element.
        unsafe { sys::ibv_post_send(self.qp, &mut wr, &mut bad) }.abs()
    }

    /// Takes what there is of one queue's completions.
    pub(super) fn poll(cq: *mut sys::ibv_cq) -> Vec<sys::ibv_wc> {
        let mut wc = [sys::ibv_wc::default(); 32];
        // SAFETY: live, and room for 32.
        let count = unsafe { sys::ibv_poll_cq(cq, 32, wc.as_mut_ptr()) };
        assert!(count >= 0, "poll: {count}");
        wc[..count as usize].to_vec()
    }

    #[track_caller]
    fn next(cq: *mut sys::ibv_cq, what: &str) -> sys::ibv_wc {
        let mut wc = sys::ibv_wc::default();
        eventually(what, || {
            // SAFETY: live, and room for one.
            let count = unsafe { sys::ibv_poll_cq(cq, 1, &mut wc) };
            assert!(count >= 0, "poll: {count}");
            count == 1
        });
        wc
    }

    /// The next completion of a send.
    #[track_caller]
    pub(super) fn sent(&self) -> sys::ibv_wc {
        End::next(self.send_cq, "a send's completion")
    }

    /// The next completion of a receive.
    #[track_caller]
    pub(super) fn received(&self) -> sys::ibv_wc {
        End::next(self.recv_cq, "a receive's completion")
    }

    /// The next completion of a send is this one's, and a success.
    #[track_caller]
    pub(super) fn has_sent(&self, wr_id: u64) {
        let wc = self.sent();
        assert_eq!((wc.wr_id, wc.status), (wr_id, status::IBV_WC_SUCCESS));
    }

    /// The next completion of a receive is this one's, a success, and of that length.
    #[track_caller]
    pub(super) fn has_received(&self, wr_id: u64, length: usize) -> sys::ibv_wc {
        let wc = self.received();
        assert_eq!((wc.wr_id, wc.status, wc.byte_len as usize), (wr_id, status::IBV_WC_SUCCESS, length));
        wc
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // SAFETY: live objects, children before parents, each once. A case may have deregistered the memory, and says so.
        unsafe {
            assert_eq!((self.verbs.destroy_qp)(self.qp), 0, "destroy_qp");
            if !self.mr.is_null() {
                assert_eq!((self.verbs.dereg_mr)(self.mr), 0, "dereg_mr");
            }
            assert_eq!((self.verbs.destroy_cq)(self.send_cq), 0, "destroy_cq");
            assert_eq!((self.verbs.destroy_cq)(self.recv_cq), 0, "destroy_cq");
            assert_eq!((self.verbs.dealloc_pd)(self.pd), 0, "dealloc_pd");
            assert_eq!((self.verbs.close_device)(self.context), 0, "close_device");
        }
    }
}
