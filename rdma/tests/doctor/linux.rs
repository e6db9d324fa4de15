//! Linux machines.

use super::recorded::*;
use crate::assess::linux as assess;
use crate::facts::{Linux, Told};
use crate::finding::Level::{Problem, Warning};

#[test]
fn hardware_and_little_memory_to_lock() {
    let findings = assess(&linux());
    assert_eq!(wrong(&findings), [(Warning, "port", "rdma_en4"), (Warning, "locked-memory", "")]);
    assert!(only(&findings, "locked-memory").remedy.as_deref().unwrap().contains("ulimit -l"));
}

#[test]
fn memory_enough_to_lock() {
    let enough = with(LIMITS, "8388608              8388608 ", "unlimited            unlimited");
    assert_eq!(wrong(&assess(&Linux { limits: enough, ..linux() })), [(Warning, "port", "rdma_en4")]);
    let much = told(&LIMITS.replace("8388608  ", "8589934592"));
    assert_eq!(wrong(&assess(&Linux { limits: much, ..linux() })), [(Warning, "port", "rdma_en4")]);
    let capable = with(STATUS, "CapEff:\t0000000000000000", "CapEff:\t0000000000004000");
    assert_eq!(wrong(&assess(&Linux { status: capable, ..linux() })), [(Warning, "port", "rdma_en4")]);
}

/// There the software fabric is what is used, so nothing is a problem, and little memory does not matter.
#[test]
fn no_hardware() {
    let found = |library: Told| {
        let findings = assess(&Linux { library, ..linux() });
        wrong(&findings).into_iter().map(|(level, check, _)| (level, check)).collect::<Vec<_>>()
    };
    assert_eq!(found(told(NO_DEVICES)), [(Warning, "devices")]);
    assert_eq!(found(told(r#"{"missing":"tried libibverbs.so.1"}"#)), [(Warning, "library")]);
    assert_eq!(found(told(r#"{"failed":"EPERM (1)"}"#)), [(Warning, "devices")]);
    assert_eq!(found(Told::Missing), [(Warning, "library")]);
    let missing = told(r#"{"missing":"tried /nowhere"}"#);
    let named = Linux { library: missing, named_library: Some("/nowhere".to_owned()), ..linux() };
    assert_eq!(wrong(&assess(&named))[0], (Problem, "library", ""));
}

/// Nobody is told to set what is set.
#[test]
fn no_hardware_and_the_software_fabric_in_use() {
    for (is_soft, words) in [(false, "RDMA_PROVIDER=soft"), (true, "which is used now")] {
        let findings = assess(&Linux { library: told(NO_DEVICES), is_soft, ..linux() });
        let remedy = only(&findings, "devices").remedy.clone().unwrap();
        assert!(remedy.contains(words), "{remedy}");
    }
}

#[test]
fn limits_that_are_not_told() {
    let findings = assess(&Linux { limits: Told::Missing, ..linux() });
    assert_eq!(only(&findings, "locked-memory").level, Warning);
}
