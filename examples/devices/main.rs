//! What RDMA devices there are, as `ibv_devices` and `ibv_devinfo -v` print it.
//!
//! ```text
//! cargo run --example devices                        # RDMA_PROVIDER says where from; the installed library, if unset
//! cargo run --example devices -- --provider soft     # a host of a software fabric
//! cargo run --example devices -- --list              # the table only
//! ```
//!
//! Looking takes nothing of a device. Without a library, or without devices, it says so and ends with status 1.

mod attributes;
mod print;

use attributes::Info;
use clap::{Parser, ValueEnum};
use rdma::{Device, Provider, soft::Fabric};
use std::io::{self, Write};
use std::process::ExitCode;

/// Lists RDMA devices, with their attributes, ports and addresses.
#[derive(Debug, Parser)]
#[command(name = "devices", max_term_width = 110)]
struct Arguments {
    /// Where devices come from [default: what the variable RDMA_PROVIDER says]
    #[arg(long)]
    provider: Option<Source>,

    /// This device only
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// Names and node GUIDs only
    #[arg(long)]
    list: bool,

    /// Machine-readable output
    #[arg(long, conflicts_with = "list")]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Source {
    /// A host of a software fabric
    Soft,
    /// The installed library
    System,
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Rdma(#[from] rdma::Error),
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // If standard error is gone, there is nobody to tell.
            let _ = writeln!(io::stderr(), "devices: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let devices = devices(&provider(arguments.provider)?, arguments.device.as_deref())?;
    let mut out = io::BufWriter::new(io::stdout());
    if arguments.list {
        print::table(&mut out, &devices)?;
        return Ok(out.flush()?);
    }
    let all = devices.iter().map(Info::query).collect::<rdma::Result<Vec<_>>>()?;
    if arguments.json {
        print::json(&mut out, &all)?;
    } else {
        print::table(&mut out, &devices)?;
        writeln!(out)?;
        for info in &all {
            print::info(&mut out, info)?;
        }
    }
    Ok(out.flush()?)
}

fn provider(source: Option<Source>) -> rdma::Result<Provider> {
    let named = std::env::var_os(Provider::VARIABLE).is_some_and(|value| value == "soft");
    match source {
        None => Provider::from_env(),
        Some(Source::System) => Provider::system(),
        // The one that other variables describe, if there are any.
        Some(Source::Soft) if named => Provider::from_env(),
        Some(Source::Soft) => Provider::soft(&Fabric::mesh(2)?.host(0)?),
    }
}

/// The devices: one at least.
fn devices(provider: &Provider, name: Option<&str>) -> rdma::Result<Vec<Device>> {
    if let Some(name) = name {
        return Ok(vec![provider.device(name)?]);
    }
    let devices = provider.devices()?;
    if devices.is_empty() {
        // An error that says why there may be none.
        provider.first_active()?;
    }
    Ok(devices)
}
