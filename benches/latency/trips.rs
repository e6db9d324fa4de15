//! A message to and fro.

use crate::duet::bare::BareEnd;
use crate::duet::safe::SafeEnd;
use crate::duet::table::TableEnd;
use crate::duet::{Cue, End, Hosts, Options, Stage, Stop};
use std::fmt;

/// What is compared: a copy and a flag, the function table, the safe API.
pub(crate) const CONTESTANTS: usize = 3;

/// A length of message, sent again and again or written anew each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) size: usize,
    pub(crate) rewritten: bool,
}

/// One batch: times of one way, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) floor: f64,
    pub(crate) times: [f64; CONTESTANTS],
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "latency {}B {}", self.size, if self.rewritten { "rewritten" } else { "warm" })
    }
}

impl Row {
    /// How many round trips a batch has of each contestant: short enough that most batches see no interruption.
    fn trips(self) -> u32 {
        match self.size {
            0..1024 => 60,
            1024..16_384 => 30,
            16_384..262_144 => 8,
            _ => 2,
        }
    }

    pub(crate) fn measure(self, stage: &Stage, hosts: &Hosts, options: &Options) -> Result<Vec<Batch>, Stop> {
        let [client, server] = Trio::connect(stage, hosts, self.size)?;
        let cue = Cue::default();
        stage.play(|| self.call(client, stage, &cue, options), || self.answer(server, stage, &cue))
    }

    fn call(self, mut trio: Trio<'_>, stage: &Stage, cue: &Cue, options: &Options) -> Result<Vec<Batch>, Stop> {
        let mut batches = Vec::new();
        for number in cue.batches(options) {
            let floor = cue.floor(stage)?;
            let mut times = [0.0; CONTESTANTS];
            for contestant in order(number) {
                times[contestant] = match contestant {
                    0 => self.ping(&mut trio.bare, stage)?,
                    1 => self.ping(&mut trio.table, stage)?,
                    _ => self.ping(&mut trio.safe, stage)?,
                };
            }
            batches.push(Batch { floor, times });
        }
        Ok(batches)
    }

    fn answer(self, mut trio: Trio<'_>, stage: &Stage, cue: &Cue) -> Result<(), Stop> {
        let mut next = 0;
        while cue.follow(next, stage)? {
            for contestant in order(next) {
                match contestant {
                    0 => self.pong(&mut trio.bare)?,
                    1 => self.pong(&mut trio.table)?,
                    _ => self.pong(&mut trio.safe)?,
                }
            }
            next += 1;
        }
        Ok(())
    }

    /// The first trip is not measured: it makes sure that both ends are there.
    #[inline(never)]
    fn ping(self, end: &mut impl End, stage: &Stage) -> Result<f64, Stop> {
        let mut from = stage.clock.ticks();
        for trip in 0..=self.trips() {
            if trip == 1 {
                from = stage.clock.ticks();
            }
            if self.rewritten {
                end.rewrite(trip as u8)?;
            }
            end.send()?;
            end.receive()?;
        }
        let to = stage.clock.ticks();
        Ok(stage.clock.nanoseconds(from, to) as f64 / f64::from(2 * self.trips()))
    }

    #[inline(never)]
    fn pong(self, end: &mut impl End) -> Result<(), Stop> {
        for trip in 0..=self.trips() {
            end.receive()?;
            if self.rewritten {
                end.rewrite(trip as u8)?;
            }
            end.send()?;
        }
        Ok(())
    }
}

/// Whose turn comes when: another one first in each batch.
fn order(batch: u64) -> impl Iterator<Item = usize> {
    (0..CONTESTANTS).map(move |turn| (turn + batch as usize) % CONTESTANTS)
}

/// One side of each contestant.
struct Trio<'a> {
    bare: BareEnd<'a>,
    table: TableEnd,
    safe: SafeEnd,
}

impl<'a> Trio<'a> {
    fn connect(stage: &'a Stage, hosts: &Hosts, size: usize) -> Result<[Self; 2], Stop> {
        let [a, b] = BareEnd::connect(stage, size);
        let [c, d] = TableEnd::connect(hosts, size)?;
        let [e, f] = SafeEnd::connect(hosts, size)?;
        Ok([Trio { bare: a, table: c, safe: e }, Trio { bare: b, table: d, safe: f }])
    }
}
