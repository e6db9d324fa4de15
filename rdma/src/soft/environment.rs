//! The software host that the environment describes.

use super::{Fabric, Host, Profile, Topology};
use crate::{Error, Result};
use std::sync::OnceLock;

/// Reads a variable; unset and empty are the same.
fn variable(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(value)) => Err(wrong(name, &value.to_string_lossy(), "text")),
    }
}

fn wrong(name: &str, value: &str, expected: &str) -> Error {
    Error::argument(format!("{name} is {value:?}")).with_hint(format!("it is {expected}"))
}

/// The topology that a word describes: `mesh:N` or `ring:N`.
fn topology(name: &str, text: &str) -> Result<Topology> {
    let unknown = || wrong(name, text, "mesh:N or ring:N, where N is a number of hosts");
    let (shape, count) = text.split_once(':').ok_or_else(unknown)?;
    let count = count.parse().map_err(|_| unknown())?;
    match shape {
        "mesh" => Topology::mesh(count),
        "ring" => Topology::ring(count),
        _ => Err(unknown()),
    }
}

/// The host that `RDMA_SOFT_HOST` names (0), of the process's fabric of the shape `RDMA_SOFT_TOPOLOGY` (`mesh:2`), with
/// the device page `RDMA_SOFT_PAGE`. The variables are read at the first call, and the fabric is made then.
pub(crate) fn host() -> Result<Host> {
    static FABRIC: OnceLock<Fabric> = OnceLock::new();
    let fabric = match FABRIC.get() {
        Some(fabric) => fabric,
        None => {
            let shape = variable("RDMA_SOFT_TOPOLOGY")?;
            let topology = topology("RDMA_SOFT_TOPOLOGY", shape.as_deref().unwrap_or("mesh:2"))?;
            let mut profile = Profile::default();
            if let Some(page) = variable("RDMA_SOFT_PAGE")? {
                let bytes = page.parse().map_err(|_| wrong("RDMA_SOFT_PAGE", &page, "a number of bytes"))?;
                profile = profile.with_page(bytes)?;
            }
            FABRIC.get_or_init(|| Fabric::new(topology, profile))
        }
    };
    let number = variable("RDMA_SOFT_HOST")?.unwrap_or_else(|| "0".to_owned());
    fabric.host(number.parse().map_err(|_| wrong("RDMA_SOFT_HOST", &number, "the number of a host, from 0"))?)
}
