//! When `ibv_destroy_qp` or `ibv_dereg_mr` has returned, the memory is the caller's: nobody copies into or out of it.
#![allow(unsafe_code)]

use crate::support::LONG;
use crate::support::fabrics;
use crate::support::raw::{Host, Memory, number, two_with};
use rdma_sys as sys;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Long enough for a copy to be caught in the middle.
const LENGTH: usize = 4 << 20;

fn rounds() -> usize {
    40
}

/// The receiver destroys its queue pair (or deregisters the memory) while the sender floods it, writes a pattern over the
/// memory, and looks whether anything still arrives.
fn receiver_side(end: impl Fn(&mut Host, *mut sys::ibv_qp, Memory)) {
    for round in 0..rounds() {
        let mut two = two_with(fabrics::mesh(2), 4095, LENGTH);
        let (mem_b, qp_b) = (two.mem_b, two.qp_b);
        two.mem_a.write(0, &vec![0xff; LENGTH]);
        assert_eq!(two.b.post_recv(qp_b, 0, mem_b.sge(0, LENGTH)), 0);
        let started = AtomicBool::new(false);
        let (a, qp_a, mem_a) = (&two.a, two.qp_a, two.mem_a);
        let shared = Sender { host: a, qp: qp_a, memory: mem_a };
        std::thread::scope(|scope| {
            let (started, shared) = (&started, &shared);
            scope.spawn(move || {
                started.store(true, Ordering::Release);
                assert_eq!(shared.host.post_send(shared.qp, 1, shared.memory.sge(0, LENGTH)), 0);
            });
            while !started.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            // Somewhere in the middle of the copy, a little later each round.
            let start = Instant::now();
            while start.elapsed().as_micros() < (round * 10) as u128 {
                std::hint::spin_loop();
            }
            end(&mut two.b, qp_b, mem_b);
            mem_b.write(0, &vec![0x11; LENGTH]);
            let start = Instant::now();
            while start.elapsed().as_micros() < 2000 {
                std::hint::spin_loop();
            }
            assert!(mem_b.read(0, LENGTH).iter().all(|&byte| byte == 0x11), "written after the end, round {round}");
        });
    }
}

/// A sender's part, for another thread.
struct Sender<'a> {
    host: &'a Host,
    qp: *mut sys::ibv_qp,
    memory: Memory,
}

// SAFETY: the device may be called from any thread, and the tests see to it that nothing is destroyed while used.
unsafe impl Sync for Sender<'_> {}

#[test]
fn destroying_the_receiver_waits_for_the_copy_into_it() {
    receiver_side(|host, qp, _| host.destroy(qp));
}

#[test]
fn deregistering_the_receivers_memory_waits_for_the_copy_into_it() {
    receiver_side(|host, _, memory| host.deregister(memory));
}

/// The sender's message waits; the receiver posts a receive, and so makes the copy itself, while the sender destroys its
/// queue pair (or deregisters the memory) and rewrites the memory: what arrived must be the old contents, all of it, or
/// nothing.
fn sender_side(end: impl Fn(&mut Host, *mut sys::ibv_qp, Memory)) {
    let mut whole = 0;
    for round in 0..rounds() {
        let mut two = two_with(fabrics::mesh(2), 4095, LENGTH);
        let (mem_a, qp_a) = (two.mem_a, two.qp_a);
        mem_a.write(0, &vec![0xff; LENGTH]);
        assert_eq!(two.a.post_send(qp_a, 1, mem_a.sge(0, LENGTH)), 0);
        let started = AtomicBool::new(false);
        let receiver = Sender { host: &two.b, qp: two.qp_b, memory: two.mem_b };
        std::thread::scope(|scope| {
            let (started, receiver) = (&started, &receiver);
            scope.spawn(move || {
                started.store(true, Ordering::Release);
                assert_eq!(receiver.host.post_recv(receiver.qp, 2, receiver.memory.sge(0, LENGTH)), 0);
            });
            while !started.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            let start = Instant::now();
            while start.elapsed().as_micros() < (round * 10) as u128 {
                std::hint::spin_loop();
            }
            end(&mut two.a, qp_a, mem_a);
            mem_a.write(0, &vec![0x11; LENGTH]);
        });
        let received = two.b.poll();
        if received.iter().any(|wc| wc.status == sys::ibv_wc_status::IBV_WC_SUCCESS) {
            whole += 1;
            assert!(
                two.mem_b.read(0, LENGTH).iter().all(|&byte| byte == 0xff),
                "rewritten while it was copied, round {round}"
            );
        }
    }
    assert!(whole > 0, "no message was ever copied, so nothing was tested");
}

