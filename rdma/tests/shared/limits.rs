//! Processes that are the same host share what its devices have.

use super::end::End;
use super::process::Process;
use crate::support::fabrics;
use rdma::ErrorKind;
use rdma::soft::{Fabric, Topology};

#[test]
fn queue_pairs_are_counted_over_all_processes() {
    let name = fabrics::name();
    let host = Fabric::join(&name, Topology::mesh(2).unwrap(), 0).unwrap();
    let end = End::open(&host, 0);
    let mut others: Vec<_> = (0..3).map(|_| Process::start(&name, "mesh:2", 0, 0)).collect();
    for other in &mut others {
        other.ask("prepare");
    }
    let build = || end.domain.queue_pair(&end.completions).depth(64).requests(4).build();
    let mut ours: Vec<_> = (0..7).map(|_| build().unwrap()).collect();
    assert_eq!(build().unwrap_err().kind(), ErrorKind::LimitReached);
    // One that closes, and one that is killed.
    ours.pop();
    ours.push(build().unwrap());
    assert_eq!(build().unwrap_err().kind(), ErrorKind::LimitReached);
    others[0].kill();
    ours.push(build().unwrap());
    assert_eq!(build().unwrap_err().kind(), ErrorKind::LimitReached);
    // All numbers differ.
    let numbers: std::collections::HashSet<_> = ours.iter().map(|queue_pair| queue_pair.number()).collect();
    assert_eq!(numbers.len(), 8);
}

/// What a killed process had is free, though another process has come into its place.
#[test]
fn the_next_member_does_not_inherit() {
    let name = fabrics::name();
    let end = End::open(&Fabric::join(&name, Topology::mesh(2).unwrap(), 1).unwrap(), 0);
    let mut dead = Process::start(&name, "mesh:2", 1, 0);
    dead.ask("prepare");
    dead.kill();
    let _next = Process::start(&name, "mesh:2", 1, 0);
    let build = || end.domain.queue_pair(&end.completions).requests(10).build();
    let all: Vec<_> = (0..10).map(|_| build().unwrap()).collect();
    assert_eq!(all.len(), 10);
}

#[test]
fn opening_and_asking_takes_nothing() {
    let name = fabrics::name();
    let host = Fabric::join(&name, Topology::mesh(2).unwrap(), 0).unwrap();
    let provider = rdma::Provider::soft(&host).unwrap();
    let open: Vec<_> = (0..100).map(|_| provider.first_active().unwrap().open().unwrap()).collect();
    assert!(open.iter().all(|context| context.port(1).unwrap().is_active()));
    let domains: Vec<_> = open.iter().map_while(|context| context.protection_domain().ok()).collect();
    assert_eq!(domains.len(), 11);
}

/// Cables and hosts are switched for all processes.
#[test]
fn what_is_unplugged_is_unplugged_for_all() {
    let name = fabrics::name();
    let topology = Topology::mesh(3).unwrap();
    let hosts: Vec<_> = (0..3).map(|host| Fabric::join(&name, topology.clone(), host).unwrap()).collect();
    let active = |host: usize| {
        let devices = rdma::Provider::soft(&hosts[host]).unwrap().devices().unwrap();
        devices.iter().map(|device| device.open().unwrap().port(1).unwrap().is_active()).collect::<Vec<_>>()
    };
    hosts[0].fabric().set_cable(0, false).unwrap();
    assert_eq!((active(0), active(1), active(2)), (vec![false, true], vec![false, true], vec![true, true]));
    hosts[1].fabric().set_cable(0, true).unwrap();
    hosts[2].fabric().set_host(2, false).unwrap();
    assert_eq!((active(0), active(1), active(2)), (vec![true, false], vec![true, false], vec![false, false]));
    let end = rdma::soft::End { host: 0, device: 0 };
    let gid = "fe80::77".parse().unwrap();
    hosts[1].fabric().set_gid(end, 5, gid).unwrap();
    assert_eq!(hosts[2].fabric().gids(end).unwrap()[5], gid);
}
