//! Two queue pairs of a private fabric, posted to and polled by different threads, in every order in which these can run, as
//! far as loom can tell them apart: the calls of the function table, over the real fabric with loom's atomics (`sync.rs`).
//!
//! `ci/schedules` runs them.
//!
//! Explored: a message in each of both ways that payloads travel, with the receive posted before, during and after the send;
//! the same in a later lap of rings of one place; a poller beside the poster; deregistering memory, and the error state, while a
//! message is under way. Records, slots and latched values are watched for accesses that nothing orders. Two threads, up to two to
//! four preemptions, or three with one, as each model says.
//!
//! What it cannot show: more queue pairs, full completion queues, calls that take ordinary locks against one another (making,
//! connecting and destroying are made by one thread here), and orders that a weaker memory than loom's would allow.

use super::{Fabric, Profile, Topology};
use crate::Provider;
use crate::verbs::explore::explore;
use loom::thread;
use rdma_sys::{self as sys, QpAttrMask as Mask, Verbs, ibv_qp_state as state, ibv_wc_status as status};
use std::alloc::Layout;
use std::borrow::Cow;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;

const LAYOUT: Layout = match Layout::from_size_align(16384, 16384) {
    Ok(layout) => layout,
    Err(_) => panic!(),
};

/// One end: a queue pair, a completion queue for each direction, and a page of memory.
struct End {
    verbs: Verbs,
    context: *mut sys::ibv_context,
    pd: *mut sys::ibv_pd,
    send_cq: *mut sys::ibv_cq,
    recv_cq: *mut sys::ibv_cq,
    mr: *mut sys::ibv_mr,
    base: *mut u8,
    qp: *mut sys::ibv_qp,
    _provider: Provider,
}

// SAFETY: verbs objects may be used from any thread; the memory is read and written when no request is over it.
unsafe impl Send for End {}
// SAFETY: as above.
unsafe impl Sync for End {}

impl End {
    fn open(fabric: &Fabric, host: usize) -> End {
        let provider = Provider::soft(&fabric.host(host).unwrap()).unwrap();
        let verbs = *provider.verbs();
        // SAFETY: calls as the ABI has them; each result is checked.
        unsafe {
            let list = (verbs.get_device_list)(&mut 0);
            let context = (verbs.open_device)(*list);
            (verbs.free_device_list)(list);
            let pd = (verbs.alloc_pd)(context);
            let [send_cq, recv_cq] = [(); 2].map(|()| (verbs.create_cq)(context, 8, null_mut(), null_mut(), 0));
            let base = std::alloc::alloc_zeroed(LAYOUT);
            let mr = (verbs.reg_mr)(pd, base.cast(), LAYOUT.size(), sys::IBV_ACCESS_LOCAL_WRITE as c_int);
            assert!(!pd.is_null() && !send_cq.is_null() && !recv_cq.is_null() && !mr.is_null());
            let mut init = sys::ibv_qp_init_attr {
                send_cq,
                recv_cq,
                cap: sys::ibv_qp_cap {
                    max_send_wr: 1,
                    max_recv_wr: 1,
                    max_send_sge: 1,
                    max_recv_sge: 1,
                    max_inline_data: 0,
                },
                qp_type: sys::ibv_qp_type::IBV_QPT_UC,
                sq_sig_all: 1,
                ..Default::default()
            };
            let qp = (verbs.create_qp)(pd, &mut init);
            assert!(!qp.is_null());
            End { verbs, context, pd, send_cq, recv_cq, mr, base, qp, _provider: provider }
        }
    }

    fn modify(&self, mut attributes: sys::ibv_qp_attr, mask: Mask) {
        // SAFETY: a live queue pair.
        assert_eq!(unsafe { (self.verbs.modify_qp)(self.qp, &mut attributes, mask.bits() as c_int) }, 0);
    }

    fn to(&self, next: state) {
        self.modify(sys::ibv_qp_attr { qp_state: next, ..Default::default() }, Mask::STATE);
    }

