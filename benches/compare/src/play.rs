//! A ping-pong in short batches, each with the floor of its moment.

use crate::arena::Arena;
use crate::batch::Source;
use crate::cores::Cores;
use crate::{Result, trips};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is sent to and fro.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) size: usize,
    pub(crate) source: Source,
}

/// One side of a contestant.
pub(crate) trait End {
    /// Sends the message.
    fn send(&mut self) -> Result<()>;

    /// Writes the message anew, all of it.
    fn rewrite(&mut self, value: u8) -> Result<()>;

    /// Waits for the other side's message, and reads every cache line of it.
    fn receive(&mut self) -> Result<()>;
}

/// No batch takes as long, nor anything before it.
const DEADLINE: Duration = Duration::from_secs(20);
/// Round trips of the line in a batch.
const HOPS: u64 = 60;
/// Of which nothing is told.
const WARM_UP: u64 = 3;
const OVER: u64 = u64::MAX;

/// Reads every cache line.
#[inline]
pub(crate) fn touch(bytes: &[u8]) {
    black_box(bytes.iter().step_by(64).fold(0_u8, |sum, &byte| sum.wrapping_add(byte)));
}

/// Waits: busily for a microsecond or two, then giving the processor away.
#[inline]
pub(crate) fn wait<T>(mut ready: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    for _ in 0..64 {
        if let Some(value) = ready()? {
            return Ok(value);
        }
        spin_loop();
    }
    let begin = Instant::now();
    loop {
        if let Some(value) = ready()? {
            return Ok(value);
        }
        std::thread::yield_now();
        if begin.elapsed() > DEADLINE {
            return Err("the other side is silent".into());
        }
    }
}

#[inline]
fn wait_for(word: &AtomicU64, value: u64) -> Result<()> {
    wait(|| Ok((word.load(Ordering::Acquire) == value).then_some(())))
}

/// Says that this side is ready, and waits for the other.
pub(crate) fn meet(arena: &Arena) -> Result<()> {
    arena.ready().fetch_add(1, Ordering::AcqRel);
    wait_for(arena.ready(), 2)
}

/// The first side: for so long, the floor and the time of one way of each batch, in nanoseconds.
pub(crate) fn call(
    arena: &Arena,
    end: &mut impl End,
    task: Task,
    time: Duration,
    mut told: impl FnMut(f64, f64) -> Result<()>,
) -> Result<()> {
    let (trips, rewritten) = (trips(task.size), task.source == Source::Rewritten);
    let mut begin = Instant::now();
    for number in 0.. {
        if number == WARM_UP {
            begin = Instant::now();
        }
        if number > WARM_UP && begin.elapsed() >= time {
            break;
        }
        arena.word().store(number + 1, Ordering::Release);
        let floor = floor(arena, number)?;
        let from = Instant::now();
        for trip in 0..trips {
            if rewritten {
                end.rewrite(trip as u8)?;
            }
            end.send()?;
            end.receive()?;
        }
        let one_way = from.elapsed().as_nanos() as f64 / (2 * trips) as f64;
        if number >= WARM_UP {
            told(floor, one_way)?;
        }
    }
    arena.word().store(OVER, Ordering::Release);
    Ok(())
}

/// The second side.
pub(crate) fn answer(arena: &Arena, end: &mut impl End, task: Task) -> Result<()> {
    let (trips, rewritten) = (trips(task.size), task.source == Source::Rewritten);
    for number in 0.. {
        let word = wait(|| Ok(Some(arena.word().load(Ordering::Acquire)).filter(|&word| word > number)))?;
        if word == OVER {
            break;
        }
        reflect(arena, number)?;
        for trip in 0..trips {
            end.receive()?;
            if rewritten {
                end.rewrite(trip as u8)?;
            }
            end.send()?;
        }
    }
    Ok(())
}

/// The time that a cache line takes from core to core and nothing else, in nanoseconds.
fn floor(arena: &Arena, number: u64) -> Result<f64> {
    let (line, start) = (arena.line(), number * 2 * (HOPS + 1));
    let trip = |turn: u64| {
        line.store(start + 2 * turn + 1, Ordering::Release);
        wait_for(line, start + 2 * turn + 2)
    };
    // One ahead, because the other side may not be there yet.
    trip(0)?;
    let from = Instant::now();
    for turn in 1..=HOPS {
        trip(turn)?;
    }
    Ok(from.elapsed().as_nanos() as f64 / (2 * HOPS) as f64)
}

/// The other side of it.
fn reflect(arena: &Arena, number: u64) -> Result<()> {
    let (line, start) = (arena.line(), number * 2 * (HOPS + 1));
    for turn in 0..=HOPS {
        wait_for(line, start + 2 * turn + 1)?;
        line.store(start + 2 * turn + 2, Ordering::Release);
    }
    Ok(())
}

/// Nobody sends anything: for the floor alone.
pub(crate) struct Nothing;

impl End for Nothing {
    fn rewrite(&mut self, _: u8) -> Result<()> {
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Both sides as threads of this process.
pub(crate) fn threads<E: End + Send>(
    arena: &Arena,
    cores: Cores,
    [mut here, mut there]: [E; 2],
    task: Task,
    time: Duration,
    told: impl FnMut(f64, f64) -> Result<()> + Send,
) -> Result<()> {
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            cores.pin(1)?;
            answer(arena, &mut there, task)
        });
        let client = scope.spawn(move || {
            cores.pin(0)?;
            call(arena, &mut here, task, time, told)
        });
        for thread in [client, server] {
            thread.join().map_err(|_| "a side has panicked")??;
        }
        Ok(())
    })
}
