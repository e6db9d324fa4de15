//! Each parser on what its tool writes, and on what it does not.

use super::recorded::*;
use crate::parse::hardware_ports::{self, HardwarePort};
use crate::parse::os::{self, Release, Version};
use crate::parse::power::{self, Power};
use crate::parse::thunderbolt::{self, Speed};
use crate::parse::{chip, interfaces, library, limits, rdma_ctl};

#[test]
fn sw_vers() {
    let release = os::parse(SW_VERS).unwrap();
    assert_eq!(release, Release { version: Version(26, 4, 1), build: Some("25E246".to_owned()) });
    assert_eq!(release.to_string(), "26.4.1 (25E246)");
    let next = SW_VERS.replace("26.4.1", "26.10");
    assert!(os::parse(&next).unwrap().version > release.version, "versions are not compared as texts");
    for not in ["", "ProductName: macOS\n", "ProductName: iPhone OS\nProductVersion: 26.4", "26.4"] {
        assert_eq!(os::parse(not), None, "{not:?}");
    }
    for not in ["", "26.", "26.+3", "26.3.1.4", "26,3", "4294967296", "26.3/", "26.3/25-1", "26.3/25D125/1"] {
        assert!(not.parse::<Release>().is_err(), "{not:?}");
    }
}

#[test]
fn chips() {
    for (name, expected) in [
        ("Apple M1 Ultra", Some(false)),
        ("Apple M3", Some(false)),
        ("Apple M3 Max", Some(false)),
        ("Apple M3 Ultra", Some(true)),
        ("Apple M4", Some(false)),
        ("Apple M4 Pro", Some(true)),
        ("Apple M5 Max", Some(true)),
        ("Apple M6 Pro", None),
        ("Apple M", None),
        ("Apple M4 (Virtual)", None),
        ("VirtualApple @ 2.50GHz", None),
        ("Apple processor", None),
    ] {
        let chip = chip::parse(name).unwrap();
        assert_eq!((chip.thunderbolt_5, chip.is_apple), (expected, true), "{name}");
    }
    assert!(!chip::parse("Intel(R) Core(TM) i7").unwrap().is_apple);
    assert_eq!((chip::parse(" \n"), chip::parse("sysctl: unknown oid")), (None, None));
}

#[test]
fn switches() {
    for (text, expected) in [
        ("enabled\n", Some(true)),
        ("disabled\n", Some(false)),
        ("RDMA: disabled.", Some(false)),
        ("usage: rdma_ctl [enable|disable|status]", None),
        ("", None),
    ] {
        assert_eq!(rdma_ctl::parse(text), expected, "{text:?}");
    }
}

#[test]
fn receptacles() {
    let mesh = thunderbolt::parse(MESH).unwrap();
    assert_eq!(mesh.iter().map(|one| one.number).collect::<Vec<_>>(), [Some(4), Some(3), Some(2), Some(1)]);
    assert_eq!(mesh[0].speed, Some(Speed { gigabits: 120, up_to: true }));
    assert_eq!(mesh[1].speed, Some(Speed { gigabits: 80, up_to: false }));
    assert_eq!((mesh[0].connected, mesh[1].connected), (false, true));
    let peer = mesh[1].peer().unwrap();
    assert_eq!((peer.name.as_str(), peer.model.as_str(), peer.rdma), ("studio-3", "Mac15,14", Some(true)));
    assert_eq!(peer.domain.as_deref(), Some("00000003-0000-4000-8000-000000000003"));

    let dock = thunderbolt::parse(DOCK).unwrap();
    assert_eq!(dock[0].peer(), None);
    assert_eq!(dock[0].neighbours[1].behind.as_deref(), Some("Dock 5"));
    assert_eq!((dock[1].peer(), dock[1].neighbours.len()), (None, 1));
    assert_eq!(dock[2].peer().unwrap().rdma, Some(false));
}

/// Early builds name the service.
#[test]
fn services_by_name() {
    let named = MESH.replace("\"protocol_id_key\": 64087", "\"service_key_key\": \"rdma\"").replace("\\u02c7", "");
    assert_eq!(thunderbolt::parse(&named.replace("\"AD\"", "\"rdma\"")).unwrap()[1].peer().unwrap().rdma, Some(true));
    let silent = MESH.replace("services_title", "other_title");
    assert_eq!(thunderbolt::parse(&silent).unwrap()[1].peer().unwrap().rdma, None);
}

