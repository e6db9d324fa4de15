//! The machine: system, processor, Thunderbolt, switch.

use super::mac::{THUNDERBOLT_5, View};
use super::unreadable;
use crate::facts::soft;
use crate::finding::Finding;
use crate::parse::os::Version;

/// What brought the verbs library.
const FIRST: Version = Version(26, 2, 0);
/// What made messages of several frames usable.
const LARGE: Version = Version(26, 3, 0);
/// What is reported to take receives apart.
const SINGLE: Version = Version(27, 0, 0);

pub(super) fn os(mac: &View<'_>) -> Finding {
    let Some(release) = &mac.os else { return unreadable("os", "the version of macOS", "sw_vers", &mac.facts.os) };
    let name = format!("macOS {release}");
    if release.version < FIRST {
        let remedy = format!("update to macOS 26.3 or later; until then {}", soft(mac.facts.is_soft));
        Finding::problem("os", format!("{name} has no RDMA over Thunderbolt, which came with 26.2"), remedy)
            .source("Apple TN3205")
    } else if release.version < LARGE {
        let remedy = "update to macOS 26.3 or later, or keep messages to 4096 bytes";
        Finding::warning("os", format!("{name} does messages of more than one frame of 4 KiB badly"), remedy)
            .source("ml-explore/mlx, pull request 3094: its transport sends larger ones from 26.3 on")
    } else if release.version >= SINGLE {
        let remedy = "try messages of more than 4096 bytes before you rely on them (pingpong --all), on both ends";
        let summary = format!("{name}: 27.0 was seen to fill one receive with each frame, and to have 3 queue pairs");
        Finding::warning("os", summary, remedy).source("Aileuxe/MCDMA, one report")
    } else {
        Finding::ok("os", name).source("Apple TN3205")
    }
    .evidence(mac.facts.os.text())
}

/// Whether the peer runs the same.
pub(super) fn peer(mac: &View<'_>) -> Option<Finding> {
    const CHECK: &str = "peer-os";
    let peer = mac.facts.peer.as_ref()?;
    let Some(here) = &mac.os else {
        return Some(unreadable(CHECK, "whether the peer runs the same macOS", "sw_vers", &mac.facts.os));
    };
    let evidence = format!("here {here}, peer {peer}");
    let is_same_build = here.build.is_none() || peer.build.is_none() || here.build == peer.build;
    let finding = if here.version == peer.version && is_same_build {
        Finding::ok(CHECK, "the peer runs the same macOS")
    } else {
        let summary = "the peer runs another macOS";
        let remedy = "bring both to the same version and build, betas included";
        // Where a port came up, the two understood each other.
        if mac.devices().iter().any(|device| device.is_active()) {
            Finding::warning(CHECK, summary, remedy)
        } else {
            Finding::problem(CHECK, summary, remedy)
        }
    };
    Some(finding.evidence(evidence).source("exo-explore/exo, README"))
}

pub(super) fn chip(mac: &View<'_>) -> Finding {
    let Some(chip) = &mac.chip else {
        return unreadable("chip", "the processor", "sysctl -n machdep.cpu.brand_string", &mac.facts.chip);
    };
    if chip.is_apple {
        return Finding::ok("chip", format!("{} is Apple silicon", chip.name));
    }
    let remedy = format!("use a Mac with Apple silicon and Thunderbolt 5; here {}", soft(mac.facts.is_soft));
    Finding::problem("chip", format!("{} is not Apple silicon", chip.name), remedy).source("Apple TN3205")
}

pub(super) fn thunderbolt(mac: &View<'_>) -> Finding {
    const CHECK: &str = "thunderbolt";
    let evidence = match &mac.links {
        Some(links) => links
            .iter()
            .map(|link| match link.receptacle.speed {
                Some(speed) if speed.up_to => format!("{} up to {} Gb/s", link.name(), speed.gigabits),
                Some(speed) => format!("{} at {} Gb/s", link.name(), speed.gigabits),
                None => format!("{} of no known speed", link.name()),
            })
            .collect::<Vec<_>>()
            .join(", "),
        None => format!("`system_profiler SPThunderboltDataType -json`: {}", mac.facts.thunderbolt.why()),
    };
    match mac.thunderbolt_5() {
        Some(true) => Finding::ok(CHECK, "this Mac has Thunderbolt 5"),
        Some(false) => Finding::problem(
            CHECK,
            "this Mac has no Thunderbolt 5, so it has no RDMA devices, and never will",
            format!(
                "nothing can be switched on here: use Macs with Thunderbolt 5 (M4 Pro or Max, M3 Ultra, M5 Pro or Max) at \
                 both ends; {}",
                soft(mac.facts.is_soft)
            ),
        ),
        None => Finding::warning(
            CHECK,
            "whether this Mac has Thunderbolt 5 is not known",
            format!("see About This Mac, System Report, Thunderbolt: it must say {THUNDERBOLT_5} Gb/s or more"),
        ),
    }
    .evidence(evidence)
    .source("Apple TN3205; ml-explore/mlx issue 3777")
}

/// `rdma_ctl`.
pub(super) fn switch(mac: &View<'_>) -> Finding {
    const CHECK: &str = "rdma_ctl";
    let finding = match (mac.switched_on, mac.thunderbolt_5()) {
        // Said once, by the finding about Thunderbolt: there is nothing to do here.
        (Some(true), Some(false)) => {
            Finding::ok(CHECK, "RDMA is switched on, which has no effect without Thunderbolt 5")
                .source("ml-explore/mlx issue 3777; jundot/omlx issue 3037")
        }
        (Some(false), Some(false)) => {
            Finding::ok(CHECK, "RDMA is switched off, which does not matter without Thunderbolt 5")
                .source("ml-explore/mlx issue 3777")
        }
        (Some(true), _) => Finding::ok(CHECK, "RDMA is switched on").source("Apple TN3205"),
        (Some(false), known) => {
            let condition = if known.is_none() { "if this Mac has Thunderbolt 5: " } else { "" };
            let remedy = format!(
                "{condition}start up in macOS Recovery, choose Utilities, Terminal, run `rdma_ctl enable`, and restart; it \
                 cannot be done remotely, nor with sudo"
            );
            Finding::problem(CHECK, "RDMA is switched off", remedy).source("Apple TN3205")
        }
        (None, _) => return unreadable(CHECK, "whether RDMA is switched on", "rdma_ctl status", &mac.facts.rdma_ctl),
    };
    finding.evidence(format!("`rdma_ctl status`: {}", mac.facts.rdma_ctl.text()))
}
