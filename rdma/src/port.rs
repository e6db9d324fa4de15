//! A port of an open device.

use crate::error::catalogue::states;
use crate::error::{Error, ErrorKind, Result};
use crate::gid::{Gid, GidEntry, GidKind};
use crate::verbs::context::RawContext;
use crate::wait;
use core::fmt;
use rdma_sys as sys;
use std::sync::Arc;
use std::time::Duration;

/// How often a port is looked at while waiting for it.
const INTERVAL: Duration = Duration::from_millis(20);

/// The state of a port.
#[doc(alias = "ibv_port_state")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortState(u32);

impl PortState {
    /// No link: no cable, or RDMA is not enabled at the other end.
    pub const DOWN: PortState = PortState(sys::ibv_port_state::IBV_PORT_DOWN.0);
    /// The link is coming up.
    pub const INIT: PortState = PortState(sys::ibv_port_state::IBV_PORT_INIT.0);
    /// The link is up, but not for data.
    pub const ARMED: PortState = PortState(sys::ibv_port_state::IBV_PORT_ARMED.0);
    /// Ready.
    pub const ACTIVE: PortState = PortState(sys::ibv_port_state::IBV_PORT_ACTIVE.0);

    /// The number.
    pub const fn raw(self) -> u32 {
        self.0
    }
}

impl fmt::Display for PortState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            PortState::DOWN => "PORT_DOWN",
            PortState::INIT => "PORT_INIT",
            PortState::ARMED => "PORT_ARMED",
            PortState::ACTIVE => "PORT_ACTIVE",
            _ => "PORT_UNKNOWN",
        };
        write!(out, "{name} ({})", self.0)
    }
}

impl fmt::Debug for PortState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The size of packets on the path of a connection.
#[doc(alias = "ibv_mtu")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mtu(u8);

impl Mtu {
    /// 256 bytes.
    pub const B256: Mtu = Mtu(1);
    /// 512 bytes.
    pub const B512: Mtu = Mtu(2);
    /// 1024 bytes.
    pub const B1024: Mtu = Mtu(3);
    /// 2048 bytes.
    pub const B2048: Mtu = Mtu(4);
    /// 4096 bytes.
    pub const B4096: Mtu = Mtu(5);

    /// The MTU with this number of bytes.
    pub fn from_bytes(bytes: u32) -> Option<Self> {
        [Mtu::B256, Mtu::B512, Mtu::B1024, Mtu::B2048, Mtu::B4096].into_iter().find(|mtu| mtu.bytes() == bytes)
    }

    /// The number of bytes.
    pub fn bytes(self) -> u32 {
        128 << self.0
    }

    /// The MTU with this number in the C interface, if there is one.
    pub(crate) fn from_raw(number: u32) -> Option<Self> {
        matches!(number, 1..=5).then_some(Mtu(number as u8))
    }

    pub(crate) fn raw(self) -> sys::ibv_mtu {
        sys::ibv_mtu(u32::from(self.0))
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(out)
    }
}

/// A port, as it was when it was asked for: [`refresh`](Port::refresh) asks again.
#[derive(Clone, Debug)]
pub struct Port {
    context: Arc<RawContext>,
    number: u8,
    attributes: sys::ibv_port_attr,
}

impl Port {
    pub(crate) fn query(context: &Arc<RawContext>, number: u8) -> Result<Self> {
        Ok(Port { context: context.clone(), number, attributes: context.query_port(number)? })
    }

    pub(crate) fn context(&self) -> &Arc<RawContext> {
        &self.context
    }

    /// Asks for the attributes again.
    ///
    /// # Errors
    ///
    /// What `ibv_query_port` reports.
    pub fn refresh(&mut self) -> Result<()> {
        self.attributes = self.context.query_port(self.number)?;
        Ok(())
    }

    /// Its number, from 1.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Its state.
    pub fn state(&self) -> PortState {
        PortState(self.attributes.state.0)
    }

    /// Whether it is ready for data.
    pub fn is_active(&self) -> bool {
        self.state() == PortState::ACTIVE
    }

    /// Its local identifier. Opaque; it goes to the peer with the endpoint.
    pub fn lid(&self) -> u16 {
        self.attributes.lid
    }

    /// The MTU of the link.
    pub fn active_mtu(&self) -> Option<Mtu> {
        Mtu::from_raw(self.attributes.active_mtu.0)
    }

    /// The link layer's number: 100 for Thunderbolt.
    pub fn link_layer(&self) -> u8 {
        self.attributes.link_layer
    }

