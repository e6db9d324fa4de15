//! A model of one queue pair's states and of what it takes in each (TN3205's transitions and masks, the field's refusals),
//! and of its peer's, which stays connected throughout or comes and goes.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::raw::{self, Host, Memory, number};
use proptest::prelude::*;
use rdma_sys::{self as sys, QpAttrMask as Mask, ibv_qp_state as state, ibv_wc_status as status};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// A transition with the mask of TN3205, or with bits of it turned over.
    Modify {
        side: usize,
        to: u8,
        flip: Option<u8>,
        spoil: Option<Spoil>,
    },
    Receive {
        side: usize,
    },
    Send {
        side: usize,
    },
    Poll {
        side: usize,
    },
}

/// One value of an otherwise right transition made wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spoil {
    Port,
    Pkey,
    Access,
    NotGlobal,
    Mtu,
    EmptyGid,
    EmptyIndex,
    OtherGid,
    OtherFamily,
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    use Spoil::*;
    let spoil =
        prop::sample::select(vec![Port, Pkey, Access, NotGlobal, Mtu, EmptyGid, EmptyIndex, OtherGid, OtherFamily]);
    let side = 0..2_usize;
    // Mostly up, or no case gets anywhere.
    let to = prop_oneof![4 => 1..4_u8, 1 => 0..7_u8];
    prop_oneof![
        8 => (side.clone(), to, prop::option::weighted(0.1, 0..26_u8), prop::option::weighted(0.3, spoil))
            .prop_map(|(side, to, flip, spoil)| Op::Modify { side, to, flip, spoil }),
        4 => side.clone().prop_map(|side| Op::Receive { side }),
        4 => side.clone().prop_map(|side| Op::Send { side }),
        2 => side.prop_map(|side| Op::Poll { side }),
    ]
}

const LENGTH: usize = 100;
/// All states in the order of their numbers; the model's ladder is the first four and ERR.
const STATES: [state; 7] = [
    state::IBV_QPS_RESET,
    state::IBV_QPS_INIT,
    state::IBV_QPS_RTR,
    state::IBV_QPS_RTS,
    state::IBV_QPS_SQD,
    state::IBV_QPS_SQE,
    state::IBV_QPS_ERR,
];

struct Request {
    id: u64,
    outcome: Option<status>,
}

struct End {
    host: Host,
    memory: Memory,
    qp: *mut sys::ibv_qp,
    state: state,
    /// Connected to the other, for matching.
    sends: VecDeque<Request>,
    receives: VecDeque<Request>,
}

struct Model {
    ends: [End; 2],
    joined: bool,
    ids: u64,
}

pub(crate) fn run(ops: &[Op]) {
    let fabric = fabrics::mesh(2);
    let ends = [0, 1].map(|index| {
        let mut host = Host::open(&fabric, index);
        let memory = host.memory(16384);
        let qp = host.queue_pair(16);
        End { host, memory, qp, state: state::IBV_QPS_RESET, sends: VecDeque::new(), receives: VecDeque::new() }
    });
    let mut model = Model { ends, joined: false, ids: 0 };
    for op in ops {
        match *op {
            Op::Modify { side, to, flip, spoil } => model.modify(side, STATES[usize::from(to)], flip, spoil),
            Op::Receive { side } => model.receive(side),
            Op::Send { side } => model.send(side),
            Op::Poll { side } => model.poll(side),
        }
        for end in &model.ends {
            assert_eq!(end.host.state(end.qp), end.state);
        }
    }
    for side in [0, 1] {
        model.poll(side);
    }
}

impl Model {
    fn modify(&mut self, side: usize, to: state, flip: Option<u8>, spoil: Option<Spoil>) {
        let (end, peer) = (&self.ends[side], &self.ends[1 - side]);
        let (mut attributes, right) = match to {
            state::IBV_QPS_INIT => raw::init(),
            state::IBV_QPS_RTR => raw::rtr(&peer.host, peer.qp),
            state::IBV_QPS_RTS => raw::rts(),
            _ => (sys::ibv_qp_attr { qp_state: to, ..Default::default() }, Mask::STATE),
        };
        let mut expected = match (end.state, to) {
            (_, state::IBV_QPS_RESET | state::IBV_QPS_ERR) => 0,
            (state::IBV_QPS_RESET, state::IBV_QPS_INIT) => 0,
            (state::IBV_QPS_INIT, state::IBV_QPS_RTR) => 0,
            (state::IBV_QPS_RTR, state::IBV_QPS_RTS) => 0,
            _ => libc::EINVAL,
        };
        if let Some(spoil) = spoil {
            let refused = spoil.apply(&mut attributes, to, &peer.host);
            if expected == 0 {
                expected = refused;
            }
        }
        let mut mask = right;
        if let Some(bit) = flip {
            mask ^= Mask::from_bits_retain(1 << bit);
            expected = libc::EINVAL;
        }
        assert_eq!(end.host.modify(end.qp, attributes, mask), expected, "{:?} to {to:?}", end.state);
        if expected == 0 {
            self.ends[side].state = to;
            self.moved(side);
        }
    }

