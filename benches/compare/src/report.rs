//! The table and the summary.

use crate::bands::{Band, bands, quantile};
use crate::batch::Source;
use crate::chart::draw;
use crate::contestants::Contestant;
use crate::{Result, SIZES, batch, perftest, program};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What `run` wrote
    #[arg(long, value_name = "FILE")]
    batches: PathBuf,
    /// Where the results go: results.json, table.md and plot.svg
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// About the machine and the versions, for the summary; may be repeated
    #[arg(long, value_name = "WORDS")]
    about: Vec<String>,
}

/// In the order of the table's columns.
pub(crate) fn contestants() -> [&'static str; 8] {
    let [copy, threads, processes, ring, iceoryx] =
        [Contestant::Copy, Contestant::RdmaThreads, Contestant::RdmaProcesses, Contestant::Rtrb, Contestant::Iceoryx2]
            .map(Contestant::name);
    [copy, threads, processes, ring, program::UCX, perftest::NAME, program::MPI, iceoryx]
}

#[derive(Debug, Serialize)]
struct Results<'a> {
    about: &'a [String],
    /// Nanoseconds, all of them.
    unit: &'static str,
    bands: Vec<Summary<'a>>,
}

#[derive(Debug, Serialize)]
struct Summary<'a> {
    floor: f64,
    cells: Vec<Cell<'a>>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cell<'a> {
    pub(crate) contestant: &'a str,
    pub(crate) size: usize,
    pub(crate) source: Source,
    batches: usize,
    pub(crate) p10: f64,
    median: f64,
    /// Of the median to the floor of the same batch.
    ratio: f64,
}

fn summary<'a>(band: &Band<'a>) -> Summary<'a> {
    let cell = |(&(contestant, size, source), batches): (&(&'a str, usize, Source), &Vec<&batch::Batch>)| {
        let of = |part| quantile(batches.iter().map(|batch| batch.time), part);
        let ratio = quantile(batches.iter().map(|batch| batch.time / batch.floor), 0.5)?;
        Some(Cell { contestant, size, source, batches: batches.len(), p10: of(0.1)?, median: of(0.5)?, ratio })
    };
    Summary { floor: band.floor, cells: band.cells.iter().filter_map(cell).collect() }
}

pub(crate) fn report(arguments: &Arguments) -> Result<()> {
    let batches = batch::read(&arguments.batches)?;
    let bands: Vec<_> = bands(&batches).iter().map(summary).collect();
    let first = bands.first().ok_or("too few batches for any figure")?;
    std::fs::create_dir_all(&arguments.out)?;
    draw(&arguments.out.join("plot.svg"), first.floor, &first.cells)?;
    let tables: Vec<_> = bands.iter().flat_map(|band| Source::ALL.map(|source| table(band, source))).collect();
    std::fs::write(arguments.out.join("table.md"), tables.join("\n"))?;
    let results = Results { about: &arguments.about, unit: "ns", bands };
    let mut text = serde_json::to_string_pretty(&results)?;
    text.push('\n');
    std::fs::write(arguments.out.join("results.json"), text)?;
    print!("{}", tables.join("\n"));
    Ok(())
}

fn table(summary: &Summary<'_>, source: Source) -> String {
    let cells: Vec<_> = summary.cells.iter().filter(|cell| cell.source == source).collect();
    let columns: Vec<_> =
        contestants().into_iter().filter(|column| cells.iter().any(|cell| cell.contestant == *column)).collect();
    let mut out =
        format!("Floor {:.0} ns, {} source:\n\n| bytes | {} |\n", summary.floor, source.name(), columns.join(" | "));
    let _ = writeln!(out, "|---:|{}", "---:|".repeat(columns.len()));
    for size in SIZES {
        let _ = write!(out, "| {} |", bytes(size));
        for column in &columns {
            let cell = cells.iter().find(|cell| cell.size == size && cell.contestant == *column);
            let _ = match cell {
                Some(cell) => write!(out, " {} / {} |", time(cell.p10), time(cell.median)),
                None => write!(out, " – |"),
            };
        }
        out.push('\n');
    }
    out
}

/// Three digits, in nanoseconds or microseconds.
fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ..999.5 => format!("{nanoseconds:.0} ns"),
        ..9_995.0 => format!("{:.2} µs", nanoseconds / 1e3),
        ..99_950.0 => format!("{:.1} µs", nanoseconds / 1e3),
        _ => format!("{:.0} µs", nanoseconds / 1e3),
    }
}

pub(crate) fn bytes(size: usize) -> String {
    if size < 1 << 10 {
        format!("{size} B")
    } else if size < 1 << 20 {
        format!("{} KiB", size >> 10)
    } else {
        format!("{} MiB", size >> 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        assert_eq!(
            [12.3, 999.4, 999.6, 9_994.0, 12_340.0, 123_456.0].map(time).join(", "),
            "12 ns, 999 ns, 1.00 µs, 9.99 µs, 12.3 µs, 123 µs"
        );
        assert_eq!([8, 1024, 65_536, 1 << 20].map(bytes).join(", "), "8 B, 1 KiB, 64 KiB, 1 MiB");
    }
}
