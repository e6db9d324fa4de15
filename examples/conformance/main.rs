//! Asks a device, fact by fact, whether it is as docs/device.md says, and what nobody knows.
//!
//! ```text
//! cargo run --release --example conformance                        # two software hosts in this process
//! cargo run --release --example conformance -- --plan --risky      # what would be done
//!
//! cargo run --release --example conformance -- --server --device rdma_en2 --report server.json          # on one Mac
//! cargo run --release --example conformance -- --client mac1.local:18516 --device rdma_en3 --report client.json
//! ```
//!
//! # How it treats the machine
//!
//! It needs no root and changes no settings. Each step makes what it needs and destroys it before the next one; waiting is
//! bounded; SIGINT, SIGTERM and SIGHUP end the step first. A transition to RTR that failed is not tried again, nor is
//! anything after it that needs a connection. The report is written after each step.
//!
//! # How it ends
//!
//! With status 0 if all facts agree, 1 if one differs, 2 if it could not run or not complete a step; 130 if it was
//! interrupted.

mod arguments;
mod channel;
mod end;
mod local;
#[path = "../shared/meeting.rs"]
mod meeting;
mod memory;
mod observation;
mod place;
#[path = "../shared/profile.rs"]
mod profile;
mod raw;
mod report;
mod session;
#[path = "../shared/signals.rs"]
mod signals;
mod steps;
mod system;
mod watch;

use arguments::Arguments;
use clap::Parser;
use end::Role;
use place::Place;
use rdma::connect::{self, Patience};
use rdma::{Context, ErrorKind, Provider};
use report::{Report, Tally};
use session::Session;
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use steps::Step;
use watch::Watch;

/// Why there are no results.
enum Stop {
    Interrupted,
    /// The other end was.
    ThereInterrupted,
    Failed(String),
}

impl From<String> for Stop {
    fn from(text: String) -> Self {
        Stop::Failed(text)
    }
}

impl From<rdma::Error> for Stop {
    fn from(error: rdma::Error) -> Self {
        if error.kind() == ErrorKind::Cancelled { Stop::Interrupted } else { Stop::Failed(error.to_string()) }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = Out::default();
    let outcome = run(&arguments, &mut out);
    let failed = |text: &str| {
        // If standard error is gone, there is nobody to tell.
        let _ = writeln!(io::stderr(), "conformance: {text}");
        ExitCode::from(2)
    };
    match outcome {
        _ if out.error.is_some() => {
            failed(&format!("cannot write the results: {}", out.error.map_or(String::new(), |error| error.to_string())))
        }
        Err(Stop::Failed(text)) => failed(&text),
        Err(Stop::Interrupted) => {
            failed("interrupted");
            ExitCode::from(130)
        }
        Err(Stop::ThereInterrupted) => failed("the other end was interrupted"),
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(Tally { differ, incomplete, .. })) => ExitCode::from(if differ > 0 {
            1
        } else if incomplete > 0 {
            2
        } else {
            0
        }),
    }
}

/// Standard output, as long as somebody takes it. What is under way is not left because of that.
#[derive(Default)]
struct Out {
    error: Option<io::Error>,
}

impl Out {
    fn line(&mut self, text: &str) {
        if self.error.is_none() {
            self.error = writeln!(io::stdout(), "{text}").err();
        }
    }
}

fn run(arguments: &Arguments, out: &mut Out) -> Result<Option<Tally>, Stop> {
    if let Some(name) = arguments.unasked() {
        return Err(format!("the step `{name}` is made with --risky only: see --plan --risky").into());
    }
    let steps = arguments.steps();
    if arguments.plan {
        tell(&steps, out)?;
        out.line("Nothing was done.");
        return Ok(None);
    }
    // Better now than at the end; and while signals still end the program, because a pipe waits for its reader.
    let open = |path: &PathBuf| Place::open(path).map_err(|error| format!("cannot write {}: {error}", path.display()));
    let place = arguments.report.as_ref().map(open).transpose()?;
    let place = place.as_ref();
    let watch = Watch::start().map_err(|error| format!("cannot watch for signals: {error}"))?;
    let report = match (&arguments.server, &arguments.client) {
        (None, None) => {
            let ends = local::open_ends(arguments)?;
            tell(&steps, out)?;
            local::run(ends, place, &steps, &watch, &mut |line| out.line(line))?
        }
        (server, client) => remote(arguments, server.as_deref(), client.as_deref(), place, &watch, out)?,
    };
    if report.interrupted {
        return Err(if watch.interrupted() { Stop::Interrupted } else { Stop::ThereInterrupted });
    }
    let tally = report.tally();
    let Tally { agree, differ, incomplete } = tally;
    if differ > 0 {
        out.line("What differs:");
        report.differences().for_each(|line| out.line(line));
    }
    out.line(&format!("{agree} agree, {differ} differ, {incomplete} steps were not completed"));
    if let Some(place) = place {
        out.line(&format!("the report is {}", place.path().display()));
    }
    Ok(Some(tally))
}

/// Says what will be done, after all that can go wrong before: an error would be lost below it.
fn tell(steps: &[&Step], out: &mut Out) -> Result<(), Stop> {
    out.line("Steps, in this order; each destroys what it made:");
    for step in steps {
        let risk =
            if step.risky { " (risky: reports differ about what it does to a Mac, or there are none)" } else { "" };
        out.line(&format!("  {:12} {}{risk}", step.name, step.does));
    }
    if out.error.is_some() {
        return Err("it tells first what it will do".to_owned().into());
    }
    Ok(())
}

/// This end in this process, the other one in another.
fn remote(
    arguments: &Arguments,
    server: Option<&str>,
    client: Option<&str>,
    place: Option<&Place>,
    watch: &Watch,
    out: &mut Out,
) -> Result<Report, Stop> {
    let name = match &arguments.provider {
        Some(name) => name.clone(),
        None => std::env::var(Provider::VARIABLE).ok().filter(|name| !name.is_empty()).unwrap_or("system".to_owned()),
    };
    meeting::check(Some(&name)).map_err(str::to_owned)?;
    let provider = match name.strip_prefix("library:") {
        Some(path) => raw::library(path)?,
        None => Provider::named(&name)?,
    };
    let context = open(&provider, arguments.device.as_deref())?;
    let steps = arguments.steps();
    let ended = || watch.interrupted();
    let patience = Patience::from(arguments.timeout()).unless(&ended);
    let (role, stream) = match (server, client) {
        (_, Some(address)) => {
            let stream = connect::dial(address, patience)?;
            tell(&steps, out)?;
            (Role::Client, stream)
        }
        (address, None) => {
            let address = address.unwrap_or("0.0.0.0:18516");
            let listener =
                TcpListener::bind(address).map_err(|error| format!("cannot listen on {address}: {error}"))?;
            tell(&steps, out)?;
            let place = listener.local_addr().map_or_else(|_| address.to_owned(), |place| place.to_string());
            out.line(&format!("{}: waiting on {place} for the other end", context.device_name()));
            (Role::Server, connect::accept(&listener, patience)?)
        }
    };
    let session = Session {
        provider: &provider,
        name: &name,
        context,
        stream,
        role,
        steps: &steps,
        watch,
        place,
        out: &mut |line| out.line(line),
    };
    Ok(session.run()?)
}

/// Opens the device of this name, or the first that is ACTIVE.
fn open(provider: &Provider, device: Option<&str>) -> rdma::Result<Context> {
    match device {
        Some(name) => provider.device(name)?.open(),
        None => provider.first_active()?.open(),
    }
}
