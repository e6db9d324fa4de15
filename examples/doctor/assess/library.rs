//! The verbs library, its devices and their ports: "no library", "no devices" and "the port is down" are three things.

use super::mac::{Link, View};
use crate::facts::{Linux, Told, soft};
use crate::finding::Finding;
use crate::parse::library::{self, Device, Library, Port};

pub(super) fn of_mac(mac: &View<'_>) -> Vec<Finding> {
    let facts = mac.facts;
    let devices = match &mac.library {
        None => return vec![silent(&facts.library, Finding::problem)],
        Some(Library::Missing(why)) => {
            let remedy = match &facts.named_library {
                Some(_) => NAMED,
                None => "macOS 26.2 and later have it, in the system's own cache rather than as a file; update macOS",
            };
            return vec![Finding::problem("library", "there is no verbs library", remedy).evidence(why)];
        }
        Some(Library::Failed(why)) => return vec![failed(why, Finding::problem)],
        Some(Library::Devices(devices)) => devices,
    };
    let mut all = vec![loaded(&facts.named_library)];
    if devices.is_empty() {
        all.push(no_devices(mac));
        return all;
    }
    all.push(listed(devices));
    for device in devices {
        let link = mac.links.iter().flatten().find(|link| {
            link.interface.as_deref().is_some_and(|interface| device.name.strip_prefix("rdma_") == Some(interface))
        });
        all.extend(ports(device, |port| down(device, port, link)));
    }
    if !devices.iter().any(Device::is_active) && mac.peers().next().is_none() {
        let remedy = "join this Mac and another one with a Thunderbolt 5 cable, directly";
        all.push(Finding::warning("ports", "no port is ACTIVE, and no Mac is cabled to this one", remedy));
    }
    all
}

pub(super) fn of_linux(facts: &Linux) -> Vec<Finding> {
    let devices = match library::parse(facts.library.text()) {
        None => return vec![silent(&facts.library, Finding::warning)],
        Some(Library::Missing(why)) => {
            let summary = "there is no verbs library";
            let remedy = "for RDMA hardware install libibverbs (Debian: libibverbs1); the software fabric needs none";
            return vec![
                match facts.named_library {
                    // Somebody wanted it.
                    Some(_) => Finding::problem("library", summary, NAMED),
                    None => Finding::warning("library", summary, remedy),
                }
                .evidence(why),
            ];
        }
        Some(Library::Failed(why)) => return vec![loaded(&facts.named_library), failed(&why, Finding::warning)],
        Some(Library::Devices(devices)) => devices,
    };
    let mut all = vec![loaded(&facts.named_library)];
    if devices.is_empty() {
        let remedy = format!("for RDMA hardware load its driver and ib_uverbs; without, {}", soft(facts.is_soft));
        all.push(Finding::warning("devices", "the library lists no devices", remedy));
        return all;
    }
    all.push(listed(&devices));
    for device in &devices {
        all.extend(ports(device, |port| {
            let remedy = "check the cable and the network interface (`ip link`, `rdma link`)";
            Finding::warning("port", format!("port {} is {}", port.number, port.state), remedy)
        }));
    }
    all
}

const NAMED: &str = "RDMA_LIBRARY names this file: correct it, or unset it to use the system's library";

fn loaded(named: &Option<String>) -> Finding {
    let finding = Finding::ok("library", "the verbs library loads");
    match named {
        Some(path) => finding.evidence(format!("RDMA_LIBRARY={path}")),
        None => finding,
    }
}

type Make = fn(&'static str, &'static str, &'static str) -> Finding;

/// The process that asked the library did not answer.
fn silent(told: &Told, make: Make) -> Finding {
    let (summary, remedy) = match told {
        Told::TimedOut(_) => (
            "the verbs library does not answer",
            "the driver is stuck: pull the Thunderbolt cables and plug them in again, then restart the machine",
        ),
        Told::Failed { .. } => (
            "the process that asked the verbs library died",
            "restart the machine; if RDMA_LIBRARY is set, unset it; then see whether `ibv_devinfo` works",
        ),
        Told::Text(_) | Told::Missing => ("the verbs library could not be asked", "see whether `ibv_devinfo` works"),
    };
    make("library", summary, remedy).evidence(told.why()).source("exo-explore/exo issue 1712")
}

fn failed(why: &str, make: Make) -> Finding {
    make("devices", "the verbs library cannot list its devices", "the error says why; see whether `ibv_devices` works")
        .evidence(why)
}

fn no_devices(mac: &View<'_>) -> Finding {
    let (summary, remedy) = match (mac.thunderbolt_5(), mac.switched_on) {
        (Some(false), _) => (
            "the library lists no devices, as on every Mac without Thunderbolt 5",
            "nothing can be switched on here: only Macs with Thunderbolt 5 have devices",
        ),
        (_, Some(false)) => {
            ("the library lists no devices, because RDMA is switched off", "see what is said about rdma_ctl")
        }
        (Some(true), Some(true)) => (
            "the library lists no devices, although RDMA is switched on and there is Thunderbolt 5",
            "restart the Mac: after a fault of the driver, and until the restart after switching it on, there are none",
        ),
        (None, Some(true)) => (
            "the library lists no devices, although RDMA is switched on",
            "if this Mac has Thunderbolt 5, restart it; on any other the switch has no effect",
        ),
        (_, None) => (
            "the library lists no devices",
            "it takes Thunderbolt 5 and RDMA switched on (`rdma_ctl status`): see what is said about both",
        ),
    };
    Finding::problem("devices", summary, remedy).source("ml-explore/mlx issue 3777; exo-explore/exo issue 2186")
}

fn listed(devices: &[Device]) -> Finding {
    let names = devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(", ");
    Finding::ok("devices", format!("{}: {names}", devices.len()))
}

fn ports(device: &Device, down: impl Fn(&Port) -> Finding) -> Vec<Finding> {
    match &device.ports {
        Err(why) => {
            let remedy = "pull the cable and plug it in again, then restart the machine";
            vec![Finding::problem("port", "the device cannot be asked", remedy).evidence(why).on(&device.name)]
        }
        Ok(ports) => ports
            .iter()
            .map(|port| {
                let finding = if port.active { Finding::ok("port", &port.state) } else { down(port) };
                finding.evidence(format!("GIDs: {}", port.gids.join(", "))).on(&device.name)
            })
            .collect(),
    }
}

/// Why the port may be down.
fn down(device: &Device, port: &Port, link: Option<&Link>) -> Finding {
    let state = &port.state;
    let Some(link) = link else {
        let remedy = "see whether its cable leads to another Mac, and whether RDMA is switched on there";
        return Finding::warning("port", format!("{state}; what is cabled to {} is not known", device.name), remedy);
    };
    let Some(peer) = link.receptacle.peer() else {
        let what =
            if link.receptacle.connected { "what is cabled to it is no host" } else { "nothing is cabled to it" };
        return Finding::ok("port", format!("{state}: {what}"));
    };
    let remedy = match peer.rdma {
        Some(false) => {
            "the host at the other end offers no RDMA: there, see `rdma_ctl status` and the version of macOS (this program \
             does)"
        }
        _ => {
            "RDMA must be switched on at both ends, with the same version and build of macOS: run this program there; then \
             pull the cable and plug it in again, or try another"
        }
    };
    Finding::problem("port", format!("{state}, although {} is cabled to it", peer.name), remedy)
        .source("Apple TN3205; exo-explore/exo, README")
}
