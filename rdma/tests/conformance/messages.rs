//! What arrives.

use super::ends::{Link, queue_pair_type};
use crate::support::{SHORT, pattern};
use rdma::{DepthUnit, Direction, ErrorKind, QueuePairType, Status};

#[test]
fn every_length_in_both_directions() {
    let link = Link::open();
    let [mut a, mut b] = link.connect(|builder| builder);
    let longest = a.context.rules().max_message();
    let lengths = [1, 8, 48, 49, 1023, 1024, 1025, 4095, 4096, 4097, 65_536, 1 << 20];
    for (seed, length) in lengths.into_iter().filter(|&length| length as u64 <= longest).enumerate() {
        let (there, back) = (pattern(seed as u64, length), pattern(seed as u64 + 100, length));
        a.post_recv(length, 1);
        b.post_recv(length, 2);
        a.post_send(&there, 3);
        b.post_send(&back, 4);
        for (end, expected) in [(&mut a, &back), (&mut b, &there)] {
            for _ in 0..2 {
                let done = end.success();
                if done.direction() == Direction::Receive {
                    assert!(done.bytes() == expected.as_slice(), "{length}");
                }
            }
        }
    }
}

/// In the order in which they were posted, on each queue.
#[test]
fn order_is_kept() {
    let link = Link::open();
    let [mut a, mut b] = link.connect(|builder| builder.requests(16));
    for round in 0..10_u64 {
        for token in 0..16 {
            b.post_recv(64, token);
        }
        for token in 0..16 {
            a.post_send(&(round * 16 + token).to_le_bytes(), token);
        }
        for token in 0..16 {
            let received = b.success();
            assert_eq!((received.token(), received.bytes()), (token, &(round * 16 + token).to_le_bytes()[..]));
            assert_eq!(a.success().token(), token);
        }
    }
}

/// A send without a receive: it waits on Thunderbolt and on a reliable connection; on an adapter's unreliable one it is
/// gone, and has succeeded.
#[test]
fn a_send_without_a_receive() {
    let link = Link::open();
    let [mut a, mut b] = link.connect(|builder| builder);
    let held = a.context.rules().depth_unit() == DepthUnit::Frames || queue_pair_type() == QueuePairType::RC;
    a.post_send(b"first", 1);
    if !held {
        a.success();
        std::thread::sleep(SHORT);
    }
    b.post_recv(64, 1);
    if held {
        assert_eq!(b.success().bytes(), b"first");
        a.success();
    }
    a.post_send(b"second", 2);
    if held {
        b.post_recv(64, 2);
    }
    assert_eq!(b.success().bytes(), b"second");
    assert_eq!(a.success().token(), 2);
}

/// A message that is longer than its receive: an error at the receiver, which gets its buffer back.
#[test]
fn a_message_that_does_not_fit() {
    let link = Link::open();
    let [mut a, mut b] = link.connect(|builder| builder);
    b.post_recv(100, 1);
    a.post_send(&[7; 4096], 2);
    let failed = b.next();
    assert_eq!((failed.token(), failed.direction()), (1, Direction::Receive));
    assert_ne!(failed.status(), Status::SUCCESS);
    // The statuses differ: the length error of the specification, rxe's operation error, Thunderbolt's length error.
    let failure = failed.into_result().unwrap_err();
    assert_eq!(failure.into_buffer().unwrap().len(), 100);
    let sent = a.next();
    assert_eq!(sent.token(), 2);
    assert_eq!(sent.status() == Status::SUCCESS, queue_pair_type() == QueuePairType::UC);
}

/// On Thunderbolt the number of frames must be the same, also where the receive is longer. Within a frame, or on an
/// adapter, it may be longer.
#[test]
fn a_longer_receive() {
    let link = Link::open();
    let [mut a, mut b] = link.connect(|builder| builder);
    let rules = a.context.rules().clone();
    let length = rules.max_message().min(8192);
    b.post_recv(length as usize, 1);
    a.post_send(b"short", 2);
    let received = b.next();
    if rules.places(length) > 1 {
        assert_eq!(received.status(), Status::LOC_LEN_ERR);
    } else {
        assert_eq!(received.into_result().unwrap().bytes(), b"short");
    }
    a.success();
}

#[test]
fn empty_messages() {
    let link = Link::open();
    let [mut a, mut b] = link.connect(|builder| builder);
    let buffer = a.region.buffer(16).unwrap();
    if a.context.rules().allows_empty() {
        b.post_recv(64, 1);
        a.queue_pair.post_send(buffer, 0..0, 2).unwrap();
        assert_eq!(b.success().len(), 0);
        a.success();
    } else {
        let error = a.queue_pair.post_send(buffer, 0..0, 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(error.into_memory().unwrap().len(), 16);
    }
}

/// Immediate data arrives where the device has it, and is refused with the buffer where it has not.
#[test]
fn immediate_data() {
    let link = Link::open();
    let [mut a, mut b] = link.connect(|builder| builder);
    b.post_recv(64, 1);
    let buffer = a.filled(b"with");
    match a.queue_pair.post_send_immediate(buffer, .., 0xdead_beef, 2) {
        Ok(()) => {
            let received = b.success();
            assert_eq!((received.bytes(), received.immediate()), (&b"with"[..], Some(0xdead_beef)));
            a.success();
        }
        Err(error) => {
            assert_eq!(a.context.rules().depth_unit(), DepthUnit::Frames, "{error}");
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert_eq!(error.into_memory().unwrap().len(), 4);
        }
    }
}

/// One buffer on two queue pairs at once.
#[test]
fn a_frozen_buffer_goes_twice() {
    let link = Link::open();
    let [mut a, mut b] = link.connect(|builder| builder);
    let frozen = a.filled(b"to all").freeze();
    for token in 0..2 {
        b.post_recv(64, token);
        a.queue_pair.post_send(frozen.clone(), .., token).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(b.success().bytes(), b"to all");
        a.success();
    }
}
