//! Who is cabled to whom.

use crate::{Error, Result};

/// One end of a cable: a device of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct End {
    /// The host's number in the fabric.
    pub host: usize,
    /// The device's number on that host, in the order of its device list.
    pub device: usize,
}

/// Hosts, the names of their devices, and the cables between them. What [`Fabric`](super::Fabric) is built from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    hosts: Vec<Vec<String>>,
    cables: Vec<(End, End)>,
}

/// The order in which a Mac Studio with M3 Ultra lists its devices: not that of their numbers (MLX documentation).
const ORDER: [u32; 6] = [2, 3, 5, 4, 6, 7];

/// The name of the `device`th device of a host.
fn device_name(device: usize) -> String {
    match ORDER.get(device) {
        Some(number) => format!("rdma_en{number}"),
        None => format!("rdma_en{}", device + 2),
    }
}

fn too_many_hosts() -> Error {
    Error::argument(format!("a fabric has at most {} hosts", Topology::MAX_HOSTS))
}

impl Topology {
    /// The most hosts a fabric may have.
    pub const MAX_HOSTS: usize = 64;
    /// The most devices a host may have.
    pub const MAX_DEVICES: usize = 64;

    /// A topology without hosts.
    pub fn new() -> Self {
        Topology::default()
    }

    /// A full mesh: a cable between each two hosts, so that each host has `hosts - 1` devices (TN3205 shows two, three
    /// and four Macs). One host alone has one device, and nothing in it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for no host or more than
    /// [`MAX_HOSTS`](Self::MAX_HOSTS).
    pub fn mesh(hosts: usize) -> Result<Self> {
        let mut topology = Topology::with_hosts(hosts, hosts.saturating_sub(1).max(1))?;
        for low in 0..hosts {
            for high in low + 1..hosts {
                // On each host, the devices are in the order of the peers' numbers.
                topology.cable(End { host: low, device: high - 1 }, End { host: high, device: low })?;
            }
        }
        Ok(topology)
    }

    /// A ring: each host is cabled to the next one, with device 0, and to the one before, with device 1.
    ///
    /// # Errors
    ///
    /// As for [`mesh`](Self::mesh); a ring has at least two hosts (of two, it has two cables).
    pub fn ring(hosts: usize) -> Result<Self> {
        if hosts < 2 {
            return Err(Error::argument(format!("a ring has at least 2 hosts, not {hosts}")));
        }
        let mut topology = Topology::with_hosts(hosts, 2)?;
        for host in 0..hosts {
            topology.cable(End { host, device: 0 }, End { host: (host + 1) % hosts, device: 1 })?;
        }
        Ok(topology)
    }

    fn with_hosts(hosts: usize, devices: usize) -> Result<Self> {
        if hosts == 0 {
            return Err(Error::argument("a fabric has at least one host".to_owned()));
        }
        if hosts > Self::MAX_HOSTS {
            return Err(too_many_hosts());
        }
        let mut topology = Topology::new();
        for _ in 0..hosts {
            topology.host(devices)?;
        }
        Ok(topology)
    }

    /// Adds a host with this many devices, named as on a Mac (`rdma_en2`, `rdma_en3`, `rdma_en5`, …). Returns its number.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) beyond [`MAX_HOSTS`](Self::MAX_HOSTS) or
    /// [`MAX_DEVICES`](Self::MAX_DEVICES).
    pub fn host(&mut self, devices: usize) -> Result<usize> {
        self.named_host((0..devices).map(device_name))
    }

