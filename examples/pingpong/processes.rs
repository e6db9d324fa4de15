//! Two processes on a shared software fabric: this one, and one that it starts.

use crate::measure::{Audience, Choice, Clock, Cores, Opened, Patience, Plan, Stop};
use crate::{profile, remote};
use rdma::Provider;
use rdma::soft::{Fabric, Topology};
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

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
    let host = Fabric::join_with(&name, Topology::mesh(2)?, profile::profile().map_err(Stop::Impossible)?, 0)?;
    let failed = |error| Stop::System { what: "no second process".to_owned(), error, remedy: "" };
    let (_other, address) = start(&name, plan, patience).map_err(failed)?;
    if let Some(cores) = cores {
        cores.pin(0);
    }
    let opened = Opened::open(&Provider::soft(&host)?, &Choice::default(), plan)?;
    remote::client(opened, &address, patience, clock, audience)
}

/// Starts this program as a server, and reads where it waits.
fn start(name: &str, plan: &Plan, patience: &Patience) -> io::Result<(Other, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(plan.to_string().split_whitespace())
        .args(["--server", "127.0.0.1:0", "--second", "--timeout", &patience.timeout.as_secs().to_string()])
        .envs([("RDMA_PROVIDER", "soft"), ("RDMA_SOFT_FABRIC", name), ("RDMA_SOFT_HOST", "1")])
        // The profile, the faults and the page are those of this process.
        .env("RDMA_SOFT_TOPOLOGY", "mesh:2")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let output = child.stdout.take();
    let other = Other(child);
    let mut line = String::new();
    if let Some(output) = output {
        let mut output = BufReader::new(output);
        output.read_line(&mut line)?;
        // The rest is for nobody, but has to go somewhere: a server that cannot write says so. Ends with the process.
        thread::Builder::new().name("output".to_owned()).spawn(move || io::copy(&mut output, &mut io::sink()))?;
    }
    let place = line.split_once("waiting on ").and_then(|(_, rest)| rest.split_whitespace().next());
    let place = place.ok_or_else(|| io::Error::other("it does not say where it waits"))?;
    Ok((other, place.to_owned()))
}
