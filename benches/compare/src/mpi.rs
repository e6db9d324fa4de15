//! Open MPI: its own program, mpi.c, for all sizes in one go, because it takes long to start.

use crate::batch::{Batch, Source};
use crate::cores::Cores;
use crate::{Result, SIZES, Scratch, trips};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(crate) const NAME: &str = "Open MPI";
const DEADLINE: &str = "120";

pub(crate) fn play(program: &Path, cores: Cores, time: Duration) -> Result<Vec<Batch>> {
    let scratch = Scratch::new("mpi");
    File::create(&scratch.0)?.set_len((2 * SIZES.len() * 4096) as u64)?;
    // Two processes and no network: what carries them was called vader up to version 4, and sm since.
    let version = Command::new("mpirun").arg("--version").stdin(Stdio::null()).output()?;
    let old = ["(Open MPI) 4.", "(Open MPI) 3."].iter().any(|words| contains(&version.stdout, words));
    let output = Command::new("timeout")
        .args([
            "-k",
            "5",
            DEADLINE,
            "mpirun",
            "--allow-run-as-root",
            "--oversubscribe",
            "-np",
            "2",
            "--bind-to",
            "none",
        ])
        .args(["--mca", "pml", "ob1", "--mca", "btl", if old { "self,vader" } else { "self,sm" }])
        .arg(program)
        .arg(&scratch.0)
        .args([cores.to_string(), time.as_millis().to_string(), NAME.to_owned()])
        .args(
            SIZES
                .iter()
                .flat_map(|&size| Source::ALL.map(|source| format!("{size}:{}:{}", trips(size), source.name()))),
        )
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("mpirun: {error}"))?;
    if !output.status.success() {
        return Err(format!("mpirun: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let lines = String::from_utf8(output.stdout)?;
    lines.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn contains(text: &[u8], words: &str) -> bool {
    String::from_utf8_lossy(text).contains(words)
}
