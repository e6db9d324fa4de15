//! What several test programs need.
#![allow(dead_code, unreachable_pub)]

pub mod fabrics;
pub mod pair;
pub mod raw;

use std::time::Duration;

/// How long anything that must happen may take before the test fails.
pub const LONG: Duration = Duration::from_secs(30);

/// How long to look for something that must not happen.
pub const SHORT: Duration = Duration::from_millis(50);

/// Asks until the answer is yes. Panics after [`LONG`], naming what was waited for.
#[track_caller]
pub fn eventually(what: &str, mut ready: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !ready() {
        assert!(start.elapsed() < LONG, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// Bytes that tell where they are from.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}
