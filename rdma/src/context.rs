//! An open device.

use crate::completion_queue::CompletionQueue;
use crate::error::{Error, ErrorKind, Result};
use crate::gid::{Gid, Guid};
use crate::port::Port;
use crate::protection_domain::ProtectionDomain;
use crate::rules::DeviceRules;
use crate::verbs::context::RawContext;
use crate::verbs::library::RawDevice;
use rdma_sys as sys;
use std::sync::Arc;

/// An open device: where protection domains and completion queues are made.
///
/// It is a handle; the device stays open while anything made from it lives.
#[doc(alias = "ibv_context")]
#[derive(Clone, Debug)]
pub struct Context {
    raw: Arc<RawContext>,
    attributes: Arc<DeviceAttributes>,
    rules: DeviceRules,
}

impl Context {
    pub(crate) fn open(device: &RawDevice) -> Result<Self> {
        let raw = RawContext::open(device)?;
        let attributes = raw.query_device()?;
        // The longest message is an attribute of the port; all ports of a device have the same.
        let max_message = raw.query_port(1)?.max_msg_sz;
        // An entry that cannot be read tells nothing.
        let first_gid = raw.query_gid(1, 0).map_or(Gid::ZERO, Gid::from_bytes);
        let rules = DeviceRules::new(device.kind().0, &attributes, max_message, first_gid);
        Ok(Context { raw, attributes: Arc::new(DeviceAttributes(attributes)), rules })
    }

    pub(crate) fn raw(&self) -> &Arc<RawContext> {
        &self.raw
    }

    /// The device's name.
    pub fn device_name(&self) -> &str {
        &self.raw.device().name
    }

    /// The attributes that the device reports.
    #[doc(alias = "ibv_query_device")]
    pub fn attributes(&self) -> &DeviceAttributes {
        &self.attributes
    }

    /// The rules by which this crate treats the device.
    pub fn rules(&self) -> &DeviceRules {
        &self.rules
    }

    /// A port, by its number. Thunderbolt devices have one, number 1.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownDevice`] if there is no such port; what `ibv_query_port` reports.
    #[doc(alias = "ibv_query_port")]
    pub fn port(&self, number: u8) -> Result<Port> {
        let ports = self.attributes.ports();
        if number == 0 || number > ports {
            return Err(Error::new(
                ErrorKind::UnknownDevice,
                format!("there is no port {number}: they are 1 to {ports}"),
            )
            .on_device(self.raw.device()));
        }
        Port::query(&self.raw, number)
    }

    /// Makes a protection domain. Reuse one: on Macs they are few, and some were seen to be lost when freed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PortDown`] if the device's port is not ACTIVE (Apple's device makes none then),
    /// [`ErrorKind::LimitReached`] if they are used up.
    #[doc(alias = "ibv_alloc_pd")]
    pub fn protection_domain(&self) -> Result<ProtectionDomain> {
        ProtectionDomain::new(&self.raw, &self.rules)
    }

    /// Makes a completion queue that holds at least `capacity` completions. Each queue pair reserves as many as it may
    /// have requests in flight ([`QueuePairBuilder`](crate::QueuePairBuilder)).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the capacity is 0 or more than the device has
    /// ([`DeviceAttributes::max_completions`]), [`ErrorKind::LimitReached`] if the device's queues are used up.
    #[doc(alias = "ibv_create_cq")]
    pub fn completion_queue(&self, capacity: u32) -> Result<CompletionQueue> {
        CompletionQueue::create(&self.raw, capacity, self.attributes.max_queue_pairs()).map_err(|error| {
            if error.kind() != ErrorKind::InvalidArgument {
                return error;
            }
            error.with_hint(format!("the device has completion queues of 1 to {}", self.attributes.max_completions()))
        })
    }

    /// Closes the device and says whether that worked. Dropping the last handle does the same, silently.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] if something that was made from it, or a clone of this handle, still exists: then it is closed
    /// when the last of them goes.
    #[doc(alias = "ibv_close_device")]
    pub fn close(self) -> Result<()> {
        match Arc::try_unwrap(self.raw) {
            Ok(raw) => raw.close(),
            Err(raw) => Err(still_in_use("the device").on_device(raw.device())),
        }
    }
}

/// The error of closing something that others still hold.
pub(crate) fn still_in_use(what: &str) -> Error {
    Error::new(ErrorKind::Busy, format!("{what} is still in use and will be released with its last user"))
}

/// What a device reports of itself.
#[doc(alias = "ibv_device_attr")]
#[derive(Clone, Debug)]
pub struct DeviceAttributes(sys::ibv_device_attr);

fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

impl DeviceAttributes {
    /// The firmware's version.
    pub fn firmware(&self) -> String {
        let bytes: Vec<u8> = self.0.fw_ver.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The GUID of the node.
    pub fn node_guid(&self) -> Guid {
        Guid::from_be(self.0.node_guid)
    }

    /// The number of ports.
    pub fn ports(&self) -> u8 {
        self.0.phys_port_cnt
    }

    /// The greatest number of queue pairs, as reported. macOS 26 reports 11, of which 10 can be made.
    pub fn max_queue_pairs(&self) -> u32 {
        count(self.0.max_qp)
    }

    /// The greatest depth of a queue.
    pub fn max_depth(&self) -> u32 {
        count(self.0.max_qp_wr)
    }

    /// The greatest number of completion queues.
    pub fn max_completion_queues(&self) -> u32 {
        count(self.0.max_cq)
    }

    /// The greatest capacity of a completion queue.
    pub fn max_completions(&self) -> u32 {
        count(self.0.max_cqe)
    }

    /// The greatest number of memory regions.
    pub fn max_memory_regions(&self) -> u32 {
        count(self.0.max_mr)
    }

    /// The longest memory region, as reported, in bytes. macOS 26 reports about 16 MB and does not enforce it.
    pub fn max_region_length(&self) -> u64 {
        self.0.max_mr_size
    }

    /// The greatest number of protection domains.
    pub fn max_protection_domains(&self) -> u32 {
        count(self.0.max_pd)
    }

    /// All of it, as C has it.
    pub fn as_raw(&self) -> &sys::ibv_device_attr {
        &self.0
    }
}
