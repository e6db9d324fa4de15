//! Messages, and what comes back of them.

use crate::support::pair::{End, connect, fabric, pair};
use crate::support::{LONG, SHORT, fabrics, pattern};
use rdma::{Completion, Direction, ErrorKind, Memory, Status};
use std::time::Duration;

#[test]
fn a_message_arrives_and_both_buffers_come_back() {
    let [mut a, mut b] = pair();
    b.post_recv(4096, 7);
    a.post_send(b"hello", 8);
    let received = b.success();
    assert_eq!((received.token(), received.direction(), received.len()), (7, Direction::Receive, 5));
    assert_eq!(received.bytes(), b"hello");
    assert_eq!(received.queue_pair(), b.queue_pair.number());
    assert_eq!(received.immediate(), None);
    assert_eq!(received.into_buffer().unwrap().len(), 4096, "the whole buffer");
    let sent = a.success();
    assert_eq!((sent.token(), sent.direction(), sent.bytes()), (8, Direction::Send, &b"hello"[..]));
}

#[test]
fn both_directions_and_many_lengths() {
    let [mut a, mut b] = pair();
    for (seed, length) in [1, 48, 49, 4096, 4097, 65536, 1 << 20].into_iter().enumerate() {
        let (there, back) = (pattern(seed as u64, length), pattern(seed as u64 + 100, length));
        a.post_recv(length, 1);
        b.post_recv(length, 2);
        a.post_send(&there, 3);
        b.post_send(&back, 4);
        for (end, expected) in [(&mut a, &back), (&mut b, &there)] {
            let mut seen = 0;
            for _ in 0..2 {
                let done = end.success();
                if done.direction() == Direction::Receive {
                    assert!(done.bytes() == expected.as_slice(), "{length}");
                    seen += 1;
                }
            }
            assert_eq!(seen, 1);
        }
    }
}

#[test]
fn ranges_are_sent_and_received_and_the_whole_comes_back() {
    let [mut a, mut b] = pair();
    let buffer = b.region.buffer(1000).unwrap();
    b.queue_pair.post_recv_range(buffer, 100..200, 1).unwrap();
    let buffer = a.filled(&pattern(1, 1000));
    a.queue_pair.post_send(buffer, 500..=509, 2).unwrap();
    let received = b.success();
    assert_eq!(received.bytes(), &pattern(1, 1000)[500..510]);
    let whole = received.into_buffer().unwrap();
    assert_eq!(whole[100..110], pattern(1, 1000)[500..510]);
    assert!(whole[..100].iter().chain(&whole[110..]).all(|&byte| byte == 0));
    assert_eq!(a.success().into_buffer().unwrap().len(), 1000);
}

#[test]
#[allow(clippy::reversed_empty_ranges)]
fn a_range_that_is_none_is_refused_with_the_buffer() {
    let [mut a, _b] = pair();
    let mut buffer = Some(a.region.buffer(10).unwrap());
    for range in [5..11, 11..12, 7..6, 0..usize::MAX] {
        let error = a.queue_pair.post_send(buffer.take().unwrap(), range, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        buffer = error.into_memory();
    }
    // An empty message would be lost over Thunderbolt (Aileuxe/MCDMA, macOS 27).
    let error = a.queue_pair.post_send(buffer.take().unwrap(), 4..4, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("empty"), "{error}");
    assert_eq!(error.into_memory().unwrap().len(), 10);
}

#[test]
fn a_failed_receive_has_no_length_and_no_contents() {
    let [mut a, mut b] = pair();
    b.post_recv(8192, 1);
    a.post_send(b"too few frames", 2);
    let failed = b.next();
    assert_eq!(failed.status(), Status::LOC_LEN_ERR);
    let failure = failed.into_result().unwrap_err();
    assert_eq!((failure.token(), failure.direction(), failure.status()), (1, Direction::Receive, Status::LOC_LEN_ERR));
    assert_eq!(failure.queue_pair(), b.queue_pair.number());
    let text = failure.to_string();
    assert!(text.contains("LOC_LEN_ERR (1)"), "{text}");
    assert_eq!(failure.into_buffer().unwrap().len(), 8192, "it comes back all the same");
    a.success();
    // And the queue pair goes on.
    b.post_recv(64, 3);
    a.post_send(b"now", 4);
    assert_eq!(b.success().bytes(), b"now");
}

#[test]
fn a_failure_becomes_an_error_that_says_what_to_do() {
    let [mut a, mut b] = pair();
    b.post_recv(8192, 1);
    a.post_send(b"x", 2);
    let error = b.next().ok().unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Failed, Some(Status::LOC_LEN_ERR)));
    assert_eq!(error.subject().queue_pair, Some(b.queue_pair.number()));
    assert!(error.hint().unwrap().contains("frames"), "{error}");
    let number = b.queue_pair.number();
    let start = format!("queue pair {number:#08x}: the receive with token 1 completed with LOC_LEN_ERR (1) (");
    assert!(error.to_string().starts_with(&start), "{error}");
    assert_eq!(b.region.available(), b.region.len(), "the buffer went back to its region");
    assert_eq!(a.next().ok().unwrap().token(), 2);
}

