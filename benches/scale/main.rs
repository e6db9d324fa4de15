//! What grows when there is more of it, and what does not: queue pairs on one completion queue, hosts, requests in flight,
//! regions, connections one after another; and how those who wait get on with one another.
//!
//! ```text
//! cargo bench --bench scale                     # everything, in a quarter of a minute
//! cargo bench --bench scale -- regions          # rows with one of these words in their names
//! cargo bench --bench scale -- --test           # for a moment, to see that it works
//! ```
//!
//! Curves of costs are taken on one thread, bound to a core, in short batches; told are the 10th percentile and the median.

mod curves;
#[path = "../duet/mod.rs"]
#[allow(dead_code, unused_imports)]
mod duet;
mod lives;
#[path = "../../examples/pingpong/measure/mod.rs"]
#[allow(dead_code, unused_imports)]
mod measure;
mod waiting;

use duet::{Options, Stage, Stop};
use std::process::ExitCode;
use std::time::Duration;

/// For each point of a curve, unless somebody says otherwise.
const TIME: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    let options = Options::parse(TIME);
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            eprintln!("scale: {stop}");
            ExitCode::FAILURE
        }
    }
}

type Part = fn(&Stage, &Options) -> Result<(), Stop>;

fn run(options: &Options) -> Result<(), Stop> {
    let stage = Stage::new();
    println!("{}", stage.about());
    let parts: [(&str, Part); 8] = [
        ("queue pairs", curves::queue_pairs),
        ("hosts", curves::hosts),
        ("outstanding", curves::outstanding),
        ("regions", curves::regions),
        ("region length", lives::region_length),
        ("connections", lives::connections),
        ("one core", waiting::one_core),
        ("crowd", waiting::crowd),
    ];
    for (name, part) in parts {
        if options.wants(name) {
            println!();
            part(&stage, options)?;
        }
    }
    Ok(())
}
