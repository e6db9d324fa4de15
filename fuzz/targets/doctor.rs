//! Any text as what the tools write that the example `doctor` asks: its parsers, and the findings that follow.
//!
//! The texts are separated by the byte 1; those that are missing are a healthy machine's.
#![no_main]

#[path = "../../examples/doctor/assess/mod.rs"]
mod assess;
#[allow(dead_code, reason = "the program makes what the target does not")]
#[path = "../../examples/doctor/facts.rs"]
mod facts;
#[path = "../../examples/doctor/finding.rs"]
mod finding;
#[path = "../../examples/doctor/parse/mod.rs"]
mod parse;

use facts::{Linux, Mac, Told};
use finding::{Finding, Level};
use libfuzzer_sys::fuzz_target;

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../rdma/tests/doctor/recorded/", $name))
    };
}

fuzz_target!(|text: &str| {
    let mut texts = text.split('\u{1}');
    let mut next = |recorded: &str| match texts.next() {
        None | Some("") => Told::Text(recorded.to_owned()),
        Some("missing") => Told::Missing,
        Some(text) => Told::Text(text.to_owned()),
    };
    let mac = Mac {
        thunderbolt: next(recorded!("system_profiler.json")),
        hardware_ports: next(recorded!("networksetup.txt")),
        interfaces: next(recorded!("ifconfig.txt")),
        library: next(recorded!("library.json")),
        os: next(recorded!("sw_vers.txt")),
        chip: next(recorded!("chip.txt")),
        rdma_ctl: next(recorded!("rdma_ctl.txt")),
        power: next(recorded!("pmset.txt")),
        named_library: None,
        is_soft: false,
        peer: text.parse().ok(),
    };
    check(&assess::mac(&mac));
    let linux = Linux {
        library: mac.library,
        named_library: None,
        is_soft: false,
        limits: next(recorded!("limits.txt")),
        status: next(recorded!("status.txt")),
    };
    check(&assess::linux(&linux));
});

fn check(findings: &[Finding]) {
    for Finding { subject, level, summary, evidence, remedy, .. } in findings {
        for text in [subject.as_ref(), Some(summary), Some(evidence), remedy.as_ref()].into_iter().flatten() {
            assert!(
                !text.contains(|character: char| character.is_control()) && text.chars().count() <= 610,
                "{text:?}"
            );
        }
        assert!(*level == Level::Ok || remedy.is_some(), "{summary}");
    }
}
