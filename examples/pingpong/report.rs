//! What is printed.

use crate::arguments::Arguments;
use crate::measure::{Audience, Bandwidth, Clock, Cores, Latency, Measured, Mode, Plan, Sizes, Sorted, Stop};
use serde::Serialize;
use std::io::Write;

/// Prints each result as it comes, or all of them as JSON in the end.
#[derive(Debug)]
pub(crate) struct Report<W> {
    out: W,
    run: Run,
    json: bool,
    histogram: bool,
}

/// What the results are of.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    mode: Mode,
    /// Where the two ends are.
    ends: String,
    /// Whether both are in this process: then there is a floor.
    #[serde(skip)]
    local: bool,
    /// The cores that they are bound to.
    cores: Option<[usize; 2]>,
    /// What reading the clock costs, in nanoseconds.
    clock_nsec: f64,
    /// Whether the compiler optimised.
    optimised: bool,
    results: Vec<Row>,
}

impl Run {
    /// `cores`: for two ends in this process, the cores that they are bound to, if they are.
    pub(crate) fn new(mode: Mode, ends: String, cores: Option<Option<Cores>>, clock: &Clock) -> Self {
        let local = cores.is_some();
        let cores = cores.flatten().map(|Cores(cores)| cores);
        let (clock_nsec, optimised) = (clock.cost(), !cfg!(debug_assertions));
        Run { mode, ends, local, cores, clock_nsec, optimised, results: Vec::new() }
    }
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Row {
    Latency(LatencyRow),
    Bandwidth(BandwidthRow),
}

/// Times are one-way, in microseconds.
#[derive(Debug, Serialize)]
pub(crate) struct LatencyRow {
    bytes: usize,
    iterations: usize,
    t_min: f64,
    t_max: f64,
    t_typical: f64,
    t_avg: f64,
    t_stdev: f64,
    percentile_99: f64,
    percentile_99_9: f64,
    /// Where there are enough batches for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<Floor>,
    #[serde(skip)]
    local: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    histogram: Vec<Bin>,
}

#[derive(Debug, Serialize)]
struct Floor {
    typical: f64,
    percentile_10: f64,
    batches: usize,
    /// The typical batch's typical latency, in floors of the same batch.
    ratio: f64,
}

/// MB are 2^20 bytes.
#[derive(Debug, Serialize)]
pub(crate) struct BandwidthRow {
    bytes: usize,
    iterations: u64,
    bw_peak: f64,
    bw_average: f64,
    msg_rate_mpps: f64,
}

/// Latencies from `from` on, and below the next bin's.
#[derive(Debug, Serialize)]
struct Bin {
    from: f64,
    count: usize,
}

/// From so many floors on, their median is no interruption.
const FEWEST_BATCHES: usize = 10;

const RULE: &str = "------------------------------------------------------------------------------------------------\
                    ----------------------------------------------------------------------";
const LATENCY: &str = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
                       99% percentile[usec]   99.9% percentile[usec]";
const BANDWIDTH: &str = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]";

impl<W: Write> Report<W> {
    pub(crate) fn new(out: W, arguments: &Arguments, run: Run) -> Self {
        Report { out, run, json: arguments.json, histogram: arguments.histogram }
    }

    /// What comes after the results.
    pub(crate) fn end(mut self) -> Result<(), Stop> {
        if self.json {
            serde_json::to_writer_pretty(&mut self.out, &self.run).map_err(std::io::Error::from)?;
            writeln!(self.out)?;
        } else {
            writeln!(self.out, "{RULE}")?;
        }
        Ok(self.out.flush()?)
    }
}

impl<W: Write> Audience for Report<W> {
    fn begin(&mut self, plan: &Plan) -> Result<(), Stop> {
        if self.json {
            return Ok(());
        }
        let out = &mut self.out;
        let Run { mode, ends, local, cores, clock_nsec, optimised, .. } = &self.run;
        let cores = match cores {
            Some([one, other]) => format!(", bound to cores {one} and {other}"),
            None if *local => ", not bound to cores".to_owned(),
            None => String::new(),
        };
        writeln!(out, "{RULE}\n {ends}{cores}; a reading of the clock costs {clock_nsec:.1} nsec")?;
        writeln!(out, " Every byte is checked by its receiver, outside of the timed intervals.")?;
        if let Sizes::UpTo(longest) = plan.sizes
            && plan.sizes != Sizes::ALL
        {
            writeln!(out, " Sizes end where the device's messages do: at {longest} bytes.")?;
        }
        if !optimised {
            writeln!(
                out,
                " This program was built without optimisation: `cargo run --release` measures the real thing."
            )?;
        }
        writeln!(out, "{RULE}")?;
        match mode {
            Mode::Latency if *local => writeln!(out, "{LATENCY}   floor[usec]   ratio")?,
            Mode::Latency => writeln!(out, "{LATENCY}")?,
            Mode::Bandwidth => writeln!(out, "{BANDWIDTH}")?,
        }
        Ok(out.flush()?)
    }

