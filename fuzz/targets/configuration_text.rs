//! Any text as a topology, a profile or a plan of faults: what is accepted describes a fabric that can be made and looked at, the same one
//! each time; what is refused is refused with a short reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rdma::Provider;
use rdma::soft::{Fabric, Faults, Profile, Topology};

/// The message is for people, however long or strange the text was.
fn is_short(error: &rdma::Error) {
    let text = error.to_string();
    assert!(text.len() < 4096 && !text.is_empty(), "{} bytes", text.len());
}

/// A fabric of it, seen through the safe API. Of large ones not every host: what is made is the same for all.
fn look(topology: Topology, profile: Profile) {
    let hosts = topology.hosts().to_vec();
    for cable in topology.cables() {
        for end in [cable.0, cable.1] {
            assert!(end.device < hosts[end.host].len());
            assert!(topology.cables().iter().filter(|other| other.0 == end || other.1 == end).count() == 1);
        }
        assert_ne!(cable.0.host, cable.1.host);
    }
    let fabric = Fabric::new(topology, profile);
    for (host, names) in hosts.iter().enumerate().take(3) {
        let provider = Provider::soft(&fabric.host(host).unwrap()).unwrap();
        let devices = provider.devices().unwrap();
        assert!(devices.iter().map(|device| device.name()).eq(names.iter().map(AsRef::<str>::as_ref)));
        if let Some(device) = devices.first() {
            let context = device.open().unwrap();
            assert!(context.rules().max_depth() > 0);
            context.port(1).unwrap();
        }
    }
    assert!(fabric.host(hosts.len()).is_err());
}

/// A fabric on which this goes wrong. Any call may fail, and none may do worse.
fn meet(faults: Faults) {
    let fabric = Fabric::new(Topology::mesh(2).unwrap(), Profile::default().with_faults(faults));
    let provider = Provider::soft(&fabric.host(0).unwrap()).unwrap();
    let calls = || -> rdma::Result<()> {
        let context = provider.first_active()?.open()?;
        let domain = context.protection_domain()?;
        let completions = context.completion_queue(4)?;
        let _region = domain.allocate(4096)?;
        let _queue_pair = domain.queue_pair(&completions).build()?;
        Ok(())
    };
    if let Err(error) = calls() {
        is_short(&error);
    }
    assert!(!fabric.trace().to_string().is_empty());
}

fuzz_target!(|text: &str| {
    match text.parse::<Topology>() {
        Ok(topology) => {
            assert_eq!(format!("{topology:?}"), format!("{:?}", text.parse::<Topology>().unwrap()));
            look(topology, Profile::default());
        }
        Err(error) => is_short(&error),
    }
    match text.parse::<Profile>() {
        Ok(profile) => {
            assert_eq!(format!("{profile:?}"), format!("{:?}", text.parse::<Profile>().unwrap()));
            look(Topology::mesh(2).unwrap(), profile);
        }
        Err(error) => is_short(&error),
    }
    match text.parse::<Faults>() {
        Ok(faults) => {
            assert_eq!(faults, text.parse::<Faults>().unwrap());
            meet(faults);
        }
        Err(error) => is_short(&error),
    }
});
