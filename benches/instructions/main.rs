//! What valgrind counts the instructions of: posting and polling, through the safe API and through the function table.
//! `ci/instructions` runs it, and has the limits; by itself it says only that all messages arrived.
//!
//! Both ends are on one thread, so nothing waits and the counts are the same in every run. Each step is a function of its own
//! name, which callgrind is told to look at, and does [`COUNT`] requests. A round has them in the order of the tables: receives
//! posted, sends posted, receives polled, sends polled, an empty queue polled. The first round is unlike the others: pages
//! are touched, lazy values made.
//!
//! ```text
//! cargo bench --bench instructions -- safe 8         # or `table`; the length of the messages
//! ```
#![allow(unsafe_code)]

#[path = "../duet/mod.rs"]
#[allow(dead_code, unused_imports)]
mod duet;
#[path = "../../examples/pingpong/measure/mod.rs"]
#[allow(dead_code, unused_imports)]
mod measure;
mod safe;
mod table;

use duet::ends::memory;
use duet::{Hosts, Stop};
use std::process::ExitCode;

/// Requests in a step.
pub(crate) const COUNT: usize = 64;
/// Of which the last counts.
const ROUNDS: usize = 3;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let way = words.next();
    let size = words.next().map(|word| word.parse());
    let outcome = match (way.as_deref(), size) {
        (Some("safe"), Some(Ok(size @ 1..=4096))) => run(size, safe::Ends::new, safe::Ends::round),
        (Some("table"), Some(Ok(size @ 1..=4096))) => run(size, table::Ends::new, table::Ends::round),
        _ => {
            eprintln!("instructions: `safe` or `table`, and a length from 1 to 4096 bytes");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(messages) => {
            println!("{messages} messages");
            ExitCode::SUCCESS
        }
        Err(stop) => {
            eprintln!("instructions: {stop}");
            ExitCode::FAILURE
        }
    }
}

fn run<E>(
    size: usize,
    new: impl FnOnce([duet::ends::Parts; 2], usize) -> Result<E, Stop>,
    round: impl Fn(&mut E) -> usize,
) -> Result<usize, Stop> {
    let hosts = Hosts::new()?;
    let mut ends = new(hosts.connect(COUNT as u32, memory(COUNT, size))?, size)?;
    Ok((0..ROUNDS).map(|_| round(&mut ends)).sum())
}
