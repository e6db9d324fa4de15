//! How the devices of a program's own fabrics behave.

use rdma::soft::{Faults, Profile};
use std::fmt::Display;

/// As the environment says, so that it means here what it means for every program on the software fabric. The error names
/// the variable.
pub(crate) fn profile() -> Result<Profile, String> {
    const PROFILE: &str = "RDMA_SOFT_PROFILE";
    const FAULTS: &str = "RDMA_SOFT_FAULTS";
    const PAGE: &str = "RDMA_SOFT_PAGE";
    let mut profile = match variable(PROFILE) {
        Some(text) => text.parse().map_err(wrong(PROFILE))?,
        None => Profile::default(),
    };
    if let Some(plan) = variable(FAULTS) {
        let plan = match plan.strip_prefix("file:") {
            Some(path) => Faults::from_file(path),
            None => plan.parse(),
        };
        profile = profile.with_faults(plan.map_err(wrong(FAULTS))?);
    }
    if let Some(page) = variable(PAGE) {
        let bytes = page.parse().map_err(|_| format!("{PAGE} is {page:?}: it is a number of bytes"))?;
        profile = profile.with_page(bytes).map_err(wrong(PAGE))?;
    }
    Ok(profile)
}

/// Unset and empty are the same.
fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}

fn wrong<E: Display>(variable: &'static str) -> impl FnOnce(E) -> String {
    move |error| format!("{variable}: {error}")
}
