//! Peers in C, each a program of its own (mpi.c, ucx.c) that does all tasks in one go, because it takes long to start.

use crate::batch::{Batch, Source};
use crate::cores::Cores;
use crate::{Result, SIZES, Scratch, trips};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(crate) const UCX: &str = "UCX";
pub(crate) const MPI: &str = "Open MPI";
/// In seconds. One that has lost its other half waits for ever.
const DEADLINE: &str = "120";
/// Pages of the file beyond those of the tasks.
const MORE: usize = 2;

/// UCX in shared memory.
pub(crate) fn ucx(program: &Path, cores: Cores, time: Duration) -> Result<Vec<Batch>> {
    let mut command = started();
    command.arg(program).envs([("UCX_TLS", "posix"), ("UCX_LOG_LEVEL", "error")]);
    play(command, UCX, cores, time)
}

/// Open MPI in shared memory.
pub(crate) fn mpi(program: &Path, cores: Cores, time: Duration) -> Result<Vec<Batch>> {
    let version = Command::new("mpirun").arg("--version").stdin(Stdio::null()).output()?;
    let version = String::from_utf8_lossy(&version.stdout);
    // What carries messages in shared memory was called vader up to version 4, and sm since.
    let old = ["(Open MPI) 4.", "(Open MPI) 3."].iter().any(|words| version.contains(words));
    let mut command = started();
    command
        .args(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", "--bind-to", "none"])
        .args(["--mca", "pml", "ob1", "--mca", "btl", if old { "self,vader" } else { "self,sm" }])
        .arg(program);
    play(command, MPI, cores, time)
}

fn started() -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", DEADLINE]);
    command
}

fn play(mut command: Command, name: &str, cores: Cores, time: Duration) -> Result<Vec<Batch>> {
    let tasks: Vec<_> = SIZES
        .iter()
        .flat_map(|&size| Source::ALL.map(|source| format!("{size}:{}:{}", trips(size), source.name())))
        .collect();
    let scratch = Scratch::new("peer");
    File::create(&scratch.0)?.set_len(((tasks.len() + MORE) * 4096) as u64)?;
    let output = command
        .arg(&scratch.0)
        .args([cores.to_string(), time.as_millis().to_string(), name.to_owned()])
        .args(tasks)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name}: {}: {}", output.status, words.trim()).into());
    }
    let lines = String::from_utf8(output.stdout)?;
    lines.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}
