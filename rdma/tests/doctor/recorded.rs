//! Machines, as texts.

use crate::facts::{Linux, Mac, Told};
use crate::finding::{Finding, Level};

pub(crate) const SW_VERS: &str = include_str!("recorded/sw_vers.txt");
pub(crate) const CHIP: &str = include_str!("recorded/chip.txt");
pub(crate) const RDMA_CTL: &str = include_str!("recorded/rdma_ctl.txt");
/// The first of four Mac Studios in a mesh.
pub(crate) const MESH: &str = include_str!("recorded/system_profiler.json");
/// A Mac mini with nothing cabled to it.
pub(crate) const THUNDERBOLT_4: &str = include_str!("recorded/system_profiler-thunderbolt4.json");
/// A Mac without RDMA, an enclosure of disks, and a dock with a Mac behind it.
pub(crate) const DOCK: &str = include_str!("recorded/system_profiler-dock.json");
pub(crate) const NETWORKSETUP: &str = include_str!("recorded/networksetup.txt");
pub(crate) const IFCONFIG: &str = include_str!("recorded/ifconfig.txt");
/// More of the same: Thunderbolt Bridge.
pub(crate) const BRIDGE: &str = include_str!("recorded/ifconfig-bridge0.txt");
pub(crate) const PMSET: &str = include_str!("recorded/pmset.txt");
pub(crate) const LIBRARY: &str = include_str!("recorded/library.json");
pub(crate) const NO_DEVICES: &str = r#"{"devices":[]}"#;
pub(crate) const LIMITS: &str = include_str!("recorded/limits.txt");
pub(crate) const STATUS: &str = include_str!("recorded/status.txt");

pub(crate) fn told(text: &str) -> Told {
    Told::Text(text.to_owned())
}

/// A Mac with which nothing is wrong.
pub(crate) fn healthy() -> Mac {
    Mac {
        os: told(SW_VERS),
        chip: told(CHIP),
        rdma_ctl: told(RDMA_CTL),
        thunderbolt: told(MESH),
        hardware_ports: told(NETWORKSETUP),
        interfaces: told(IFCONFIG),
        power: told(PMSET),
        library: told(LIBRARY),
        named_library: None,
        is_soft: false,
        peer: None,
    }
}

/// A Linux machine with RDMA hardware and little memory to lock.
pub(crate) fn linux() -> Linux {
    Linux { library: told(LIBRARY), named_library: None, is_soft: false, limits: told(LIMITS), status: told(STATUS) }
}

/// Replaces something that must be there.
pub(crate) fn with(text: &str, what: &str, by: &str) -> Told {
    assert!(text.contains(what), "{what:?} is not in {text}");
    told(&text.replace(what, by))
}

/// What is not as it should be: level, check and subject.
pub(crate) fn wrong(findings: &[Finding]) -> Vec<(Level, &'static str, &str)> {
    let wrong = findings.iter().filter(|finding| finding.level > Level::Ok);
    wrong.map(|finding| (finding.level, finding.check, finding.subject.as_deref().unwrap_or_default())).collect()
}

/// The only finding of this check.
pub(crate) fn only<'a>(findings: &'a [Finding], check: &str) -> &'a Finding {
    let all: Vec<_> = findings.iter().filter(|finding| finding.check == check).collect();
    assert!(all.len() == 1, "{check}: {all:?}");
    all[0]
}