/// `?` makes what a program has of it: the library's error, one of its own, or a boxed one, which keeps the memory.
#[test]
fn failures_go_with_question_marks() {
    #[derive(Debug, thiserror::Error)]
    enum Own {
        #[error(transparent)]
        Rdma(#[from] rdma::Error),
    }
    impl<M> From<rdma::PostError<M>> for Own {
        fn from(error: rdma::PostError<M>) -> Self {
            Own::Rdma(error.into())
        }
    }
    fn library(completion: Completion) -> rdma::Result<usize> {
        Ok(completion.into_result()?.len())
    }
    fn own(completion: Completion) -> Result<usize, Own> {
        Ok(completion.ok()?.len())
    }
    fn boxed(completion: Completion) -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
        Ok(completion.into_result()?.len())
    }
    let [mut a, mut b] = pair();
    let mut texts = Vec::new();
    for number in 0..3 {
        b.post_recv(8192, 1);
        a.post_send(b"x", 2);
        let failed = b.next();
        match number {
            0 => texts.push(library(failed).unwrap_err().to_string()),
            1 => texts.push(own(failed).unwrap_err().to_string()),
            _ => {
                let error = boxed(failed).unwrap_err();
                assert!(b.region.available() < b.region.len());
                texts.push(error.to_string());
            }
        }
        assert_eq!(b.region.available(), b.region.len());
        a.success();
    }
    assert!(texts.iter().all(|text| *text == texts[0] && text.contains("LOC_LEN_ERR (1) (")), "{texts:?}");
    let post = |a: &mut End| -> Result<(), Own> { Ok(a.queue_pair.post_send(a.region.buffer(9).unwrap(), 10.., 0)?) };
    let Own::Rdma(error) = post(&mut a).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn many_are_waited_for_at_once() {
    let [mut a, mut b] = pair();
    let mut array = [const { None }; 4];
    let error = b.completions.wait_many(&mut array, SHORT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(b.completions.wait_many(&mut [], SHORT).unwrap_err().kind(), ErrorKind::InvalidArgument);
    for token in 0..6 {
        b.post_recv(64, token);
        a.post_send(b"x", token);
    }
    // As many as fit, then what is left, in order.
    assert_eq!(b.completions.wait_many(&mut array, LONG).unwrap(), 4);
    let tokens = array.each_ref().map(|completion| completion.as_ref().unwrap().token());
    assert_eq!(tokens, [0, 1, 2, 3]);
    assert_eq!(b.completions.wait_many(&mut array, LONG).unwrap(), 2);
    assert_eq!(array[0].take().unwrap().ok().unwrap().token(), 4);
    // And one that comes while it waits.
    std::thread::scope(|scope| {
        let completions = &mut b.completions;
        let waiter = scope.spawn(move || completions.wait_many(&mut [None, None], LONG).unwrap());
        std::thread::sleep(Duration::from_millis(20));
        b.queue_pair.post_recv(b.region.buffer(64).unwrap(), 7).unwrap();
        a.post_send(b"x", 7);
        assert_eq!(waiter.join().unwrap(), 1);
    });
}

/// Every message of a broadcast is posted from one frozen buffer.
#[test]
fn a_frozen_buffer_goes_to_many_at_once() {
    let fabric = fabrics::mesh(2);
    let [mut a, mut b] = connect(&fabric, |builder| builder.requests(8));
    for token in 0..4 {
        b.post_recv(64, token);
    }
    let frozen = a.filled(b"to everyone").freeze();
    for token in 0..4 {
        a.queue_pair.post_send(frozen.clone(), .., token).unwrap();
    }
    assert_eq!(&frozen[..], b"to everyone", "readable meanwhile");
    let frozen = frozen.thaw().expect_err("in flight, or in completions");
    for _ in 0..4 {
        assert_eq!(b.success().bytes(), b"to everyone");
        assert!(matches!(a.success().into_memory(), Memory::Frozen(_)));
    }
    let mut buffer = frozen.thaw().unwrap();
    buffer.fill(0);
}

/// The hook looks at the queue pair's own sends: they put it off.
#[test]
fn keep_alive_is_due_after_a_silence() {
    let [mut a, mut b] = pair();
    let mut keep_alive = rdma::KeepAlive::new(Duration::from_millis(30));
    assert!(!keep_alive.is_due(&a.queue_pair));
    crate::support::eventually("the silence to be noticed", || keep_alive.is_due(&a.queue_pair));
    assert!(keep_alive.is_due(&a.queue_pair), "until something is sent");
    b.post_recv(64, 1);
    a.post_send(b"still here", 2);
    assert!(!keep_alive.is_due(&a.queue_pair));
    assert!(rdma::KeepAlive::new(Duration::ZERO).is_due(&a.queue_pair));
    assert!(!rdma::KeepAlive::default().is_due(&a.queue_pair));
}

/// The receiver's answer is seen after the completion of the message it answers: sends come first.
#[test]
fn polling_fills_an_array_in_order() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(32));
    for token in 0..20 {
        b.post_recv(64, token);
    }
    for token in 0..20 {
        a.post_send(&[token as u8], token);
    }
    let mut array: [_; 7] = [const { None }; 7];
    let mut tokens = Vec::new();
    while tokens.len() < 20 {
        let count = b.completions.poll(&mut array).unwrap();
        assert!(array[..count].iter().all(Option::is_some) && array[count..].iter().all(Option::is_none));
        for completion in array[..count].iter_mut().filter_map(Option::take) {
            let received = completion.into_result().unwrap();
            assert_eq!(received.bytes(), [received.token() as u8]);
            tokens.push(received.token());
        }
    }
    assert_eq!(tokens, (0..20).collect::<Vec<_>>());
    assert_eq!(b.completions.poll(&mut array).unwrap(), 0);
    assert_eq!(b.completions.poll(&mut []).unwrap(), 0);
}

