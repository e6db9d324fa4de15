//! Which receptacle is which interface, what is at the other end, and whether the interface has an address.

use super::mac::{Link, THUNDERBOLT_5, View};
use super::unreadable;
use crate::finding::Finding;
use crate::parse::interfaces::Interface;

/// One finding a receptacle.
pub(super) fn cables(mac: &View<'_>) -> Vec<Finding> {
    let Some(links) = &mac.links else {
        let tool = "system_profiler SPThunderboltDataType -json";
        return vec![unreadable("cable", "what is cabled to this Mac", tool, &mac.facts.thunderbolt)];
    };
    let mut all: Vec<_> = links.iter().map(|link| cable(link, mac.thunderbolt_5()).on(link.name())).collect();
    if links.iter().any(|link| link.interface.is_none()) {
        let tool = "networksetup -listallhardwareports";
        all.push(unreadable("interfaces", "which interface is which receptacle", tool, &mac.facts.hardware_ports));
    }
    all
}

fn cable(link: &Link, thunderbolt_5: Option<bool>) -> Finding {
    const CHECK: &str = "cable";
    let receptacle = &link.receptacle;
    let evidence = format!(
        "domain {}, {}",
        receptacle.domain.as_deref().unwrap_or("unknown"),
        receptacle.speed.map_or_else(
            || "speed unknown".to_owned(),
            |speed| {
                let up_to = if speed.up_to { "up to " } else { "" };
                format!("{up_to}{} Gb/s", speed.gigabits)
            }
        ),
    );
    if let Some(peer) = receptacle.peer() {
        let name = format!("to {} {}", peer.model, peer.name);
        let evidence = format!("{evidence}; peer's domain {}", peer.domain.as_deref().unwrap_or("unknown"));
        let slow = receptacle.speed.filter(|speed| !speed.up_to && speed.gigabits < THUNDERBOLT_5);
        return match (slow, peer.rdma) {
            // Nothing at the other end would help.
            _ if thunderbolt_5 == Some(false) => Finding::ok(CHECK, name),
            (Some(speed), _) => {
                let remedy = "use a Thunderbolt 5 cable, and Thunderbolt 5 at the other end";
                Finding::warning(CHECK, format!("{name}, at {} Gb/s only", speed.gigabits), remedy)
                    .source("exo-explore/exo issue 1881; ml-explore/mlx issue 4485 saw devices at 40 Gb/s")
            }
            (None, Some(false)) => {
                let remedy = "switch RDMA on there: in macOS Recovery, `rdma_ctl enable`, if it has Thunderbolt 5";
                Finding::warning(CHECK, format!("{name}, which offers no RDMA"), remedy).source("Apple TN3205")
            }
            (None, _) => Finding::ok(CHECK, name),
        }
        .evidence(evidence);
    }
    let through = receptacle.neighbours.iter().find_map(|neighbour| {
        neighbour.behind.as_ref().filter(|_| neighbour.is_host()).map(|behind| (&neighbour.name, behind))
    });
    if let Some((host, behind)) = through {
        let remedy = "RDMA goes from one Mac to the other directly: cable them without anything between";
        let summary = format!("to {host}, but through {behind}");
        return Finding::warning(CHECK, summary, remedy).evidence(evidence).source("Apple TN3205");
    }
    match receptacle.neighbours.first() {
        Some(device) => Finding::ok(CHECK, format!("to {}, which is no host", device.name)),
        None if receptacle.connected => Finding::ok(CHECK, "to something that tells nothing about itself"),
        None => Finding::ok(CHECK, "nothing is cabled to it"),
    }
    .evidence(evidence)
}

/// One finding an interface with a peer.
pub(super) fn addresses(mac: &View<'_>) -> Vec<Finding> {
    if mac.thunderbolt_5() == Some(false) {
        return Vec::new();
    }
    let with_peer = mac.peers().filter_map(|link| link.interface.as_deref());
    if mac.interfaces.is_empty() {
        return vec![unreadable("address", "which addresses there are", "ifconfig -a", &mac.facts.interfaces)];
    }
    with_peer.map(|name| address(name, mac.interface(name), mac).on(name)).collect()
}

fn address(name: &str, interface: Option<&Interface>, mac: &View<'_>) -> Finding {
    const CHECK: &str = "address";
    const SOURCE: &str = "ml-explore/mlx issue 3467, pull request 4191";
    let Some(interface) = interface else {
        let remedy = "make a network service for it: System Settings, Network, Add Service";
        return Finding::problem(CHECK, "there is no such interface", remedy);
    };
    if let [first, ..] = interface.ipv4[..] {
        let text = interface.ipv4.iter().map(|address| address.to_string()).collect::<Vec<_>>().join(", ");
        let finding = if first.is_link_local() {
            Finding::ok(
                CHECK,
                format!("{text}, which the system chose: it may be another after the cable is plugged in"),
            )
            .source("exo-explore/exo issue 1847")
        } else {
            Finding::ok(CHECK, text)
        };
        return finding.evidence("the GIDs of the device mirror it");
    }
    let bridged = mac.interfaces.iter().find(|bridge| bridge.members.iter().any(|member| member == name));
    let also = match bridged {
        Some(bridge) => format!("; it is a member of {}, whose address does not count", bridge.name),
        None => String::new(),
    };
    let remedy = format!(
        "give it one, on a network of its own: `sudo ifconfig {name} inet 192.168.100.1 netmask 255.255.255.252` and .2 at the \
         other end, or a network service with DHCP{also}"
    );
    let summary = "it has no IPv4 address, so the device has no IPv4 GID, and most programs fail with EINVAL at RTR";
    Finding::problem(CHECK, summary, remedy).source(SOURCE)
}
