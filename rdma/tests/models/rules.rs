//! Messages in the model of traffic: what is in them, and what the profile of a device makes a difference for.

use rdma::{Context, DepthUnit};

pub(super) const FRAME: usize = 4096;

pub(super) fn frames(length: usize) -> usize {
    length.div_ceil(FRAME)
}

/// What the device's profile makes a difference for.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    longest: usize,
    /// Depth counts frames, both ends must post as many of them, and a send waits for its receive. Otherwise depth counts
    /// requests, and a send without a receive is lost.
    pub(super) frames: bool,
    pub(super) granted: usize,
}

/// On an adapter every receive is at least, and every send at most as long: one that does not fit ends the queue pair, which
/// `tests/classic` has.
const FITTING: usize = 2 * FRAME + 1;

impl Rules {
    pub(super) fn of(context: &Context) -> Self {
        let rules = context.rules();
        let frames = rules.depth_unit() == DepthUnit::Frames;
        Rules { longest: rules.max_message() as usize, frames, granted: if frames { 1023 } else { 511 } }
    }

    pub(super) fn places(self, length: usize) -> usize {
        if self.frames { frames(length) } else { 1 }
    }

    /// The length of a request, so that it can be posted.
    pub(super) fn length(self, length: usize, receive: bool) -> usize {
        match (self.frames, receive) {
            (true, _) => length.min(self.longest),
            (false, true) => length.max(FITTING),
            (false, false) => length.min(FITTING),
        }
    }
}

/// The contents of a message, from its token.
pub(super) fn contents(token: u64, length: usize) -> Vec<u8> {
    let mut state = token.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|index| {
            if index % 61 == 0 {
                state = state.rotate_left(23).wrapping_mul(0xd134_2543_de82_ef95) | 1;
            }
            (state >> (index % 56)) as u8
        })
        .collect()
}
