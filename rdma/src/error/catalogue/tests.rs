//! Each entry is found, says what it should, and stands in docs/errors.md.

use super::*;
use crate::Error;
use std::sync::Arc;

const DEVICES: [Hardware; 2] = [Hardware::Thunderbolt, Hardware::Adapter];
const SYSTEMS: [System; 2] = [System::MacOs, System::Linux];

fn all() -> impl Iterator<Item = &'static Entry> {
    calls::ALL.iter().chain(states::ALL.iter().copied())
}

/// Who can come to an entry: a call (or any), an errno, a device, a system.
fn ways(entry: &'static Entry) -> Vec<(&'static str, c_int, Hardware, System)> {
    let When::Call(calls, errnos) = entry.when else { return Vec::new() };
    let calls = if calls.is_empty() { &["ibv_query_port", "ibv_destroy_cq"][..] } else { calls };
    let mut ways = Vec::new();
    for device in DEVICES.into_iter().filter(|device| entry.device.is_none_or(|only| only == *device)) {
        for system in SYSTEMS.into_iter().filter(|system| entry.system.is_none_or(|only| only == *system)) {
            ways.extend(calls.iter().flat_map(|call| errnos.iter().map(move |errno| (*call, *errno, device, system))));
        }
    }
    ways
}

/// Each is reached by one way at least: an earlier one may take some, not all.
#[test]
fn no_entry_is_hidden_by_those_before() {
    for entry in calls::ALL {
        let reached = ways(entry).into_iter().any(|(call, errno, device, system)| {
            find(call, Errno::from_raw(errno), Some(device), system).is_some_and(|found| core::ptr::eq(found, entry))
        });
        assert!(reached, "{entry:?}");
    }
}

/// What this system can show: kind, remedy, errno by its name, and the device.
#[test]
fn messages_show_the_remedy() {
    for entry in calls::ALL {
        for (call, errno, device, system) in ways(entry) {
            let errno = Errno::from_raw(errno);
            let found = find(call, errno, Some(device), system).expect("this entry, or one before it");
            assert_ne!(errno.name(), "errno", "{entry:?}");
            if system != System::HERE {
                continue;
            }
            let error = Error::call(call, errno).on(&Arc::from("rdma_en3"), device);
            assert_eq!((error.kind(), error.hint()), (found.kind, Some(found.remedy)), "{call} {errno}");
            assert_eq!((error.cause(), error.reference()), (Some(found.cause), Some(found.source)));
            assert_eq!(error.retry_when(), found.again);
            let text = error.to_string();
            assert!(text.starts_with(&format!("{call} on rdma_en3: {errno}")), "{text}");
            assert!(text.ends_with(&format!("({})", found.remedy)), "{text}");
        }
    }
    for entry in states::ALL {
        let error = Error::known(entry, "what happened");
        assert_eq!((error.kind(), error.hint()), (entry.kind, Some(entry.remedy)));
        assert_eq!(error.to_string(), format!("what happened ({})", entry.remedy));
    }
}

#[test]
fn entries_are_whole() {
    for entry in all() {
        for text in [entry.cause, entry.remedy, entry.source, entry.again.unwrap_or("never")] {
            assert!(!text.is_empty() && !text.contains(['|', '\n']) && !text.contains("  "), "{entry:?}");
        }
        // What `Error::is_retryable` promises, the document must not deny.
        assert!(!entry.kind.is_retryable() || entry.again.is_some(), "{entry:?}");
        if let When::Call(_, errnos) = entry.when {
            assert!(!errnos.is_empty(), "{entry:?}");
        }
    }
}

#[test]
fn every_status_with_an_entry_finds_it() {
    for entry in states::ALL {
        if let When::Completion(code) = entry.when {
            assert!(core::ptr::eq(states::status(code).unwrap(), *entry), "{entry:?}");
        }
    }
    assert!(states::status(Status::SUCCESS).is_none());
}

