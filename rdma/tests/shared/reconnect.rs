//! One end of a connection that goes back to RESET and connects again, while the other one stays as it is.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::raw::{Host, Memory, Two, number, rtr, two_on};
use rdma_sys::{self as sys, QpAttrMask as Mask, ibv_qp_state as state, ibv_wc_status as status};
use std::ptr::null_mut;

fn reset(host: &Host, qp: *mut sys::ibv_qp) {
    let attributes = sys::ibv_qp_attr { qp_state: state::IBV_QPS_RESET, ..Default::default() };
    assert_eq!(host.modify(qp, attributes, Mask::STATE), 0);
}

/// Sends the bytes of a number from one to the other and takes both completions.
#[track_caller]
fn message(from: (&Host, *mut sys::ibv_qp, Memory), to: (&Host, *mut sys::ibv_qp, Memory), seed: u64, length: usize) {
    let bytes = crate::support::pattern(seed, length);
    from.2.write(0, &bytes);
    to.2.write(0, &vec![0; length]);
    assert_eq!(to.0.post_recv(to.1, seed, to.2.sge(0, length)), 0);
    assert_eq!(from.0.post_send(from.1, seed, from.2.sge(0, length)), 0);
    arrives(from.0, to, seed, &bytes);
}

/// The one message between the two arrives, and its sender is told that it left. Both ends make calls, as often as needed.
#[track_caller]
fn arrives(from: &Host, to: (&Host, *mut sys::ibv_qp, Memory), seed: u64, bytes: &[u8]) {
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    crate::support::eventually("the message", || {
        sent.extend(from.poll());
        received.extend(to.0.poll());
        !sent.is_empty() && !received.is_empty()
    });
    assert_eq!((sent.len(), sent[0].wr_id, sent[0].status), (1, seed, status::IBV_WC_SUCCESS));
    assert_eq!((received.len(), received[0].wr_id, received[0].status), (1, seed, status::IBV_WC_SUCCESS));
    assert_eq!(to.2.read(0, bytes.len()), bytes);
}

#[test]
fn one_end_again_and_again() {
    let Two { a, b, qp_a, qp_b, mem_a, mem_b, .. } = &two_on(fabrics::shared(), 1023);
    for round in 0..50 {
        for seed in 0..3 {
            message((a, *qp_a, *mem_a), (b, *qp_b, *mem_b), round * 10 + seed, 5000);
        }
        if round % 2 == 0 {
            message((b, *qp_b, *mem_b), (a, *qp_a, *mem_a), round * 10 + 5, 5000);
        }
        reset(a, *qp_a);
        a.connect(*qp_a, b, *qp_b);
    }
}

/// The one that comes back was connected with somebody else in between.
#[test]
fn back_from_another_peer() {
    let Two { a, mut b, qp_a, qp_b, mem_a, mem_b, .. } = two_on(fabrics::shared(), 1023);
    let qp_c = b.queue_pair(1023);
    b.connect(qp_c, &a, qp_a);
    for round in 0..3 {
        for count in 0..=round {
            message((&a, qp_a, mem_a), (&b, qp_b, mem_b), round * 100 + count, 5000);
        }
        reset(&a, qp_a);
        a.connect(qp_a, &b, qp_c);
        message((&a, qp_a, mem_a), (&b, qp_c, mem_b), round * 100 + 50, 5000);
        reset(&a, qp_a);
        a.connect(qp_a, &b, qp_b);
    }
    message((&a, qp_a, mem_a), (&b, qp_b, mem_b), 1000, 5000);
}

/// Who has seen that the peer left, and then connects again itself, keeps what the peer has sent to the new connection.
#[test]
fn both_ends_after_one_was_seen_to_leave() {
    let Two { a, b, qp_a, qp_b, mem_a, mem_b, .. } = &two_on(fabrics::shared(), 1023);
    message((a, *qp_a, *mem_a), (b, *qp_b, *mem_b), 1, 5000);
    reset(a, *qp_a);
    assert_eq!(b.post_recv(*qp_b, 2, mem_b.sge(0, 5000)), 0);
    assert!(b.poll().is_empty());
    reset(b, *qp_b);
    b.connect(*qp_b, a, *qp_a);
    a.connect(*qp_a, b, *qp_b);
    let bytes = crate::support::pattern(3, 5000);
    mem_a.write(0, &bytes);
    assert_eq!(a.post_send(*qp_a, 3, mem_a.sge(0, 5000)), 0);
    assert!(a.poll().is_empty());
    assert_eq!(b.post_recv(*qp_b, 3, mem_b.sge(0, 5000)), 0);
    arrives(a, (b, *qp_b, *mem_b), 3, &bytes);
}

