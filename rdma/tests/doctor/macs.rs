//! Macs, each with one thing wrong.

use super::recorded::*;
use crate::assess::mac;
use crate::facts::{Mac, Told};
use crate::finding::{Finding, Level::Problem, Level::Warning};
use std::time::Duration;

/// Nobody may be sent to switch on what has no effect.
fn never_says_enable(findings: &[Finding]) {
    for finding in findings {
        let remedy = finding.remedy.as_deref().unwrap_or_default();
        assert!(!remedy.contains("enable"), "{finding:?}");
    }
}

#[test]
fn a_healthy_one_in_a_mesh_of_four() {
    let findings = mac(&healthy());
    assert_eq!(wrong(&findings), []);
    let cables: Vec<_> = findings.iter().filter(|finding| finding.check == "cable").collect();
    let told: Vec<_> = cables.iter().map(|cable| (cable.subject.as_deref().unwrap(), cable.summary.as_str())).collect();
    assert_eq!(
        told,
        [
            ("Thunderbolt 4 (en4)", "nothing is cabled to it"),
            ("Thunderbolt 3 (en5)", "to Mac15,14 studio-3"),
            ("Thunderbolt 2 (en3)", "to Mac15,14 studio-2"),
            ("Thunderbolt 1 (en2)", "to Mac15,14 studio-1"),
        ]
    );
    let addresses = findings.iter().filter(|finding| finding.check == "address").map(|finding| &finding.summary);
    assert_eq!(addresses.collect::<Vec<_>>(), ["192.168.0.9", "192.168.0.5", "192.168.0.1"]);
    let mut ports = findings.iter().filter(|finding| finding.check == "port").map(|finding| finding.summary.as_str());
    assert_eq!(ports.next_back(), Some("PORT_DOWN (1): nothing is cabled to it"));
}

fn mini() -> Mac {
    Mac { chip: told("Apple M4\n"), thunderbolt: told(THUNDERBOLT_4), library: told(NO_DEVICES), ..healthy() }
}

#[test]
fn thunderbolt_4_with_rdma_switched_on_and_no_devices() {
    let findings = mac(&mini());
    assert_eq!(wrong(&findings), [(Problem, "thunderbolt", ""), (Problem, "devices", "")]);
    never_says_enable(&findings);
    assert!(only(&findings, "rdma_ctl").summary.contains("no effect"), "{findings:?}");
    let remedy = only(&findings, "devices").remedy.as_deref().unwrap();
    assert!(remedy.contains("only Macs with Thunderbolt 5"), "{remedy}");
}

#[test]
fn thunderbolt_4_with_rdma_switched_off() {
    let findings = mac(&Mac { rdma_ctl: told("disabled\n"), ..mini() });
    assert_eq!(wrong(&findings), [(Problem, "thunderbolt", ""), (Problem, "devices", "")]);
    never_says_enable(&findings);
}

#[test]
fn thunderbolt_4_that_only_the_chip_tells() {
    let findings = mac(&Mac { thunderbolt: Told::Missing, ..mini() });
    assert_eq!(wrong(&findings), [(Problem, "thunderbolt", ""), (Problem, "devices", ""), (Warning, "cable", "")]);
    never_says_enable(&findings);
}

#[test]
fn thunderbolt_5_with_rdma_switched_off() {
    let findings = mac(&Mac { rdma_ctl: told("disabled\n"), library: told(NO_DEVICES), ..healthy() });
    assert_eq!(wrong(&findings), [(Problem, "rdma_ctl", ""), (Problem, "devices", "")]);
    let remedy = only(&findings, "rdma_ctl").remedy.as_deref().unwrap();
    assert!(remedy.contains("Recovery") && remedy.contains("`rdma_ctl enable`"), "{remedy}");
}

