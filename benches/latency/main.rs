//! Latency, rate and bandwidth of messages between two hosts of a software fabric in one process, beside what the machine
//! needs at least: see `duet` for how the figures are taken, and docs/performance.md for what they were.
//!
//! ```text
//! cargo bench --bench latency                          # everything, in less than a minute
//! cargo bench --bench latency -- alone 64B             # rows with one of these words in their names
//! cargo bench --bench latency -- --test                # for a moment, to see that it works
//! ```

mod alone;
#[path = "../duet/mod.rs"]
#[allow(dead_code, unused_imports)]
mod duet;
#[path = "../../examples/pingpong/measure/mod.rs"]
#[allow(dead_code, unused_imports)]
mod measure;
mod report;
mod safe_stream;
mod stream;
mod table_stream;
mod trips;

use duet::{Hosts, Options, Stage, Stop};
use std::process::ExitCode;
use std::time::Duration;

/// For each row, unless somebody says otherwise.
const TIME: Duration = Duration::from_millis(1000);

fn main() -> ExitCode {
    let options = Options::parse(TIME);
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            eprintln!("latency: {stop}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Stop> {
    let (stage, hosts) = (Stage::new(), Hosts::new()?);
    println!("{}", stage.about());
    report::alone_heading();
    for size in [8, 64, 4096] {
        let row = alone::Row { size };
        if options.wants(&row.to_string()) {
            report::alone(&row, &row.measure(&stage, &hosts, options)?);
        }
    }
    report::latency_heading();
    for size in [8, 32, 64, 256, 1024, 4096, 65_536, 1 << 20] {
        for rewritten in [false, true] {
            let row = trips::Row { size, rewritten };
            if options.wants(&row.to_string()) {
                report::latency(&row, &row.measure(&stage, &hosts, options)?);
            }
        }
    }
    report::stream_heading();
    for row in stream::ROWS {
        if options.wants(&row.to_string()) {
            report::stream(&row, &row.measure(&stage, &hosts, options)?);
        }
    }
    Ok(())
}
