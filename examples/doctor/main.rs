//! What is wrong with this machine, as far as RDMA goes, and what to do about it.
//!
//! ```text
//! cargo run --example doctor                                # for a person
//! cargo run --example doctor -- --json                      # for a program
//! cargo run --example doctor -- --peer-os 26.3/25D125       # whether the peer, which runs this, is fit for this Mac
//! ```
//!
//! On a Mac it asks the system's own tools (`sw_vers`, `rdma_ctl status`, `system_profiler`, `networksetup`, `ifconfig`,
//! `pmset`), on Linux `/proc`; everywhere it asks the verbs library, in a process of its own, tries what the
//! environment says of providers, looks for variables that nobody reads and for files that killed processes left, and sends
//! a message over the software fabric. It changes nothing, and takes nothing of a device.
//!
//! Each finding is `ok`, a `warning` (it works, or may work) or a `problem`, with what was seen, what to do about it and who
//! says so. The status is 0 if there is no problem, 1 if there is one (or the output could not be written), 2 if it was
//! called wrongly, 130 if it was interrupted. A tool that is missing, that hangs or that writes what nobody can read is a
//! finding, too.
//!
//! With `--json` it is one object: `version` (1), `platform` (as `macos`), `verdict` (`ok`, `warning` or `problem`: the worst
//! of all) and `findings`, each with `check`, `level`, `summary` and, where there is one, `subject`, `evidence`, `remedy` and
//! `source`.

mod assess;
mod collect;
mod environment;
mod fabrics;
mod facts;
mod finding;
mod parse;
mod probe;
mod report;
#[path = "../shared/signals.rs"]
mod signals;
mod soft;
mod tool;
mod variables;

use crate::finding::Level;
use crate::parse::os::Release;
use crate::tool::{Interrupted, Runner};
use clap::Parser;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Says what is wrong with this machine, as far as RDMA goes, and what to do about it. Status 0: no problem; 1: a problem.
#[derive(Debug, Parser)]
#[command(name = "doctor", max_term_width = 110)]
struct Arguments {
    /// Machine-readable output
    #[arg(long)]
    json: bool,

    /// What the peer runs, as `sw_vers` tells it there: both Macs should run the same
    #[arg(long, value_name = "VERSION[/BUILD]")]
    peer_os: Option<Release>,

    /// How long each tool may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,

    /// Asks the library, and tells as JSON: how this program calls itself
    #[arg(long, hide = true)]
    probe_library: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let written = if arguments.probe_library { probe() } else { examine(arguments) };
    written.unwrap_or_else(|error| {
        // If standard error is gone, there is nobody to tell.
        let _ = writeln!(io::stderr(), "doctor: cannot write the results: {error}");
        ExitCode::FAILURE
    })
}

fn probe() -> io::Result<ExitCode> {
    let text = serde_json::to_string(&probe::library())?;
    writeln!(io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

fn examine(arguments: Arguments) -> io::Result<ExitCode> {
    let interrupt = Arc::new(AtomicBool::new(false));
    signals::each(|signal| signal_hook::flag::register(signal, interrupt.clone()))?;
    let runner = Runner { deadline: Duration::from_secs(arguments.timeout), interrupt };
    let mut findings = match collect::findings(&runner, arguments.peer_os) {
        Ok(findings) => findings,
        Err(Interrupted) => {
            let _ = writeln!(io::stderr(), "doctor: interrupted");
            return Ok(ExitCode::from(130));
        }
    };
    // The environment may name a fabric, and asking for a provider joins it.
    let files = fabrics::check();
    findings.extend(environment::check());
    findings.extend(soft::check());
    findings.extend(files);
    let mut out = io::BufWriter::new(io::stdout());
    if arguments.json {
        report::json(&mut out, collect::PLATFORM, &findings)?;
    } else {
        report::text(&mut out, &findings)?;
    }
    out.flush()?;
    Ok(if report::verdict(&findings) == Level::Problem { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
