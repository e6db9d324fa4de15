//! Thunderbolt Bridge.

use super::mac::View;
use super::unreadable;
use crate::finding::Finding;
use crate::parse::interfaces::Interface;

pub(super) fn bridge(mac: &View<'_>) -> Finding {
    const CHECK: &str = "bridge";
    if mac.interfaces.is_empty() {
        return unreadable(CHECK, "what is a member of the Thunderbolt bridge", "ifconfig -a", &mac.facts.interfaces);
    }
    let cabled = |bridge: &Interface| -> Vec<String> {
        let names = mac.peers().filter_map(|link| link.interface.clone());
        names.filter(|name| bridge.members.contains(name)).collect()
    };
    // A Mac may have other bridges, for its virtual machines: those with the most cables matter.
    let bridges = mac.interfaces.iter().filter(|interface| interface.up && !interface.members.is_empty());
    let Some((bridge, cabled)) = bridges.map(|bridge| (bridge, cabled(bridge))).max_by_key(|(_, cabled)| cabled.len())
    else {
        return Finding::ok(CHECK, "no bridge is up that has members").source("Apple TN3205");
    };
    let evidence = format!("{} has the members {}", bridge.name, bridge.members.join(", "));
    let remedy = format!(
        "remove Thunderbolt Bridge in System Settings, Network, or `sudo ifconfig {} down` until the next restart (not \
         destroy: it took USB Ethernet with it on some Macs); then give each interface an address of its own",
        bridge.name
    );
    match &cabled[..] {
        [] => Finding::ok(CHECK, "no member of it has a peer").evidence(evidence),
        [one] => Finding::ok(CHECK, format!("one member has a peer, {one}: no loop")).evidence(evidence),
        several => {
            let summary = format!(
                "{} members have peers ({}): in a mesh, a ring or with two cables to one Mac that is a loop, and packets \
                 go round",
                several.len(),
                several.join(", ")
            );
            Finding::problem(CHECK, summary, remedy)
                .evidence(evidence)
                .source("Apple TN3205; qubitcontracting/tb5-jaccl-toolkit keeps it, without harm seen")
        }
    }
}
