//! All to all: each host of a full mesh sends something else to each other host.
//!
//! ```text
//! cargo run --example mesh            # four hosts
//! cargo run --example mesh -- 6
//! ```
//!
//! In a mesh of N Macs each has a cable, and so a device, for each of its N − 1 peers; nothing is routed. Here each host is
//! a thread. They know each other by channels, over which the endpoints travel; between machines that would be TCP.

mod host;
#[path = "../shared/profile.rs"]
mod profile;

use clap::Parser;
use host::{Host, Received};
use rdma::Provider;
use rdma::soft::{Fabric, Topology};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

/// Hosts of a software fabric exchange messages, all to all.
///
/// The variables RDMA_SOFT_PROFILE, RDMA_SOFT_FAULTS and RDMA_SOFT_PAGE say how the fabric behaves.
#[derive(Debug, Parser)]
#[command(name = "mesh", max_term_width = 110)]
struct Arguments {
    /// How many hosts, from 2 to 16
    #[arg(default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=16))]
    hosts: u16,

    /// The length of each message, in bytes: at most the device's longest
    #[arg(long, value_name = "BYTES", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    size: u32,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is gone, there is nobody to tell.
            let _ = writeln!(io::stderr(), "mesh: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), host::Error> {
    let (count, size) = (usize::from(arguments.hosts), arguments.size as usize);
    let fabric = Fabric::new(Topology::mesh(count)?, profile::profile().map_err(host::Error::Environment)?);
    // All devices are alike: one can say what all can do, before anybody waits for anybody.
    let context = Provider::soft(&fabric.host(0)?)?.first_active()?.open()?;
    let most = context.rules().max_message();
    if u64::from(arguments.size) > most {
        return Err(host::Error::TooLong { device: context.device_name().to_owned(), most, size });
    }
    drop(context);

    // A channel from each host to each other one.
    let mut senders: Vec<Vec<_>> = (0..count).map(|_| Vec::new()).collect();
    let mut receivers: Vec<Vec<_>> = (0..count).map(|_| Vec::new()).collect();
    for from in &mut senders {
        for to in &mut receivers {
            let (sender, receiver) = mpsc::channel();
            from.push(sender);
            to.push(receiver);
        }
    }

    let outcomes: Vec<Result<Vec<Received>, host::Error>> = thread::scope(|scope| {
        let hosts = (0..count).zip(senders.into_iter().zip(receivers));
        let threads: Vec<_> = hosts
            .map(|(number, (to, from))| {
                let fabric = &fabric;
                scope.spawn(move || Host { number, fabric, to, from }.exchange(size))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });

    // A host that failed takes its peers with it: what they say is only what followed.
    let mut failures = Vec::new();
    let mut out = io::stdout().lock();
    for (number, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(all) => {
                for Received { peer, device, bytes, words } in all {
                    writeln!(out, "host {number} got {bytes} bytes from host {peer} over {device}: {words:?} …")?;
                }
            }
            Err(error) => failures.push(error),
        }
    }
    let cause = failures.iter().position(|error| !matches!(error, host::Error::Silent(_))).unwrap_or(0);
    if cause < failures.len() {
        return Err(failures.swap_remove(cause));
    }
    writeln!(out, "{count} hosts, {} messages, every byte as it was sent", count * (count - 1))?;
    Ok(())
}
