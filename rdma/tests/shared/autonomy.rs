//! A process need not do anything for another one's work to complete.

use super::process::{connect, two};
use crate::support::LONG;

/// What the other one posted before it fell asleep is enough, in both directions and whichever was first.
#[test]
fn each_side_in_turn_sleeps_after_posting() {
    let mut two = two();
    for (round, length) in [8, 48, 700, 4096, 100_000].into_iter().enumerate() {
        let seed = round as u64;
        // Its send, our receive.
        assert_eq!(two.other.ask(&format!("send {length} {seed}")), "ok");
        two.other.stop();
        two.end.recv(length, seed);
        assert_eq!(two.end.next(LONG, seed), format!("received {seed} {length} good"));
        two.other.go_on();
        assert_eq!(two.other.ask("wait 0"), format!("sent {seed}"));
        // Its receive, our send.
        two.other.ask(&format!("recv {length} {seed}"));
        two.other.stop();
        assert!(two.end.send(length, seed));
        assert_eq!(two.end.next(LONG, 0), format!("sent {seed}"));
        two.other.go_on();
        assert_eq!(two.other.ask(&format!("wait {seed}")), format!("received {seed} {length} good"));
    }
}

/// The whole of a depth of sends waits without their sender, and a whole depth of receives completes without their owner.
#[test]
fn a_whole_depth_needs_nobody() {
    let mut two = two();
    // 1000 requests of one frame each, of a depth of 1023.
    for seed in 0..1000 {
        assert_eq!(two.other.ask(&format!("send 4096 {seed}")), "ok");
    }
    two.other.stop();
    for seed in 0..1000 {
        two.end.recv(4096, seed);
    }
    for seed in 0..1000 {
        assert_eq!(two.end.next(LONG, seed), format!("received {seed} 4096 good"));
    }
    two.other.go_on();
    for seed in 0..1000 {
        assert_eq!(two.other.ask("wait 0"), format!("sent {seed}"));
    }
    for seed in 0..1000 {
        two.other.ask(&format!("recv 4096 {seed}"));
    }
    two.other.stop();
    for seed in 0..1000 {
        assert!(two.end.send(4096, seed));
    }
    for seed in 0..1000 {
        assert_eq!(two.end.next(LONG, 0), format!("sent {seed}"));
    }
    // What was sent on top of that waits, and arrives behind it.
    for seed in 1000..1900 {
        assert!(two.end.send(4096, seed));
    }
    two.other.go_on();
    for seed in 0..1000 {
        assert_eq!(two.other.ask(&format!("wait {seed}")), format!("received {seed} 4096 good"));
    }
    for seed in 1000..1900 {
        two.other.ask(&format!("recv 4096 {seed}"));
        assert_eq!(two.other.ask(&format!("wait {seed}")), format!("received {seed} 4096 good"));
    }
}

/// It connected first, posted its receives and fell asleep: whoever connects second can send.
#[test]
fn the_first_to_connect_need_not_wait() {
    let mut two = two();
    let theirs: rdma::Endpoint = two.other.ask("prepare").parse().unwrap();
    let ours = two.end.prepare();
    assert_eq!(two.other.ask(&format!("connect {ours}")), "ok");
    two.other.ask("recv 5000 7");
    two.other.stop();
    two.end.connect(&theirs);
    assert!(two.end.send(5000, 1));
    assert_eq!(two.end.next(LONG, 0), "sent 1");
    two.other.go_on();
    assert_eq!(two.other.ask("wait 1"), "received 7 5000 good");
}

/// A sender that is closed, or gone, after its send completed: the message is in the receiver's hands.
#[test]
fn what_was_sent_arrives_after_its_sender_has_gone() {
    let mut two = two();
    two.end.recv(9000, 1);
    two.end.recv(20, 2);
    assert_eq!(two.other.ask("send 9000 5"), "ok");
    assert_eq!(two.other.ask("wait 0"), "sent 5");
    assert_eq!(two.other.ask("close"), "ok");
    assert_eq!(two.end.next(LONG, 5), "received 1 9000 good");
    connect(&mut two.end, &mut two.other);
    two.end.recv(20, 3);
    assert_eq!(two.other.ask("send 20 6"), "ok");
    assert_eq!(two.other.ask("wait 0"), "sent 6");
    two.other.quit();
    assert_eq!(two.end.next(LONG, 6), "received 3 20 good");
}

/// A send that waits for a receive when its sender closes is withdrawn.
#[test]
fn what_waits_when_its_sender_closes_is_withdrawn() {
    let mut two = two();
    assert_eq!(two.other.ask("send 100 1"), "ok");
    assert_eq!(two.other.ask("close"), "ok");
    two.end.recv(100, 1);
    assert_eq!(two.end.next(crate::support::SHORT, 1), "none");
}
