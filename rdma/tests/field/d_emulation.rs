//! Group D: software RDMA and emulation, within one process.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::pair::{self, Unconnected, connect_devices, device, fabric};
use crate::support::raw::{Host, number, two_with};
use crate::support::{LONG, pattern};
use rdma::ErrorKind;
use std::collections::VecDeque;

/// All ten queue pairs of a device at once, on one completion queue, windows of 32, each message checked. (A queue each:
/// tests/safe/threads.rs, `ten_pairs_at_once`.)
#[test]
fn d01_ten_pairs_on_one_completion_queue_lose_nothing() {
    const MESSAGES: u64 = 1_000;
    let fabric = fabric();
    let ends = [0, 1].map(|host| Unconnected::open(&device(&fabric, host), 8 << 20));
    let mut pairs = Vec::new();
    for _ in 0..10 {
        let mut prepared =
            ends.each_ref().map(|end| end.domain.queue_pair(&end.completions).requests(32).build().unwrap());
        let endpoints = [0, 1].map(|index| {
            let port = ends[index].context.port(1).unwrap();
            prepared[index].endpoint(&port, port.gid().unwrap()).unwrap()
        });
        let [one, two] = prepared;
        pairs.push((one.connect(&endpoints[1]).unwrap(), two.connect(&endpoints[0]).unwrap()));
    }
    let (mut senders, mut receivers): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let [mut a, mut b] = ends;
    let index_of = |all: &[rdma::QueuePair], number| all.iter().position(|one| one.number() == number).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut posted, mut done) = ([0_u64; 10], [0_u64; 10]);
            while done.iter().sum::<u64>() < 10 * MESSAGES {
                for (index, queue_pair) in senders.iter_mut().enumerate() {
                    while posted[index] < MESSAGES && posted[index] - done[index] < 32 {
                        let mut buffer = a.region.buffer(200).unwrap();
                        buffer.copy_from_slice(&pattern((index as u64) << 32 | posted[index], 200));
                        queue_pair.post_send(buffer, .., posted[index]).unwrap();
                        posted[index] += 1;
                    }
                }
                let sent = a.completions.wait(LONG).unwrap().into_result().unwrap();
                let index = index_of(&senders, sent.queue_pair());
                assert_eq!(sent.token(), done[index]);
                done[index] += 1;
            }
        });
        let (mut posted, mut done) = ([0_u64; 10], [0_u64; 10]);
        while done.iter().sum::<u64>() < 10 * MESSAGES {
            for (index, queue_pair) in receivers.iter_mut().enumerate() {
                while posted[index] < MESSAGES && posted[index] - done[index] < 32 {
                    queue_pair.post_recv(b.region.buffer(200).unwrap(), posted[index]).unwrap();
                    posted[index] += 1;
                }
            }
            let received = b.completions.wait(LONG).unwrap().into_result().unwrap();
            let index = index_of(&receivers, received.queue_pair());
            assert_eq!(received.token(), done[index]);
            assert!(received.bytes() == pattern((index as u64) << 32 | done[index], 200));
            done[index] += 1;
        }
    });
}

/// Destroyed under a flood at a random moment, and a new queue pair at once: nothing of the old reaches the new, and the
/// number is not used again at once.
#[test]
fn d04_destroying_under_a_flood() {
    let fabric = fabrics::mesh(2);
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (mem_a, mem_b) = (a.memory(16384), b.memory(16384));
    let mut last = 0;
    for round in 0..500_u32 {
        let (qp_a, qp_b) = (a.queue_pair(64), b.queue_pair(64));
        assert_ne!(number(qp_b), last);
        last = number(qp_b);
        a.connect(qp_a, &b, qp_b);
        b.connect(qp_b, &a, qp_a);
        mem_a.write(0, &round.to_le_bytes());
        for id in 0..round % 13 {
            assert_eq!(a.post_send(qp_a, u64::from(id), mem_a.sge(0, 4)), 0);
        }
        for id in 0..round % 7 {
            assert_eq!(b.post_recv(qp_b, u64::from(id), mem_b.sge(0, 4)), 0);
        }
        if !b.poll().is_empty() {
            assert_eq!(mem_b.read(0, 4), round.to_le_bytes());
        }
        b.destroy(qp_b);
        a.destroy(qp_a);
    }
}

