//! A process that is killed at any instruction.

use super::end::End;
use super::process::{Process, connect, two};
use crate::support::{LONG, SHORT, fabrics};
use rdma::soft::{Fabric, Topology};
use std::time::{Duration, Instant};

/// How many processes are killed: 30, or what `RDMA_TEST_KILLS` says.
pub(super) fn kills() -> u64 {
    std::env::var("RDMA_TEST_KILLS").ok().map_or(30, |text| text.parse().unwrap())
}

/// Numbers from a seed, which is printed.
pub(super) fn random() -> impl FnMut() -> u64 {
    let mut state: u64 = std::env::var("RDMA_TEST_SEED").ok().map_or(0x5eed, |text| text.parse().unwrap());
    println!("RDMA_TEST_SEED={state}");
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

/// One exchange with a process that echoes.
#[track_caller]
pub(super) fn exchange(end: &mut End, length: usize, seed: u64) {
    assert!(end.send(length, seed));
    let (mut sent, mut received) = (false, false);
    while !(sent && received) {
        let word = end.next(LONG, seed);
        if word.starts_with("sent") {
            sent = true;
        } else {
            assert!(word.ends_with("good"), "{word}");
            received = true;
            end.recv(length, 0);
        }
    }
}

pub(super) fn echoing(fabric: &str, host: usize, end: &mut End, length: usize) -> Process {
    let mut other = Process::start(fabric, "mesh:3", host, 0);
    connect(end, &mut other);
    for token in 0..3 {
        other.ask(&format!("recv {length} {token}"));
    }
    assert_eq!(other.ask(&format!("echo {length}")), "ok");
    for _ in 0..3 {
        end.recv(length, 0);
    }
    other
}

/// Others go on, what is left of the dead is quiet, and a new process takes its place.
#[test]
fn a_process_that_is_killed_takes_nobody_with_it() {
    let mut random = random();
    let name = fabrics::name();
    let host = Fabric::join(&name, Topology::mesh(3).unwrap(), 0).unwrap();
    // The device order of a mesh: to host 1, to host 2.
    let (mut end, mut calm) = (End::open(&host, 0), End::open(&host, 1));
    let _witness = echoing(&name, 2, &mut calm, 100);
    for round in 0..kills() {
        let length = [8, 600, 20_000, 1 << 20][random() as usize >> 27 & 3];
        let after = Duration::from_micros(random() & 0xfff);
        let mut victim = echoing(&name, 1, &mut end, length);
        // The first message of the new process is its own answer, not a word of the dead.
        exchange(&mut end, length, round << 32);
        let (killer, start) = (std::thread::spawn(move || (std::thread::sleep(after), victim.kill())), Instant::now());
        let mut sent = 0;
        while !killer.is_finished() || start.elapsed() < Duration::from_millis(20) {
            if end.send(length, round << 32 | sent) {
                sent += 1;
            }
            while end.next(Duration::ZERO, 0) != "none" {}
        }
        killer.join().unwrap();
        // Silence, not an error: the port is ACTIVE, and what is sent is sent.
        assert!(end.context.port(1).unwrap().is_active());
        exchange(&mut calm, 100, round);
        let start = Instant::now();
        end.queue_pair = None;
        assert!(start.elapsed() < LONG / 10, "destroying waits for the dead");
        assert_eq!(end.region.available(), end.region.len(), "buffers were lost");
        while end.next(Duration::ZERO, 0) != "none" {}
    }
}

/// Sends to the dead: those that have a receive are done, the others are lost as soon as the death is noticed.
#[test]
fn sends_to_the_dead_complete() {
    let mut two = two();
    two.other.ask("recv 100 1");
    two.other.kill();
    for seed in 0..500 {
        assert!(two.end.send(100, seed));
        assert_eq!(two.end.next(LONG, 0), format!("sent {seed}"));
    }
}

/// The same on a connection that was in use, and with sends that waited when it happened.
#[test]
fn sends_that_wait_for_the_dead_complete() {
    let mut two = two();
    two.other.ask("recv 100 1");
    for seed in 0..4 {
        assert!(two.end.send(100, seed));
    }
    assert_eq!(two.end.next(LONG, 0), "sent 0");
    assert_eq!(two.end.next(SHORT, 0), "none");
    two.other.kill();
    for seed in 1..4 {
        assert_eq!(two.end.next(LONG, 0), format!("sent {seed}"));
    }
    for seed in 4..500 {
        assert!(two.end.send(5000, seed));
        assert_eq!(two.end.next(LONG, 0), format!("sent {seed}"));
    }
}

/// A process that is stopped for long is not dead: what it holds stays its own, and connections past it go on.
#[test]
fn a_stopped_process_is_not_dead() {
    let mut two = two();
    for round in 0..5 {
        let stopped = {
            let fresh = Process::start(&two.name, "mesh:2", 1, 0);
            std::mem::replace(&mut two.other, fresh)
        };
        stopped.stop();
        connect(&mut two.end, &mut two.other);
        two.end.recv(5000, round);
        assert_eq!(two.other.ask(&format!("send 5000 {round}")), "ok");
        assert_eq!(two.end.next(LONG, round), format!("received {round} 5000 good"));
        assert_eq!(two.other.ask("wait 0"), format!("sent {round}"));
        stopped.go_on();
    }
}
