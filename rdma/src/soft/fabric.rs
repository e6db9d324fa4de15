//! Hosts and cables that exist in memory.

use super::address;
use super::device::SoftDevice;
use super::faults::{State, Trace};
use super::fork::Birth;
use super::portability::{Finding, Lint};
use super::profile::Profile;
use super::shared::membership::Membership;
use super::topology::{End, Topology};
use super::wiring::Wiring;
use crate::{Error, ErrorKind, Gid, Result};
use core::fmt;
use core::sync::atomic::{AtomicU16, Ordering};
use core::time::Duration;
use std::sync::Arc;

/// A Thunderbolt fabric in software, of this process alone or shared with others: hosts, devices, cables.
///
/// Each cable joins one device of one host to one device of another; nothing is routed. A program drives each host
/// through a [`Provider`](crate::Provider), as it would drive a Mac.
///
/// ```
/// use rdma::{Provider, soft::Fabric};
///
/// let fabric = Fabric::mesh(2)?;
/// let mac = Provider::soft(&fabric.host(0)?)?;
/// assert_eq!(mac.devices()?.iter().map(|device| device.name().to_owned()).collect::<Vec<_>>(), ["rdma_en2"]);
/// # Ok::<(), rdma::Error>(())
/// ```
///
/// It is a handle: clones are the same fabric, which exists as long as any handle, host, provider or open device does.
#[derive(Clone)]
pub struct Fabric(pub(crate) Arc<FabricState>);

pub(crate) struct FabricState {
    pub(crate) profile: Profile,
    pub(crate) wiring: Arc<Wiring>,
    pub(crate) birth: Birth,
    /// The devices of each host.
    pub(crate) hosts: Vec<Vec<Arc<SoftDevice>>>,
}

impl Fabric {
    /// A full mesh of hosts: see [`Topology::mesh`].
    ///
    /// # Errors
    ///
    /// As for [`Topology::mesh`].
    pub fn mesh(hosts: usize) -> Result<Self> {
        Ok(Fabric::new(Topology::mesh(hosts)?, Profile::default()))
    }

    /// A ring of hosts: see [`Topology::ring`].
    ///
    /// # Errors
    ///
    /// As for [`Topology::ring`].
    pub fn ring(hosts: usize) -> Result<Self> {
        Ok(Fabric::new(Topology::ring(hosts)?, Profile::default()))
    }

    /// A fabric of this shape, whose devices follow these rules.
    ///
    /// What a plan of [`Faults`](super::Faults) names and the topology does not have never happens.
    pub fn new(topology: Topology, profile: Profile) -> Self {
        static FABRICS: AtomicU16 = AtomicU16::new(0);
        let number = FABRICS.fetch_add(1, Ordering::Relaxed);
        let wiring = Wiring::new(topology, &profile);
        Fabric::assemble(number, wiring, profile)
    }

    /// Joins the fabric of this name as a host of it, together with other processes of this user on this machine. The
    /// first one makes it, with the default profile; the last one that leaves, by exit or by death, ends it.
    ///
    /// Several processes may be the same host; they share its devices' limits, as programs on one Mac do. A process may
    /// join as several hosts.
    ///
    /// ```
    /// use rdma::{Provider, soft::{Fabric, Topology}};
    ///
    /// # let name = format!("doc-{}", std::process::id());
    /// let host = Fabric::join(&name, Topology::mesh(2)?, 0)?;
    /// assert!(Provider::soft(&host)?.first_active().is_ok());
    /// # Ok::<(), rdma::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the name is not 1 to 100 letters, digits, `-`, `_` and `.`, if the fabric exists
    /// with another topology or profile (the message says which), or is of another version of this library;
    /// [`ErrorKind::UnknownDevice`] if the topology has no such host; [`ErrorKind::OutOfMemory`] if there is no room for
    /// its shared memory; [`ErrorKind::TimedOut`] if a process stopped in the middle of joining or leaving.
    pub fn join(name: &str, topology: Topology, host: usize) -> Result<Host> {
        Fabric::join_with(name, topology, Profile::default(), host)
    }

    /// As [`join`](Self::join), with devices that follow these rules.
    ///
    /// # Errors
    ///
    /// As for [`join`](Self::join).
    pub fn join_with(name: &str, topology: Topology, profile: Profile, host: usize) -> Result<Host> {
        // Processes of one fabric must make the same addresses.
        let number =
            address::scramble(name.bytes().fold(0, |sum, byte| address::scramble(sum ^ u64::from(byte)))) as u16;
        if host >= topology.hosts().len() {
            return Err(no_host(host, topology.hosts().len()));
        }
        profile.faults.check(&topology)?;
        let membership = Membership::join(name, number, &topology, &profile)?;
        let wiring = Wiring::shared(topology, membership, &profile);
        Fabric::assemble(number, wiring, profile).host(host)
    }

    fn assemble(number: u16, wiring: Wiring, profile: Profile) -> Self {
        let wiring = Arc::new(wiring);
        let hosts: Vec<Vec<_>> = wiring
            .topology
            .hosts()
            .iter()
            .enumerate()
            .map(|(host, names)| {
                let device = |(device, name): (usize, &String)| {
                    SoftDevice::new(number, name, End { host, device }, profile.clone(), wiring.clone())
                };
                names.iter().enumerate().map(device).collect()
            })
            .collect();
        wiring.set_devices(&hosts);
        for &(one, other) in wiring.topology.cables() {
            let (here, there) = (&hosts[one.host][one.device], &hosts[other.host][other.device]);
            here.set_far(there);
            there.set_far(here);
        }
        Fabric(Arc::new(FabricState { profile, wiring, birth: Birth::now(), hosts }))
    }