#[test]
fn destroying_the_sender_waits_for_the_copy_out_of_it() {
    sender_side(|host, qp, _| host.destroy(qp));
}

#[test]
fn deregistering_the_senders_memory_waits_for_the_copy_out_of_it() {
    sender_side(|host, _, memory| host.deregister(memory));
}

/// Small messages reach the buffer when their receiver polls: ending the queue pair or the region waits for the poller.
#[test]
fn the_poller_is_waited_for() {
    for deregister in [false, true] {
        for _ in 0..200 {
            let mut two = two_with(fabrics::mesh(2), 1023, 16384);
            let (mem_b, qp_b) = (two.mem_b, two.qp_b);
            two.mem_a.write(0, &[0xff; 48]);
            for id in 0..64 {
                assert_eq!(two.b.post_recv(qp_b, id, mem_b.sge(0, 48)), 0);
                assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 48)), 0);
            }
            let stop = AtomicBool::new(false);
            let cq = two.b.cq.expose_provenance();
            std::thread::scope(|scope| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut wc = sys::ibv_wc::default();
                    let start = Instant::now();
                    while !stop.load(Ordering::Acquire) && start.elapsed() < LONG {
                        // SAFETY: the queue lives until the scope is over.
                        unsafe { sys::ibv_poll_cq(std::ptr::with_exposed_provenance_mut(cq), 1, &mut wc) };
                    }
                });
                if deregister {
                    two.b.deregister(mem_b);
                } else {
                    two.b.destroy(qp_b);
                }
                mem_b.write(0, &[0x11; 48]);
                std::thread::yield_now();
                assert_eq!(mem_b.read(0, 48), [0x11; 48]);
                stop.store(true, Ordering::Release);
            });
        }
    }
}

/// A payload that came with its completion is not written once its queue pair or region has ended, however late the poll.
#[test]
fn a_late_poll_writes_nothing() {
    for deregister in [false, true] {
        let mut two = two_with(fabrics::mesh(2), 1023, 16384);
        let (mem_b, qp_b) = (two.mem_b, two.qp_b);
        two.mem_a.write(0, &[0xff; 48]);
        for id in 0..8 {
            assert_eq!(two.b.post_recv(qp_b, id, mem_b.sge(0, 48)), 0);
            assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 48)), 0);
        }
        if deregister {
            two.b.deregister(mem_b);
        } else {
            two.b.destroy(qp_b);
        }
        mem_b.write(0, &[0x11; 48]);
        let late = two.b.poll();
        assert_eq!(mem_b.read(0, 48), [0x11; 48]);
        // A queue pair's completions go with it; a region's receives fail.
        assert_eq!(late.len(), if deregister { 8 } else { 0 });
        assert!(late.iter().all(|wc| wc.status == sys::ibv_wc_status::IBV_WC_LOC_PROT_ERR));
    }
}

/// A peer that floods while queue pairs come and go: nothing of an old connection reaches a new one, and a number is not
/// used again at once (SoftRoCE/rxe-dev issue 18 is a device that got this wrong).
#[test]
fn a_new_queue_pair_gets_nothing_of_the_old_one() {
    let fabric = fabrics::mesh(2);
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (mem_a, mem_b) = (a.memory(16384), b.memory(16384));
    let mut numbers = Vec::new();
    for round in 0..300_u64 {
        let (qp_a, qp_b) = (a.queue_pair(64), b.queue_pair(64));
        numbers.push(number(qp_b));
        a.connect(qp_a, &b, qp_b);
        b.connect(qp_b, &a, qp_a);
        for id in 0..8 {
            mem_a.write(0, &round.to_le_bytes());
            assert_eq!(a.post_send(qp_a, id, mem_a.sge(0, 8)), 0);
        }
        for _ in 0..round % 8 {
            assert_eq!(b.post_recv(qp_b, round, mem_b.sge(0, 8)), 0);
        }
        let got = b.poll();
        assert!(got.iter().all(|wc| wc.wr_id == round), "a completion of an earlier queue pair");
        if !got.is_empty() {
            assert_eq!(mem_b.read(0, 8), round.to_le_bytes());
        }
        if round % 2 == 0 {
            b.destroy(qp_b);
            a.destroy(qp_a);
        } else {
            a.destroy(qp_a);
            b.destroy(qp_b);
        }
        a.poll();
    }
    numbers.dedup();
    assert_eq!(numbers.len(), 300);
}
