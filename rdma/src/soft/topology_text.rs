//! Topologies as text: a word, or a file.

use super::text_file;
use super::topology::{End, Topology};
use crate::{Error, Result};
use std::path::Path;
use std::str::FromStr;

/// No file that describes 64 hosts is longer.
const LONGEST: u64 = 1 << 20;

/// `mesh:N`, `ring:N`, or lines:
///
/// ```text
/// # Hosts are numbered in order, from 0; their devices are listed in the order of the library's list.
/// host rdma_en2 rdma_en3
/// host rdma_en2
/// host rdma_en5
/// # A cable joins two devices.
/// cable 0/rdma_en2 1/rdma_en2
/// cable 0/rdma_en3 2/rdma_en5
/// ```
impl FromStr for Topology {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let word = text.trim();
        if let Some((shape, count)) = word.split_once(':').filter(|_| !word.contains(char::is_whitespace)) {
            let count = count.parse().map_err(|_| unknown(word))?;
            return match shape {
                "mesh" => Topology::mesh(count),
                "ring" => Topology::ring(count),
                _ => Err(unknown(word)),
            };
        }
        let mut topology = Topology::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                // A word alone was not meant as a line.
                add(&mut topology, line).map_err(|error| match word.contains(char::is_whitespace) {
                    true => Error::argument(format!("line {} of the topology: {error}", number + 1)),
                    false => unknown(word),
                })?;
            }
        }
        if topology.hosts().is_empty() {
            return Err(unknown(word));
        }
        Ok(topology)
    }
}

impl Topology {
    /// Reads a topology from a file: see the [`FromStr`] form.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the file cannot be read, is longer than 1 MiB,
    /// or has a line that means nothing (the message says which).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |reason: &dyn core::fmt::Display| {
            Error::argument(format!("the topology file {} cannot be used: {reason}", path.display()))
        };
        text_file::read(path, LONGEST).map_err(|error| failed(&error))?.parse().map_err(|error| failed(&error))
    }
}

fn unknown(word: &str) -> Error {
    let start: String = word.chars().take(100).collect();
    Error::argument(format!("{start:?} is no topology"))
        .with_hint("it is mesh:N or ring:N with a number of hosts, or file:PATH with lines `host DEVICE…` and `cable 0/DEVICE 1/DEVICE`")
}

fn add(topology: &mut Topology, line: &str) -> Result<()> {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("host") => topology.named_host(words).map(drop),
        Some("cable") => match (words.next(), words.next(), words.next()) {
            (Some(one), Some(other), None) => {
                let (one, other) = (end(topology, one)?, end(topology, other)?);
                topology.cable(one, other).map(drop)
            }
            _ => Err(Error::argument("a cable has two ends: cable 0/DEVICE 1/DEVICE")),
        },
        _ => Err(Error::argument("a line begins with `host` or `cable`")),
    }
}

fn end(topology: &Topology, text: &str) -> Result<End> {
    let unknown = || Error::argument(format!("{text} is no device of a host above: an end is HOST/DEVICE"));
    let (host, name) = text.split_once('/').ok_or_else(unknown)?;
    let host: usize = host.parse().map_err(|_| unknown())?;
    let devices = topology.hosts().get(host).ok_or_else(unknown)?;
    let device = devices.iter().position(|device| device == name).ok_or_else(unknown)?;
    Ok(End { host, device })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_lines() {
        assert_eq!("mesh:3".parse::<Topology>().unwrap(), Topology::mesh(3).unwrap());
        assert_eq!(" ring:4\n".parse::<Topology>().unwrap(), Topology::ring(4).unwrap());
        let text = "# three\nhost rdma_en2 rdma_en3 # two devices\nhost a\n\nhost b\ncable 0/rdma_en3 2/b\n";
        let topology: Topology = text.parse().unwrap();
        assert_eq!(topology.hosts().len(), 3);
        assert_eq!(topology.far_end(End { host: 0, device: 1 }), Some(End { host: 2, device: 0 }));
        assert_eq!(topology.far_end(End { host: 1, device: 0 }), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<Topology>().unwrap_err().to_string();
        assert!(error("host a\nhost b\ncable 0/a 1/c").contains("line 3"));
        for text in ["", "mesh", "mesh:", "mesh:0", "mesh:x", "star:4", "host a\ncabel 0/a 1/a", "cable 0/a 1/b"] {
            assert!(text.parse::<Topology>().is_err(), "{text:?}");
        }
        // However many are asked for, before any is made.
        for text in ["mesh:65", "mesh:1000", "mesh:999999999999", "ring:18446744073709551615"] {
            assert!(error(text).contains("64 hosts"), "{text}");
        }
        for text in ["mesh", "nonsense"] {
            assert!(error(text).contains("mesh:N"), "{text}");
        }
        for text in ["host a\nhost a\ncable 0/a 1/a 0/a", "host a\nhost a\ncable 0/a", "host a a"] {
            assert!(error(text).contains("line"), "{text:?}");
        }
    }
}
