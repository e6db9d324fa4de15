//! Depth and requests are counted before the device is asked, and a full queue returns the buffer.

use crate::support::LONG;
use crate::support::pair::{End, Unconnected, connect, connect_devices, device, fabric};
use rdma::{Capacities, CompletionQueue, ErrorKind};

const FRAME: usize = 4096;

#[test]
fn the_grant_is_what_the_device_says() {
    let [a, _b] = connect(&fabric(), |builder| builder.depth(256).requests(16));
    let expected = Capacities { send_depth: 1023, receive_depth: 1023, send_requests: 16, receive_requests: 16 };
    assert_eq!(a.queue_pair.capacities(), expected);
}

/// floor(G/k) messages of k frames, and exactly one more after a completion was polled.
#[test]
fn frames_are_counted() {
    for depth in [1023, 2047, 4095] {
        for frames in [2, 4, 16] {
            let devices = fabric();
            let devices = [device(&devices, 0), device(&devices, 1)];
            let requests = 4095 / frames as u32;
            let [mut a, mut b] = connect_devices([&devices[0], &devices[1]], 64 << 20, |builder| {
                builder.depth(depth).send_requests(1).receive_requests(requests)
            });
            let fits = depth as usize / frames;
            for token in 0..fits as u64 {
                b.post_recv(frames * FRAME, token);
            }
            let refused = |b: &mut End, length: usize| {
                let buffer = b.region.buffer(length).unwrap();
                let address = buffer.as_ptr();
                let error = b.queue_pair.post_recv(buffer, 0).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::QueueFull);
                assert!(error.error().is_retryable());
                assert_eq!(error.into_memory().unwrap().as_ptr(), address, "the very buffer");
            };
            refused(&mut b, frames * FRAME);
            a.post_send(&vec![1; frames * FRAME], 1);
            refused(&mut b, frames * FRAME);
            b.success();
            b.post_recv(frames * FRAME, 9);
            refused(&mut b, frames * FRAME);
        }
    }
}

#[test]
fn requests_are_counted() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(4));
    let filled = a.filled(b"x");
    for token in 0..4 {
        a.post_send(b"x", token);
    }
    let error = a.queue_pair.post_send(filled, .., 4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QueueFull);
    let filled = error.into_memory().unwrap();
    b.post_recv(64, 0);
    assert_eq!(a.success().token(), 0);
    a.queue_pair.post_send(filled, .., 4).unwrap();
    // A thousand refusals cost nothing.
    let before = a.region.available();
    for _ in 0..1000 {
        let buffer = a.region.buffer(1).unwrap();
        drop(a.queue_pair.post_send(buffer, .., 5).unwrap_err());
    }
    assert_eq!(a.region.available(), before);
}

/// A message that can never fit is another error than one that does not fit now.
#[test]
fn a_message_longer_than_the_queue_is_an_argument_error() {
    let [mut a, _b] = connect(&fabric(), |builder| builder.depth(1000));
    let buffer = a.region.buffer(1024 * FRAME).unwrap();
    let error = a.queue_pair.post_send(buffer, .., 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("1023"), "{error}");
    let buffer = error.into_memory().unwrap();
    let error = a.queue_pair.post_recv(buffer, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_message_longer_than_the_device_takes_is_an_argument_error() {
    let devices = fabric();
    let devices = [device(&devices, 0), device(&devices, 1)];
    let [mut a, mut b] = connect_devices([&devices[0], &devices[1]], 17 << 20, |builder| builder);
    let max = a.context.rules().max_message() as usize;
    assert_eq!(max, 16_773_120);
    let buffer = a.region.buffer(max + 1).unwrap();
    let error = a.queue_pair.post_send(buffer, .., 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let buffer = error.into_memory().unwrap();
    b.post_recv(max, 1);
    a.queue_pair.post_send(buffer, ..max, 2).unwrap();
    assert_eq!(b.success().len(), max);
}

/// The sum of what may complete at once fits the completion queue, or the queue pair is not built.
#[test]
fn the_completion_queue_is_reserved() {
    let device = device(&fabric(), 0);
    let context = device.open().unwrap();
    let domain = context.protection_domain().unwrap();
    let completions = context.completion_queue(100).unwrap();
    let build = |queue: &CompletionQueue, requests| domain.queue_pair(queue).requests(requests).build();
    let first = build(&completions, 20).unwrap();
    assert_eq!(completions.unreserved(), 60);
    let error = build(&completions, 31).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    assert!(error.to_string().contains("60"), "{error}");
    let second = build(&completions, 30).unwrap();
    assert_eq!(completions.unreserved(), 0);
    assert_eq!(domain.queue_pair(&completions).build().unwrap_err().kind(), ErrorKind::LimitReached);
    drop(second);
    assert_eq!(completions.unreserved(), 60);
    first.close().unwrap();
    assert_eq!(completions.unreserved(), 100);
}

/// Ten queue pairs on one completion queue, without saying anything.
#[test]
fn the_default_share_lets_all_queue_pairs_in() {
    let device = device(&fabric(), 0);
    let context = device.open().unwrap();
    let domain = context.protection_domain().unwrap();
    let completions = context.completion_queue(4096).unwrap();
    let all: Vec<_> = (0..10).map(|_| domain.queue_pair(&completions).build().unwrap()).collect();
    assert!(all.iter().all(|queue_pair| queue_pair.capacities().send_requests >= 128));
    let error = domain.queue_pair(&completions).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    assert!(error.to_string().contains("EBUSY") && error.hint().unwrap().contains("retrying cannot help"), "{error}");
    assert!(!error.is_retryable());
}

/// The same 4 places hold however often they are gone round.
#[test]
fn a_full_queue_goes_round_for_ever() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(4));
    let mut free: Vec<_> = (0..4).map(|_| a.filled(&[0; 8])).collect();
    let (mut sent, mut received) = (0_u64, 0_u64);
    for token in 0..4 {
        b.post_recv(8, token);
    }
    while received < 10_000 {
        while let Some(mut buffer) = free.pop() {
            buffer.copy_from_slice(&sent.to_le_bytes());
            match a.queue_pair.post_send(buffer, .., sent) {
                Ok(()) => sent += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::QueueFull);
                    free.push(error.into_memory().unwrap());
                    break;
                }
            }
        }
        for completion in a.completions.completions() {
            free.push(completion.unwrap().into_result().unwrap().into_buffer().unwrap());
        }
        while let Some(completion) = b.completions.poll_one().unwrap() {
            let done = completion.into_result().unwrap();
            assert_eq!(done.bytes(), received.to_le_bytes());
            received += 1;
            b.queue_pair.post_recv(done.into_buffer().unwrap(), received).unwrap();
        }
    }
}

