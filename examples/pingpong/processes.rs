//! Two processes on a shared software fabric: this one, and one that it starts.

use crate::measure::{Audience, Choice, Clock, Cores, Opened, Patience, Plan, Stop};
use crate::remote;
use rdma::Provider;
use rdma::soft::{Fabric, Topology};
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The other process. It ends with this value.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        // It has ended, or nobody needs it any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures with another process as the server.
pub(crate) fn run(
    plan: &Plan,
    patience: &Patience,
    cores: Option<Cores>,
    clock: &Clock,
    audience: &mut impl Audience,
) -> Result<(), Stop> {
    let name = format!("pingpong-{}", std::process::id());
    let host = Fabric::join(&name, Topology::mesh(2)?, 0)?;
    let failed = |error| Stop::System { what: "no second process".to_owned(), error, remedy: "" };
    let (_other, address) = start(&name, plan, patience).map_err(failed)?;
    if let Some(cores) = cores {
        cores.pin(0);
    }
    let opened = Opened::open(&Provider::soft(&host)?, &Choice::default(), plan)?;
    remote::client(opened, &address, plan, patience, clock, audience)
}

/// Starts this program as a server, and reads where it waits.
fn start(name: &str, plan: &Plan, patience: &Patience) -> io::Result<(Other, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(plan.to_string().split_whitespace())
        .args(["--server", "127.0.0.1:0", "--second", "--timeout", &patience.timeout.as_secs().to_string()])
        .envs([("RDMA_PROVIDER", "soft"), ("RDMA_SOFT_FABRIC", name), ("RDMA_SOFT_HOST", "1")])
        .envs([("RDMA_SOFT_TOPOLOGY", "mesh:2"), ("RDMA_SOFT_PROFILE", ""), ("RDMA_SOFT_PAGE", "")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let output = child.stdout.take();
    let other = Other(child);
    let mut line = String::new();
    if let Some(output) = output {
        BufReader::new(output).read_line(&mut line)?;
    }
    let place = line.split_once("waiting on ").and_then(|(_, rest)| rest.split_whitespace().next());
    let place = place.ok_or_else(|| io::Error::other("it does not say where it waits"))?;
    Ok((other, place.to_owned()))
}