    /// The shape of the fabric.
    pub fn topology(&self) -> &Topology {
        &self.0.wiring.topology
    }

    /// The rules of its devices.
    pub fn profile(&self) -> &Profile {
        &self.0.profile
    }

    /// A host, by its number.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownDevice`] if there are not that many.
    pub fn host(&self, number: usize) -> Result<Host> {
        if number >= self.0.hosts.len() {
            return Err(no_host(number, self.0.hosts.len()));
        }
        Ok(Host { fabric: self.0.clone(), number })
    }

    /// All hosts, in order.
    pub fn hosts(&self) -> impl ExactSizeIterator<Item = Host> + '_ {
        (0..self.0.hosts.len()).map(|number| Host { fabric: self.0.clone(), number })
    }

    /// Switches a host on or off. With a host off, the ports at both ends of its cables are DOWN.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownDevice`] if there is no such host.
    pub fn set_host(&self, host: usize, on: bool) -> Result<()> {
        self.0.wiring.set_host(host, on)
    }

    /// Plugs a cable in or pulls it out. With the cable out, the ports at both its ends are DOWN, and what is sent over
    /// connections that exist waits, without a completion or an event, until it is plugged in again (inferred: on Macs the
    /// provider's code crashes, ml-explore/mlx issue 4192).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownDevice`] if there is no such cable.
    pub fn set_cable(&self, cable: usize, plugged: bool) -> Result<()> {
        self.0.wiring.set_cable(cable, plugged)
    }
}

impl Fabric {
    /// What the [`Faults`](super::Faults) of the fabric have done so far in this process.
    pub fn trace(&self) -> Trace {
        self.0.wiring.faults().map_or_else(Trace::default, State::trace)
    }

    /// What programs of this process did that works here and not under every profile, if the profile
    /// [looks for it](Profile::with_lint).
    ///
    /// ```
    /// use rdma::soft::{Fabric, Profile, Topology};
    ///
    /// let fabric = Fabric::new(Topology::mesh(2)?, Profile::classic().with_lint());
    /// // … run the program …
    /// assert!(fabric.findings().is_empty());
    /// # Ok::<(), rdma::Error>(())
    /// ```
    pub fn findings(&self) -> Vec<Finding> {
        self.0.wiring.lint().map_or_else(Vec::new, Lint::findings)
    }

    /// Moves the fabric's clock on, as if so much time had passed without traffic: for [`Faults`](super::Faults) that
    /// come with time.
    /// Nothing else is counted by this clock.
    pub fn pass_time(&self, time: Duration) {
        if let Some(faults) = self.0.wiring.faults() {
            faults.pass(time);
        }
    }

    fn device(&self, end: End) -> Result<&Arc<SoftDevice>> {
        self.0.hosts.get(end.host).and_then(|devices| devices.get(end.device)).ok_or_else(|| {
            Error::new(ErrorKind::UnknownDevice, format!("there is no device {} on host {}", end.device, end.host))
        })
    }

    /// Sets an entry of a device's GID table, as a change of the interface's addresses does: an IPv4 address that comes
    /// late, sits at another index, changes or goes ([`Gid::ZERO`]). Connections that exist are not affected (nobody has
    /// reported whether a Mac's are: inferred).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownDevice`] if there is no such device, [`ErrorKind::InvalidArgument`] if the table (of 16
    /// entries) has no such index.
    pub fn set_gid(&self, end: End, index: usize, gid: Gid) -> Result<()> {
        let device = self.device(end)?;
        if index >= address::TABLE_LENGTH {
            return Err(Error::argument(format!("a GID table has 16 entries, no {index}")));
        }
        device.set_gid(index, gid)
    }

    /// The entries of a device's GID table.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownDevice`] if there is no such device.
    pub fn gids(&self, end: End) -> Result<Vec<Gid>> {
        Ok(self.device(end)?.gids().to_vec())
    }
}

pub(crate) fn no_host(number: usize, count: usize) -> Error {
    Error::new(ErrorKind::UnknownDevice, format!("there is no host {number}: the fabric has {count}"))
}

impl fmt::Debug for Fabric {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Fabric").field("profile", &self.0.profile.name()).field("topology", self.topology()).finish()
    }
}

/// One host of a fabric: what a Mac is to a cluster.
#[derive(Clone)]
pub struct Host {
    pub(crate) fabric: Arc<FabricState>,
    number: usize,
}

impl Host {
    /// The host that the environment describes: that of [`Provider::named`](crate::Provider::named)`("soft")`, with the same
    /// variables. For a program that wants to know where its cables lead.
    ///
    /// ```
    /// use rdma::soft::{End, Host};
    ///
    /// let here = Host::from_env()?;
    /// for (device, name) in here.fabric().topology().hosts()[here.number()].iter().enumerate() {
    ///     if let Some(peer) = here.fabric().topology().far_end(End { host: here.number(), device }) {
    ///         println!("{name} leads to device {} of host {}", peer.device, peer.host);
    ///     }
    /// }
    /// # Ok::<(), rdma::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] for a variable that makes no sense, and those of [`Fabric::join`].
    pub fn from_env() -> Result<Host> {
        super::environment::host(None)
    }

    /// The fabric it belongs to.
    pub fn fabric(&self) -> Fabric {
        Fabric(self.fabric.clone())
    }

    /// The host's number in its fabric.
    pub fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn devices(&self) -> &[Arc<SoftDevice>] {
        &self.fabric.hosts[self.number]
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Host").field("number", &self.number).finish_non_exhaustive()
    }
}
