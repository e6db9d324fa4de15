//! Both ends on one thread: what the calls themselves take, with no other core to wait for.

use crate::duet::safe::SafeEnd;
use crate::duet::table::TableEnd;
use crate::duet::{End, Hosts, Options, Stage, Stop};
use std::fmt;
use std::time::Instant;

/// A length of message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) size: usize,
}

/// One batch: times of a message, in nanoseconds. That is two requests: a send and a receive, posted and polled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// The function table, the safe API.
    pub(crate) times: [f64; 2],
}

const MESSAGES: u32 = 200;

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "alone {}B", self.size)
    }
}

impl Row {
    pub(crate) fn measure(self, stage: &Stage, hosts: &Hosts, options: &Options) -> Result<Vec<Batch>, Stop> {
        let mut table = TableEnd::connect(hosts, self.size)?;
        let mut safe = SafeEnd::connect(hosts, self.size)?;
        stage.solo(move || {
            let (mut batches, begin) = (Vec::new(), Instant::now());
            while batches.len() < 3 || !options.quick && begin.elapsed() < options.time {
                let table = time(&mut table, stage)?;
                batches.push(Batch { times: [table, time(&mut safe, stage)?] });
            }
            Ok(batches)
        })
    }
}

#[inline(never)]
fn time(ends: &mut [impl End; 2], stage: &Stage) -> Result<f64, Stop> {
    let [here, there] = ends;
    let from = stage.clock.ticks();
    for _ in 0..MESSAGES {
        here.send()?;
        there.receive()?;
        there.repost()?;
    }
    Ok(stage.clock.nanoseconds(from, stage.clock.ticks()) as f64 / f64::from(MESSAGES))
}
