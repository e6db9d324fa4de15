//! Addresses of ports.

use core::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A global identifier: the 16-byte address of a port (`union ibv_gid`), shown as an IPv6 address.
///
/// On Apple's device the GIDs of `rdma_enN` mirror the IP addresses of the interface `enN` (TN3205).
#[doc(alias = "ibv_gid")]
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gid([u8; 16]);

/// What sort of address a [`Gid`] is. Two ends connect with GIDs of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GidKind {
    /// An empty entry of the table.
    Zero,
    /// `::ffff:a.b.c.d`: the interface's IPv4 address.
    Ipv4Mapped,
    /// `fe80::/10`: an IPv6 link-local address.
    LinkLocal,
    /// Anything else: a routable IPv6 address, or (macOS 27) the UUID of a Thunderbolt domain, which is no address.
    Other,
}

impl fmt::Display for GidKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            GidKind::Zero => "empty",
            GidKind::Ipv4Mapped => "IPv4-mapped",
            GidKind::LinkLocal => "link-local",
            GidKind::Other => "neither IPv4-mapped nor link-local",
        })
    }
}

impl Gid {
    /// The empty entry.
    pub const ZERO: Gid = Gid([0; 16]);

    /// A GID from its bytes, in network order.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Gid(bytes)
    }

    /// The bytes, in network order.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The IPv4-mapped GID of an address.
    pub const fn from_ipv4(address: Ipv4Addr) -> Self {
        Gid(address.to_ipv6_mapped().octets())
    }

    /// The IPv4 address that is mapped in it.
    pub fn to_ipv4(self) -> Option<Ipv4Addr> {
        Ipv6Addr::from(self.0).to_ipv4_mapped()
    }

    /// Whether it is the empty entry.
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 16]
    }

    /// What sort of address it is.
    pub fn kind(self) -> GidKind {
        if self.is_zero() {
            GidKind::Zero
        } else if self.to_ipv4().is_some() {
            GidKind::Ipv4Mapped
        } else if Ipv6Addr::from(self.0).is_unicast_link_local() {
            GidKind::LinkLocal
        } else {
            GidKind::Other
        }
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(out)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Gid({self})")
    }
}

impl FromStr for Gid {
    type Err = std::net::AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Gid(Ipv6Addr::from_str(text)?.octets()))
    }
}

/// One entry of a port's GID table: the address *and* the index it was found at, which belong together. Connecting with
/// one entry's address and another's index fails on a Mac (ml-explore/mlx pull request 3389).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GidEntry {
    pub(crate) index: u8,
    pub(crate) gid: Gid,
}

impl GidEntry {
    /// The index in the table (`sgid_index`).
    pub fn index(self) -> u8 {
        self.index
    }

    /// The address.
    pub fn gid(self) -> Gid {
        self.gid
    }
}

impl fmt::Display for GidEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "GID[{}] {}", self.index, self.gid)
    }
}

/// A globally unique identifier of a node: 8 bytes in network order, shown as four groups.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Guid([u8; 8]);

impl Guid {
    /// From the bytes in network order.
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        Guid(bytes)
    }

    /// The bytes, in network order.
    pub const fn to_bytes(self) -> [u8; 8] {
        self.0
    }

    /// From the big-endian integer of the C interface.
    pub(crate) fn from_be(number: u64) -> Self {
        Guid(number.to_ne_bytes())
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f, g, h] = self.0;
        write!(out, "{a:02x}{b:02x}:{c:02x}{d:02x}:{e:02x}{f:02x}:{g:02x}{h:02x}")
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Guid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        for (text, kind) in [
            ("::", GidKind::Zero),
            ("::ffff:169.254.1.1", GidKind::Ipv4Mapped),
            ("fe80::1", GidKind::LinkLocal),
            ("2001:db8::1", GidKind::Other),
            ("::1", GidKind::Other),
        ] {
            let gid: Gid = text.parse().unwrap();
            assert_eq!(gid.kind(), kind, "{text}");
            assert_eq!(gid.to_string(), text);
        }
    }

    #[test]
    fn a_guid_prints_in_network_order() {
        let guid = Guid::from_be(u64::from_ne_bytes([1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(guid.to_string(), "0102:0304:0506:0708");
        assert_eq!(guid.to_bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
