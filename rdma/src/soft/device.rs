//! A device: one cable end of a host.

use super::address;
use super::fork::Birth;
use super::matching;
use super::profile::Profile;
use super::queue_pair::{Attention, SoftQp};
use super::quota::{Quota, Resource};
use super::region::RegionTable;
use super::registry::{self, Kind, Object};
use super::topology::End;
use super::wiring::Wiring;
use crate::{Gid, Guid};
use core::ffi::{c_char, c_int};
use rdma_sys as sys;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// `IBV_NODE_CA`, where InfiniBand's verbs are spoken.
const CHANNEL_ADAPTER: i32 = 1;

#[repr(C)]
pub(crate) struct SoftDevice {
    pub(crate) abi: sys::ibv_device,
    pub(crate) birth: Birth,
    pub(crate) profile: Profile,
    pub(crate) wiring: Arc<Wiring>,
    pub(crate) end: End,
    pub(crate) guid: Guid,
    pub(crate) domains: Quota,
    pub(crate) completion_queues: Quota,
    /// Of a fabric between processes the blocks are counted instead.
    pub(crate) queue_pairs: Quota,
    pub(crate) registrations: Quota,
    pub(crate) regions: RegionTable,
    /// Not used in a fabric between processes, which keeps them for all.
    gids: Mutex<[Gid; address::TABLE_LENGTH]>,
    numbers: Mutex<Numbers>,
    far: OnceLock<Weak<SoftDevice>>,
}

// SAFETY: the ABI structure is never written after it was made, and its pointers are null.
unsafe impl Sync for SoftDevice {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for SoftDevice {}

// SAFETY: repr(C), and the first field is the ibv_device.
unsafe impl Object for SoftDevice {
    type Abi = sys::ibv_device;
    const KIND: Kind = Kind::Device;
}

impl Drop for SoftDevice {
    fn drop(&mut self) {
        registry::leave(core::ptr::from_ref(self).addr(), Kind::Device);
    }
}

/// The queue pair numbers of a device.
#[derive(Default)]
struct Numbers {
    live: HashMap<u32, Arc<SoftQp>>,
    paths: u32,
}

impl SoftDevice {
    pub(crate) fn new(fabric: u16, name: &str, end: End, profile: Profile, wiring: Arc<Wiring>) -> Arc<Self> {
        let quota = |resource, limit| match wiring.membership() {
            Some(membership) => Quota::Shared { membership: membership.clone(), end, resource },
            None => Quota::own(limit),
        };
        let mut abi = sys::ibv_device {
            // IOKit's node type for these devices is 100, too (SQCU).
            node_type: sys::ibv_node_type(if profile.transport == 0 { CHANNEL_ADAPTER } else { profile.transport }),
            transport_type: sys::ibv_transport_type(profile.transport),
            reserved_ops: [core::ptr::null_mut(); 2],
            name: [0; 64],
            dev_name: [0; 64],
            dev_path: [0; 256],
            ibdev_path: [0; 256],
        };
        write_name(&mut abi.name, name);
        write_name(&mut abi.dev_name, name);
        let device = Arc::new(SoftDevice {
            abi,
            birth: Birth::now(),
            end,
            guid: Guid::from_bytes(address::node_guid(fabric, end.host, end.device)),
            domains: quota(Resource::Domain, profile.max_pd),
            completion_queues: quota(Resource::CompletionQueue, profile.max_cq),
            registrations: quota(Resource::Region, profile.max_mr),
            queue_pairs: Quota::own(profile.queue_pairs),
            regions: RegionTable::new(profile.max_mr),
            gids: Mutex::new(address::initial(fabric, end, &wiring.topology, &profile)),
            profile,
            wiring,
            numbers: Mutex::new(Numbers::default()),
            far: OnceLock::new(),
        });
        // Known while it lives: a device list or a context keeps it.
        registry::enter(Arc::as_ptr(&device).addr(), Kind::Device);
        device
    }

    /// Says who is at the other end of the cable.
    pub(crate) fn set_far(&self, far: &Arc<SoftDevice>) {
        let _ = self.far.set(Arc::downgrade(far));
    }

    /// The device at the other end of the cable, while anybody there has the fabric or the device.
    pub(crate) fn far(&self) -> Option<Arc<SoftDevice>> {
        self.far.get()?.upgrade()
    }

    /// Counts a call of a program's, for the plan of faults. Before any lock is taken.
    #[inline]
    pub(crate) fn called(&self, call: &'static str) -> Result<(), c_int> {
        self.wiring.called(call)
    }

