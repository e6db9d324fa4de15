//! Posting in one thread, polling in another, closing in the middle of it.

use crate::support::pair::{End, connect, connect_devices, device, fabric};
use crate::support::{LONG, pattern};
use rdma::{Direction, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// One owner posts, one owner polls: two threads a side.
#[test]
fn a_poster_and_a_poller_can_be_two_threads() {
    const MESSAGES: u64 = 20_000;
    let [a, b] = connect(&fabric(), |builder| builder.requests(32));
    std::thread::scope(|scope| {
        let End { mut queue_pair, mut completions, region, .. } = a;
        let (give, take) = mpsc::channel();
        for _ in 0..32 {
            give.send(region.buffer(64).unwrap()).unwrap();
        }
        scope.spawn(move || {
            for number in 0..MESSAGES {
                let mut buffer = take.recv_timeout(LONG).unwrap();
                buffer.copy_from_slice(&pattern(number, 64));
                queue_pair.post_send(buffer, .., number).unwrap();
            }
            // The queue pair lives until everything has gone: all buffers are back.
            (0..32).for_each(|_| drop(take.recv_timeout(LONG).unwrap()));
        });
        scope.spawn(move || {
            for number in 0..MESSAGES {
                let sent = completions.wait(LONG).unwrap().into_result().unwrap();
                assert_eq!(sent.token(), number);
                let _ = give.send(sent.into_buffer().unwrap());
            }
        });
        let End { mut queue_pair, mut completions, region, .. } = b;
        let (give, take) = mpsc::channel();
        for _ in 0..32 {
            give.send(region.buffer(64).unwrap()).unwrap();
        }
        scope.spawn(move || {
            for number in 0..MESSAGES {
                queue_pair.post_recv(take.recv_timeout(LONG).unwrap(), number).unwrap();
            }
            (0..32).for_each(|_| drop(take.recv_timeout(LONG).unwrap()));
        });
        scope.spawn(move || {
            for number in 0..MESSAGES {
                let received = completions.wait(LONG).unwrap().into_result().unwrap();
                assert_eq!(received.token(), number);
                assert_eq!(received.bytes(), pattern(number, 64));
                give.send(received.into_buffer().unwrap()).unwrap();
            }
        });
    });
}

/// Ten queue pairs on one device (all there are), a thread for each at both ends, one completion queue each: nothing is
/// lost, doubled or torn (jonhoo/rust-ibverbs pull request 113 had to run its tests one at a time on Soft-RoCE).
#[test]
fn ten_pairs_at_once() {
    let fabric = fabric();
    let devices = [device(&fabric, 0), device(&fabric, 1)];
    let fabric = &devices;
    std::thread::scope(|scope| {
        for number in 0..10_u64 {
            scope.spawn(move || {
                let [mut a, mut b] =
                    connect_devices([&fabric[0], &fabric[1]], 1 << 20, |builder| builder.depth(1000).requests(32));
                const MESSAGES: u64 = 2_000;
                std::thread::scope(|scope| {
                    scope.spawn(move || {
                        let (mut posted, mut done) = (0, 0);
                        while done < MESSAGES {
                            while posted < MESSAGES && posted - done < 32 {
                                let length = (posted % 5000 + 1) as usize;
                                a.post_send(&pattern(number << 32 | posted, length), posted);
                                posted += 1;
                            }
                            assert_eq!(a.success().token(), done);
                            done += 1;
                        }
                    });
                    scope.spawn(move || {
                        let (mut posted, mut done) = (0, 0);
                        while done < MESSAGES {
                            while posted < MESSAGES && posted - done < 32 {
                                b.post_recv((posted % 5000 + 1) as usize, posted);
                                posted += 1;
                            }
                            let received = b.success();
                            assert_eq!(received.token(), done);
                            assert!(received.bytes() == pattern(number << 32 | done, (done % 5000 + 1) as usize));
                            done += 1;
                        }
                    });
                });
            });
        }
    });
}

/// The rule of the house: while the other side floods messages of 64 KiB to 16 MiB, this side closes its queue pair at any
/// moment, gets its buffers, rewrites them, and they stay as they were written.
#[test]
fn closing_under_a_flood_gives_quiet_buffers() {
    let lengths = [64 << 10, 1 << 20, 16_773_120];
    for round in 0..30_usize {
        let length = lengths[round % 3];
        let fabric = fabric();
        let devices = [device(&fabric, 0), device(&fabric, 1)];
        let [mut a, mut b] = connect_devices([&devices[0], &devices[1]], 34 << 20, |builder| builder.requests(4));
        let stop = AtomicBool::new(false);
        let posts = if length > 8 << 20 { 1 } else { 2 };
        for token in 0..posts {
            b.post_recv(length, token);
        }
        std::thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || {
                let mut buffer = Some(a.region.buffer(length).unwrap());
                if let Some(buffer) = &mut buffer {
                    buffer.fill(0xff);
                }
                let start = Instant::now();
                while !stop.load(Ordering::Acquire) && start.elapsed() < LONG {
                    if let Some(ready) = buffer.take() {
                        match a.queue_pair.post_send(ready, .., 0) {
                            Ok(()) => {}
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::QueueFull);
                                buffer = error.into_memory();
                            }
                        }
                    }
                    if let Some(completion) = a.completions.poll_one().unwrap() {
                        buffer = completion.into_result().unwrap().into_buffer();
                    }
                }
            });
            // A little later each round, so that the copy is met everywhere.
            let start = Instant::now();
            while start.elapsed().as_micros() < (round * 97) as u128 {
                match b.completions.poll_one().unwrap() {
                    Some(completion) => {
                        let done = completion.into_result().unwrap();
                        assert_eq!(done.direction(), Direction::Receive);
                        b.queue_pair.post_recv(done.into_buffer().unwrap(), 0).unwrap();
                    }
                    None => std::hint::spin_loop(),
                }
            }
            let unfinished = b.queue_pair.close().unwrap();
            let mut buffers: Vec<_> = unfinished.into_iter().map(|item| item.memory.into_buffer().unwrap()).collect();
            for buffer in &mut buffers {
                buffer.fill(0x11);
            }
            let start = Instant::now();
            while start.elapsed().as_micros() < 1000 {
                std::hint::spin_loop();
            }
            assert!(
                buffers.iter().all(|buffer| buffer.iter().all(|&byte| byte == 0x11)),
                "written after close, round {round}"
            );
            stop.store(true, Ordering::Release);
        });
    }
}

/// Two queue pairs that share two completion queues the other way round, closed at once by two threads.
#[test]
fn crossed_completion_queues_do_not_deadlock() {
    let fabric = fabric();
    let end = crate::support::pair::Unconnected::open(&device(&fabric, 0), 4096);
    let other = end.context.completion_queue(4096).unwrap();
    let start = Instant::now();
    for _ in 0..200 {
        let one = end.domain.queue_pair(&end.completions).receive_completions(&other).requests(4).build().unwrap();
        let two = end.domain.queue_pair(&other).receive_completions(&end.completions).requests(4).build().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || one.close().unwrap());
            scope.spawn(move || two.close().unwrap());
        });
        assert!(start.elapsed() < LONG);
    }
}
