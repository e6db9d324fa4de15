//! `doctor` on this machine, whatever it is.

use crate::{example, run};
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
