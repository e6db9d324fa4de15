use crate::Result;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The message of a ping-pong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    /// The same again and again, as most benchmarks have it: it stays in the caches of whoever reads it.
    Warm,
    /// Written anew before each send, all of it, within the time that is measured.
    Rewritten,
}

impl Source {
    pub(crate) const ALL: [Source; 2] = [Source::Warm, Source::Rewritten];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Source::Warm => "warm",
            Source::Rewritten => "rewritten",
        }
    }
}

/// What is kept of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) contestant: String,
    /// Bytes of a message.
    pub(crate) size: usize,
    pub(crate) source: Source,
    /// A hop of a cache line at that time, in nanoseconds.
    pub(crate) floor: f64,
    /// One way of a message, in nanoseconds.
    pub(crate) time: f64,
}

/// A batch a line.
pub(crate) fn read(path: &Path) -> Result<Vec<Batch>> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut batches = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let batch: Batch = serde_json::from_str(&line?)
            .map_err(|error| format!("{}, line {}: {error}", path.display(), number + 1))?;
        if !(batch.floor > 0.0 && batch.time > 0.0 && batch.floor.is_finite() && batch.time.is_finite()) {
            return Err(format!("{}, line {}: no times", path.display(), number + 1).into());
        }
        batches.push(batch);
    }
    Ok(batches)
}
