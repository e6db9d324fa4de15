//! Many messages one way.

use crate::duet::{Cue, Hosts, Options, Stage, Stop};
use crate::safe_stream::SafeStream;
use crate::table_stream::TableStream;
use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is compared: the function table and the safe API.
pub(crate) const CONTESTANTS: usize = 2;

/// A length of message, and how they are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) size: usize,
    /// How many requests are posted at once, with one doorbell.
    pub(crate) together: usize,
    /// How many a batch has.
    pub(crate) messages: usize,
    /// How many may be on their way.
    pub(crate) window: usize,
    /// Whether the receiver reads every cache line.
    pub(crate) reads: bool,
}

const fn rate(size: usize) -> Row {
    Row { size, together: 16, messages: 4096, window: 64, reads: true }
}

const fn bandwidth(size: usize, messages: usize, window: usize, reads: bool) -> Row {
    Row { size, together: 1, messages, window, reads }
}

pub(crate) const ROWS: [Row; 9] = [
    rate(8),
    rate(32),
    rate(64),
    bandwidth(4096, 512, 64, true),
    bandwidth(4096, 512, 64, false),
    bandwidth(65_536, 64, 16, true),
    bandwidth(65_536, 64, 16, false),
    bandwidth(1 << 20, 8, 4, true),
    bandwidth(1 << 20, 8, 4, false),
];

/// One batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) floor: f64,
    /// The time for a message, in nanoseconds.
    pub(crate) times: [f64; CONTESTANTS],
    /// The same for a copy from here to there by one thread, hot.
    pub(crate) copy: f64,
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { size, together, reads, .. } = self;
        let what = if *together > 1 { "rate" } else { "bandwidth" };
        write!(out, "{what} {size}B {}", if *reads { "read" } else { "unread" })
    }
}

/// One side of a contestant.
pub(crate) trait Stream {
    /// Sends so many messages, and waits until all have left.
    fn send(&mut self, messages: usize) -> Result<(), Stop>;

    /// Receives so many.
    fn receive(&mut self, messages: usize) -> Result<(), Stop>;
}

/// Counts what the receiver has received altogether.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Arrived(AtomicU64);

impl Row {
    pub(crate) fn measure(self, stage: &Stage, hosts: &Hosts, options: &Options) -> Result<Vec<Batch>, Stop> {
        let [table_client, table_server] = TableStream::connect(hosts, self)?;
        let [safe_client, safe_server] = SafeStream::connect(hosts, self)?;
        let (cue, arrived) = (Cue::default(), Arrived::default());
        let client = || self.call((table_client, safe_client), stage, (&cue, &arrived), options);
        let server = || self.answer((table_server, safe_server), stage, (&cue, &arrived));
        stage.play(client, server)
    }

    fn call(
        self,
        (mut table, mut safe): (TableStream, SafeStream),
        stage: &Stage,
        (cue, arrived): (&Cue, &Arrived),
        options: &Options,
    ) -> Result<Vec<Batch>, Stop> {
        let mut batches = Vec::new();
        let (source, mut target) = (vec![1_u8; self.size], vec![0_u8; self.size]);
        for number in cue.batches(options) {
            let floor = cue.floor(stage)?;
            let mut times = [0.0; CONTESTANTS];
            for turn in 0..CONTESTANTS as u64 {
                let until = CONTESTANTS as u64 * number + turn + 1;
                let contestant = (number + turn) % 2;
                times[contestant as usize] = match contestant {
                    0 => self.time(&mut table, stage, arrived, until)?,
                    _ => self.time(&mut safe, stage, arrived, until)?,
                };
            }
            let from = stage.clock.ticks();
            for _ in 0..self.messages.min(64) {
                target.copy_from_slice(black_box(&source));
                black_box(&mut target);
            }
            let copy = stage.clock.nanoseconds(from, stage.clock.ticks()) as f64 / self.messages.min(64) as f64;
            batches.push(Batch { floor, times, copy });
        }
        Ok(batches)
    }

    #[inline(never)]
    fn time(self, end: &mut impl Stream, stage: &Stage, arrived: &Arrived, until: u64) -> Result<f64, Stop> {
        let from = stage.clock.ticks();
        end.send(self.messages)?;
        let since = std::time::Instant::now();
        let mut turns = 0;
        while arrived.0.load(Ordering::Acquire) < until {
            turns += 1;
            if turns < 64 {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
                stage.impatient(since)?;
            }
        }
        Ok(stage.clock.nanoseconds(from, stage.clock.ticks()) as f64 / self.messages as f64)
    }

    fn answer(
        self,
        (mut table, mut safe): (TableStream, SafeStream),
        stage: &Stage,
        (cue, arrived): (&Cue, &Arrived),
    ) -> Result<(), Stop> {
        let mut number = 0;
        while cue.follow(number, stage)? {
            for turn in 0..CONTESTANTS as u64 {
                match (number + turn) % 2 {
                    0 => table.receive(self.messages)?,
                    _ => safe.receive(self.messages)?,
                }
                arrived.0.fetch_add(1, Ordering::Release);
            }
            number += 1;
        }
        Ok(())
    }
}
