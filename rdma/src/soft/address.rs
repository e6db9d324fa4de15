//! The addresses of pretended hosts: MACs, GUIDs and GID tables.
//!
//! A device `rdma_enN` mirrors the addresses of the network interface `enN` of its cable end (TN3205): entry 0 is the
//! link-local IPv6 address made from the MAC, entry 1 the IPv4 address, entry 2 a second link-local address that does
//! not change with the MAC.

use super::profile::Profile;
use super::topology::{End, Topology};
use crate::Gid;

/// The entries of a GID table. Apple does not publish `gid_tbl_len`; sixteen is inferred.
pub(crate) const TABLE_LENGTH: usize = 16;

/// A locally administered MAC for device `device` of host `host`, in fabric `fabric`.
pub(crate) fn mac(fabric: u16, host: usize, device: usize) -> [u8; 6] {
    let [high, low] = fabric.to_be_bytes();
    [0x36, high, low, host as u8, 0, device as u8]
}

/// The EUI-64 form of a MAC: universal/local bit turned over, ff:fe in the middle.
fn eui64(mac: [u8; 6]) -> [u8; 8] {
    [mac[0] ^ 0x02, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]]
}

/// The node GUID. On Macs the first byte counts the ports and the rest is the host's (TN3205, MLX documentation).
pub(crate) fn node_guid(fabric: u16, host: usize, device: usize) -> [u8; 8] {
    let rest = scramble(u64::from(fabric) << 16 | host as u64).to_be_bytes();
    [0xe0_u8.wrapping_add(device as u8), rest[1], rest[2], rest[3], rest[4], rest[5], rest[6], 0x05]
}

/// The IPv4 address of one end (0 or 1) of a cable, self-assigned as macOS does where nobody gives one. Other fabrics have
/// others, so that who is on the wrong one is told that the peer is not there.
pub(crate) fn ipv4(fabric: u16, cable: usize, end: usize) -> [u8; 4] {
    // 169.254.1.0 to 169.254.254.255 are for use (RFC 3927); two addresses a cable.
    let first = if fabric == 0 { 0 } else { scramble(u64::from(fabric)) as usize % (254 * 256) };
    let number = ((first + cable * 2 + end) % (254 * 256 - 2)) as u32 + 1;
    [169, 254, 1 + (number >> 8) as u8, number as u8]
}

/// The GID table that a device starts with.
pub(crate) fn initial(fabric: u16, end: End, topology: &Topology, profile: &Profile) -> [Gid; TABLE_LENGTH] {
    let ipv4 = topology.cable_of(end).map(|cable| {
        let first = topology.cables()[cable].0 == end;
        ipv4(fabric, cable, usize::from(!first))
    });
    let mut table = table(mac(fabric, end.host, end.device), ipv4);
    if profile.uuid_gid {
        // macOS 27: the domain's UUID first, then the link-local address, then the others (captured output; MCD).
        table.rotate_right(1);
        table[0] = domain_uuid(fabric, end.host);
    }
    table
}

/// The UUID of a host's Thunderbolt domain: of version 4, as random ones are.
fn domain_uuid(fabric: u16, host: usize) -> Gid {
    let halves = [1, 2].map(|half| scramble(half << 32 | u64::from(fabric) << 16 | host as u64).to_be_bytes());
    let mut raw = [0; 16];
    raw[..8].copy_from_slice(&halves[0]);
    raw[8..].copy_from_slice(&halves[1]);
    (raw[6], raw[8]) = (raw[6] & 0x0f | 0x40, raw[8] & 0x3f | 0x80);
    // Never what looks like a link-local address, as one in a thousand would.
    raw[0] &= 0x7f;
    Gid::from_bytes(raw)
}

/// The GID table of a device.
pub(crate) fn table(mac: [u8; 6], ipv4: Option<[u8; 4]>) -> [Gid; TABLE_LENGTH] {
    let mut table = [Gid::ZERO; TABLE_LENGTH];
    table[0] = link_local(eui64(mac));
    if let Some(address) = ipv4 {
        table[1] = Gid::from_ipv4(address.into());
    }
    let seed = u64::from_be_bytes([0, 0, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]]);
    table[2] = link_local(scramble(seed).to_be_bytes());
    table
}

fn link_local(interface: [u8; 8]) -> Gid {
    let mut raw = [0; 16];
    raw[..2].copy_from_slice(&[0xfe, 0x80]);
    raw[8..].copy_from_slice(&interface);
    Gid::from_bytes(raw)
}

/// Spreads the bits of a small number (the finaliser of SplitMix64).
pub(crate) fn scramble(seed: u64) -> u64 {
    let mut value = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GidKind;

    #[test]
    fn the_table_is_that_of_tn3205() {
        let table = table(mac(0, 1, 2), Some([169, 254, 1, 7]));
        assert_eq!(table[0].to_string(), "fe80::3400:ff:fe01:2");
        assert_eq!(table[1].to_string(), "::ffff:169.254.1.7");
        assert_eq!(table[2].kind(), GidKind::LinkLocal);
        assert!(table[3..].iter().all(Gid::is_zero));
    }

    #[test]
    fn ports_of_a_host_differ_in_the_first_byte() {
        let (first, second) = (node_guid(3, 1, 0), node_guid(3, 1, 1));
        assert_eq!(first[0] + 1, second[0]);
        assert_eq!(first[1..], second[1..]);
        assert_ne!(node_guid(3, 0, 0)[1..], first[1..]);
    }

    #[test]
    fn ends_of_many_cables_have_addresses_of_their_own() {
        let mut all: Vec<_> = (0..1000).flat_map(|cable| [ipv4(7, cable, 0), ipv4(7, cable, 1)]).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2000);
        assert!(all.iter().all(|address| (1..=254).contains(&address[2])));
        assert_eq!(ipv4(0, 0, 0), [169, 254, 1, 1]);
        assert!((1..1000).all(|fabric| ipv4(fabric, 0, 0) != ipv4(fabric + 1, 0, 0)));
    }
}