/// Each completion is handed out once, however polls of any size and posts are mixed.
#[test]
fn d05_each_completion_is_handed_out_once() {
    let two = two_with(fabrics::mesh(2), 1023, 16384);
    let (mut model, mut next, mut seed) = (VecDeque::new(), 0_u64, 1_u64);
    for _ in 0..100_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if seed >> 63 == 0 && model.len() < 500 {
            assert_eq!(two.b.post_recv(two.qp_b, next, two.mem_b.sge(0, 8)), 0);
            assert_eq!(two.a.post_send(two.qp_a, next, two.mem_a.sge(0, 8)), 0);
            model.push_back(next);
            next += 1;
            two.a.poll();
        } else {
            let mut wc = [rdma_sys::ibv_wc::default(); 5];
            let room = (seed >> 40) % 6;
            // SAFETY: a live queue and room for that many.
            let count = unsafe { rdma_sys::ibv_poll_cq(two.b.cq, room as i32, wc.as_mut_ptr()) };
            assert_eq!(count as usize, model.len().min(room as usize));
            for wc in &wc[..count as usize] {
                assert_eq!(Some(wc.wr_id), model.pop_front());
            }
        }
    }
}

/// Two pollers of one queue: a completion goes to exactly one of them.
#[test]
fn d06_a_completion_goes_to_one_poller() {
    let two = two_with(fabrics::mesh(2), 1023, 16384);
    let cq = two.b.cq.expose_provenance();
    for _ in 0..20 {
        for id in 0..1000 {
            assert_eq!(two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 8)), 0);
        }
        let mut seen: Vec<u64> = std::thread::scope(|scope| {
            let pollers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(move || {
                        let mut mine = Vec::new();
                        let start = std::time::Instant::now();
                        let mut idle = 0;
                        while idle < 2000 && start.elapsed() < LONG {
                            let mut wc = [rdma_sys::ibv_wc::default(); 3];
                            // SAFETY: the queue lives until the scope is over; the device may be called from any thread.
                            let count = unsafe {
                                rdma_sys::ibv_poll_cq(std::ptr::with_exposed_provenance_mut(cq), 3, wc.as_mut_ptr())
                            };
                            idle = if count == 0 { idle + 1 } else { 0 };
                            mine.extend(wc[..count as usize].iter().map(|wc| wc.wr_id));
                            std::thread::yield_now();
                        }
                        mine
                    })
                })
                .collect();
            for id in 0..1000 {
                assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 8)), 0);
            }
            pollers.into_iter().flat_map(|poller| poller.join().unwrap()).collect()
        });
        two.a.wait(1000);
        seen.extend(two.b.poll().iter().map(|wc| wc.wr_id));
        seen.sort_unstable();
        assert_eq!(seen, (0..1000).collect::<Vec<_>>());
    }
}

/// Many messages before any receive, of every length that changes the path: all arrive, in order.
#[test]
fn d12_unexpected_messages_of_every_length() {
    let fabric = fabric();
    let devices = [device(&fabric, 0), device(&fabric, 1)];
    for length in [1_usize, 4095, 4096, 4097, 65536, 16_773_120] {
        let most = if length > 1 << 20 { 1 } else { (4095 / length.div_ceil(4096)).min(100) };
        for count in [1, 2.min(most), 5.min(most), most] {
            let [mut a, mut b] = connect_devices([&devices[0], &devices[1]], 17 << 20, |builder| builder.requests(100));
            for token in 0..count as u64 {
                a.post_send(&pattern(token, length), token);
            }
            assert!(a.is_idle());
            for token in 0..count as u64 {
                b.post_recv(length, token);
            }
            for token in 0..count as u64 {
                assert_eq!(a.success().token(), token);
                let received = b.success();
                assert_eq!(received.token(), token);
                assert!(received.bytes() == pattern(token, length), "{length}");
            }
        }
    }
}

/// A flood without receives is held back at the granted depth, and everything is delivered in the end.
#[test]
fn d13_a_flood_is_held_back() {
    let fabric = fabric();
    let devices = [device(&fabric, 0), device(&fabric, 1)];
    let [mut a, mut b] = connect_devices([&devices[0], &devices[1]], 1 << 20, |builder| builder.requests(64));
    let (mut posted, mut full) = (0_u64, 0);
    for _ in 0..100_000 {
        let buffer = a.region.buffer(64).unwrap();
        match a.queue_pair.post_send(buffer, .., posted) {
            Ok(()) => posted += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::QueueFull);
                full += 1;
            }
        }
    }
    assert_eq!((posted, full), (64, 100_000 - 64));
    for token in 0..posted {
        b.post_recv(64, token);
    }
    for token in 0..posted {
        assert_eq!((a.success().token(), b.success().token()), (token, token));
    }
}