#[test]
fn switched_on_and_still_no_devices() {
    let findings = mac(&Mac { library: told(NO_DEVICES), ..healthy() });
    assert_eq!(wrong(&findings), [(Problem, "devices", "")]);
    assert!(only(&findings, "devices").remedy.as_deref().unwrap().starts_with("restart"));
    // A generation that nothing tells is not taken for the newest.
    let unknown = Mac { chip: told("Apple M9\n"), thunderbolt: told(r#"{"SPThunderboltDataType":[]}"#), ..healthy() };
    let findings = mac(&Mac { library: told(NO_DEVICES), ..unknown });
    let remedy = only(&findings, "devices").remedy.as_deref().unwrap();
    assert!(remedy.starts_with("if this Mac has Thunderbolt 5"), "{remedy}");
}

#[test]
fn an_old_system() {
    let old = Mac {
        os: with(SW_VERS, "26.4.1", "26.1"),
        rdma_ctl: Told::Missing,
        library: told(r#"{"missing":"tried /usr/lib/librdma.dylib"}"#),
        ..healthy()
    };
    let findings = mac(&old);
    assert_eq!(wrong(&findings), [(Problem, "os", ""), (Warning, "rdma_ctl", ""), (Problem, "library", "")]);
    assert!(only(&findings, "os").remedy.as_deref().unwrap().contains("26.3"));
}

#[test]
fn systems_between() {
    for (version, level) in
        [("26.2", Some(Warning)), ("26.2.1", Some(Warning)), ("26.3", None), ("27.0", Some(Warning))]
    {
        let findings = mac(&Mac { os: with(SW_VERS, "26.4.1", version), ..healthy() });
        let expected: Vec<_> = level.map(|level| (level, "os", "")).into_iter().collect();
        assert_eq!(wrong(&findings), expected, "{version}");
    }
}

#[test]
fn no_library() {
    let missing = told(r#"{"missing":"tried /usr/lib/librdma.dylib"}"#);
    let findings = mac(&Mac { library: missing.clone(), ..healthy() });
    assert_eq!(wrong(&findings), [(Problem, "library", "")]);
    let named = Mac { library: missing, named_library: Some("/nowhere".to_owned()), ..healthy() };
    assert!(only(&mac(&named), "library").remedy.as_deref().unwrap().contains("RDMA_LIBRARY"));
}

#[test]
fn a_library_that_hangs_crashes_or_fails() {
    let hangs = Mac { library: Told::TimedOut(Duration::from_secs(20)), ..healthy() };
    assert!(only(&mac(&hangs), "library").remedy.as_deref().unwrap().contains("pull the Thunderbolt cables"));
    let died = Told::Failed { how: "signal 11".to_owned(), out: String::new(), error: String::new() };
    let findings = mac(&Mac { library: died, ..healthy() });
    assert_eq!(wrong(&findings), [(Problem, "library", "")]);
    assert!(only(&findings, "library").evidence.contains("signal 11"));
    let findings = mac(&Mac { library: told(r#"{"failed":"EIO (5)"}"#), ..healthy() });
    assert_eq!(wrong(&findings), [(Problem, "devices", "")]);
    let one = r#"{"devices":[{"name":"rdma_en2","transport":100,"ports":{"Err":"EIO (5)"}}]}"#;
    assert_eq!(wrong(&mac(&Mac { library: told(one), ..healthy() })), [(Problem, "port", "rdma_en2")]);
}

#[test]
fn no_address_on_an_interface() {
    let line = "\tinet 192.168.0.5 netmask 0xfffffffc broadcast 192.168.0.255\n";
    let interfaces = with(IFCONFIG, line, "");
    let findings = mac(&Mac { interfaces: interfaces.clone(), ..healthy() });
    assert_eq!(wrong(&findings), [(Problem, "address", "en3")]);
    let remedy = |findings: &[Finding]| {
        let finding = findings.iter().find(|finding| finding.check == "address" && finding.remedy.is_some());
        finding.unwrap().remedy.clone().unwrap()
    };
    assert!(remedy(&findings).contains("sudo ifconfig en3 inet "), "{findings:?}");
    // As a member of the bridge it may think that it has one.
    let bridged = told(&format!("{}{BRIDGE}", interfaces.text()));
    assert!(remedy(&mac(&Mac { interfaces: bridged, ..healthy() })).contains("bridge0, whose address does not count"));
    // An address that the system chose is one.
    let chosen = with(IFCONFIG, "192.168.0.5", "169.254.17.3");
    assert_eq!(wrong(&mac(&Mac { interfaces: chosen, ..healthy() })), []);
    // No such interface at all.
    let gone = with(IFCONFIG, "en3: ", "en8: ");
    assert_eq!(wrong(&mac(&Mac { interfaces: gone, ..healthy() })), [(Problem, "address", "en3")]);
}

#[test]
fn a_loop_of_bridges() {
    let bridge = |bridge: &str| Mac { interfaces: told(&format!("{IFCONFIG}{bridge}")), ..healthy() };
    let findings = mac(&bridge(BRIDGE));
    assert_eq!(wrong(&findings), [(Problem, "bridge", "")]);
    let found = only(&findings, "bridge");
    assert!(found.summary.starts_with("3 members have peers (en5, en3, en2)"), "{found:?}");
    assert!(found.remedy.as_deref().unwrap().contains("ifconfig bridge0 down"), "{found:?}");
    // One member with a peer makes none, nor does a bridge that is down, or that has other members.
    for harmless in [
        BRIDGE.replace("member: en3", "member: en8").replace("member: en5", "member: en9"),
        BRIDGE.replace("<UP,", "<"),
        BRIDGE.replace("member: en", "member: vmenet"),
    ] {
        assert_eq!(wrong(&mac(&bridge(&harmless))), [], "{harmless}");
    }
}

#[test]
fn a_port_that_is_down() {
    let (up, down) = (r#""state": "PORT_ACTIVE (4)", "active": true"#, r#""state": "PORT_DOWN (1)", "active": false"#);
    let library = LIBRARY.replacen(up, down, 1);
    assert_ne!(library, LIBRARY);
    let findings = mac(&Mac { library: told(&library), ..healthy() });
    assert_eq!(wrong(&findings), [(Problem, "port", "rdma_en2")]);
    // The peer tells whether it has RDMA.
    let off = MESH.replacen("\"protocol_id_key\": 64087", "\"protocol_id_key\": 2", 3);
    let findings = mac(&Mac { library: told(&library), thunderbolt: told(&off), ..healthy() });
    let port = findings.iter().find(|finding| finding.subject.as_deref() == Some("rdma_en2")).unwrap();
    assert!(port.remedy.as_deref().unwrap().contains("offers no RDMA"), "{port:?}");
    // Without the table of interfaces it is not known what is cabled to it.
    let findings = mac(&Mac { library: told(&library), hardware_ports: Told::Missing, ..healthy() });
    assert!(wrong(&findings).contains(&(Warning, "port", "rdma_en2")), "{findings:?}");
    assert!(wrong(&findings).contains(&(Warning, "interfaces", "")), "{findings:?}");
}

#[test]
fn nothing_cabled() {
    let library = LIBRARY.replace("PORT_ACTIVE (4)", "PORT_DOWN (1)").replace("true", "false");
    let thunderbolt = THUNDERBOLT_4.replace("40 Gb/s", "120 Gb/s");
    let findings = mac(&Mac { library: told(&library), thunderbolt: told(&thunderbolt), ..healthy() });
    let wrong = wrong(&findings);
    assert!(wrong.contains(&(Warning, "ports", "")) && wrong.iter().all(|(level, ..)| *level == Warning), "{wrong:?}");
}

#[test]
fn sleep() {
    let findings = mac(&Mac { power: with(PMSET, " sleep                0", " sleep                10"), ..healthy() });
    assert_eq!(wrong(&findings), [(Warning, "sleep", "")]);
    let disabled = PMSET.replace(" sleep                0", " SleepDisabled 1\n sleep 10 (sleep prevented by powerd)");
    assert_eq!(wrong(&mac(&Mac { power: told(&disabled), ..healthy() })), []);
}

#[test]
fn docks_and_peers_without_rdma() {
    let findings = mac(&Mac { thunderbolt: told(DOCK), ..healthy() });
    let cables: Vec<_> = wrong(&findings).into_iter().filter(|(_, check, _)| *check == "cable").collect();
    assert_eq!(cables, [(Warning, "cable", "Thunderbolt 3 (en5)"), (Warning, "cable", "Thunderbolt 1 (en2)")]);
    let slow = MESH.replacen("\"80 Gb/s\"", "\"40 Gb/s\"", 1);
    let findings = mac(&Mac { thunderbolt: told(&slow), ..healthy() });
    assert_eq!(wrong(&findings), [(Warning, "cable", "Thunderbolt 3 (en5)")]);
}

#[test]
fn a_peer_with_another_system() {
    let peer = |text: &str| Mac { peer: Some(text.parse().unwrap()), ..healthy() };
    for same in ["26.4.1", "26.4.1/25E246"] {
        assert_eq!(wrong(&mac(&peer(same))), [], "{same}");
    }
    for other in ["26.4", "26.4.1/25E250", "27.0/26A428"] {
        assert_eq!(wrong(&mac(&peer(other))), [(Warning, "peer-os", "")], "{other}");
    }
    // Where no port came up, that may be why.
    let findings = mac(&Mac { library: told(NO_DEVICES), ..peer("26.4") });
    assert_eq!(only(&findings, "peer-os").level, Problem);
}

#[test]
fn an_intel_mac() {
    let chip = told("Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz\n");
    let findings = mac(&Mac { chip, thunderbolt: told(THUNDERBOLT_4), library: told(NO_DEVICES), ..healthy() });
    assert_eq!(wrong(&findings)[0], (Problem, "chip", ""));
    never_says_enable(&findings);
}

#[test]
fn no_tool_at_all() {
    for told in [
        Told::Missing,
        Told::TimedOut(Duration::from_secs(20)),
        Told::Text(String::new()),
        Told::Failed { how: "status 1".to_owned(), out: "?".to_owned(), error: "no".to_owned() },
    ] {
        let facts = Mac {
            os: told.clone(),
            chip: told.clone(),
            rdma_ctl: told.clone(),
            thunderbolt: told.clone(),
            hardware_ports: told.clone(),
            interfaces: told.clone(),
            power: told.clone(),
            library: told.clone(),
            named_library: None,
            is_soft: false,
            peer: Some("26.4".parse().unwrap()),
        };
        let findings = mac(&facts);
        let checks: Vec<_> = wrong(&findings).into_iter().map(|(_, check, _)| check).collect();
        let all =
            ["os", "peer-os", "chip", "thunderbolt", "rdma_ctl", "library", "cable", "address", "bridge", "sleep"];
        assert_eq!(checks, all, "{told:?}");
        // Everything that is wrong comes with something to do about it.
        assert!(findings.iter().all(|finding| finding.remedy.is_some()), "{findings:?}");
    }
}

#[test]
fn one_tool_missing_is_one_finding() {
    type Tool = fn(&mut Mac) -> &mut Told;
    let missing: [(Tool, &str); 6] = [
        (|mac| &mut mac.os, "os"),
        (|mac| &mut mac.chip, "chip"),
        (|mac| &mut mac.rdma_ctl, "rdma_ctl"),
        (|mac| &mut mac.thunderbolt, "cable"),
        (|mac| &mut mac.hardware_ports, "interfaces"),
        (|mac| &mut mac.power, "sleep"),
    ];
    for (tool, check) in missing {
        let mut facts = healthy();
        *tool(&mut facts) = Told::Missing;
        let findings = mac(&facts);
        let first: Vec<_> = wrong(&findings).into_iter().filter(|(_, found, _)| *found == check).collect();
        assert_eq!(first, [(Warning, check, "")], "{findings:?}");
        assert!(wrong(&findings).iter().all(|(level, ..)| *level == Warning), "{findings:?}");
    }
}
