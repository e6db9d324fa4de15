//! Completions that cannot be believed.

use super::provider::{Turn, plan, turn};
use crate::support::pair::{End, connect_devices};
use rdma::{ErrorKind, QueuePairBuilder};
use rdma_sys as sys;
use std::sync::Mutex;
use std::time::Duration;

/// The hostile host first.
fn ends(turn: &Turn) -> [End; 2] {
    let devices = [turn.hostile.devices().unwrap().remove(0), turn.other.devices().unwrap().remove(0)];
    fn shape(builder: QueuePairBuilder<'_>) -> QueuePairBuilder<'_> {
        builder.requests(8)
    }
    connect_devices([&devices[0], &devices[1]], 1 << 17, shape)
}

/// A message has been received by the hostile host: its completion is what the plan makes of it.
fn received(turn: &Turn, poll: fn(&mut [sys::ibv_wc], usize) -> i32) -> [End; 2] {
    let [mut a, mut b] = ends(turn);
    a.post_recv(64, 1);
    a.post_recv(64, 2);
    b.post_send(b"message", 3);
    b.success();
    plan().poll = Some(poll);
    [a, b]
}

/// The end is poisoned: it says so, takes no more work, returns everything when it is closed.
#[track_caller]
fn is_poisoned([mut end, mut peer]: [End; 2], in_flight: usize) {
    assert!(end.queue_pair.is_poisoned());
    let buffer = end.region.buffer(8).unwrap();
    let error = end.queue_pair.post_recv(buffer, 9).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    let error = end.queue_pair.post_send(error.into_memory().unwrap(), .., 9).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    drop(error);
    // Honest again, with a message for the receive that is left: nothing leaves.
    plan().poll = None;
    peer.post_send(b"another", 4);
    peer.success();
    for _ in 0..20 {
        assert!(end.completions.poll_one().is_ok_and(|none| none.is_none()), "nothing leaves");
    }
    let unfinished = end.queue_pair.close().unwrap();
    assert_eq!(unfinished.len(), in_flight);
    drop(unfinished);
    assert_eq!(end.region.available(), end.region.len());
}

/// An id that was never issued: of another slot, generation, direction, queue pair.
#[test]
fn invented_ids_poison_the_queue_pair() {
    let changes: [fn(&mut [sys::ibv_wc], usize) -> i32; 4] = [
        |all, count| {
            all[..count].iter_mut().for_each(|wc| wc.wr_id ^= 1);
            count as i32
        },
        |all, count| {
            all[..count].iter_mut().for_each(|wc| wc.wr_id ^= 7 << 20);
            count as i32
        },
        |all, count| {
            // A send, where a receive is in flight.
            all[..count].iter_mut().for_each(|wc| wc.wr_id ^= 1 << 35);
            count as i32
        },
        |all, count| {
            all[..count].iter_mut().for_each(|wc| wc.wr_id ^= 0x7fff << 20);
            count as i32
        },
    ];
    for change in changes {
        let turn = turn();
        let [mut end, peer] = received(&turn, change);
        let error = end.completions.wait(Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        assert!(error.subject().queue_pair.is_some() && error.hint().is_some(), "{error}");
        is_poisoned([end, peer], 2);
    }
}

/// An id of a queue pair that does not exist: an error, but nobody is to blame.
#[test]
fn ids_of_nobody_are_errors() {
    for change in [
        (|all, count| {
            all[..count].iter_mut().for_each(|wc| wc.wr_id |= 0xfff << 52);
            count as i32
        }) as fn(&mut [sys::ibv_wc], usize) -> i32,
        |all, count| {
            all[..count].iter_mut().for_each(|wc| wc.wr_id = u64::MAX);
            count as i32
        },
        // A generation that has not been yet.
        |all, count| {
            all[..count].iter_mut().for_each(|wc| wc.wr_id ^= 1 << 36);
            count as i32
        },
    ] {
        let turn = turn();
        let [mut end, _peer] = received(&turn, change);
        let error = end.completions.wait(Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        assert_eq!(end.queue_pair.close().unwrap().len(), 2);
    }
}

/// More bytes than were posted: the buffer does not leave with a length that it does not have.
#[test]
fn a_length_beyond_what_was_posted_poisons_the_queue_pair() {
    for length in [65, 4096, u32::MAX] {
        static LENGTH: Mutex<u32> = Mutex::new(0);
        *LENGTH.lock().unwrap() = length;
        let turn = turn();
        let [mut end, peer] = received(&turn, |all, count| {
            all[..count].iter_mut().for_each(|wc| wc.byte_len = *LENGTH.lock().unwrap());
            count as i32
        });
        let error = end.completions.wait(Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned);
        assert!(error.to_string().contains(&length.to_string()), "{error}");
        is_poisoned([end, peer], 2);
    }
}

/// The length of a failed receive means nothing, and is not looked at.
#[test]
fn the_length_of_a_failure_is_not_looked_at() {
    let turn = turn();
    let [mut end, _peer] = received(&turn, |all, count| {
        for wc in &mut all[..count] {
            wc.status = sys::ibv_wc_status::IBV_WC_GENERAL_ERR;
            wc.byte_len = u32::MAX;
            wc.opcode = sys::ibv_wc_opcode(u32::MAX);
            wc.qp_num = u32::MAX;
            wc.vendor_err = 77;
        }
        count as i32
    });
    let failure = end.completions.wait(Duration::from_secs(5)).unwrap().into_result().unwrap_err();
    assert_eq!((failure.token(), failure.vendor_error()), (1, 77));
    assert_eq!(failure.queue_pair(), end.queue_pair.number(), "not what the completion says");
    assert!(!end.queue_pair.is_poisoned());
}

/// Opcode and queue pair number of a completion route nothing: Apple's values are unknown.
#[test]
fn garbage_beside_the_id_changes_nothing() {
    let turn = turn();
    let [mut end, _peer] = received(&turn, |all, count| {
        for wc in &mut all[..count] {
            wc.opcode = sys::ibv_wc_opcode(1);
            wc.qp_num = 0;
            wc.src_qp = u32::MAX;
            wc.slid = 9;
        }
        count as i32
    });
    let done = end.success();
    assert_eq!((done.token(), done.bytes(), done.queue_pair()), (1, &b"message"[..], end.queue_pair.number()));
}

/// A status that nobody has a name for is a failure like any other.
#[test]
fn an_unknown_status_is_a_failure() {
    let turn = turn();
    let [mut end, _peer] = received(&turn, |all, count| {
        all[..count].iter_mut().for_each(|wc| wc.status = sys::ibv_wc_status(4711));
        count as i32
    });
    let failure = end.next().into_result().unwrap_err();
    assert_eq!(failure.status().raw(), 4711);
    assert!(failure.to_string().contains("unknown (4711)"), "{failure}");
}

/// The same completion twice: the second is not believed, whether or not the slot has been used again.
#[test]
fn a_repeated_completion_poisons_the_queue_pair() {
    static LAST: Mutex<Option<sys::ibv_wc>> = Mutex::new(None);
    for reuse in [false, true] {
        *LAST.lock().unwrap() = None;
        let turn = turn();
        let [mut end, peer] = received(&turn, |all, count| {
            let mut last = LAST.lock().unwrap();
            match (count, *last) {
                (0, Some(wc)) => {
                    all[0] = wc;
                    1
                }
                (0, None) => 0,
                _ => {
                    *last = Some(all[0]);
                    count as i32
                }
            }
        });
        let done = end.success();
        if reuse {
            // All eight slots once more round.
            plan().poll = None;
            for token in 10..17 {
                end.post_recv(64, token);
            }
            plan().poll = Some(|all, _| {
                all[0] = LAST.lock().unwrap().unwrap();
                1
            });
        }
        drop(done);
        let error = end.completions.poll_one().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        plan().poll = None;
        is_poisoned([end, peer], if reuse { 8 } else { 1 });
    }
}

/// Completions that never come: a wait ends, the buffers stay, closing returns them.
#[test]
fn withheld_completions_leave_everything_in_flight() {
    let turn = turn();
    let [mut end, _peer] = received(&turn, |_, _| 0);
    assert_eq!(end.completions.wait(Duration::from_millis(20)).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(end.queue_pair.close().unwrap().len(), 2);
}

/// A poll that fails is not a completion (an ibverbs wrapper took it for one): nothing leaves, and later polls work.
#[test]
fn a_failed_poll_is_not_a_completion() {
    for (returned, errno) in [(-libc::EIO, libc::EIO), (-libc::ENOMEM, libc::ENOMEM), (-1, libc::EPERM)] {
        static RETURNED: Mutex<i32> = Mutex::new(0);
        *RETURNED.lock().unwrap() = returned;
        let turn = turn();
        let [mut a, mut b] = ends(&turn);
        a.post_recv(64, 1);
        plan().poll = Some(|_, _| *RETURNED.lock().unwrap());
        let error = a.completions.poll_one().unwrap_err();
        assert_eq!(error.failed_call(), Some("ibv_poll_cq"));
        if returned != -1 {
            assert_eq!(error.errno().unwrap().raw(), errno);
        }
        assert!(!a.queue_pair.is_poisoned());
        assert_eq!(a.region.available(), a.region.len() - 64);
        plan().poll = None;
        b.post_send(b"after", 2);
        assert_eq!(a.success().bytes(), b"after");
    }
}

/// More completions than were asked for cannot be.
#[test]
fn too_many_completions_are_an_error() {
    let turn = turn();
    let [mut end, _peer] = received(&turn, |all, _| all.len() as i32 + 1);
    let error = end.completions.poll_one().unwrap_err();
    assert!(error.to_string().contains("although"), "{error}");
    plan().poll = None;
    drop(end);
}

/// Good completions in a batch come first, then the error, then what follows.
#[test]
fn the_good_ones_of_a_batch_are_delivered() {
    let turn = turn();
    let [mut a, mut b] = ends(&turn);
    for token in 0..3 {
        a.post_recv(64, token);
    }
    for token in 0..3 {
        b.post_send(b"x", token);
    }
    plan().poll = Some(|all, count| {
        if count == 3 {
            all[1].wr_id = u64::MAX;
        }
        count as i32
    });
    let mut array: [_; 8] = [const { None }; 8];
    assert_eq!(a.completions.poll(&mut array).unwrap(), 1);
    assert_eq!(array[0].take().unwrap().token(), 0);
    assert_eq!(a.completions.poll(&mut array).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(a.completions.poll(&mut array).unwrap(), 1);
    assert_eq!(array[0].take().unwrap().token(), 2);
    assert_eq!(a.queue_pair.close().unwrap().len(), 1);
}

/// Completions of a queue pair that is gone are dropped and counted, and do not reach its successor.
#[test]
fn completions_of_a_closed_queue_pair_are_counted_as_stale() {
    static OLD: Mutex<Vec<sys::ibv_wc>> = Mutex::new(Vec::new());
    let turn = turn();
    OLD.lock().unwrap().clear();
    let [mut a, mut b] = ends(&turn);
    for token in 0..8 {
        a.post_recv(64, token);
        b.post_send(b"x", token);
    }
    // Swallowed, to be told later.
    plan().poll = Some(|all, count| {
        OLD.lock().unwrap().extend_from_slice(&all[..count]);
        0
    });
    for _ in 0..20 {
        assert!(a.is_idle());
    }
    assert_eq!(OLD.lock().unwrap().len(), 8);
    assert_eq!(a.queue_pair.close().unwrap().len(), 8);
    let successor = a.domain.queue_pair(&a.completions).requests(8).build().unwrap();
    plan().poll = Some(|all, _| {
        let mut old = OLD.lock().unwrap();
        let count = all.len().min(old.len());
        all[..count].copy_from_slice(&old[..count]);
        old.drain(..count);
        count as i32
    });
    for _ in 0..8 {
        assert!(a.completions.poll_one().unwrap().is_none());
    }
    assert_eq!(a.completions.stale_completions(), 8);
    drop(successor);
}