    fn add(&mut self, measured: Measured) -> Result<(), Stop> {
        let row = match measured {
            Measured::Latency(latency) => Row::Latency(LatencyRow::new(&latency, self.run.local, self.histogram)),
            Measured::Bandwidth(bandwidth) => Row::Bandwidth(BandwidthRow::new(bandwidth)),
        };
        if !self.json {
            match &row {
                Row::Latency(row) => row.print(&mut self.out)?,
                Row::Bandwidth(row) => row.print(&mut self.out)?,
            }
            self.out.flush()?;
        }
        self.run.results.push(row);
        Ok(())
    }
}

/// Nanoseconds in microseconds, to a ten-thousandth.
fn microseconds(nanoseconds: f64) -> f64 {
    (nanoseconds * 10.0).round() / 1e4
}

impl LatencyRow {
    fn new(latency: &Latency, local: bool, histogram: bool) -> Self {
        let Latency { size, samples, floors, ratios } = latency;
        let floor = (floors.samples().len() >= FEWEST_BATCHES).then(|| Floor {
            typical: microseconds(floors.median()),
            percentile_10: microseconds(floors.per_mille(100)),
            batches: floors.samples().len(),
            ratio: (ratios.median() * 100.0).round() / 100.0,
        });
        LatencyRow {
            bytes: *size,
            iterations: samples.samples().len(),
            t_min: microseconds(samples.least()),
            t_max: microseconds(samples.greatest()),
            t_typical: microseconds(samples.median()),
            t_avg: microseconds(samples.mean()),
            t_stdev: microseconds(samples.deviation()),
            percentile_99: microseconds(samples.per_mille(990)),
            percentile_99_9: microseconds(samples.per_mille(999)),
            floor,
            local,
            histogram: if histogram { bins(samples) } else { Vec::new() },
        }
    }

    fn print(&self, out: &mut impl Write) -> Result<(), Stop> {
        let LatencyRow { bytes, iterations, t_min, t_max, t_typical, t_avg, t_stdev, .. } = self;
        let (p99, p999) = (self.percentile_99, self.percentile_99_9);
        write!(out, " {bytes:<7} {iterations:<14} {t_min:<14.3} {t_max:<14.3} {t_typical:<16.3} {t_avg:<14.3} ")?;
        write!(out, "{t_stdev:<15.3} {p99:<22.3} ")?;
        match &self.floor {
            Some(Floor { typical, ratio, .. }) => writeln!(out, "{p999:<24.3} {typical:<13.3} {ratio:.2}")?,
            None if self.local => writeln!(out, "{p999:<24.3} {:<13} -", "-")?,
            None => writeln!(out, "{p999:.3}")?,
        }
        for Bin { from, count } in &self.histogram {
            let share = *count as f64 / *iterations as f64;
            let bar = match (share * 100.0).round() as usize {
                0 => String::new(),
                length => format!(" {}", "#".repeat(length)),
            };
            writeln!(out, "   from {from:>10.3} usec {count:>9} {:>7.3} %{bar}", 100.0 * share)?;
        }
        Ok(())
    }
}

impl BandwidthRow {
    fn new(bandwidth: Bandwidth) -> Self {
        let Bandwidth { size, messages, nanoseconds, peak } = bandwidth;
        let seconds = nanoseconds.max(1) as f64 / 1e9;
        let megabytes = |bytes: f64| bytes / f64::from(1 << 20);
        BandwidthRow {
            bytes: size,
            iterations: messages,
            bw_peak: megabytes(peak),
            bw_average: megabytes(messages as f64 * size as f64 / seconds),
            msg_rate_mpps: messages as f64 / seconds / 1e6,
        }
    }

    fn print(&self, out: &mut impl Write) -> Result<(), Stop> {
        let BandwidthRow { bytes, iterations, bw_peak, bw_average, msg_rate_mpps } = self;
        Ok(writeln!(out, " {bytes:<10} {iterations:<14} {bw_peak:<18.2} {bw_average:<20.2} {msg_rate_mpps:.6}")?)
    }
}

/// Bins whose borders are a fourth of an octave apart, from the least sample on.
fn bins(samples: &Sorted) -> Vec<Bin> {
    let least = samples.least().max(1.0);
    let border = |index: i32| least * 2_f64.powf(f64::from(index) / 4.0);
    let mut bins: Vec<Bin> = Vec::new();
    let (mut index, mut rest) = (0, samples.samples());
    while !rest.is_empty() {
        let count = rest.partition_point(|&sample| sample < border(index + 1));
        if count > 0 {
            bins.push(Bin { from: microseconds(border(index)), count });
        }
        rest = &rest[count..];
        index += 1;
    }
    bins
}