    /// What a transition does to the requests.
    fn moved(&mut self, side: usize) {
        let to = self.ends[side].state;
        if matches!(to, state::IBV_QPS_RESET | state::IBV_QPS_ERR) {
            self.joined = false;
            let end = &mut self.ends[side];
            if to == state::IBV_QPS_RESET {
                // Nothing comes of what was posted, and what had completed is forgotten.
                end.sends.clear();
                end.receives.clear();
            } else {
                for request in end.sends.iter_mut().chain(&mut end.receives) {
                    request.outcome.get_or_insert(status::IBV_WC_WR_FLUSH_ERR);
                }
            }
        }
        if to == state::IBV_QPS_RTR && matches!(self.ends[1 - side].state, state::IBV_QPS_RTR | state::IBV_QPS_RTS) {
            self.joined = true;
        }
        self.settle();
    }

    fn receive(&mut self, side: usize) {
        self.ids += 1;
        let end = &mut self.ends[side];
        let outcome = match end.state {
            state::IBV_QPS_ERR => Some(status::IBV_WC_WR_FLUSH_ERR),
            _ => None,
        };
        let expected = if end.state == state::IBV_QPS_RESET { -libc::EINVAL } else { 0 };
        assert_eq!(end.host.post_recv(end.qp, self.ids, end.memory.sge(0, LENGTH)), expected);
        if expected == 0 {
            end.receives.push_back(Request { id: self.ids, outcome });
        }
        self.settle();
    }

    fn send(&mut self, side: usize) {
        self.ids += 1;
        let end = &mut self.ends[side];
        let (expected, outcome) = match end.state {
            state::IBV_QPS_RTS => (0, None),
            state::IBV_QPS_ERR => (0, Some(status::IBV_WC_WR_FLUSH_ERR)),
            _ => (-libc::EINVAL, None),
        };
        assert_eq!(end.host.post_send(end.qp, self.ids, end.memory.sge(0, LENGTH)), expected);
        if expected == 0 {
            end.sends.push_back(Request { id: self.ids, outcome });
        }
        self.settle();
    }

    fn settle(&mut self) {
        for from in [0, 1] {
            let [one, other] = &mut self.ends;
            let (sender, receiver) = if from == 0 { (one, other) } else { (other, one) };
            let mut receives = receiver.receives.iter_mut().filter(|receive| receive.outcome.is_none());
            for send in sender.sends.iter_mut().filter(|send| send.outcome.is_none()) {
                if self.joined {
                    let Some(receive) = receives.next() else { break };
                    receive.outcome = Some(status::IBV_WC_SUCCESS);
                }
                send.outcome = Some(status::IBV_WC_SUCCESS);
            }
        }
    }

    /// All that is decided completes, oldest first in each queue, and nothing else.
    fn poll(&mut self, side: usize) {
        let end = &mut self.ends[side];
        for wc in end.host.poll() {
            assert_eq!(wc.qp_num, number(end.qp));
            let queue = if end.sends.front().is_some_and(|request| request.id == wc.wr_id) {
                &mut end.sends
            } else {
                &mut end.receives
            };
            let request = queue.pop_front().expect("a completion of a request that was posted");
            assert_eq!((wc.wr_id, Some(wc.status)), (request.id, request.outcome));
        }
        let rest = end.sends.iter().chain(&end.receives);
        assert!(rest.into_iter().all(|request| request.outcome.is_none()), "something did not complete");
    }
}

impl Spoil {
    /// The errno that the transition to `to` must then be refused with; 0 if it does not use that value.
    fn apply(self, attributes: &mut sys::ibv_qp_attr, to: state, peer: &Host) -> i32 {
        let init = if to == state::IBV_QPS_INIT { libc::EINVAL } else { 0 };
        let rtr = |errno| if to == state::IBV_QPS_RTR { errno } else { 0 };
        match self {
            Spoil::Port => {
                attributes.port_num = 2;
                init
            }
            Spoil::Pkey => {
                attributes.pkey_index = 1;
                init
            }
            Spoil::Access => {
                attributes.qp_access_flags = sys::IBV_ACCESS_REMOTE_ATOMIC;
                init
            }
            Spoil::NotGlobal => {
                attributes.ah_attr.is_global = 0;
                rtr(libc::EINVAL)
            }
            Spoil::Mtu => {
                attributes.path_mtu = sys::ibv_mtu(6);
                rtr(libc::EINVAL)
            }
            Spoil::EmptyGid => {
                attributes.ah_attr.grh.dgid = sys::ibv_gid { raw: [0; 16] };
                rtr(libc::EINVAL)
            }
            Spoil::EmptyIndex => {
                attributes.ah_attr.grh.sgid_index = 9;
                rtr(libc::EINVAL)
            }
            Spoil::OtherGid => {
                // Of the right family, and nobody's.
                let raw = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 203, 0, 113, 9];
                attributes.ah_attr.grh.dgid = sys::ibv_gid { raw };
                rtr(libc::ETIMEDOUT)
            }
            Spoil::OtherFamily => {
                // The peer's, but link-local, from an IPv4-mapped one.
                attributes.ah_attr.grh.dgid = peer.gid(0);
                rtr(libc::ETIMEDOUT)
            }
        }
    }
}