    fn connect(&self, peer: &End) {
        let mut attributes = sys::ibv_qp_attr { qp_state: state::IBV_QPS_INIT, port_num: 1, ..Default::default() };
        self.modify(attributes, Mask::STATE | Mask::PKEY_INDEX | Mask::PORT | Mask::ACCESS_FLAGS);
        attributes.qp_state = state::IBV_QPS_RTR;
        attributes.path_mtu = sys::ibv_mtu::IBV_MTU_4096;
        attributes.ah_attr = sys::ibv_ah_attr { is_global: 1, port_num: 1, ..Default::default() };
        // SAFETY: open contexts and live queue pairs.
        unsafe {
            attributes.dest_qp_num = (*peer.qp).qp_num;
            let dgid = &mut attributes.ah_attr.grh.dgid;
            assert_eq!((peer.verbs.query_gid)(peer.context, 1, 1, dgid), 0);
        }
        attributes.ah_attr.grh.sgid_index = 1;
        self.modify(attributes, Mask::STATE | Mask::AV | Mask::PATH_MTU | Mask::DEST_QPN | Mask::RQ_PSN);
        attributes.qp_state = state::IBV_QPS_RTS;
        self.modify(attributes, Mask::STATE | Mask::SQ_PSN);
    }

    fn sge(&self, length: u32) -> sys::ibv_sge {
        // SAFETY: registered.
        sys::ibv_sge { addr: self.base as u64, length, lkey: unsafe { (*self.mr).lkey } }
    }

    /// Posts a receive of the first bytes of the page.
    fn post_recv(&self, wr_id: u64, length: u32) -> c_int {
        let mut wr = sys::ibv_recv_wr { wr_id, next: null_mut(), sg_list: &mut self.sge(length), num_sge: 1 };
        // SAFETY: a live queue pair and a request over registered memory.
        unsafe { sys::ibv_post_recv(self.qp, &mut wr, &mut null_mut()) }
    }

    /// Posts a send of the first bytes of the page.
    fn post_send(&self, wr_id: u64, length: u32) -> c_int {
        let mut wr = sys::ibv_send_wr { wr_id, sg_list: &mut self.sge(length), num_sge: 1, ..Default::default() };
        wr.opcode = sys::ibv_wr_opcode::IBV_WR_SEND;
        // SAFETY: a live queue pair and a request over registered memory.
        unsafe { sys::ibv_post_send(self.qp, &mut wr, &mut null_mut()) }
    }

    fn poll(cq: *mut sys::ibv_cq) -> Option<sys::ibv_wc> {
        let mut wc = sys::ibv_wc::default();
        // SAFETY: a live queue, and room for one.
        let count = unsafe { sys::ibv_poll_cq(cq, 1, &mut wc) };
        assert!((0..=1).contains(&count));
        (count == 1).then_some(wc)
    }

    fn next(cq: *mut sys::ibv_cq) -> sys::ibv_wc {
        loop {
            match End::poll(cq) {
                Some(wc) => return wc,
                None => thread::yield_now(),
            }
        }
    }

    /// Waits for a completion, which is this request's and a success.
    fn finishes(cq: *mut sys::ibv_cq, wr_id: u64) {
        let wc = End::next(cq);
        assert_eq!((wc.wr_id, wc.status), (wr_id, status::IBV_WC_SUCCESS));
    }

    fn fill(&self, byte: u8) {
        // SAFETY: nothing is under way from or to the page.
        unsafe { self.base.write_bytes(byte, LAYOUT.size()) };
    }

    /// The first bytes of the page, all the same.
    fn byte(&self, length: u32) -> u8 {
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(self.base, length as usize) };
        assert!(bytes.iter().all(|byte| byte == &bytes[0]), "torn");
        bytes[0]
    }

    fn deregister(&self) {
        // SAFETY: live; the models do it once.
        assert_eq!(unsafe { (self.verbs.dereg_mr)(self.mr) }, 0);
    }

    fn close(&self, registered: bool) {
        // SAFETY: live, children before parents, once.
        unsafe {
            assert_eq!((self.verbs.destroy_qp)(self.qp), 0);
            if registered {
                self.deregister();
            }
            for cq in [self.send_cq, self.recv_cq] {
                assert_eq!((self.verbs.destroy_cq)(cq), 0);
            }
            assert_eq!((self.verbs.dealloc_pd)(self.pd), 0);
            assert_eq!((self.verbs.close_device)(self.context), 0);
            std::alloc::dealloc(self.base, LAYOUT);
        }
    }
}

/// Two connected ends, whose queues hold one request each.
fn pair() -> [Arc<End>; 2] {
    let profile = Profile { grants: Cow::Borrowed(&[1]), max_mr: 1, ..Profile::thunderbolt() };
    let fabric = Fabric::new(Topology::mesh(2).unwrap(), profile);
    let ends = [0, 1].map(|host| Arc::new(End::open(&fabric, host)));
    ends[0].connect(&ends[1]);
    ends[1].connect(&ends[0]);
    ends
}

/// In the slot, and in the receiver's memory.
const LENGTHS: [u32; 2] = [8, 100];

