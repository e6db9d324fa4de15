//! Post, poll and wait allocate nothing after set-up, success or not.
#![allow(unsafe_code)]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;
use support::pair::{connect, fabric};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Counts what this thread allocates.
struct Counting;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: passed on to the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on to the caller.
        unsafe { System.dealloc(pointer, layout) };
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: passed on to the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
    assert_eq!(allocations(|| ()), 0);
}

#[test]
fn the_data_path_allocates_nothing() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(8));
    // Between processes the first message still belongs to the setting up: its sender maps the peer's memory.
    b.post_recv(8, 0);
    a.post_send(b"first", 0);
    assert_eq!((b.success().bytes(), a.success().token()), (&b"first"[..], 0));
    for length in [8, 64, 5000, 100_000] {
        let mut receive = Some(b.region.buffer(length).unwrap());
        let mut send = Some(a.region.buffer(length).unwrap());
        let frozen = a.region.buffer(length).unwrap().freeze();
        let mut array: [_; 8] = [const { None }; 8];
        let counted = allocations(|| {
            for round in 0..1000 {
                b.queue_pair.post_recv(receive.take().unwrap(), round).unwrap();
                a.queue_pair.post_send(send.take().unwrap(), .., round).unwrap();
                receive = b.completions.wait(Duration::from_secs(5)).unwrap().into_result().unwrap().into_buffer();
                assert_eq!(a.completions.poll(&mut array).unwrap(), 1);
                send = array[0].take().unwrap().into_result().unwrap().into_buffer();
                b.queue_pair.post_recv_range(receive.take().unwrap(), 1.., round).unwrap();
                a.queue_pair.post_send(frozen.clone(), 1.., round).unwrap();
                assert_eq!(b.completions.wait_many(&mut array, Duration::from_secs(5)).unwrap(), 1);
                receive = array[0].take().unwrap().ok().unwrap().into_buffer();
                for completion in a.completions.completions() {
                    completion.unwrap().into_result().unwrap();
                }
            }
        });
        assert_eq!(counted, 0, "{length}");
    }
}

/// Back-pressure and time-outs are ordinary: they allocate nothing either.
#[test]
fn a_full_queue_and_a_timeout_allocate_nothing() {
    let [mut a, mut b] = connect(&fabric(), |builder| builder.requests(4));
    for token in 0..4 {
        a.post_send(b"x", token);
    }
    let mut buffer = Some(a.region.buffer(64).unwrap());
    let counted = allocations(|| {
        for _ in 0..100 {
            let error = a.queue_pair.post_send(buffer.take().unwrap(), .., 9).unwrap_err();
            buffer = error.into_memory();
            assert!(a.completions.poll_one().unwrap().is_none());
        }
        b.completions.wait(Duration::from_millis(5)).unwrap_err();
    });
    assert_eq!(counted, 0);
}