/// What is left of a batch stays: an iteration that ends early, or panics, loses nothing.
#[test]
fn an_iteration_left_early_loses_nothing() {
    let [mut a, mut b] = pair();
    for token in 0..3 {
        b.post_recv(64, token);
    }
    for token in 0..3 {
        a.post_send(b"x", token);
    }
    let first = b.completions.completions().next().unwrap().unwrap();
    assert_eq!(first.token(), 0);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for completion in b.completions.completions() {
            assert_ne!(completion.unwrap().token(), 1, "as a handler that fails would");
        }
    }));
    assert!(panicked.is_err());
    let rest: Vec<_> = b.completions.completions().map(|completion| completion.unwrap().token()).collect();
    assert_eq!(rest, [2]);
}

/// An array that still holds completions: they are dropped, and their buffers go back.
#[test]
fn an_array_can_be_used_again_without_emptying_it() {
    let [mut a, mut b] = pair();
    let mut array: [_; 1] = [const { None }; 1];
    for round in 0..5 {
        b.post_recv(64, round);
        a.post_send(b"x", round);
        assert_eq!(b.completions.poll(&mut array).unwrap(), 1);
        assert_eq!(array[0].as_ref().unwrap().token(), round);
        a.success();
    }
    drop(array);
    assert_eq!(b.region.available(), b.region.len());
}
