//! How the devices of this program's own fabrics behave.

use crate::measure::Stop;
use rdma::soft::{Faults, Profile};

/// As the environment says, so that it means here what it means for every program on the software fabric.
pub(crate) fn profile() -> Result<Profile, Stop> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let text = |name| variable(name).map(|value| value.to_string_lossy().into_owned());
    let mut profile = match text("RDMA_SOFT_PROFILE") {
        Some(text) => text.parse()?,
        None => Profile::default(),
    };
    if let Some(plan) = text("RDMA_SOFT_FAULTS") {
        profile = profile.with_faults(match plan.strip_prefix("file:") {
            Some(path) => Faults::from_file(path)?,
            None => plan.parse()?,
        });
    }
    if let Some(page) = text("RDMA_SOFT_PAGE") {
        let bytes = page
            .parse()
            .map_err(|_| Stop::Impossible(format!("RDMA_SOFT_PAGE is {page:?}: it is a number of bytes")))?;
        profile = profile.with_page(bytes)?;
    }
    Ok(profile)
}