/// Unsignaled sends come back with the next signaled one, once each, and cannot fill the queue for good.
/// Whatever of its requests is signaled: within its share of the completion queue nothing is lost.
#[test]
fn a_share_that_is_used_whole_loses_nothing() {
    let fabric = fabric();
    let (a, b) = (Unconnected::open(&device(&fabric, 0), 1 << 16), Unconnected::open(&device(&fabric, 1), 1 << 16));
    let mut small = a.context.completion_queue(16).unwrap();
    let here = a.domain.queue_pair(&small).send_requests(15).receive_requests(1).build().unwrap();
    let there = b.domain.queue_pair(&b.completions).requests(90).build().unwrap();
    let (mut here, mut there) = rdma::connect::pair(here, there).unwrap();
    for token in 0..90 {
        there.post_recv(b.region.buffer(8).unwrap(), token).unwrap();
    }
    for round in 0..6 {
        for token in 0..15 {
            let buffer = a.region.buffer(8).unwrap();
            // In every other round all but the last are unsignaled.
            if round % 2 == 0 && token != 14 {
                here.post_send_unsignaled(buffer, .., token).unwrap();
            } else {
                here.post_send(buffer, .., token).unwrap();
            }
        }
        for token in 0..15 {
            assert_eq!(small.wait(LONG).unwrap().ok().unwrap().token(), token, "round {round}");
        }
    }
}

#[test]
fn unsignaled_sends_come_back_once_each() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(16));
    for token in 0..4 {
        b.post_recv(64, token);
    }
    for token in 0..3 {
        let buffer = a.filled(&[token as u8]);
        a.queue_pair.post_send_unsignaled(buffer, .., token).unwrap();
    }
    for token in 0..3 {
        assert_eq!(b.success().token(), token);
    }
    assert!(a.is_idle(), "nothing of its own");
    a.post_send(b"!", 3);
    let tokens: Vec<_> = (0..4).map(|_| a.success().token()).collect();
    assert_eq!(tokens, [0, 1, 2, 3]);
    assert!(a.is_idle());
    assert_eq!(a.region.available(), a.region.len());
    // Only unsignaled ones, more than the queue holds.
    let (mut posted, mut returned) = (0, 0);
    b.success();
    for token in 4..20 {
        b.post_recv(64, token);
    }
    while posted < 2000 {
        let buffer = a.filled(b"x");
        match a.queue_pair.post_send_unsignaled(buffer, .., posted) {
            Ok(()) => posted += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::QueueFull),
        }
        while let Some(completion) = a.completions.poll_one().unwrap() {
            assert_eq!(completion.into_result().unwrap().token(), returned);
            returned += 1;
        }
        while let Some(completion) = b.completions.poll_one().unwrap() {
            let buffer = completion.into_result().unwrap().into_buffer().unwrap();
            b.queue_pair.post_recv(buffer, 0).unwrap();
        }
    }
    assert!(returned >= 2000 - 16);
    let left = a.queue_pair.close().unwrap();
    assert_eq!(
        left.iter().map(|unfinished| unfinished.token).collect::<Vec<_>>(),
        (returned..2000).collect::<Vec<_>>()
    );
}
