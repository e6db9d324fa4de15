//! A device that can be opened.

use crate::context::Context;
use crate::error::Result;
use crate::gid::Guid;
use crate::verbs::library::RawDevice;
use core::fmt;
use rdma_sys as sys;

/// The transport of a device: an integer, because Apple's (100) is one that rdma-core does not know.
#[doc(alias = "ibv_transport_type")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transport(i32);

impl Transport {
    /// InfiniBand, and RDMA over Ethernet.
    pub const INFINIBAND: Transport = Transport(sys::ibv_transport_type::IBV_TRANSPORT_IB.0);
    /// iWARP.
    pub const IWARP: Transport = Transport(sys::ibv_transport_type::IBV_TRANSPORT_IWARP.0);
    /// Thunderbolt.
    pub const THUNDERBOLT: Transport = Transport(sys::ibv_transport_type::IBV_TRANSPORT_THUNDERBOLT.0);

    /// The number.
    pub const fn raw(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Transport::INFINIBAND => "InfiniBand",
            Transport::IWARP => "iWARP",
            Transport::THUNDERBOLT => "Thunderbolt",
            _ => "unknown",
        };
        write!(out, "{name} ({})", self.0)
    }
}

/// A device of a [`Provider`](crate::Provider). On a Mac: one Thunderbolt port, named `rdma_enN` after the network
/// interface `enN` of the same port.
#[doc(alias = "ibv_device")]
#[derive(Clone)]
pub struct Device(RawDevice);

impl Device {
    pub(crate) fn new(raw: RawDevice) -> Self {
        Device(raw)
    }

    pub(crate) fn raw(&self) -> &RawDevice {
        &self.0
    }

    /// Its name.
    #[doc(alias = "ibv_get_device_name")]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its transport.
    pub fn transport(&self) -> Transport {
        Transport(self.0.kind().0.0)
    }

    /// Its node GUID, where the library tells without opening it.
    #[doc(alias = "ibv_get_device_guid")]
    pub fn guid(&self) -> Option<Guid> {
        self.0.guid().map(Guid::from_be)
    }

    /// Opens it. A device can be opened more than once; limits such as the number of queue pairs are the device's.
    ///
    /// # Errors
    ///
    /// What `ibv_open_device` and `ibv_query_device` report.
    #[doc(alias = "ibv_open_device")]
    pub fn open(&self) -> Result<Context> {
        Context::open(&self.0)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Device").field("name", &self.name()).field("transport", &self.transport()).finish()
    }
}
