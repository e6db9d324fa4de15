//! The software host that the environment describes.

use super::fork::PerProcess;
use super::{Fabric, Faults, Host, Profile, Topology};
use crate::{Error, Result};
use std::sync::{Mutex, PoisonError};

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

/// The variables that there are.
const KNOWN: [&str; 7] = [
    "RDMA_SOFT_FABRIC",
    "RDMA_SOFT_HOST",
    "RDMA_SOFT_TOPOLOGY",
    "RDMA_SOFT_PROFILE",
    "RDMA_SOFT_FAULTS",
    "RDMA_SOFT_PAGE",
    "RDMA_SOFT_DIRECTORY",
];

/// A name that is misspelt would be as good as unset, and what it says be missed much later.
fn look_for_unknown_names() -> Result<()> {
    let is_unknown = |name: &str| name.starts_with("RDMA_SOFT_") && !KNOWN.contains(&name);
    match std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).find(|name| is_unknown(name)) {
        None => Ok(()),
        Some(name) => Err(Error::argument(format!("{name} is set, and nothing is called so"))
            .with_hint(format!("the variables are {}", KNOWN.join(", ")))),
    }
}

/// The error of a variable's value, with the variable's name in front.
fn in_variable(name: &'static str) -> impl FnOnce(Error) -> Error {
    move |error| error.in_front(name)
}

/// `mesh:N`, `ring:N` or `file:PATH`.
fn topology(text: &str) -> Result<Topology> {
    match text.strip_prefix("file:") {
        Some(path) => Topology::from_file(path),
        None => text.parse(),
    }
}

fn profile(page: Option<usize>) -> Result<Profile> {
    let text = variable("RDMA_SOFT_PROFILE")?;
    let mut profile = Profile::with_changes(text.as_deref().unwrap_or("thunderbolt"), page)
        .map_err(in_variable("RDMA_SOFT_PROFILE"))?;
    if let Some(plan) = variable("RDMA_SOFT_FAULTS")? {
        let plan = match plan.strip_prefix("file:") {
            Some(path) => Faults::from_file(path),
            None => plan.parse(),
        };
        profile = profile.with_faults(plan.map_err(in_variable("RDMA_SOFT_FAULTS"))?);
    }
    if let Some(page) = variable("RDMA_SOFT_PAGE")? {
        let bytes = page.parse().map_err(|_| wrong("RDMA_SOFT_PAGE", &page, "a number of bytes"))?;
        profile = profile.with_page(bytes).map_err(in_variable("RDMA_SOFT_PAGE"))?;
    }
    Ok(profile)
}

/// The host `RDMA_SOFT_HOST` (0) of the fabric named `RDMA_SOFT_FABRIC`, or of one of this process alone if there is no
/// name, with the shape `RDMA_SOFT_TOPOLOGY` (`mesh:2`), the profile `RDMA_SOFT_PROFILE` (`thunderbolt`), the
/// faults `RDMA_SOFT_FAULTS` (none), and the device page `RDMA_SOFT_PAGE` (`page`, or else the profile's). The variables are
/// read at the first call, and the fabric is made or joined then.
pub(crate) fn host(page: Option<usize>) -> Result<Host> {
    static FABRIC: PerProcess<Mutex<Option<Fabric>>> = PerProcess::new();
    let mut fabric = FABRIC.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let number = variable("RDMA_SOFT_HOST")?.unwrap_or_else(|| "0".to_owned());
    let number = number.parse().map_err(|_| wrong("RDMA_SOFT_HOST", &number, "the number of a host, from 0"))?;
    if let Some(fabric) = &*fabric {
        return fabric.host(number).map_err(in_variable("RDMA_SOFT_HOST"));
    }
    look_for_unknown_names()?;
    let topology = topology(variable("RDMA_SOFT_TOPOLOGY")?.as_deref().unwrap_or("mesh:2"))
        .map_err(in_variable("RDMA_SOFT_TOPOLOGY"))?;
    if number >= topology.hosts().len() {
        return Err(super::fabric::no_host(number, topology.hosts().len())).map_err(in_variable("RDMA_SOFT_HOST"));
    }
    let host = match variable("RDMA_SOFT_FABRIC")? {
        Some(name) => Fabric::join_with(&name, topology, profile(page)?, number)?,
        None => {
            let profile = profile(page)?;
            profile.faults.check(&topology).map_err(in_variable("RDMA_SOFT_FAULTS"))?;
            Fabric::new(topology, profile).host(number)?
        }
    };
    *fabric = Some(host.fabric());
    Ok(host)
}
