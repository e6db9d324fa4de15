//! Processes that are killed while they join, make, connect, post, close and leave.

use super::death::{echoing, exchange, kills, random};
use super::end::End;
use super::hostile::file;
use crate::support::{LONG, fabrics};
use rdma::soft::{Fabric, Host, Topology};
use rdma::{Endpoint, Provider};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn mesh() -> Topology {
    Topology::mesh(3).unwrap()
}

/// The file of a fabric that has members is not removed, nor replaced (where the system tells).
fn stays(name: &str) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    assert!(!maps.lines().any(|line| line.contains(name) && line.ends_with("(deleted)")), "{maps}");
}

/// Does everything that can be done with a fabric as its host 1, for ever. Not a test of its own.
#[test]
fn churner() {
    let Ok(name) = std::env::var("RDMA_TEST_CHURN") else { return };
    let peer: Option<Endpoint> = std::env::var("RDMA_TEST_PEER").ok().map(|text| text.parse().unwrap());
    loop {
        // Who is killed at the gate opens it, so nobody waits long.
        let host = Fabric::join(&name, mesh(), 1).unwrap();
        stays(&name);
        for round in 0..3 {
            let Ok(context) = Provider::soft(&host).unwrap().devices().unwrap().remove(0).open() else { continue };
            let Ok(domain) = context.protection_domain() else { continue };
            let Ok(mut completions) = context.completion_queue(100) else { continue };
            let Ok(region) = domain.allocate(1 << 18) else { continue };
            let builder = || domain.queue_pair(&completions).requests(20).build();
            let (Ok(mut prepared), Ok(other)) = (builder(), builder()) else { continue };
            let port = context.port(1).unwrap();
            prepared.endpoint(&port, port.gid().unwrap()).unwrap();
            let Some(peer) = &peer else { continue };
            let mut queue_pair = prepared.connect(peer).unwrap();
            for length in [20, 5000, 50_000] {
                queue_pair.post_recv(region.buffer(length).unwrap(), round).unwrap();
                queue_pair.post_send(region.buffer(length).unwrap(), .., round).unwrap();
            }
            drop(other);
            let _ = completions.wait(Duration::from_micros(100));
        }
        stays(&name);
    }
}

fn start(name: &str, peer: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "shared::churn::churner", "--test-threads=1"]).env("RDMA_TEST_CHURN", name);
    if let Some(peer) = peer {
        command.env("RDMA_TEST_PEER", peer);
    }
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Nobody removes a fabric that another process has just joined.
#[test]
fn processes_join_and_leave_at_once() {
    let name = fabrics::name();
    let mut churners = [(); 4].map(|()| start(&name, None));
    std::thread::sleep(Duration::from_secs(1));
    for churner in &mut churners {
        assert!(churner.try_wait().unwrap().is_none(), "it ended by itself");
        churner.kill().unwrap();
        churner.wait().unwrap();
    }
    Fabric::join(&name, mesh(), 0).unwrap();
    assert!(!file(&name).exists());
}

/// Everything that host 1 has can be had.
fn all_is_there(host: &Host) {
    let context = Provider::soft(host).unwrap().devices().unwrap().remove(0).open().unwrap();
    let domains: Vec<_> = (0..11).map(|_| context.protection_domain().unwrap()).collect();
    let queues: Vec<_> = (0..11).map(|_| context.completion_queue(100).unwrap()).collect();
    let regions: Vec<_> = (0..100).map(|_| domains[0].allocate(16384).unwrap()).collect();
    let queue_pairs: Vec<_> = (0..10).map(|_| domains[0].queue_pair(&queues[0]).requests(1).build().unwrap()).collect();
    assert_eq!((regions.len(), queue_pairs.len()), (100, 10));
}

#[test]
fn whatever_the_killed_were_at_is_free_again() {
    let mut random = random();
    let name = fabrics::name();
    let (host, sibling) = (Fabric::join(&name, mesh(), 0).unwrap(), Fabric::join(&name, mesh(), 1).unwrap());
    let (mut end, mut calm) = (End::open(&host, 0), End::open(&host, 1));
    let _witness = echoing(&name, 2, &mut calm, 5000);
    let endpoint = end.prepare().to_string();
    for round in 0..kills() {
        let mut churners = [(); 2].map(|()| start(&name, Some(&endpoint)));
        let (start, life) = (Instant::now(), Duration::from_micros(20_000 + (random() & 0x7fff)));
        while start.elapsed() < life {
            exchange(&mut calm, 5000, round);
        }
        for churner in &mut churners {
            churner.kill().unwrap();
            let status = churner.wait().unwrap();
            assert!(!status.success() && status.code().is_none(), "it ended by itself: {status}");
        }
        let start = Instant::now();
        all_is_there(&sibling);
        assert!(start.elapsed() < LONG);
    }
    let path = file(&name);
    drop((host, sibling, end, calm, _witness));
    Fabric::join(&name, mesh(), 0).unwrap();
    assert!(!path.exists());
}

/// Nobody is left: the next one finds a fabric that is whole, and leaves nothing.
#[test]
fn after_all_are_killed() {
    let mut random = random();
    let name = fabrics::name();
    for _ in 0..kills() {
        let mut churners = [(); 3].map(|()| start(&name, None));
        std::thread::sleep(Duration::from_micros(10_000 + (random() & 0x7fff)));
        for churner in &mut churners {
            churner.kill().unwrap();
            let status = churner.wait().unwrap();
            assert!(!status.success() && status.code().is_none(), "it ended by itself: {status}");
        }
        all_is_there(&Fabric::join(&name, mesh(), 1).unwrap());
        assert!(!file(&name).exists());
    }
}