#[test]
fn what_system_profiler_does_not_write() {
    for not in [
        "",
        "{}",
        "[]",
        "null",
        "{\"SPThunderboltDataType\":{}}",
        "{\"SPThunderboltDataType\":[",
        MESH.trim_end_matches("}\n"),
    ] {
        assert_eq!(thunderbolt::parse(not), None, "{not:.40}");
    }
    // Other types where names and numbers are expected.
    let odd = r#"{"SPThunderboltDataType":[1,null,{"_name":"no receptacle"},{"receptacle_1_tag":{}},{"receptacle_1_tag":
        {"receptacle_id_key":3,"current_speed_key":[],"receptacle_status_key":7},"_items":[4,{"_items":{}}],"domain_uuid_key":1}]}"#;
    let found = thunderbolt::parse(odd).unwrap();
    assert_eq!(found.iter().map(|one| one.number).collect::<Vec<_>>(), [None, Some(3)]);
    // Deeper than anybody's desk.
    let deep = format!("{{\"SPThunderboltDataType\":{}", "[{\"_items\":".repeat(100_000));
    assert_eq!(thunderbolt::parse(&deep), None);
}

#[test]
fn hardware_ports_with_receptacles() {
    let ports = hardware_ports::parse(NETWORKSETUP);
    let receptacles = ports.iter().filter_map(|port| Some((port.receptacle()?, port.interface.as_str())));
    assert_eq!(receptacles.collect::<Vec<_>>(), [(1, "en2"), (2, "en3"), (3, "en5"), (4, "en4")]);
    assert_eq!(ports[1], HardwarePort { name: "Thunderbolt Bridge".to_owned(), interface: "bridge0".to_owned() });
    // What would become part of a command that somebody copies.
    assert_eq!(hardware_ports::parse("Hardware Port: Thunderbolt 1\nDevice: en2;reboot\n"), []);
    assert_eq!(hardware_ports::parse("Device: en2\n"), []);
}

#[test]
fn interfaces_with_addresses_and_members() {
    let all = interfaces::parse(&format!("{IFCONFIG}{BRIDGE}"));
    let names: Vec<_> = all.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["lo0", "en0", "en2", "en3", "en5", "en4", "bridge0"]);
    assert_eq!(all[3].ipv4, ["192.168.0.5".parse::<std::net::Ipv4Addr>().unwrap()]);
    assert!(all[5].ipv4.is_empty() && all[5].up);
    assert_eq!(all[6].members, ["en2", "en3", "en5", "en4"]);
    assert_eq!(interfaces::parse("\tinet 1.2.3.4\n: flags\nen1 no colon\n"), []);
}

#[test]
fn power_settings() {
    assert_eq!(power::parse(PMSET), Power { disabled: false, minutes: Some(0) });
    let prevented =
        power::parse(" SleepDisabled\t\t0\n sleep                1 (sleep prevented by sharingd, powerd)\n");
    assert_eq!((prevented.sleeps(), prevented.minutes), (Some(true), Some(1)));
    assert_eq!(power::parse("SleepDisabled 1\nsleep 10").sleeps(), Some(false));
    assert_eq!(power::parse("sleep soon").sleeps(), None);
}

#[test]
fn linux_limits() {
    assert_eq!(limits::locked_memory(LIMITS), Some(limits::Limit::Bytes(8 << 20)));
    assert_eq!(limits::locked_memory("Max locked memory         unlimited"), Some(limits::Limit::Unlimited));
    assert_eq!(limits::locked_memory("Max locked memory"), None);
    assert!(
        !limits::may_lock_all(STATUS) && !limits::may_lock_all("CapEff: x") && limits::may_lock_all("CapEff: 4000")
    );
}

#[test]
fn the_library() {
    let library::Library::Devices(devices) = library::parse(LIBRARY).unwrap() else { panic!() };
    assert_eq!(devices.iter().map(|device| device.is_active()).collect::<Vec<_>>(), [true, true, true, false]);
    let text = serde_json::to_string(&library::Library::Devices(devices.clone())).unwrap();
    assert_eq!(library::parse(&text), Some(library::Library::Devices(devices)));
    for not in ["", "{}", "null", r#"{"devices":[{}]}"#, r#"{"other":1}"#] {
        assert_eq!(library::parse(not), None, "{not}");
    }
}
