//! The safe API. The names of the steps are symbols, by which callgrind finds them.
#![allow(unsafe_code)]

use crate::COUNT;
use crate::duet::Stop;
use crate::duet::ends::Parts;
use rdma::{Buffer, CompletionQueue, QueuePair};
use std::hint::black_box;

type Buffers = [Option<Buffer>; COUNT];

pub(crate) struct Ends {
    here: Parts,
    there: Parts,
    messages: Buffers,
    spaces: Buffers,
}

impl Ends {
    pub(crate) fn new([here, there]: [Parts; 2], size: usize) -> Result<Self, Stop> {
        let buffers = |parts: &Parts| -> Result<Buffers, Stop> {
            let mut all = parts.region.buffers(COUNT, size)?.into_iter();
            Ok(std::array::from_fn(|_| all.next()))
        };
        Ok(Ends { messages: buffers(&here)?, spaces: buffers(&there)?, here, there })
    }

    /// One round of steps. Returns how many messages arrived.
    pub(crate) fn round(&mut self) -> usize {
        let Ends { here, there, messages, spaces } = self;
        safe_post_recv(&mut there.queue_pair, spaces);
        safe_post_send(&mut here.queue_pair, messages);
        safe_poll(&mut there.completions, spaces);
        safe_poll(&mut here.completions, messages);
        assert!(safe_poll_empty(&mut there.completions), "a completion too many");
        spaces.iter().flatten().count()
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn safe_post_recv(queue_pair: &mut QueuePair, buffers: &mut Buffers) {
    for (token, buffer) in buffers.iter_mut().enumerate() {
        queue_pair.post_recv(buffer.take().expect("it came back"), token as u64).expect("room for it");
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn safe_post_send(queue_pair: &mut QueuePair, buffers: &mut Buffers) {
    for (token, buffer) in buffers.iter_mut().enumerate() {
        queue_pair.post_send(buffer.take().expect("it came back"), .., token as u64).expect("room for it");
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn safe_poll(completions: &mut CompletionQueue, buffers: &mut Buffers) {
    for buffer in buffers {
        let completion = completions.poll_one().expect("a live queue").expect("all have arrived");
        *buffer = completion.into_result().expect("success").into_buffer();
    }
}

/// Polls a queue that has nothing.
#[inline(never)]
#[unsafe(no_mangle)]
fn safe_poll_empty(completions: &mut CompletionQueue) -> bool {
    (0..COUNT).all(|_| matches!(black_box(completions.poll_one()), Ok(None)))
}
