//! Two processes on a shared software fabric: this one, and one that it starts.

use crate::measure::{Audience, Choice, Clock, Cores, Opened, Patience, Plan, Stop};
use crate::{profile, remote};
use rdma::Provider;
use rdma::soft::{Fabric, Topology};
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::{self, JoinHandle};

/// The other process. It ends with this value.
struct Other {
    process: Child,
    /// Passes on what it has to say of errors.
    errors: Option<JoinHandle<()>>,
}

impl Drop for Other {
    fn drop(&mut self) {
        // It has ended, or nobody needs it any more.
        let _ = self.process.kill();
        let _ = self.process.wait();
        // A panic there has been told.
        let _ = self.errors.take().map(JoinHandle::join);
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
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command.spawn()?;
    let (output, errors) = (process.stdout.take(), process.stderr.take());
    let mut other = Other { process, errors: None };
    let mut line = String::new();
    if let Some(output) = output {
        let mut output = BufReader::new(output);
        output.read_line(&mut line)?;
        // The rest is for nobody, but has to go somewhere: a server that cannot write says so. Ends with the process.
        thread::Builder::new().name("output".to_owned()).spawn(move || io::copy(&mut output, &mut io::sink()))?;
    }
    let Some(place) = line.split_once("waiting on ").and_then(|(_, rest)| rest.split_whitespace().next()) else {
        return Err(io::Error::other(why(&mut other.process, errors)?));
    };
    if let Some(mut errors) = errors {
        let pass_on = move || {
            // If standard error is gone, there is nobody to tell.
            let _ = io::copy(&mut errors, &mut io::stderr());
        };
        other.errors = Some(thread::Builder::new().name("errors".to_owned()).spawn(pass_on)?);
    }
    Ok((other, place.to_owned()))
}

/// Why it ended before it waited: what it, or the system that could not load it, said last, or how it ended.
fn why(process: &mut Child, errors: Option<ChildStderr>) -> io::Result<String> {
    // It has closed its output, so it ends.
    let status = process.wait()?;
    let mut said = Vec::new();
    if let Some(mut errors) = errors {
        errors.read_to_end(&mut said)?;
    }
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    Ok(match last {
        Some(line) => line.strip_prefix("pingpong: ").unwrap_or(line).to_owned(),
        None => format!("it ended with {status} before it waited, and did not say why"),
    })
}
