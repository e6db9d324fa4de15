//! `doctor` on this machine, whatever it is.

use crate::{DEADLINE, Scratch, example, finish, run, soft, start};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// On a Mac, and with hardware, it may find problems: that they have a remedy is all that can be expected.
#[test]
fn doctor() {
    let outcome = run(example("doctor", "--json"));
    let all: Value = serde_json::from_str(&outcome.out).expect(&outcome.out);
    assert_eq!(all["platform"], std::env::consts::OS);
    let findings = all["findings"].as_array().unwrap();
    for check in ["library", "soft", "soft-shared"] {
        assert!(findings.iter().any(|finding| finding["check"] == check), "no {check}: {all}");
    }
    for finding in findings {
        assert!(finding["level"] == "ok" || finding["remedy"].is_string(), "{finding}");
        assert!(!finding["check"].as_str().unwrap().starts_with("soft") || finding["level"] == "ok", "{finding}");
    }
    assert_eq!(outcome.status, i32::from(all["verdict"] == "problem"));
}

#[test]
fn doctor_with_problems() {
    let mut missing = example("doctor", "");
    missing.env("RDMA_LIBRARY", "/nonexistent");
    let outcome = run(missing);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.out.contains("PROBLEM  library") && outcome.out.contains("do: RDMA_LIBRARY names"), "{outcome:?}");
    for wrong in ["--peer-os 26.x", "--peer-os 26.3/", "--timeout 0", "--verbose"] {
        assert_eq!(run(example("doctor", wrong)).status, 2, "{wrong}");
    }
}

/// What programs that ask the environment would be told.
#[test]
fn doctor_and_the_environment() {
    let environment = |variables: &[(&str, &str)]| {
        let mut command = example("doctor", "--json");
        command.envs(variables.iter().copied());
        let outcome = run(command);
        let all: Value = serde_json::from_str(&outcome.out).expect(&outcome.out);
        let findings = all["findings"].as_array().unwrap();
        let found = findings.iter().find(|finding| finding["check"] == "environment").cloned();
        if found.as_ref().is_some_and(|finding| finding["level"] == "problem") {
            assert_eq!(outcome.status, 1, "{all}");
        }
        // Nobody is told to set what is set.
        if variables.contains(&("RDMA_PROVIDER", "soft")) {
            assert!(!outcome.out.contains("(RDMA_PROVIDER=soft)"), "{all}");
        }
        found
    };
    assert_eq!(environment(&[]), None);
    for (variables, words) in [
        (&[("RDMA_PROVIDER", "nonsense")][..], "RDMA_PROVIDER is `nonsense`"),
        (&[("RDMA_PROVIDER", "soft"), ("RDMA_SOFT_TOPOLOGY", "nonsense")], "topology"),
        (&[("RDMA_PROVIDER", "soft"), ("RDMA_SOFT_HOST", "7")], "7"),
        (&[("RDMA_SOFT_FAULTS", "nonsense")], "nonsense"),
    ] {
        let finding = environment(variables).expect(words);
        assert_eq!(finding["level"], "problem", "{finding}");
        assert!(finding["evidence"].as_str().unwrap().contains(words), "{finding}");
    }
    let fine = environment(&[("RDMA_PROVIDER", "soft"), ("RDMA_SOFT_TOPOLOGY", "mesh:3"), ("RDMA_SOFT_HOST", "2")]);
    assert_eq!(fine.unwrap()["level"], "ok");
    let unused = environment(&[("RDMA_SOFT_HOST", "1")]).unwrap();
    assert_eq!((&unused["level"], &unused["check"]), (&"warning".into(), &"environment".into()));
}

/// The findings of a check, each with its subject and what to do.
fn found(command: std::process::Command, check: &str) -> Vec<[String; 3]> {
    let outcome = run(command);
    let all: Value = serde_json::from_str(&outcome.out).expect(&outcome.out);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["check"] == check && finding["level"] == "warning")
        .map(|finding| [text(&finding["subject"]), text(&finding["remedy"]), text(&finding["evidence"])])
        .collect()
}

/// A variable that nobody reads, with the one that may be meant.
#[test]
fn doctor_and_variables_that_nobody_reads() {
    for (variable, words) in [
        ("RDMA_SOFT_HOTS", "set RDMA_SOFT_HOST instead"),
        ("RDMA_PROVIDR", "set RDMA_PROVIDER instead"),
        ("RDMA_FABRIC", "set RDMA_SOFT_FABRIC instead"),
        ("RDMA_SOFT_PROFILES", "set RDMA_SOFT_PROFILE instead"),
        ("RDMA_CORE_SOMETHING", "other programs may have their own"),
        ("RDMA_SOFT_HOST", "set RDMA_SOFT_FABRIC to the same name"),
    ] {
        let mut command = example("doctor", "--json");
        command.env("RDMA_PROVIDER", "system").env(variable, "1");
        let found = found(command, "environment");
        let [[subject, remedy, _]] = &found[..] else { panic!("{variable}: {found:?}") };
        assert!(subject == variable && remedy.contains(words), "{found:?}");
    }
    let mut known = example("doctor", "--json");
    known.env("RDMA_PROVIDER", "soft").env("RDMA_SOFT_FABRIC", format!("doctor-known-{}", std::process::id()));
    known.env("RDMA_SOFT_HOST", "1").env("RDMA_SOFT_PAGE", "").env("RDMA_NOTHING", "").env("MY_RDMA_X", "1");
    assert!(found(known, "environment").is_empty());
}

/// What a killed process left is told, what a living one uses is not.
#[test]
fn doctor_and_files_that_are_left() {
    let folder = Scratch::folder("left");
    let asked = || {
        let mut command = example("doctor", "--json");
        command.env("RDMA_SOFT_DIRECTORY", &folder.0);
        found(command, "fabric-files")
    };
    assert!(asked().is_empty());
    let mut server = soft("pingpong", "--server 127.0.0.1:0");
    server.env("RDMA_SOFT_DIRECTORY", &folder.0).env("RDMA_SOFT_FABRIC", "left");
    let (server, _) = start(server);
    assert!(asked().is_empty(), "it is used");
    kill_process(Pid::from_child(&server), Signal::KILL).unwrap();
    finish(server, DEADLINE);
    let left = asked();
    let [[_, remedy, evidence]] = &left[..] else { panic!("{left:?}") };
    assert!(remedy.contains("(`rm`)") && evidence.contains("-left ("), "{left:?}");
    // The next one of that name replaces it, and takes it away.
    let mut next = soft("devices", "--list");
    next.env("RDMA_SOFT_DIRECTORY", &folder.0).env("RDMA_SOFT_FABRIC", "left");
    run(next).succeeded();
    assert!(asked().is_empty());
}
