//! The example `conformance` in one process, step by step, and peers that do not behave. Its modules are taken in as they
//! are, with their own tests.
#![cfg(feature = "soft")]

#[path = "../../examples/conformance/arguments.rs"]
#[allow(dead_code)]
mod arguments;
#[path = "../../examples/conformance/channel.rs"]
mod channel;
#[path = "../../examples/conformance/end.rs"]
mod end;
#[path = "../../examples/conformance/memory.rs"]
mod memory;
#[path = "../../examples/conformance/observation.rs"]
mod observation;
#[path = "../../examples/conformance/place.rs"]
#[allow(dead_code)]
mod place;
#[path = "../../examples/conformance/raw.rs"]
#[allow(dead_code)]
mod raw;
#[path = "../../examples/conformance/report.rs"]
#[allow(dead_code)]
mod report;
#[path = "../../examples/conformance/session.rs"]
mod session;
#[path = "../../examples/shared/signals.rs"]
mod signals;
#[path = "../../examples/conformance/steps/mod.rs"]
#[allow(dead_code)]
mod steps;
#[path = "../../examples/conformance/system.rs"]
mod system;
#[path = "../../examples/conformance/watch.rs"]
mod watch;

use crate::channel::{Channel, Lost, Message};
use crate::end::Role;
use crate::report::Report;
use crate::session::Session;
use crate::steps::{STEPS, Step};
use crate::watch::Watch;
use rdma::Provider;
use rdma::soft::Fabric;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

static WATCH: LazyLock<Watch> = LazyLock::new(|| Watch::start().unwrap());

fn streams() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

