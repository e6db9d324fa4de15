//! What two ends tell each other to connect.

use crate::error::{Error, ErrorKind, Result};
use crate::gid::Gid;
use crate::port::Mtu;
use core::fmt;
use std::str::FromStr;

/// One end of a connection: the address, queue pair number and starting sequence number that the other end needs.
///
/// It travels out of band, as [bytes](Self::to_bytes) or as text (`Display` and `FromStr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    lid: u16,
    number: u32,
    psn: u32,
    gid: Gid,
    mtu: Mtu,
}

const MAGIC: [u8; 4] = *b"RDMA";
const VERSION: u8 = 1;

impl Endpoint {
    /// The length of the byte form.
    pub const LENGTH: usize = 32;

    /// An endpoint. Numbers are cut to the 24 bits that they have.
    pub fn new(lid: u16, number: u32, psn: u32, gid: Gid, mtu: Mtu) -> Self {
        Endpoint { lid, number: number & 0xff_ffff, psn: psn & 0xff_ffff, gid, mtu }
    }

    /// The local identifier of the port.
    pub fn lid(&self) -> u16 {
        self.lid
    }

    /// The queue pair's number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The first packet sequence number of this end's sends.
    pub fn psn(&self) -> u32 {
        self.psn
    }

    /// The address of the port.
    pub fn gid(&self) -> Gid {
        self.gid
    }

    /// The largest path MTU that this end can use.
    pub fn mtu(&self) -> Mtu {
        self.mtu
    }

    /// The byte form, in network order: magic `RDMA`, version, MTU (1 to 5), lid (2), queue pair number (4), sequence
    /// number (4), GID (16).
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = self.mtu.raw().0 as u8;
        bytes[6..8].copy_from_slice(&self.lid.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.number.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.psn.to_be_bytes());
        bytes[16..].copy_from_slice(&self.gid.to_bytes());
        bytes
    }

    /// Reads the byte form.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Protocol`] for anything that [`to_bytes`](Self::to_bytes) does not write.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let wrong = |what: String| {
            Error::new(ErrorKind::Protocol, format!("an endpoint {what}"))
                .with_hint("it is what Endpoint::to_bytes writes, in the same version of this library")
        };
        let bytes: &[u8; Self::LENGTH] =
            bytes.try_into().map_err(|_| wrong(format!("of {} bytes: it has {}", bytes.len(), Self::LENGTH)))?;
        let [m0, m1, m2, m3, version, mtu, l0, l1, n0, n1, n2, n3, p0, p1, p2, p3, gid @ ..] = *bytes;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(wrong("without its magic: the peer speaks something else".to_owned()));
        }
        if version != VERSION {
            return Err(wrong(format!("of version {version}: this library knows {VERSION}")));
        }
        let mtu =
            Mtu::from_raw(u32::from(mtu)).ok_or_else(|| wrong(format!("with an MTU of code {mtu}: it is 1 to 5")))?;
        let (number, psn) = (u32::from_be_bytes([n0, n1, n2, n3]), u32::from_be_bytes([p0, p1, p2, p3]));
        if number > 0xff_ffff || psn > 0xff_ffff {
            return Err(wrong(format!("with numbers {number:#x} and {psn:#x}: they have 24 bits")));
        }
        Ok(Endpoint { lid: u16::from_be_bytes([l0, l1]), number, psn, gid: Gid::from_bytes(gid), mtu })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Endpoint { lid, number, psn, gid, mtu } = self;
        write!(out, "rdma1/lid={lid}/qpn={number:#08x}/psn={psn:#08x}/mtu={mtu}/gid={gid}")
    }
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            let shown: String = text.chars().take(120).collect();
            Error::new(ErrorKind::Protocol, format!("{shown:?} is no endpoint"))
                .with_hint("one reads like rdma1/lid=1/qpn=0x000900/psn=0x00abcd/mtu=4096/gid=fe80::1")
        };
        let mut parts = text.split('/');
        let mut field = |name: &str| {
            let part = parts.next()?;
            if name.is_empty() { Some(part) } else { part.strip_prefix(name)?.strip_prefix('=') }
        };
        let hexadecimal = |text: &str| {
            let number = u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
            (number <= 0xff_ffff && !text.contains('+')).then_some(number)
        };
        let mut parse = || {
            if field("")? != "rdma1" {
                return None;
            }
            let endpoint = Endpoint {
                lid: field("lid")?.parse().ok()?,
                number: hexadecimal(field("qpn")?)?,
                psn: hexadecimal(field("psn")?)?,
                mtu: Mtu::from_bytes(field("mtu")?.parse().ok()?)?,
                gid: field("gid")?.parse().ok()?,
            };
            Some(endpoint)
        };
        let endpoint = parse().ok_or_else(wrong)?;
        if parts.next().is_some() { Err(wrong()) } else { Ok(endpoint) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Endpoint {
        let gid = core::array::from_fn(|index| index as u8);
        Endpoint::new(0x0102, 0x01_0203, 0xab_cdef, Gid::from_bytes(gid), Mtu::B4096)
    }

    #[test]
    fn the_bytes_are_fixed() {
        let expected = [
            0x52, 0x44, 0x4d, 0x41, 1, 5, 0x01, 0x02, 0, 0x01, 0x02, 0x03, 0, 0xab, 0xcd, 0xef, 0, 1, 2, 3, 4, 5, 6, 7,
            8, 9, 10, 11, 12, 13, 14, 15,
        ];
        assert_eq!(sample().to_bytes(), expected);
        assert_eq!(Endpoint::from_bytes(&expected).unwrap(), sample());
    }

    #[test]
    fn hostile_bytes_are_errors() {
        let good = sample().to_bytes();
        assert!(Endpoint::from_bytes(&good[..31]).is_err());
        assert!(Endpoint::from_bytes(&[good.as_slice(), &[0]].concat()).is_err());
        assert!(Endpoint::from_bytes(&[]).is_err());
        for (index, value) in [(0, 0), (4, 0), (4, 2), (5, 0), (5, 6), (8, 1), (12, 1)] {
            let mut bytes = good;
            bytes[index] = value;
            let error = Endpoint::from_bytes(&bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Protocol, "{index} {value}");
        }
    }

    #[test]
    fn the_text_can_be_read_back() {
        let text = sample().to_string();
        assert_eq!(text, "rdma1/lid=258/qpn=0x010203/psn=0xabcdef/mtu=4096/gid=1:203:405:607:809:a0b:c0d:e0f");
        assert_eq!(text.parse::<Endpoint>().unwrap(), sample());
    }

    #[test]
    fn hostile_text_is_an_error() {
        let good = sample().to_string();
        for text in [
            "",
            "rdma1",
            "rdma2/lid=1",
            &good[1..],
            &good[..good.len() - 8],
            &format!("{good}/x"),
            &good.replace("4096", "4095"),
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
        assert!(good.replace("0x010203", "0x1000000").parse::<Endpoint>().is_err());
        assert!(good.replace("0x010203", "0x+10203").parse::<Endpoint>().is_err());
        assert!("é/".repeat(1000).parse::<Endpoint>().is_err());
    }
}