/// The receive comes before, during or after the send; each end finishes by polling its own queue.
#[test]
fn a_message_meets_its_receive() {
    for length in LENGTHS {
        explore(Some(3), move || {
            let [a, b] = pair();
            a.fill(7);
            let sender = {
                let a = a.clone();
                thread::spawn(move || {
                    assert_eq!(a.post_send(1, length), 0);
                    End::finishes(a.send_cq, 1);
                })
            };
            assert_eq!(b.post_recv(2, length), 0);
            End::finishes(b.recv_cq, 2);
            assert_eq!(b.byte(length), 7);
            sender.join().unwrap();
            a.close(true);
            b.close(true);
        });
    }
}

/// The same on places that were used before: in another lap of the rings.
#[test]
fn places_are_used_again() {
    explore(Some(2), || {
        let [a, b] = pair();
        for round in 1..3 {
            a.fill(round);
            assert_eq!(b.post_recv(u64::from(round), 8), 0);
            assert_eq!(a.post_send(u64::from(round), 8), 0);
            End::finishes(a.send_cq, u64::from(round));
            End::finishes(b.recv_cq, u64::from(round));
        }
        a.fill(7);
        let sender = {
            let a = a.clone();
            thread::spawn(move || {
                assert_eq!(a.post_send(7, 8), 0);
                End::finishes(a.send_cq, 7);
            })
        };
        assert_eq!(b.post_recv(7, 8), 0);
        End::finishes(b.recv_cq, 7);
        assert_eq!(b.byte(8), 7);
        sender.join().unwrap();
        a.close(true);
        b.close(true);
    });
}

/// Another thread polls than posts: a place is free once its completion was polled, not before.
#[test]
fn a_poller_beside_the_poster() {
    explore(Some(3), || {
        let [a, b] = pair();
        let poller = {
            let b = b.clone();
            thread::spawn(move || (1..3).for_each(|round| End::finishes(b.recv_cq, round)))
        };
        for round in 1..3 {
            while b.post_recv(round, 8) != 0 {
                thread::yield_now();
            }
            assert_eq!(a.post_send(round, 8), 0);
            End::finishes(a.send_cq, round);
        }
        poller.join().unwrap();
        a.close(true);
        b.close(true);
    });
}

/// Once `ibv_dereg_mr` has returned, nothing is written to the memory: neither by the sender nor by the poller, which is a
/// thread of its own or, in more orders, comes later.
#[test]
fn memory_that_was_deregistered_is_left_alone() {
    for (length, at_once) in LENGTHS.map(|length| [(length, true), (length, false)]).concat() {
        explore(Some(if at_once { 1 } else { 3 }), move || {
            let [a, b] = pair();
            a.fill(7);
            assert_eq!(b.post_recv(2, length), 0);
            let sender = {
                let a = a.clone();
                thread::spawn(move || assert_eq!(a.post_send(1, length), 0))
            };
            let poller = at_once.then(|| {
                let b = b.clone();
                thread::spawn(move || End::next(b.recv_cq))
            });
            b.deregister();
            b.fill(9);
            sender.join().unwrap();
            let wc = poller.map_or_else(|| End::next(b.recv_cq), |poller| poller.join().unwrap());
            assert_eq!(wc.wr_id, 2);
            assert!([status::IBV_WC_SUCCESS, status::IBV_WC_LOC_PROT_ERR].contains(&wc.status), "{:?}", wc.status);
            assert_eq!(b.byte(length), 9);
            End::finishes(a.send_cq, 1);
            a.close(true);
            b.close(false);
        });
    }
}

/// A receive is received into or flushed, once; the sender's success says neither.
#[test]
fn the_error_state_meets_a_message() {
    explore(Some(4), || {
        let [a, b] = pair();
        a.fill(7);
        assert_eq!(b.post_recv(2, 8), 0);
        let sender = {
            let a = a.clone();
            thread::spawn(move || {
                assert_eq!(a.post_send(1, 8), 0);
                End::finishes(a.send_cq, 1);
            })
        };
        b.to(state::IBV_QPS_ERR);
        let wc = End::next(b.recv_cq);
        assert_eq!(wc.wr_id, 2);
        match wc.status {
            status::IBV_WC_SUCCESS => assert_eq!(b.byte(8), 7),
            other => assert_eq!((other, b.byte(8)), (status::IBV_WC_WR_FLUSH_ERR, 0)),
        }
        sender.join().unwrap();
        assert!(End::poll(b.recv_cq).is_none());
        a.close(true);
        b.close(true);
    });
}
