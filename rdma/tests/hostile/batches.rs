//! Chains that fail in the middle.

use super::provider::{Turn, plan, turn};
use crate::support::pair::{End, connect_devices};
use rdma::{BatchError, Direction, ErrorKind, QueuePairBuilder};

fn shape(builder: QueuePairBuilder<'_>) -> QueuePairBuilder<'_> {
    builder.requests(8)
}

fn ends(turn: &Turn) -> [End; 2] {
    let devices = [turn.hostile.devices().unwrap().remove(0), turn.other.devices().unwrap().remove(0)];
    connect_devices([&devices[0], &devices[1]], 1 << 17, shape)
}

/// Posts five in a batch, which fails.
fn five(end: &mut End, direction: Direction) -> BatchError {
    match direction {
        Direction::Send => {
            let mut batch = end.queue_pair.send_batch::<5>();
            (0..5).for_each(|token| batch.push(end.region.buffer(64).unwrap(), .., token).unwrap());
            batch.submit().unwrap_err()
        }
        Direction::Receive => {
            let mut batch = end.queue_pair.receive_batch::<5>();
            (0..5).for_each(|token| batch.push(end.region.buffer(64).unwrap(), token).unwrap());
            batch.submit().unwrap_err()
        }
    }
}

/// The device does not say where it stopped: everything may be in flight, so nothing leaves.
#[test]
fn without_bad_wr_everything_stays_and_the_queue_pair_is_poisoned() {
    for direction in [Direction::Send, Direction::Receive] {
        for really in [false, true] {
            let turn = turn();
            let [mut a, _b] = ends(&turn);
            plan().post = Some((-libc::ENOMEM, really));
            let error = five(&mut a, direction);
            assert_eq!(error.error().kind(), ErrorKind::Poisoned, "{error}");
            assert_eq!(error.error().errno().unwrap().raw(), libc::ENOMEM);
            assert!(error.into_returned().is_empty());
            assert!(a.queue_pair.is_poisoned());
            plan().post = None;
            let buffer = a.region.buffer(8).unwrap();
            assert_eq!(a.queue_pair.post_recv(buffer, 9).unwrap_err().kind(), ErrorKind::Poisoned);
            let unfinished = a.queue_pair.close().unwrap();
            assert_eq!(unfinished.iter().map(|item| item.token).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        }
    }
}

/// It says where: what comes from there on comes back, what was before is in flight, and the queue pair goes on.
#[test]
fn with_bad_wr_the_rest_comes_back() {
    for direction in [Direction::Send, Direction::Receive] {
        for stopped in 0..5 {
            let turn = turn();
            let [mut a, _b] = ends(&turn);
            plan().bad_wr = Some(stopped);
            plan().post = Some((libc::ENOMEM, false));
            let error = five(&mut a, direction);
            assert_eq!(error.posted(), stopped);
            assert_eq!(error.error().kind(), ErrorKind::QueueFull);
            let returned: Vec<_> = error.into_returned().into_iter().map(|(token, _)| token).collect();
            assert_eq!(returned, (stopped as u64..5).collect::<Vec<_>>());
            assert!(!a.queue_pair.is_poisoned());
            plan().post = None;
            // Eight at once: the account is right.
            let mut more = 0;
            while a.region.buffer(64).is_ok_and(|buffer| match direction {
                Direction::Send => a.queue_pair.post_send(buffer, .., 10 + more).is_ok(),
                Direction::Receive => a.queue_pair.post_recv(buffer, 10 + more).is_ok(),
            }) {
                more += 1;
            }
            assert_eq!(more, 8 - stopped as u64);
            let tokens: Vec<_> = a.queue_pair.close().unwrap().iter().map(|item| item.token).collect();
            let expected: Vec<_> = (0..stopped as u64).chain(10..10 + more).collect();
            assert_eq!(tokens, expected);
        }
    }
}

/// A `bad_wr` that points elsewhere tells nothing.
#[test]
fn a_bad_wr_outside_of_the_chain_is_not_believed() {
    let turn = turn();
    let [mut a, _b] = ends(&turn);
    // Past the end of the chain: null.
    plan().bad_wr = Some(9);
    plan().post = Some((libc::EINVAL, false));
    let error = five(&mut a, Direction::Send);
    assert_eq!(error.error().kind(), ErrorKind::Poisoned);
    assert_eq!(a.queue_pair.close().unwrap().len(), 5);
}
