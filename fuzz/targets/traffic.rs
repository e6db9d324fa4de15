//! Sequences of operations of the safe API against the model in `rdma/tests/models/traffic.rs`: what was posted comes back
//! exactly once, bytes are right, no buffer is lost.
#![no_main]

#[path = "../../rdma/tests/models/traffic.rs"]
mod traffic;

use libfuzzer_sys::fuzz_target;
use rdma_fuzz::Choices;
use traffic::{Kind, LENGTHS, LINES, Op, World};

fn op(choices: &mut Choices<'_>) -> Op {
    let kind = choices.below(16);
    let (line, side) = (choices.below(LINES), choices.below(2));
    // The long ones are rare: they cost as much as thousands of short ones.
    let length = |choices: &mut Choices<'_>| match choices.byte() {
        byte @ 240.. => LENGTHS[usize::from(byte) % LENGTHS.len()],
        byte => LENGTHS[usize::from(byte) % 10],
    };
    match kind {
        0 => Op::Build { line, side },
        1 => Op::Connect { line, side },
        2..=5 => Op::Receive { line, side, length: length(choices) },
        6..=9 => {
            let kind = choices.of(&[Kind::Plain, Kind::Frozen, Kind::Unsignaled]);
            Op::Send { line, side, length: length(choices), kind }
        }
        10 => {
            let lengths = std::array::from_fn(|_| length(choices));
            Op::Batch { line, side, lengths, receives: choices.flag() }
        }
        11 | 12 => Op::Poll { side, count: choices.below(20) },
        13 => Op::Close { line, side },
        14 => Op::Drop { line, side },
        _ => Op::Cable { plugged: choices.byte() > 60 },
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut choices = Choices::new(bytes);
    let mut ops = Vec::new();
    // The first byte says how many lines are connected to begin with.
    for line in 0..choices.below(LINES + 1) {
        ops.extend([0, 1].map(|side| Op::Build { line, side }));
        ops.extend([0, 1].map(|side| Op::Connect { line, side }));
    }
    while !choices.is_over() && ops.len() < 200 {
        ops.push(op(&mut choices));
    }
    World::run(rdma_fuzz::pair(bytes, &["thunderbolt", "thunderbolt_27", "classic"]), &ops);
});
