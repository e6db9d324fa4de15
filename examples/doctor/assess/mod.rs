//! From what was found out to findings.

mod bridge;
mod cables;
mod library;
mod locked_memory;
mod mac;
mod power;
mod system;

use crate::facts::{Linux, Mac};
use crate::finding::Finding;

/// The findings about a Mac.
pub(crate) fn mac(facts: &Mac) -> Vec<Finding> {
    let mac = mac::View::new(facts);
    let mut all = vec![system::os(&mac)];
    all.extend(system::peer(&mac));
    all.extend([system::chip(&mac), system::thunderbolt(&mac), system::switch(&mac)]);
    all.extend(library::of_mac(&mac));
    all.extend(cables::cables(&mac));
    all.extend(cables::addresses(&mac));
    all.push(bridge::bridge(&mac));
    all.push(power::sleep(&mac));
    all
}

/// The findings about a Linux machine. It need not have the hardware: the software fabric is what it is for.
pub(crate) fn linux(facts: &Linux) -> Vec<Finding> {
    let mut all = library::of_linux(facts);
    all.push(locked_memory::limit(facts));
    all
}

/// A tool that told nothing which could be read.
fn unreadable(check: &'static str, what: &str, tool: &str, told: &crate::facts::Told) -> Finding {
    Finding::warning(check, format!("{what} is not known"), format!("run `{tool}` by hand, and see what it says"))
        .evidence(format!("`{tool}`: {}", told.why()))
}
