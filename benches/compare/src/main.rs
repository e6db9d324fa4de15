//! The time that a message takes between two cores of one machine: by this library and by others, in the same run.
//! `benches/compare/run` builds what is needed and starts it; docs/performance.md has the results and how to read them.

mod arena;
mod bands;
mod batch;
mod chart;
mod contestants;
mod cores;
mod perftest;
mod play;
mod program;
mod report;
mod run;

use clap::{Parser, Subcommand};
use cores::Cores;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Lengths of messages, in bytes.
pub(crate) const SIZES: [usize; 10] = [8, 32, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Round trips in a batch: tens of microseconds, so that most batches are not interrupted.
pub(crate) fn trips(size: usize) -> u64 {
    (100_000 / size).clamp(2, 100) as u64
}

#[derive(Debug, Parser)]
#[command(args_override_self = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures everything, several times over
    Run(run::Arguments),
    /// The second of two processes
    #[command(hide = true)]
    Second(run::Second),
    /// Makes the table, the drawing and the summary of what was measured
    Report(report::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Second(second) => run::second(&second),
        Command::Report(arguments) => report::report(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What both commands of a measurement take.
#[derive(Clone, Debug, clap::Args)]
struct Place {
    /// The processors of the two sides [default: two cores of those that may be used]
    #[arg(long, value_name = "A,B")]
    cores: Option<Cores>,
}

impl Place {
    fn cores(&self) -> Result<Cores> {
        self.cores.map_or_else(Cores::find, Ok)
    }
}

/// A file that is removed with this value.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    /// A name in memory that processes share, if the system has it. There is no file yet.
    fn new(what: &str) -> Self {
        let shared = PathBuf::from("/dev/shm");
        let folder = if shared.is_dir() { shared } else { std::env::temp_dir() };
        Scratch(folder.join(format!("compare-{}-{what}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_file(&self.0);
    }
}
