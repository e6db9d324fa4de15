//! A model of a device's table of registered memory: what may be registered, what a key is good for, and when.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::raw::{Host, aligned, errno};
use proptest::prelude::*;
use rdma_sys as sys;
use std::collections::HashSet;
use std::ptr::null_mut;
use std::sync::OnceLock;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// In one of two domains, at a page of the arena and an offset that is not one.
    Register { domain: usize, page: usize, offset: usize, length: usize, access: u32 },
    /// One of those that there are, or one that is gone.
    Deregister { which: usize, twice: bool },
    /// A receive over a range relative to one that was registered at some time.
    Receive { which: usize, offset: usize, length: usize },
}

const PAGE: usize = 16384;
const PAGES: usize = 8;
/// Registrations a device has room for (ml-explore/mlx issue 3162).
const LIMIT: usize = 100;

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let offset = prop_oneof![9 => Just(0), 1 => prop::sample::select(vec![1, 128, 4096])];
    let length = prop::sample::select(vec![0, 1, 4096, PAGE, PAGE + 1, 3 * PAGE]);
    let access = prop_oneof![
        8 => Just(sys::IBV_ACCESS_LOCAL_WRITE),
        1 => Just(0),
        1 => Just(sys::IBV_ACCESS_REMOTE_WRITE),
        1 => Just(1 << 6),
    ];
    prop_oneof![
        10 => (0..2_usize, 0..PAGES, offset, length, access)
            .prop_map(|(domain, page, offset, length, access)| Op::Register { domain, page, offset, length, access }),
        2 => (any::<prop::sample::Index>(), prop::bool::weighted(0.2))
            .prop_map(|(which, twice)| Op::Deregister { which: which.index(1 << 20), twice }),
        4 => (any::<prop::sample::Index>(), 0..2 * PAGE, 1..2 * PAGE)
            .prop_map(|(which, offset, length)| Op::Receive { which: which.index(1 << 20), offset, length }),
    ]
}

struct Region {
    mr: *mut sys::ibv_mr,
    key: u32,
    base: usize,
    domain: usize,
    live: bool,
}

/// One arena for all cases: registered memory of other cases is no concern of this one's device.
fn arena() -> usize {
    static ARENA: OnceLock<usize> = OnceLock::new();
    *ARENA.get_or_init(|| aligned((PAGES + 4) * PAGE).expose_provenance())
}

/// Runs the operations after `first` registrations that nothing is wrong with.
pub(crate) fn run(first: usize, ops: &[Op]) {
    let fabric = fabrics::mesh(2);
    let mut host = Host::open(&fabric, 0);
    let verbs = host.verbs;
    // SAFETY: an open context.
    let second = unsafe { (verbs.alloc_pd)(host.context) };
    assert!(!second.is_null());
    let mut regions: Vec<Region> = Vec::new();
    let mut keys = HashSet::new();
    // It left RESET for INIT before anything was registered, so it knows nothing of what comes.
    let qp = host.queue_pair(1023);
    assert_eq!(host.to_init(qp), 0);
    // This one has not been in INIT and knows all regions; in ERR it takes receives, looks at them and flushes them.
    let open = host.queue_pair(4095);
    let to_error = sys::ibv_qp_attr { qp_state: sys::ibv_qp_state::IBV_QPS_ERR, ..Default::default() };
    assert_eq!(host.modify(open, to_error, sys::QpAttrMask::STATE), 0);
    let right = Op::Register { domain: 0, page: 0, offset: 0, length: PAGE, access: sys::IBV_ACCESS_LOCAL_WRITE };
    for (id, op) in std::iter::repeat_n(&right, first).chain(ops).enumerate() {
        match *op {
            Op::Register { domain, page, offset, length, access } => {
                let base = arena() + page * PAGE + offset;
                let pd = [host.pd, second][domain];
                let address = std::ptr::with_exposed_provenance_mut(base);
                // SAFETY: a live domain; the arena holds the range.
                let mr = unsafe { (verbs.reg_mr)(pd, address, length, access as i32) };
                let live = regions.iter().filter(|region| region.live).count();
                let expected = if length == 0 || offset != 0 || !matches!(access, 0 | sys::IBV_ACCESS_LOCAL_WRITE) {
                    libc::EINVAL
                } else if live == LIMIT {
                    libc::ENOMEM
                } else {
                    0
                };
                assert_eq!(if mr.is_null() { errno() } else { 0 }, expected);
                if !mr.is_null() {
                    // SAFETY: just made.
                    let (key, remote) = unsafe { ((*mr).lkey, (*mr).rkey) };
                    assert!(keys.insert(key), "a key was used twice");
                    assert_eq!(remote, 0);
                    regions.push(Region { mr, key, base, domain, live: true });
                }
            }
            Op::Deregister { which, twice } if !regions.is_empty() => {
                let index = which % regions.len();
                let address = regions[index].mr;
                // An address may be in use again by a later registration, whose it is then.
                let Some(region) = regions.iter_mut().rfind(|region| region.mr == address) else { continue };
                let expected = if region.live { 0 } else { libc::EINVAL };
                region.live = false;
                // SAFETY: the device refuses pointers that it does not know.
                unsafe {
                    assert_eq!((verbs.dereg_mr)(address), expected);
                    if twice {
                        assert_eq!((verbs.dereg_mr)(address), libc::EINVAL);
                    }
                }
            }
            Op::Receive { which, offset, length } if !regions.is_empty() => {
                let region = &regions[which % regions.len()];
                let sge = sys::ibv_sge { addr: (region.base + offset) as u64, length: length as u32, lkey: region.key };
                let known = region.live && region.domain == 0;
                assert_eq!(host.post_recv(open, id as u64, sge), if known { 0 } else { -libc::EFAULT });
                if known {
                    let done = host.poll();
                    assert_eq!(done.len(), 1);
                    assert_eq!((done[0].wr_id, done[0].status), (id as u64, sys::ibv_wc_status::IBV_WC_WR_FLUSH_ERR));
                }
                // Anemll/mlx-rdma.
                assert_eq!(host.post_recv(qp, id as u64, sge), -libc::EFAULT);
            }
            _ => {}
        }
    }
    // SAFETY: live objects, children first, each once.
    unsafe {
        for region in regions.iter().filter(|region| region.live) {
            assert_eq!((verbs.dereg_mr)(region.mr), 0);
        }
        assert_eq!((verbs.dereg_mr)(null_mut()), libc::EINVAL);
        assert_eq!((verbs.dealloc_pd)(second), 0);
    }
}