#[test]
fn one_errno_means_different_things_to_different_calls_and_devices() {
    let kind =
        |call, number| Error::call(call, Errno::from_raw(number)).on(&Arc::from("x"), Hardware::Thunderbolt).kind();
    assert_eq!(kind("ibv_create_qp", libc::EBUSY), ErrorKind::LimitReached);
    assert_eq!(kind("ibv_destroy_cq", libc::EBUSY), ErrorKind::Busy);
    assert_eq!(kind("ibv_post_recv", libc::ENOMEM), ErrorKind::QueueFull);
    assert_eq!(kind("ibv_reg_mr", libc::ENOMEM), ErrorKind::LimitReached);
    assert_eq!(kind("ibv_query_port", libc::ENOMEM), ErrorKind::OutOfMemory);
    assert_eq!(kind("ibv_query_port", libc::EXDEV), ErrorKind::Other);
    assert_eq!(kind("ibv_query_port", libc::ENOTSUP), ErrorKind::Unsupported);

    let remedy = |device, system| find("ibv_reg_mr", Errno::from_raw(libc::ENOMEM), device, system).unwrap().remedy;
    assert!(remedy(Some(Hardware::Adapter), System::Linux).contains("ulimit -l"));
    assert!(remedy(Some(Hardware::Thunderbolt), System::MacOs).contains("100 regions"));
    // The software device locks no memory.
    assert!(!remedy(Some(Hardware::Thunderbolt), System::Linux).contains("ulimit"));
    // Before the device is known: what it usually is.
    assert_eq!(remedy(None, System::Linux), remedy(Some(Hardware::Adapter), System::Linux));
    assert_eq!(remedy(None, System::MacOs), remedy(Some(Hardware::Thunderbolt), System::MacOs));
}

/// Only Thunderbolt 5 has devices: on any other Mac the switch may be on, and is not to be thrown again.
#[test]
fn no_mac_is_told_to_enable_again() {
    let remedy = states::no_devices(System::MacOs).remedy;
    assert!(remedy.starts_with("only Macs with Thunderbolt 5 have devices"), "{remedy}");
    assert!(remedy.contains("may say enabled") && !remedy.contains("rdma_ctl enable"), "{remedy}");
    assert!(!states::no_devices(System::Linux).remedy.contains("rdma_ctl"));
}

/// A row of docs/errors.md.
fn row(entry: &Entry) -> String {
    let code = |text: &str| format!("`{text}`");
    let list = |texts: Vec<String>| texts.join(", ");
    let [place, what] = match &entry.when {
        When::Call(calls, errnos) => [
            if calls.is_empty() { "any call".to_owned() } else { list(calls.iter().copied().map(code).collect()) },
            list(errnos.iter().map(|errno| code(Errno::from_raw(*errno).name())).collect()),
        ],
        When::Completion(status) => ["a completion".to_owned(), code(status.name())],
        When::State(state) => ["–".to_owned(), (*state).to_owned()],
    };
    let device = entry.device.map(|device| match device {
        Hardware::Thunderbolt => "Thunderbolt",
        Hardware::Adapter => "adapters",
    });
    let system = entry.system.map(|system| match system {
        System::MacOs => "macOS",
        System::Linux => "Linux",
    });
    let on = [device, system].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let on = if on.is_empty() { "all" } else { &on };
    let Entry { kind, cause, remedy, again, source, .. } = entry;
    format!("| {place} | {what} | {on} | {cause} | {remedy} | {} | `{kind:?}` | {source} |", again.unwrap_or("never"))
}

#[test]
fn the_document_has_the_same_entries() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/errors.md");
    let document = std::fs::read_to_string(path).expect("the repository's document");
    let head = |line: &&str| !line.starts_with("| where ") && !line.starts_with("|---");
    let rows: Vec<_> = document.lines().filter(|line| line.starts_with('|')).filter(head).collect();
    let expected: Vec<_> = all().map(row).collect();
    let here = expected.join("\n");
    for (at, (found, wanted)) in rows.iter().zip(&expected).enumerate() {
        assert_eq!(found, wanted, "row {at} of docs/errors.md differs; all rows are\n{here}");
    }
    assert_eq!(rows.len(), expected.len(), "docs/errors.md has other rows; all rows are\n{here}");
}