/// One end, on a host of its own.
fn run(fabric: &Fabric, role: Role, stream: TcpStream, steps: &[&'static Step]) -> Result<Report, String> {
    let host = usize::from(role == Role::Server);
    let provider = Provider::soft(&fabric.host(host).unwrap()).unwrap();
    let context = provider.first_active().unwrap().open().unwrap();
    let (name, watch, place, out) = ("soft", &*WATCH, None, &mut |_: &str| {});
    Session { provider: &provider, name, context, stream, role, steps, watch, place, out }.run()
}

/// Both, each with steps of its own.
fn both(fabric: &Fabric, steps: [&[&'static Step]; 2]) -> [Result<Report, String>; 2] {
    let (near, far) = streams();
    thread::scope(|scope| {
        let server = scope.spawn(|| run(fabric, Role::Server, far, steps[1]));
        let client = run(fabric, Role::Client, near, steps[0]);
        [client, server.join().unwrap()]
    })
}

/// No step needs one before it, and none leaves anything behind: they all run on one fabric, twice.
#[test]
fn each_step_agrees_alone() {
    let fabric = Fabric::mesh(2).unwrap();
    for step in STEPS.iter().chain(STEPS) {
        let [client, server] = both(&fabric, [&[step], &[step]]).map(Result::unwrap);
        for report in [client, server] {
            let tally = report.tally();
            assert!(tally.agree > 0 || step.name == "events", "{}", step.name);
            assert_eq!((tally.differ, report.interrupted), (0, false), "{:#?}", report.readable);
            // Without channels there is nothing to do in `events`, and who comes first says so.
            assert!(tally.incomplete == 0 || step.name == "events", "{:#?}", report.readable);
            assert_eq!(report.steps.len(), 2, "the step and the end");
        }
    }
}

/// A device that is not as the page says: that is told, and the other facts are not touched by it.
#[test]
fn what_differs_is_told() {
    let fabric = Fabric::new(
        rdma::soft::Topology::mesh(2).unwrap(),
        rdma::soft::Profile::thunderbolt().with_page(4096).unwrap(),
    );
    let step = STEPS.iter().find(|step| step.name == "memory").unwrap();
    let [client, server] = both(&fabric, [&[step], &[step]]).map(Result::unwrap);
    for report in [client, server] {
        assert_eq!((report.tally().differ, report.tally().incomplete), (2, 0));
        assert!(
            report.differences().all(|line| line.contains("F401") && line.contains("expected: EINVAL")),
            "{report:?}"
        );
    }
}

fn named(names: &[&str]) -> Vec<&'static Step> {
    STEPS.iter().filter(|step| names.contains(&step.name)).collect()
}

/// Other devices differ where their facts say so, and leave nobody waiting.
#[test]
fn other_profiles_differ_where_they_should() {
    let steps = named(&["limits", "memory", "messages", "frames"]);
    let new = |profile: &str| Fabric::new(rdma::soft::Topology::mesh(2).unwrap(), profile.parse().unwrap());
    for (profile, ids, agreeing) in [
        ("thunderbolt_27", &["F301", "F404", "F507", "F502"][..], &["F409", "F501", "F408"][..]),
        ("classic", &["F301", "F304", "F501"], &["F503", "F507"]),
        ("thunderbolt,access=all", &["F408"], &["F304", "F403", "F507"]),
        ("thunderbolt,matching=mispairing", &["F502"], &["F501", "F507"]),
    ] {
        for report in both(&new(profile), [&steps, &steps]).map(Result::unwrap) {
            for id in ids {
                assert!(report.differences().any(|line| line.contains(id)), "{profile}: {id} {:#?}", report.readable);
            }
            for id in agreeing {
                assert!(!report.differences().any(|line| line.contains(id)), "{profile}: {id} {:#?}", report.readable);
            }
        }
    }
}

/// A port that goes down ends the connecting for good, and nothing else.
#[test]
fn a_connection_that_fails_is_not_tried_again() {
    let fabric = Fabric::mesh(2).unwrap();
    // The kinds of the ends' addresses differ: known before anything is asked of the device.
    let end = rdma::soft::End { host: 0, device: 0 };
    fabric.set_gid(end, 1, rdma::Gid::ZERO).unwrap();
    let steps: Vec<_> = STEPS.iter().filter(|step| !step.risky).collect();
    let [client, server] = both(&fabric, [&steps, &steps]).map(Result::unwrap);
    for report in [client, server] {
        let incomplete: Vec<_> = report.steps.iter().filter_map(|record| record.incomplete.as_deref()).collect();
        assert_eq!(incomplete.len(), steps.iter().filter(|step| step.connects).count(), "{report:#?}");
        assert!(incomplete[1..].iter().all(|reason| reason.contains("not tried twice")), "{incomplete:?}");
    }
}

#[test]
fn ends_that_were_started_differently() {
    let fabric = Fabric::mesh(2).unwrap();
    let (one, other) = (&STEPS[0], &STEPS[1]);
    for outcome in both(&fabric, [&[one], &[one, other]]) {
        assert!(outcome.unwrap_err().contains("same --risky and --step"));
    }
}

/// A peer that greets and then says something else, nothing, or goes.
#[test]
fn strangers() {
    let fabric = Fabric::mesh(2).unwrap();
    let say = |bytes: &[u8], stays: bool| {
        let (near, mut far) = streams();
        thread::scope(|scope| {
            let end = scope.spawn(|| run(&fabric, Role::Client, near, &[&STEPS[0]]));
            far.write_all(bytes).unwrap();
            if stays {
                // Until it has been given up.
                while far.read(&mut [0; 1024]).is_ok_and(|count| count != 0) {}
            } else {
                drop(far);
            }
            end.join().unwrap().unwrap_err()
        })
    };
    let framed = |text: &str| [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat();
    let greeting = |version: &str, steps: &str| {
        framed(&format!(r#"{{"Hello":{{"version":"{version}","steps":[{steps}],"system":"x\u001b[2J"}}}}"#))
    };
    let right = greeting(env!("CARGO_PKG_VERSION"), "\"device\"");
    assert!(say(&[], false).contains("is gone"));
    assert!(say(b"GET / HTTP/1.1\r\n\r\n", true).contains("does not follow the protocol"));
    assert!(say(&framed("{"), true).contains("does not follow the protocol"));
    assert!(say(&framed(&"[".repeat(1000)), true).contains("does not follow the protocol"));
    assert!(say(&framed(r#"{"Number":1}"#), true).contains("no greeting"));
    assert!(say(&greeting("0", "\"device\""), true).contains("another version"));
    assert!(say(&greeting(env!("CARGO_PKG_VERSION"), "\"x\""), true).contains("same --risky and --step"));
    assert!(say(&right, false).contains("is gone"));
    assert!(say(&[right.clone(), framed(r#"{"Number":1}"#)].concat(), true).contains("no beginning of a step"));
    let begin = framed(r#"{"Begin":{"stop":false,"unreachable":false}}"#);
    assert!(say(&[right.clone(), begin.clone(), begin.clone()].concat(), true).contains("within a step"));
    let numbers = framed(r#"{"Number":1}"#).repeat(100);
    assert!(say(&[right, begin, numbers].concat(), true).contains("a step without an end"));
}

#[test]
fn a_silent_peer_is_given_up() {
    let (near, far) = streams();
    let mut channel = Channel::new(near, Duration::from_millis(300)).unwrap();
    assert!(matches!(channel.receive(), Err(Lost::Silent(_))));
    drop(far);
    assert!(matches!(channel.receive(), Err(Lost::Gone(_))));
}

#[test]
fn what_a_peer_says_does_not_reach_the_terminal_as_it_is() {
    let (near, far) = streams();
    let (mut near, mut far) =
        (Channel::new(near, Duration::from_secs(30)).unwrap(), Channel::new(far, Duration::from_secs(30)).unwrap());
    let seen = observation::Observation {
        id: "F101".to_owned(),
        what: "\u{1b}[2J\r\n".to_owned(),
        expected: None,
        observed: "x".repeat(100_000),
        agrees: None,
    };
    far.send(&Message::End(vec![seen; 9])).unwrap();
    let taken = near.end_step(Vec::new()).unwrap();
    assert_eq!(taken.len(), 9);
    assert!(taken.iter().all(|seen| !seen.what.contains(char::is_control) && seen.observed.len() == 400));
}
