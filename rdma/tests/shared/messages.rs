//! What two processes say to each other.

use super::process::two;
use crate::support::LONG;

const LENGTHS: [usize; 12] = [1, 8, 48, 49, 64, 4095, 4096, 4097, 65_536, 262_144, 1 << 20, 3_000_001];

#[test]
fn every_length_arrives_whole() {
    let mut two = two();
    for (seed, length) in LENGTHS.into_iter().enumerate() {
        let seed = seed as u64;
        two.end.recv(length, seed);
        assert_eq!(two.other.ask(&format!("send {length} {seed}")), "ok");
        assert_eq!(two.end.next(LONG, seed), format!("received {seed} {length} good"));
        assert_eq!(two.other.ask("wait 0"), format!("sent {seed}"));
        two.other.ask(&format!("recv {length} {seed}"));
        assert!(two.end.send(length, seed));
        assert_eq!(two.other.ask(&format!("wait {seed}")), format!("received {seed} {length} good"));
        assert_eq!(two.end.next(LONG, 0), format!("sent {seed}"));
    }
    two.other.quit();
}

/// All sends first, then all receives: they wait, and keep their order.
#[test]
fn sends_wait_for_receives() {
    let mut two = two();
    let lengths = [300, 5000, 8, 65_536, 1, 4096];
    for (seed, length) in lengths.into_iter().enumerate() {
        assert!(two.end.send(length, seed as u64));
    }
    assert_eq!(two.end.next(crate::support::SHORT, 0), "none");
    for (seed, length) in lengths.into_iter().enumerate() {
        two.other.ask(&format!("recv {length} {seed}"));
    }
    for (seed, length) in lengths.into_iter().enumerate() {
        assert_eq!(two.other.ask(&format!("wait {seed}")), format!("received {seed} {length} good"));
        assert_eq!(two.end.next(LONG, 0), format!("sent {seed}"));
    }
}

/// Counts of frames that differ: a length error at the receiver, success at the sender, and the next ones pair.
#[test]
fn frame_counts_must_agree() {
    let mut two = two();
    for (token, length) in [(0, 4096), (1, 8192), (2, 100)] {
        two.other.ask(&format!("recv {length} {token}"));
    }
    for (seed, length) in [(0, 8192), (1, 8192), (2, 100)] {
        assert!(two.end.send(length, seed));
        assert_eq!(two.end.next(LONG, 0), format!("sent {seed}"));
    }
    assert_eq!(two.other.ask("wait 0"), "failed 0 LOC_LEN_ERR (1)");
    assert_eq!(two.other.ask("wait 1"), "received 1 8192 good");
    assert_eq!(two.other.ask("wait 2"), "received 2 100 good");
}

/// More messages than any ring holds, both ways at once.
#[test]
fn many_messages() {
    let mut two = two();
    let length = 600;
    two.other.ask(&format!("recv {length} 0"));
    two.other.ask(&format!("recv {length} 1"));
    assert_eq!(two.other.ask(&format!("echo {length}")), "ok");
    two.end.recv(length, 0);
    two.end.recv(length, 1);
    for seed in 0..20_000_u64 {
        assert!(two.end.send(length, seed));
        let (mut sent, mut received) = (false, false);
        while !(sent && received) {
            let word = two.end.next(LONG, seed);
            if word == format!("sent {seed}") {
                sent = true;
            } else {
                assert_eq!(word, format!("received {} {length} good", seed % 2));
                received = true;
                two.end.recv(length, seed % 2);
            }
        }
    }
}