    /// The id of a completion that nobody posted, if the plan has one after so many that were polled.
    pub(crate) fn stray(&self, polled: usize) -> Option<u64> {
        self.wiring.faults()?.stray(polled)
    }

    /// Says to the queue pairs whether there is light in the cable.
    pub(crate) fn look_for_light(&self) {
        let dark = !self.is_active();
        for qp in self.all() {
            if dark {
                qp.attention.0.set(Attention::DARK);
            } else if qp.attention.0.clear(Attention::DARK) {
                // What waited goes on, whoever looks next.
                matching::help_peer(&qp);
            }
        }
    }

    /// Whether the port is ACTIVE.
    pub(crate) fn is_active(&self) -> bool {
        self.wiring.is_active(self.end)
    }

    /// The GID table.
    pub(crate) fn gids(&self) -> [Gid; address::TABLE_LENGTH] {
        match self.wiring.membership() {
            Some(membership) => core::array::from_fn(|index| membership.gid(self.end, index)),
            None => *self.gids.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Sets an entry of the GID table that there is.
    pub(crate) fn set_gid(&self, index: usize, gid: Gid) -> crate::Result<()> {
        match self.wiring.membership() {
            Some(membership) => membership.set_gid(self.end, index, gid),
            None => {
                self.gids.lock().unwrap_or_else(PoisonError::into_inner)[index] = gid;
                Ok(())
            }
        }
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a new queue pair. Apple's are the receive path shifted by eight (0x900 was seen: HEL); a number is not
    /// used again soon.
    pub(crate) fn number(&self) -> u32 {
        let mut numbers = self.numbers();
        loop {
            let path = 9 + numbers.paths % 0xfff0;
            numbers.paths = numbers.paths.wrapping_add(1);
            if !numbers.live.contains_key(&(path << 8)) {
                return path << 8;
            }
        }
    }

    pub(crate) fn enter(&self, qp: &Arc<SoftQp>) {
        self.numbers().live.insert(qp.number, qp.clone());
    }

    pub(crate) fn leave(&self, qp: &SoftQp) {
        self.numbers().live.remove(&qp.number);
    }

    pub(crate) fn find(&self, number: u32) -> Option<Arc<SoftQp>> {
        self.numbers().live.get(&number).cloned()
    }

    /// The queue pairs that there are now.
    pub(crate) fn all(&self) -> Vec<Arc<SoftQp>> {
        self.numbers().live.values().cloned().collect()
    }

    /// `ibv_query_device`.
    pub(crate) fn attributes(&self) -> sys::ibv_device_attr {
        let profile = &self.profile;
        let guid = u64::from_ne_bytes(self.guid.to_bytes());
        let mut attributes = sys::ibv_device_attr {
            node_guid: guid,
            sys_image_guid: guid,
            max_mr_size: profile.max_mr_size,
            page_size_cap: profile.page as u64,
            max_qp: profile.max_qp as c_int,
            max_qp_wr: profile.grants.last().copied().unwrap_or(0) as c_int,
            max_sge: 1,
            max_cq: profile.max_cq as c_int,
            max_cqe: profile.max_cqe as c_int,
            max_mr: profile.max_mr as c_int,
            max_pd: profile.max_pd as c_int,
            max_pkeys: 1,
            phys_port_cnt: 1,
            ..Default::default()
        };
        write_name(&mut attributes.fw_ver, env!("CARGO_PKG_VERSION"));
        attributes
    }

    /// `ibv_query_port`.
    pub(crate) fn port(&self) -> sys::ibv_port_attr {
        let active = self.is_active();
        let lid = self.end.device as u16 + 1;
        sys::ibv_port_attr {
            state: if active { sys::ibv_port_state::IBV_PORT_ACTIVE } else { sys::ibv_port_state::IBV_PORT_DOWN },
            max_mtu: sys::ibv_mtu::IBV_MTU_4096,
            active_mtu: sys::ibv_mtu::IBV_MTU_4096,
            gid_tbl_len: address::TABLE_LENGTH as c_int,
            max_msg_sz: self.profile.max_msg_sz,
            pkey_tbl_len: 1,
            lid,
            sm_lid: lid,
            max_vl_num: 1,
            // Constants of TN3205's listing: 8X, 10.0 Gbps.
            active_width: 4,
            active_speed: 4,
            // LinkUp, Disabled.
            phys_state: if active { 5 } else { 3 },
            link_layer: self.profile.link_layer,
            ..Default::default()
        }
    }
}

fn write_name(field: &mut [c_char], name: &str) {
    for (target, byte) in field.iter_mut().zip(name.bytes().take(63)) {
        *target = byte as c_char;
    }
}