/// A message of more frames than the receiver has places: its receive fails, and the sender goes on.
#[test]
fn a_message_that_no_receive_can_hold() {
    let fabric = fabrics::shared();
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (mem_a, mem_b) = (a.memory(16 << 20), b.memory(1 << 20));
    let qp_b = b.queue_pair(1023);
    // The numbers of a device follow each other. The peer that is to come has a deeper queue than anybody could know.
    let first = a.queue_pair(1023);
    let (mut attributes, mask) = rtr(&a, first);
    attributes.dest_qp_num = number(first) + 0x100;
    assert_eq!(b.to_init(qp_b), 0);
    assert_eq!(b.modify(qp_b, attributes, mask), 0);
    assert_eq!(b.to_rts(qp_b), 0);
    let qp_a = a.queue_pair(4095);
    assert_eq!(number(qp_a), attributes.dest_qp_num);
    a.connect(qp_a, &b, qp_b);
    let long = 4095 * 4096;
    assert_eq!(b.post_recv(qp_b, 1, mem_b.sge(0, 4096)), 0);
    assert_eq!(a.post_send(qp_a, 1, mem_a.sge(0, long)), 0);
    assert_eq!(a.wait(1)[0].status, status::IBV_WC_SUCCESS);
    assert_eq!(b.wait(1)[0].status, status::IBV_WC_LOC_LEN_ERR);
    message((&a, qp_a, mem_a), (&b, qp_b, mem_b), 2, 5000);
}

/// The send that waited for the other end goes when its poster looks for the answer, though it never looks whether it went.
#[test]
fn an_answer_is_awaited_on_a_queue_of_its_own() {
    let fabric = fabrics::shared();
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (mem_a, mem_b) = (a.memory(1 << 20), b.memory(1 << 20));
    // SAFETY: an open context.
    let sends = unsafe { (a.verbs.create_cq)(a.context, 100, null_mut(), null_mut(), 0) };
    let mut init = sys::ibv_qp_init_attr { send_cq: sends, ..a.init_attr(1023) };
    // SAFETY: live objects.
    let qp_a = unsafe { (a.verbs.create_qp)(a.pd, &mut init) };
    let qp_b = b.queue_pair(1023);
    b.connect(qp_b, &a, qp_a);
    for round in 0..3 {
        a.connect(qp_a, &b, qp_b);
        assert_eq!(a.post_recv(qp_a, round, mem_a.sge(0, 5000)), 0);
        assert_eq!(a.post_send(qp_a, round, mem_a.sge(8192, 5000)), 0);
        assert_eq!(b.post_recv(qp_b, round, mem_b.sge(0, 5000)), 0);
        let mut answers = Vec::new();
        crate::support::eventually("the answer", || {
            if b.poll().iter().any(|wc| wc.opcode == sys::ibv_wc_opcode::IBV_WC_RECV) {
                assert_eq!(b.post_send(qp_b, round, mem_b.sge(0, 5000)), 0);
            }
            answers.extend(a.poll());
            !answers.is_empty()
        });
        assert_eq!((answers.len(), answers[0].wr_id, answers[0].status), (1, round, status::IBV_WC_SUCCESS));
        reset(&a, qp_a);
    }
    // SAFETY: live objects, each destroyed once.
    unsafe {
        assert_eq!((a.verbs.destroy_qp)(qp_a), 0);
        assert_eq!((a.verbs.destroy_cq)(sends), 0);
    }
}

/// Numbers without order.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// An end that another thread may use.
struct Shared<T>(T);

// SAFETY: the calls of the device are made for several threads; each piece of memory is used by one.
unsafe impl<T> Sync for Shared<T> {}

