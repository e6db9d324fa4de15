//! The three ways in which there is nothing to talk to, and what is said of each.

use crate::support::fabrics;
use crate::support::pair::{Unconnected, device, fabric};
use rdma::soft::Topology;
use rdma::{ErrorKind, Patience, Provider};
use std::time::Duration;

/// A provider whose library lists no device at all.
fn no_devices() -> Provider {
    let mut topology = Topology::new();
    topology.host(0).unwrap();
    let fabric = fabrics::new(topology, Default::default());
    Provider::soft(&fabric.host(0).unwrap()).unwrap()
}

/// "No library", "no devices" and "port down" are three results (jundot/omlx issue 3037: a Mac with Thunderbolt 4 lists
/// nothing for ever, however often RDMA is enabled).
#[test]
fn no_devices_and_a_port_that_is_down_are_told_apart() {
    let none = no_devices();
    assert!(none.devices().unwrap().is_empty());
    for error in [none.device("rdma_en2").unwrap_err(), none.first_active().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::NoDevices);
        assert!(!error.is_retryable());
    }
    let fabric = fabric();
    fabric.set_host(1, false).unwrap();
    let down = Provider::soft(&fabric.host(0).unwrap()).unwrap();
    let error = down.first_active().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PortDown);
    assert!(error.to_string().contains("rdma_en2"), "{error}");
    let context = down.device("rdma_en2").unwrap().open().unwrap();
    assert_eq!(context.protection_domain().unwrap_err().kind(), ErrorKind::PortDown);
}

#[test]
fn an_unknown_device_is_answered_with_those_there_are() {
    let fabric = fabrics::mesh(4);
    let provider = Provider::soft(&fabric.host(2).unwrap()).unwrap();
    let error = provider.device("rdma_en9").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownDevice);
    assert_eq!(error.to_string(), "there is no device rdma_en9: there is rdma_en2, rdma_en3, rdma_en5");
    assert_eq!(fabric.host(4).unwrap_err().kind(), ErrorKind::UnknownDevice);
}

