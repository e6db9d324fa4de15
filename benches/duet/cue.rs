use super::{Line, Options, Stage, Stop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How the client tells the server that another batch begins, or that there is none; and the line that each begins with.
#[derive(Debug, Default)]
pub(crate) struct Cue {
    word: Word,
    line: Line,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Word(AtomicU64);

const OVER: u64 = u64::MAX;

impl Cue {
    /// The client's side: the numbers of the batches, as many as there is time for.
    pub(crate) fn batches(&self, options: &Options) -> impl Iterator<Item = u64> + use<'_> {
        let (least, time) = if options.quick { (3, Duration::ZERO) } else { (10, options.time) };
        let begin = Instant::now();
        (0..).map_while(move |number| {
            let another = number < least || begin.elapsed() < time;
            self.word.0.store(if another { number + 1 } else { OVER }, Ordering::Release);
            another.then_some(number)
        })
    }

    /// The client's side: the floor at this moment, in nanoseconds.
    pub(crate) fn floor(&self, stage: &Stage) -> Result<f64, Stop> {
        self.line.measure(&stage.clock, &stage.patience)
    }

    /// The server's side: waits for the batch of this number, and plays its part of measuring the floor. Returns whether
    /// there is one.
    pub(crate) fn follow(&self, number: u64, stage: &Stage) -> Result<bool, Stop> {
        let (mut turns, mut since) = (0, None);
        loop {
            match self.word.0.load(Ordering::Acquire) {
                OVER => return Ok(false),
                word if word > number => break,
                _ => {}
            }
            turns += 1;
            if turns < 64 {
                std::hint::spin_loop();
            } else {
                thread::yield_now();
                stage.impatient(*since.get_or_insert_with(Instant::now))?;
            }
        }
        self.line.answer(number, &stage.patience)?;
        Ok(true)
    }
}