    /// Adds a host whose devices have these names, in this order. Returns its number.
    ///
    /// # Errors
    ///
    /// As for [`host`](Self::host); a name is 1 to 63 bytes without NUL, and no two devices of a host share one.
    pub fn named_host<S: Into<String>>(&mut self, devices: impl IntoIterator<Item = S>) -> Result<usize> {
        // Not more than can be refused, whatever was asked for.
        let names: Vec<String> = devices.into_iter().take(Self::MAX_DEVICES + 1).map(Into::into).collect();
        if self.hosts.len() == Self::MAX_HOSTS {
            return Err(too_many_hosts());
        }
        if names.len() > Self::MAX_DEVICES {
            return Err(Error::argument(format!("a host has at most {} devices", Self::MAX_DEVICES)));
        }
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() || name.len() > 63 || name.contains('\0') {
                return Err(Error::argument(format!("{name:?} cannot be a device's name: 1 to 63 bytes, no NUL")));
            }
            if names[..index].contains(name) {
                return Err(Error::argument(format!("two devices of one host are named {name}")));
            }
        }
        self.hosts.push(names);
        Ok(self.hosts.len() - 1)
    }

    /// Lays a cable between two free devices. Returns its number.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if an end does not exist, has a cable already,
    /// or both are on one host (the link is point to point between two Macs).
    pub fn cable(&mut self, one: End, other: End) -> Result<usize> {
        for end in [one, other] {
            if self.hosts.get(end.host).is_none_or(|devices| end.device >= devices.len()) {
                return Err(Error::argument(format!("there is no device {} on host {}", end.device, end.host)));
            }
            if self.cable_of(end).is_some() {
                return Err(Error::argument(format!("device {} of host {} has a cable already", end.device, end.host)));
            }
        }
        if one.host == other.host {
            return Err(Error::argument(format!("a cable joins two hosts, both ends are on host {}", one.host)));
        }
        self.cables.push((one, other));
        Ok(self.cables.len() - 1)
    }

    /// The device names of each host.
    pub fn hosts(&self) -> &[Vec<String>] {
        &self.hosts
    }

    /// The cables, by number.
    pub fn cables(&self) -> &[(End, End)] {
        &self.cables
    }

    /// The number of the cable at an end.
    pub fn cable_of(&self, end: End) -> Option<usize> {
        self.cables.iter().position(|&(one, other)| one == end || other == end)
    }

    /// The other end of the cable at an end, if there is one: who a device's peer is.
    ///
    /// ```
    /// use rdma::soft::{End, Fabric};
    ///
    /// let fabric = Fabric::ring(5)?;
    /// // The next host's device 1 is where device 0's cable leads to.
    /// let peer = fabric.topology().far_end(End { host: 3, device: 0 });
    /// assert_eq!(peer, Some(End { host: 4, device: 1 }));
    /// # Ok::<(), rdma::Error>(())
    /// ```
    #[doc(alias = "peer")]
    pub fn far_end(&self, end: End) -> Option<End> {
        let (one, other) = self.cables[self.cable_of(end)?];
        Some(if one == end { other } else { one })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mesh_of_four_has_six_cables() {
        let mesh = Topology::mesh(4).unwrap();
        assert_eq!(mesh.cables().len(), 6);
        assert!(mesh.hosts().iter().all(|devices| devices == &["rdma_en2", "rdma_en3", "rdma_en5"]));
        for host in 0..4 {
            let peers: Vec<_> = (0..3).map(|device| mesh.far_end(End { host, device }).unwrap().host).collect();
            assert_eq!(peers, (0..4).filter(|&peer| peer != host).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_ring_closes() {
        let ring = Topology::ring(5).unwrap();
        assert_eq!(ring.cables().len(), 5);
        assert_eq!(ring.far_end(End { host: 4, device: 0 }), Some(End { host: 0, device: 1 }));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(Topology::mesh(0).is_err());
        assert!(Topology::mesh(Topology::MAX_HOSTS + 1).is_err());
        assert!(Topology::ring(1).is_err());
        let mut topology = Topology::new();
        let (a, b) = (topology.host(2).unwrap(), topology.host(1).unwrap());
        let end = |host, device| End { host, device };
        assert!(topology.cable(end(a, 0), end(a, 1)).is_err(), "one host");
        assert!(topology.cable(end(a, 2), end(b, 0)).is_err(), "no such device");
        topology.cable(end(a, 0), end(b, 0)).unwrap();
        assert!(topology.cable(end(a, 1), end(b, 0)).is_err(), "taken");
        assert!(topology.named_host(["x", "x"]).is_err());
        assert!(topology.named_host([""]).is_err());
    }
}