/// Both ends reset and connect again at random while one sends and the other receives, with pollers of their own. Whatever
/// arrives is whole and newer than what arrived before; in the end a message arrives.
fn storm(length: usize, seed: u64) {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    const SLOTS: usize = 8;
    let two = Shared(crate::support::raw::two_with(fabrics::shared(), 1023, 2 << 20));
    let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
    let done = AtomicBool::new(false);
    let stride = (1 << 20) / SLOTS;
    std::thread::scope(|scope| {
        let two = &two;
        // The sender: a slot is written again once its send has completed, or was dropped.
        scope.spawn(|| {
            let Two { a, b, qp_a, qp_b, mem_a, .. } = &two.0;
            let (mut random, mut number, mut busy) = (Random(seed), 0_u64, [false; SLOTS]);
            while !done.load(Ordering::Relaxed) {
                for wc in a.poll() {
                    assert!(matches!(wc.status, status::IBV_WC_SUCCESS | status::IBV_WC_WR_FLUSH_ERR));
                    busy[wc.wr_id as usize] = false;
                }
                if random.below(100) == 0 {
                    reset(a, *qp_a);
                    busy = [false; SLOTS];
                    a.connect(*qp_a, b, *qp_b);
                }
                let slot = random.below(SLOTS as u64) as usize;
                if busy[slot] {
                    std::thread::yield_now();
                    continue;
                }
                number += 1;
                let mut bytes = crate::support::pattern(number, length);
                bytes[..8].copy_from_slice(&number.to_le_bytes());
                mem_a.write(slot * stride, &bytes);
                assert_eq!(a.post_send(*qp_a, slot as u64, mem_a.sge(slot * stride, length)), 0);
                sent.store(number, Ordering::Relaxed);
                busy[slot] = true;
            }
        });
        scope.spawn(|| {
            let Two { a, b, qp_a, qp_b, mem_b, .. } = &two.0;
            let (mut random, mut last, mut posted) = (Random(seed ^ 0xabcd), 0_u64, [false; SLOTS]);
            while !done.load(Ordering::Relaxed) {
                for wc in b.poll() {
                    assert_eq!((wc.status, wc.byte_len as usize), (status::IBV_WC_SUCCESS, length));
                    let slot = wc.wr_id as usize;
                    let bytes = mem_b.read(slot * stride, length);
                    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                    assert!(number > last, "{number} after {last}");
                    assert!(number <= sent.load(Ordering::Relaxed) + 1);
                    assert_eq!(bytes[8..], crate::support::pattern(number, length)[8..], "message {number} is garbled");
                    last = number;
                    posted[slot] = false;
                    received.fetch_add(1, Ordering::Relaxed);
                }
                if random.below(300) == 0 {
                    reset(b, *qp_b);
                    posted = [false; SLOTS];
                    b.connect(*qp_b, a, *qp_a);
                }
                for slot in (0..SLOTS).filter(|&slot| !std::mem::replace(&mut posted[slot], true)) {
                    assert_eq!(b.post_recv(*qp_b, slot as u64, mem_b.sge(slot * stride, length)), 0);
                }
                std::thread::yield_now();
            }
        });
        // Enough of both, or the test has failed.
        let start = std::time::Instant::now();
        while start.elapsed() < std::time::Duration::from_secs(1) || received.load(Ordering::Relaxed) < 100 {
            assert!(start.elapsed() < crate::support::LONG, "messages do not get through");
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    println!("{} of {}", received.into_inner(), sent.into_inner());
    let Two { a, b, qp_a, qp_b, mem_a, mem_b, .. } = &two.0;
    for (host, qp) in [(a, *qp_a), (b, *qp_b)] {
        reset(host, qp);
        host.poll();
    }
    a.connect(*qp_a, b, *qp_b);
    b.connect(*qp_b, a, *qp_a);
    message((a, *qp_a, *mem_a), (b, *qp_b, *mem_b), 1, length);
}

#[test]
fn a_storm_of_short_messages() {
    storm(40, 11);
}

#[test]
fn a_storm_of_frames() {
    storm(5000, 12);
}

#[test]
fn a_storm_of_long_messages() {
    storm(100_000, 13);
}
