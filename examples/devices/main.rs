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
use clap::Parser;
use rdma::{Device, Provider};
use std::io::{self, Write};
use std::process::ExitCode;

/// Lists RDMA devices, with their attributes, ports and addresses.
#[derive(Debug, Parser)]
#[command(name = "devices", max_term_width = 110)]
struct Arguments {
    /// Where devices come from: `system`, the installed library, or `soft`, a host of the software fabric that the
    /// variables RDMA_SOFT_… describe [default: what RDMA_PROVIDER says, else system]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

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
    let provider = match &arguments.provider {
        Some(name) => Provider::named(name)?,
        None => Provider::from_env()?,
    };
    let devices = devices(&provider, arguments.device.as_deref())?;
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