/// Every length around a border of frame, page and limit.
#[test]
fn d17_every_length() {
    const MAX: usize = 16_773_120;
    let fabric = fabric();
    let devices = [device(&fabric, 0), device(&fabric, 1)];
    let [mut a, mut b] = connect_devices([&devices[0], &devices[1]], 34 << 20, |builder| builder);
    let around = |border: usize| [border - 1, border, border + 1];
    let lengths = [1023, 4095, 8192, 16384].into_iter().flat_map(around).chain([1, MAX - 1, MAX]);
    for (seed, length) in lengths.enumerate() {
        b.post_recv(length, 1);
        let bytes = pattern(seed as u64, length);
        a.post_send(&bytes, 2);
        assert!(b.success().bytes() == bytes, "{length}");
        a.success();
    }
    let buffer = a.region.buffer(MAX + 1).unwrap();
    assert_eq!(a.queue_pair.post_send(buffer, .., 3).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// Connect, one message, close, many times: nothing grows.
#[test]
fn d18_a_thousand_connections() {
    let fabric = fabric();
    let mut ends = [0, 1].map(|host| Unconnected::open(&device(&fabric, host), 1 << 16));
    let mut resident = Vec::new();
    for round in 0..1000 {
        let mut prepared =
            ends.each_ref().map(|end| end.domain.queue_pair(&end.completions).requests(8).build().unwrap());
        let endpoints = [0, 1].map(|index| {
            let port = ends[index].context.port(1).unwrap();
            prepared[index].endpoint(&port, port.gid().unwrap()).unwrap()
        });
        let [one, two] = prepared;
        let (mut one, mut two) = (one.connect(&endpoints[1]).unwrap(), two.connect(&endpoints[0]).unwrap());
        two.post_recv(ends[1].region.buffer(8).unwrap(), round).unwrap();
        one.post_send(ends[0].region.buffer(8).unwrap(), .., round).unwrap();
        assert_eq!(ends[1].completions.wait(LONG).unwrap().token(), round);
        assert_eq!(ends[0].completions.wait(LONG).unwrap().token(), round);
        if round % 450 == 99 {
            resident.push(
                std::fs::read_to_string("/proc/self/statm")
                    .ok()
                    .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok()),
            );
        }
    }
    if let [Some(early), .., Some(late)] = resident[..] {
        // In pages; other tests run beside this one, so only growth by the connection would show.
        assert!(late < early + 900 * 16, "{early} {late}");
    }
}

/// Memory of 16 MiB registers without a right to lock memory: nothing is locked.
#[test]
fn d19_registering_needs_no_locked_memory() {
    let end = Unconnected::open(&device(&fabric(), 0), 4096);
    assert_eq!(end.domain.allocate(16 << 20).unwrap().len(), 16 << 20);
}

/// What is not there is not waited for: the capability is asked for, and missing.
#[test]
fn d23_missing_features_are_missing() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let verbs = host.verbs;
    assert!(verbs.create_comp_channel.is_none() && verbs.get_async_event.is_none() && verbs.get_cq_event.is_none());
}

/// Whatever happens to messages inside the fabric, those that come are whole and in order.
#[test]
fn d25_late_and_lost_messages_are_never_out_of_order() {
    for plan in ["seed 1; delay share 0.3 looks 3", "seed 2; lose share 0.1; delay share 0.1 looks 5"] {
        let profile = rdma::soft::Profile::thunderbolt().with_faults(plan.parse().unwrap());
        let [mut a, mut b] = pair::connect(&pair::fabric_with(profile), |builder| builder.requests(16));
        let (mut sent, mut completed, mut next, mut waiting) = (0_u64, 0, 0, 0);
        let mut last = None;
        let start = std::time::Instant::now();
        while completed < 20_000 {
            assert!(start.elapsed() < LONG, "{plan}: {completed} sends have completed");
            while waiting < 16 {
                b.post_recv(64, next);
                (next, waiting) = (next + 1, waiting + 1);
            }
            if sent < 20_000 && sent - completed < 16 {
                a.post_send(&sent.to_le_bytes().repeat(8), sent);
                sent += 1;
            }
            while let Some(done) = a.completions.poll_one().unwrap() {
                assert_eq!(done.token(), completed);
                completed += 1;
            }
            while let Some(done) = b.completions.poll_one().unwrap() {
                waiting -= 1;
                let transfer = done.into_result().unwrap();
                let number = u64::from_le_bytes(transfer.bytes()[..8].try_into().unwrap());
                assert_eq!(transfer.bytes(), number.to_le_bytes().repeat(8), "{plan}");
                assert!(last.is_none_or(|last| number > last), "{plan}: {number} after {last:?}");
                last = Some(number);
            }
        }
    }
}

/// A poll that fails once holds nothing: polling, posting and closing go on.
#[test]
fn d26_a_poll_that_fails_holds_no_lock() {
    let profile = rdma::soft::Profile::thunderbolt().with_faults("fail ibv_poll_cq 1 EIO".parse().unwrap());
    let [mut a, mut b] = pair::connect(&pair::fabric_with(profile), |builder| builder);
    b.post_recv(64, 1);
    a.post_send(b"message", 2);
    assert!(b.completions.poll_one().is_err());
    assert_eq!(b.completions.wait(LONG).unwrap().token(), 1);
    assert_eq!(a.completions.wait(LONG).unwrap().token(), 2);
    assert!(a.queue_pair.close().unwrap().is_empty() && b.queue_pair.close().unwrap().is_empty());
}
