//! Whatever the tools write: no panic, and nothing that a terminal would take for a command.

use super::recorded::*;
use crate::assess;
use crate::facts::{Linux, Mac, Told};
use crate::finding::Finding;
use crate::report;
use proptest::prelude::*;
use std::time::Duration;

/// What must hold of all findings.
fn check(findings: &[Finding]) {
    for finding in findings {
        let subject = finding.subject.as_deref().unwrap_or_default();
        for text in [&finding.summary, &finding.evidence, finding.remedy.as_deref().unwrap_or_default(), subject] {
            assert!(!text.contains(|character: char| character.is_control()), "{text:?}");
            assert!(text.chars().count() <= 610, "{} characters", text.chars().count());
        }
        assert!(finding.level == crate::finding::Level::Ok || finding.remedy.is_some(), "{finding:?}");
    }
    let mut out = Vec::new();
    report::text(&mut out, findings).unwrap();
    report::json(&mut out, "anything", findings).unwrap();
}

/// All that was recorded.
const RECORDED: &[&str] = &[
    SW_VERS,
    CHIP,
    RDMA_CTL,
    MESH,
    THUNDERBOLT_4,
    DOCK,
    NETWORKSETUP,
    IFCONFIG,
    BRIDGE,
    PMSET,
    LIBRARY,
    LIMITS,
    STATUS,
];

/// Any text; or a recorded one with something put into it, or cut off.
fn text() -> impl Strategy<Value = String> {
    let changed = (prop::sample::select(RECORDED), any::<prop::sample::Index>(), 0..200_usize, ".{0,12}");
    let changed = changed.prop_map(|(text, at, skip, put)| {
        let characters: Vec<char> = text.chars().collect();
        let at = at.index(characters.len());
        let rest = &characters[(at + skip).min(characters.len())..];
        characters[..at].iter().copied().chain(put.chars()).chain(rest.iter().copied()).collect()
    });
    prop_oneof![4 => changed, 1 => any::<String>(), 4 => prop::sample::select(RECORDED).prop_map(str::to_owned)]
}

fn told() -> impl Strategy<Value = Told> {
    prop_oneof![
        8 => text().prop_map(Told::Text),
        1 => (text(), text()).prop_map(|(out, error)| Told::Failed { how: "status 1".to_owned(), out, error }),
        1 => Just(Told::Missing),
        1 => Just(Told::TimedOut(Duration::from_secs(1))),
    ]
}

proptest! {
    #[test]
    fn any_mac(
        (os, chip, rdma_ctl, thunderbolt) in (told(), told(), told(), told()),
        (hardware_ports, interfaces, power, library) in (told(), told(), told(), told()),
        named_library in prop::option::of(any::<String>()),
        peer in any::<String>(),
    ) {
        let peer = peer.parse().ok();
        let is_soft = peer.is_none();
        let facts = Mac {
            os, chip, rdma_ctl, thunderbolt, hardware_ports, interfaces, power, library, named_library, is_soft, peer,
        };
        check(&assess::mac(&facts));
    }

    /// A healthy one with one text changed reaches further.
    #[test]
    fn any_mac_but_one(which in 0..8_usize, told in told()) {
        let mut facts = healthy();
        let Mac { os, chip, rdma_ctl, thunderbolt, hardware_ports, interfaces, power, library, .. } = &mut facts;
        *[os, chip, rdma_ctl, thunderbolt, hardware_ports, interfaces, power, library][which] = told;
        check(&assess::mac(&facts));
    }

    #[test]
    fn any_linux(library in told(), limits in told(), status in told(), named_library in prop::option::of(any::<String>())) {
        let is_soft = named_library.is_none();
        check(&assess::linux(&Linux { library, named_library, is_soft, limits, status }));
    }
}