#[test]
fn a_wait_ends_and_gives_nothing_up() {
    let [mut a, mut b] = crate::support::pair::pair();
    b.post_recv(64, 1);
    let error = b.completions.wait(Duration::from_millis(20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(b.completions.wait(Duration::ZERO).is_err());
    // The late message lands in the buffer that is still there, and nowhere else.
    a.post_send(b"late", 2);
    assert_eq!(b.success().bytes(), b"late");
    let error = b.completions.wait_for(3, Duration::from_millis(10), |_| Ok(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    // Which device was waited for: a program may have several.
    assert_eq!(error.subject().device.as_deref(), Some("rdma_en2"));
}

/// A program that waits for messages can end that, too: when the peer is gone, for example.
#[test]
fn a_wait_is_ended_by_the_program() {
    let [mut a, mut b] = crate::support::pair::pair();
    b.post_recv(64, 1);
    for asked in [0, 2] {
        let count = std::cell::Cell::new(0);
        let gone = || count.replace(count.get() + 1) >= asked;
        let patience = Patience::from(crate::support::LONG).unless(&gone);
        let mut room = [const { None }; 4];
        let errors = [
            b.completions.wait(patience).unwrap_err(),
            {
                count.set(0);
                b.completions.wait_many(&mut room, patience).unwrap_err()
            },
            {
                count.set(0);
                b.completions.wait_for(2, patience, |_| Ok(())).unwrap_err()
            },
        ];
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::Cancelled), "{errors:?}");
    }
    // Nothing was given up, and what is there is taken before anybody is asked.
    a.post_send(b"late", 2);
    let gone = || true;
    let completion = b.completions.wait(Patience::from(crate::support::LONG).unless(&gone)).unwrap();
    assert_eq!(completion.ok().unwrap().bytes(), b"late");
}

/// Only what a reader wants to know.
#[test]
fn a_completion_shows_what_it_is() {
    let [mut a, mut b] = crate::support::pair::pair();
    b.post_recv(64, 7);
    a.post_send(b"shown", 2);
    let shown = format!("{:?}", b.success());
    for part in ["token: 7", "direction: Receive", "status: Status(SUCCESS (0))", "64 bytes"] {
        assert!(shown.contains(part), "{shown}");
    }
}

/// Asks for the software provider. Not a test of its own.
#[test]
fn asking() {
    if std::env::var_os("RDMA_TEST_ASK").is_some() {
        println!("@{:?}", Provider::named("soft").map_err(|error| error.to_string()));
    }
}

#[test]
fn a_misspelt_variable_is_told() {
    let ask = |name: &str, value: &str| {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "safe::errors::asking", "--nocapture"])
            .envs([("RDMA_TEST_ASK", "yes"), (name, value)])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for name in ["RDMA_SOFT_HOTS", "RDMA_SOFT_", "RDMA_SOFT_host"] {
        let said = ask(name, "1");
        assert!(said.contains(&format!("@Err(\"{name} is set")) && said.contains("RDMA_SOFT_HOST, "), "{said}");
    }
    assert!(ask("RDMA_SOFT_HOST", "1").contains("@Ok("));
    assert!(ask("RDMA_SOFTWARE", "1").contains("@Ok("));
}

#[test]
fn everything_can_be_shown() {
    let fabric = fabric();
    let provider = Provider::soft(&fabric.host(0).unwrap()).unwrap();
    let device = provider.first_active().unwrap();
    let context = device.open().unwrap();
    let [a, _b] = crate::support::pair::pair();
    let shown = [
        format!("{fabric:?}"),
        format!("{provider:?}"),
        format!("{device:?}"),
        format!("{context:?}"),
        format!("{:?}", context.port(1).unwrap()),
        format!("{:?}", a.domain),
        format!("{:?}", a.region),
        format!("{:?}", a.region.buffer(1).unwrap()),
        format!("{:?}", a.completions),
        format!("{:?}", a.queue_pair),
        format!("{:?}", a.domain.queue_pair(&a.completions)),
        format!("{:?}", a.domain.queue_pair(&a.completions).requests(1).build().unwrap()),
    ];
    assert!(shown.iter().all(|text| text.len() > 5), "{shown:?}");
    assert_eq!(device.transport().to_string(), "Thunderbolt (100)");
    assert_eq!(device.guid().unwrap(), context.attributes().node_guid());
}

/// A device that cannot be asked is not one whose port is down.
#[test]
fn the_states_of_all_ports_are_told() {
    let fabric = fabrics::mesh(3);
    fabric.set_host(0, false).unwrap();
    let provider = Provider::soft(&fabric.host(0).unwrap()).unwrap();
    let text = provider.first_active().unwrap_err().to_string();
    let start = "no port is ACTIVE: rdma_en2 is PORT_DOWN (1), rdma_en3 is PORT_DOWN (1) (check the cable";
    assert!(text.starts_with(start), "{text}");
}

/// What is wrong, of how much, and what is right.
#[test]
fn arguments_that_cannot_be_are_shown() {
    let end = Unconnected::open(&device(&fabric(), 0), 4096);
    let (context, domain) = (&end.context, &end.domain);
    let errors = [
        (context.completion_queue(5000).err(), "5000 entries (the device has completion queues of 1 to 4096)"),
        (context.port(7).err(), "rdma_en2: there is no port 7: they are 1 to 1"),
        (domain.queue_pair(&end.completions).depth(5000).build().err(), "a depth of 5000: 1 to 4095 frames of 4 KiB"),
        (domain.allocate(0).err(), "rdma_en2: a region of no bytes"),
        (end.region.buffer(4097).err(), "rdma_en2: a buffer of 4097 bytes: the region has 4096"),
    ];
    for (error, words) in errors {
        let error = error.unwrap();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn providers_have_names() {
    for wrong in ["hard", "Soft", "", "library:/lib/x.so"] {
        let error = Provider::named(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().starts_with(&format!("there is no provider `{wrong}` (")), "{error}");
    }
    assert!(Provider::named("library:/x").unwrap_err().to_string().contains("RDMA_LIBRARY"));
}
