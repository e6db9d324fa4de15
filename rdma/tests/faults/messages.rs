//! What befalls messages on their way, and completions.
#![allow(unsafe_code)]

use super::fabric;
use crate::support::pair;
use crate::support::raw::{Two, two_on};
use crate::support::{SHORT, eventually};
use rdma_sys::ibv_wc_status as status;

/// Sends messages of 8 bytes that say their number, with as many receives. Returns those that arrived.
fn run(two: &Two, count: u64) -> Vec<u64> {
    for id in 0..count {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(id as usize * 8, 8)), 0);
        two.mem_a.write(id as usize * 8, &id.to_le_bytes());
    }
    for id in 0..count {
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(id as usize * 8, 8)), 0);
    }
    let sent = two.a.wait(count as usize);
    assert!(sent.iter().enumerate().all(|(id, wc)| wc.wr_id == id as u64 && wc.status == status::IBV_WC_SUCCESS));
    std::thread::sleep(SHORT);
    let mut arrived = Vec::new();
    loop {
        let some = two.b.poll();
        if some.is_empty() {
            break;
        }
        for wc in some {
            assert_eq!((wc.wr_id, wc.status), (arrived.len() as u64, status::IBV_WC_SUCCESS));
            let bytes = two.mem_b.read(wc.wr_id as usize * 8, 8);
            arrived.push(u64::from_le_bytes(bytes.try_into().unwrap()));
        }
    }
    arrived
}

#[test]
fn one_frame_is_lost() {
    let two = two_on(fabric("lose frame 3"), 255);
    assert_eq!(run(&two, 6), [0, 1, 3, 4, 5]);
    assert_eq!(two.fabric.trace().lines(), ["host 0 rdma_en2: frame 3 lost"]);
}

/// The same plan, the same faults; another seed, others.
#[test]
fn a_share_is_lost_by_seed() {
    let of = |seed: u32| run(&two_on(fabric(&format!("seed {seed}; lose share 0.2")), 1023), 500);
    let (first, second, other) = (of(7), of(7), of(8));
    assert_eq!(first, second);
    assert_ne!(first, other);
    // Ten standard deviations around four hundred.
    assert!((310..490).contains(&first.len()), "{}", first.len());
    assert!(first.is_sorted(), "missing, never out of order");
}

#[test]
fn one_byte_is_corrupted() {
    let two = two_on(fabric("corrupt frame 2"), 255);
    let arrived = run(&two, 4);
    assert_eq!((arrived[0], arrived[2], arrived[3]), (0, 2, 3));
    assert_eq!((arrived[1] ^ 1).to_le_bytes().iter().filter(|&&byte| byte != 0).count(), 1);
    // The sender's memory is as it was.
    assert_eq!(two.mem_a.read(8, 8), 1_u64.to_le_bytes());
}

#[test]
fn one_message_comes_twice() {
    let two = two_on(fabric("duplicate frame 2"), 255);
    assert_eq!(two.b.post_recv(two.qp_b, 9, two.mem_b.sge(4096, 8)), 0);
    two.mem_a.write(4096, &77_u64.to_le_bytes());
    assert_eq!(two.a.post_send(two.qp_a, 9, two.mem_a.sge(4096, 8)), 0);
    two.a.wait(1);
    two.b.wait(1);
    // The second message takes two receives, and waits for the second.
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 8)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 1, two.mem_a.sge(4096, 8)), 0);
    two.b.wait(1);
    assert!(two.a.poll().is_empty());
    assert_eq!(two.b.post_recv(two.qp_b, 2, two.mem_b.sge(8, 8)), 0);
    assert_eq!((two.b.wait(1)[0].wr_id, two.a.wait(1)[0].wr_id), (2, 1));
    assert_eq!(two.mem_b.read(0, 16), [77_u64.to_le_bytes(), 77_u64.to_le_bytes()].concat());
}

/// In order, after so many looks, by whichever side.
#[test]
fn one_message_is_late() {
    let two = two_on(fabric("delay frame 1 looks 20"), 255);
    for id in 0..2 {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(id as usize * 8, 8)), 0);
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(id as usize * 8, 8)), 0);
    }
    for _ in 0..5 {
        assert!(two.a.poll().is_empty() && two.b.poll().is_empty());
    }
    let mut received = Vec::new();
    eventually("both", || {
        two.a.poll();
        received.extend(two.b.poll().iter().map(|wc| wc.wr_id));
        received.len() == 2
    });
    assert_eq!(received, [0, 1]);
}

#[test]
fn completions_never_come() {
    let two = two_on(fabric("silence send 2; silence receive 3"), 255);
    for id in 0..4 {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 8)), 0);
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 8)), 0);
    }
    assert_eq!(two.b.wait(3).iter().map(|wc| wc.wr_id).collect::<Vec<_>>(), [0, 1, 3]);
    assert_eq!(two.a.wait(3).iter().map(|wc| wc.wr_id).collect::<Vec<_>>(), [0, 2, 3]);
    assert_eq!(two.fabric.trace().lines().len(), 2, "{}", two.fabric.trace());
}

#[test]
fn one_completion_is_nobodys() {
    let two = two_on(fabric("stray 2"), 255);
    for id in 0..2 {
        assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 8)), 0);
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 8)), 0);
    }
    let ids: Vec<_> = two.b.wait(3).iter().map(|wc| wc.wr_id).collect();
    assert_eq!(ids[..2], [0, 1]);
    assert!(ids[2] > 1);
}

/// The safe API takes such an id for what it is, and gives nothing up.
#[test]
fn a_stray_completion_is_an_error() {
    let [mut a, mut b] = pair::connect(&fabric("stray 1"), |builder| builder);
    b.post_recv(64, 1);
    b.post_recv(64, 2);
    a.post_send(b"one", 3);
    let mut received = 0;
    let mut failed = None;
    eventually("an error", || {
        match b.completions.poll_one() {
            Ok(done) => received += usize::from(done.is_some()),
            Err(error) => failed = Some(error),
        }
        failed.is_some()
    });
    let error = failed.unwrap();
    assert_eq!(error.kind(), rdma::ErrorKind::Poisoned, "{error}");
    assert_eq!(received + b.queue_pair.close().unwrap().len(), 2, "every buffer comes back, once");
}
