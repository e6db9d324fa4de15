//! Latency and bandwidth of messages, in the columns of perftest.
//!
//! ```text
//! cargo run --release --example pingpong                     # two software hosts in this process
//! cargo run --release --example pingpong -- --all            # sizes from 2 bytes to 8 MiB
//! cargo run --release --example pingpong -- --bandwidth --size 65536
//! cargo run --release --example pingpong -- --processes      # two processes on a shared software fabric
//!
//! cargo run --release --example pingpong -- --server         # on one Mac
//! cargo run --release --example pingpong -- --client mac1.local:18515 --device rdma_en3   # on the other
//! ```
//!
//! # How it measures
//!
//! The method is that of perftest's `ib_send_lat` and `ib_send_bw` (linux-rdma/perftest): one-way is half of a round
//! trip, *typical* is the median, MB are 2^20 bytes. It departs from perftest in this:
//!
//! * three decimals, because the software fabric is faster than a hundredth of a microsecond can tell;
//! * no samples are dropped (perftest drops the two greatest), and percentiles are nearest ranks;
//! * messages come in short batches; every byte of each is checked by its receiver, in between;
//! * the clock is read just after a message was posted, when reading it delays nothing;
//! * the time of a stream ends when the *receiver* has all of it, not when the last send has completed;
//! * in one process, each batch begins with round trips of a bare cache line between the same two threads. The last
//!   columns are the time of such a hop and the ratio of the two, batch by batch; with fewer than ten batches they are
//!   empty, because an interrupted hop would be taken for the hardware's.
//!
//! # How it ends
//!
//! With status 0; 1 and one line on standard error if something failed; 2 for wrong arguments; 130 after SIGINT,
//! SIGTERM or SIGHUP, when the queue pairs have been destroyed (a second signal does not wait for that).

mod arguments;
mod local;
mod measure;
#[path = "../shared/meeting.rs"]
mod meeting;
mod processes;
#[path = "../shared/profile.rs"]
mod profile;
mod remote;
mod report;
#[path = "../shared/signals.rs"]
mod signals;

use arguments::Arguments;
use clap::Parser;
use measure::{Clock, Cores, Opened, Patience, Served, Stop};
use rdma::Provider;
use rdma::soft::{Fabric, Topology};
use report::{Report, Run};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            // If standard error is gone, there is nobody to tell.
            let _ = writeln!(io::stderr(), "pingpong: {stop}");
            ExitCode::from(if matches!(stop, Stop::Interrupted) { 130 } else { 1 })
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Stop> {
    let patience = Patience { timeout: arguments.timeout(), interrupt: interrupt()? };
    let plan = arguments.plan();
    let provider = || arguments.provider.as_deref().map_or_else(Provider::from_env, Provider::named);
    let open = || Opened::open(&provider()?, &arguments.choice(), &plan);
    if arguments.server.is_some() || arguments.client.is_some() {
        meeting::check(arguments.provider.as_deref()).map_err(|error| Stop::Impossible(error.to_owned()))?;
    }
    if let Some(address) = &arguments.server {
        let opened = open()?;
        let listener = remote::listen(address)?;
        if arguments.second
            && let Some(cores) = Cores::find()
        {
            cores.pin(1);
        }
        let (about, place) = (opened.about(), listener.local_addr()?);
        writeln!(io::stdout(), "{about}: waiting on {place} for a client with `{plan}`")?;
        let Served { messages, bytes } = remote::server(opened, &listener, &patience)?;
        return Ok(writeln!(io::stdout(), "{messages} messages, {bytes} bytes came, every byte as it was sent")?);
    }
    let clock = Clock::new();
    if let Some(address) = &arguments.client {
        let opened = open()?;
        let ends = format!("{} to {address}", opened.about());
        let mut report = Report::new(io::stdout(), arguments, Run::new(plan.mode, ends, None, &clock));
        remote::client(opened, address, &patience, &clock, &mut report)?;
        return report.end();
    }
    if arguments.processes {
        let (ends, cores) = ("Two processes on a shared software fabric".to_owned(), Cores::find());
        let mut report = Report::new(io::stdout(), arguments, Run::new(plan.mode, ends, None, &clock));
        processes::run(&plan, &patience, cores, &clock, &mut report)?;
        return report.end();
    }
    let (ends, cores) = ("Two hosts of a software fabric in this process".to_owned(), Cores::find());
    let mut report = Report::new(io::stdout(), arguments, Run::new(plan.mode, ends, Some(cores), &clock));
    let fabric = Fabric::new(Topology::mesh(2)?, profile::profile().map_err(Stop::Impossible)?);
    local::run(&fabric, &plan, &patience, cores, &clock, &mut report)?;
    report.end()
}

/// A flag that a signal to end sets. With the flag set, the next one ends the process at once.
fn interrupt() -> Result<Arc<AtomicBool>, Stop> {
    let flag = Arc::new(AtomicBool::new(false));
    let failed = |error| Stop::System { what: "cannot watch for signals".to_owned(), error, remedy: "" };
    signals::each(|signal| {
        signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone())?;
        signal_hook::flag::register(signal, flag.clone())
    })
    .map_err(failed)?;
    Ok(flag)
}