    /// All attributes, as C has them.
    pub fn attributes(&self) -> &sys::ibv_port_attr {
        &self.attributes
    }

    /// The GID table without its empty entries, read now. Addresses come, go and move, so keep an entry no longer than
    /// setting up a connection takes.
    ///
    /// # Errors
    ///
    /// What `ibv_query_gid` reports for the first entry; a table that ends early is taken as it is.
    #[doc(alias = "ibv_query_gid")]
    pub fn gids(&self) -> Result<Vec<GidEntry>> {
        let length = u8::try_from(self.attributes.gid_tbl_len.max(0)).unwrap_or(u8::MAX);
        let mut entries = Vec::new();
        for index in 0..length {
            match self.context.query_gid(self.number, index) {
                Ok(bytes) => {
                    let gid = Gid::from_bytes(bytes);
                    if !gid.is_zero() {
                        entries.push(GidEntry { index, gid });
                    }
                }
                // Providers report empty entries as errors, too (rdma-core does for RoCE).
                Err(error) if index == 0 && length == 1 => return Err(error),
                Err(_) => {}
            }
        }
        Ok(entries)
    }

    /// The GID to connect with: the IPv4-mapped one if the interface has an IPv4 address, else a link-local one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoUsableGid`] shows the table and what to do.
    pub fn gid(&self) -> Result<GidEntry> {
        let table = self.gids()?;
        let of = |kind| table.iter().copied().find(|entry: &GidEntry| entry.gid.kind() == kind);
        of(GidKind::Ipv4Mapped).or_else(|| of(GidKind::LinkLocal)).ok_or_else(|| self.no_usable_gid(&table, None))
    }

    /// The first GID of a kind.
    ///
    /// # Errors
    ///
    /// As for [`gid`](Self::gid).
    pub fn gid_of_kind(&self, kind: GidKind) -> Result<GidEntry> {
        let table = self.gids()?;
        table
            .iter()
            .copied()
            .find(|entry| entry.gid.kind() == kind)
            .ok_or_else(|| self.no_usable_gid(&table, Some(kind)))
    }

    /// The GID at an index of the table.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoUsableGid`] if the entry is empty or there is none.
    pub fn gid_at(&self, index: u8) -> Result<GidEntry> {
        let table = self.gids()?;
        table.iter().copied().find(|entry| entry.index == index).ok_or_else(|| {
            let error = self.no_usable_gid(&table, None);
            error.with_detail(format!("GID[{index}] is empty; the table is {}", show(&table)))
        })
    }

    fn no_usable_gid(&self, table: &[GidEntry], wanted: Option<GidKind>) -> Error {
        let name = &self.context.device().name;
        let what = match wanted {
            None => "no usable GID".to_owned(),
            Some(kind) => format!("no GID that is {kind}"),
        };
        let (entry, interface) = (states::no_gid(), name.strip_prefix("rdma_").unwrap_or("IFACE"));
        Error::known(entry, format!("{what}; the table is {}", show(table)))
            .on_device(self.context.device())
            .on_port(self.number)
            .with_hint(entry.remedy.replace("IFACE", interface))
    }

    /// Waits until the port is ACTIVE.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TimedOut`] if it does not become so in time, with the state that it has; what `ibv_query_port`
    /// reports.
    pub fn wait_active(&mut self, timeout: Duration) -> Result<()> {
        let waited = wait::poll_until(timeout, INTERVAL, || match self.refresh() {
            Err(error) => Some(Err(error)),
            Ok(()) => self.is_active().then_some(Ok(())),
        });
        waited.unwrap_or_else(|| {
            Err(Error::new(ErrorKind::TimedOut, format!("still {} after {timeout:?}", self.state()))
                .on_device(self.context.device())
                .on_port(self.number)
                .with_hint(states::PORT_DOWN.remedy))
        })
    }

    /// Waits until the port has a GID of a kind (an address may take minutes after a cable was plugged in).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoUsableGid`] if there is none in time.
    pub fn wait_gid(&self, kind: GidKind, timeout: Duration) -> Result<GidEntry> {
        let mut last = None;
        wait::poll_until(timeout, INTERVAL, || match self.gid_of_kind(kind) {
            Ok(entry) => Some(entry),
            Err(error) => {
                last = Some(error);
                None
            }
        })
        .ok_or_else(|| last.unwrap_or_else(|| self.no_usable_gid(&[], Some(kind))))
    }
}

fn show(table: &[GidEntry]) -> String {
    if table.is_empty() {
        return "empty".to_owned();
    }
    table.iter().map(GidEntry::to_string).collect::<Vec<_>>().join(", ")
}
