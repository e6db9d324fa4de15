//! Everything, several times over: the machine changes from one second to the next, and each contestant shall see it all.

use crate::arena::Arena;
use crate::batch::{Batch, Source};
use crate::contestants::Contestant;
use crate::contestants::copy::CopyEnd;
use crate::contestants::iceoryx::IceoryxEnd;
use crate::contestants::ring::RingEnd;
use crate::contestants::verbs::{Meeting, VerbsEnd};
use crate::cores::Cores;
use crate::play::{End, Nothing, Task, answer, call, meet, threads};
use crate::{Place, Result, SIZES, Scratch, perftest, program};
use clap::ValueEnum;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// How often everything is measured
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// For each contestant and length in each round
    #[arg(long, value_name = "MS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    time: u64,
    /// Where the batches go, as JSON, one a line
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// With UCX's own benchmark, ucx_perftest
    #[arg(long)]
    perftest: bool,
    /// With UCX, by ucx.c compiled
    #[arg(long, value_name = "PROGRAM")]
    ucx: Option<PathBuf>,
    /// With Open MPI, by mpi.c compiled
    #[arg(long, value_name = "PROGRAM")]
    mpi: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Second {
    #[command(flatten)]
    place: Place,
    #[arg(long)]
    contestant: Contestant,
    #[arg(long)]
    size: usize,
    #[arg(long)]
    source: Source,
    #[arg(long)]
    arena: PathBuf,
    /// Of fabrics and services
    #[arg(long)]
    name: String,
    /// Where the first process listens
    #[arg(long)]
    address: String,
}

struct Run {
    cores: Cores,
    time: Duration,
    out: BufWriter<File>,
    /// Measurements begun, for names.
    count: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let cores = arguments.place.cores()?;
    let out = File::create(&arguments.out).map_err(|error| format!("{}: {error}", arguments.out.display()))?;
    let time = Duration::from_millis(arguments.time);
    let mut run = Run { cores, time, out: BufWriter::new(out), count: 0 };
    eprintln!("on processors {cores}");
    for round in 0..arguments.rounds {
        for size in SIZES {
            // In another order each time.
            let all = Contestant::value_variants();
            for index in 0..all.len() {
                for source in Source::ALL {
                    run.own(all[(index + round as usize) % all.len()], Task { size, source })?;
                }
            }
            if arguments.perftest {
                run.perftest(size)?;
            }
        }
        if let Some(program) = &arguments.ucx {
            program::ucx(program, cores, time)?.iter().try_for_each(|batch| run.tell(batch))?;
        }
        if let Some(program) = &arguments.mpi {
            program::mpi(program, cores, time)?.iter().try_for_each(|batch| run.tell(batch))?;
        }
        run.out.flush()?;
        eprintln!("round {} of {}", round + 1, arguments.rounds);
    }
    Ok(())
}

impl Run {
    fn tell(&mut self, batch: &Batch) -> Result<()> {
        serde_json::to_writer(&mut self.out, batch)?;
        Ok(writeln!(self.out)?)
    }

    /// A contestant of this program.
    fn own(&mut self, contestant: Contestant, task: Task) -> Result<()> {
        let Task { size, source } = task;
        self.count += 1;
        let scratch = Scratch::new(&self.count.to_string());
        let arena = Arena::map(&scratch.0, CopyEnd::memory(size))?;
        let mut batches = Vec::new();
        let told = |floor, time| {
            batches.push(Batch { contestant: contestant.name().to_owned(), size, source, floor, time });
            Ok(())
        };
        let outcome = match contestant {
            Contestant::RdmaThreads => threads(&arena, self.cores, VerbsEnd::pair(size)?, task, self.time, told),
            Contestant::Rtrb => threads(&arena, self.cores, RingEnd::pair(size), task, self.time, told),
            _ => self.processes(contestant, &arena, &scratch, task, told),
        };
        outcome.map_err(|error| format!("{}, {size} bytes: {error}", contestant.name()))?;
        batches.iter().try_for_each(|batch| self.tell(batch))
    }

    fn processes(
        &self,
        contestant: Contestant,
        arena: &Arena,
        scratch: &Scratch,
        task: Task,
        told: impl FnMut(f64, f64) -> Result<()> + Send,
    ) -> Result<()> {
        let name = format!("compare-{}-{}", std::process::id(), self.count);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let contestant_ = contestant.to_possible_value().ok_or("a hidden contestant")?;
        let mut second = Command::new(std::env::current_exe()?)
            .args(["second", "--cores", &self.cores.to_string(), "--contestant", contestant_.get_name()])
            .args(["--size", &task.size.to_string(), "--source", task.source.name()])
            .args(["--name", &name, "--address", &listener.local_addr()?.to_string()])
            .arg("--arena")
            .arg(&scratch.0)
            .stdin(Stdio::null())
            .spawn()
            .map(Other)?;
        // On a thread of its own, since processes that are started later inherit the core.
        std::thread::scope(|scope| {
            let first = scope.spawn(|| -> Result<()> {
                self.cores.pin(0)?;
                let side = Side { arena, number: 0, name: &name, task, time: self.time };
                side.play(contestant, Meeting::Listen(&listener), told)
            });
            first.join().map_err(|_| "a side has panicked")?
        })?;
        let status = second.0.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the second process: {status}").into()) }
    }

    /// UCX by its own benchmark, between two looks at the floor.
    fn perftest(&mut self, size: usize) -> Result<()> {
        let before = self.floor()?;
        let time = perftest::play(self.cores, size)?;
        let after = self.floor()?;
        if before.max(after) < 1.25 * before.min(after) {
            let floor = (before * after).sqrt();
            self.tell(&Batch { contestant: perftest::NAME.to_owned(), size, source: Source::Warm, floor, time })?;
        }
        Ok(())
    }

    /// The floor of this moment: the median of some.
    fn floor(&mut self) -> Result<f64> {
        self.count += 1;
        let scratch = Scratch::new(&self.count.to_string());
        let arena = Arena::map(&scratch.0, 0)?;
        let mut floors = Vec::new();
        let told = |floor, _| {
            floors.push(floor);
            Ok(())
        };
        let nothing = Task { size: 8, source: Source::Warm };
        threads(&arena, self.cores, [Nothing, Nothing], nothing, Duration::from_millis(2), told)?;
        floors.sort_by(f64::total_cmp);
        floors.get(floors.len() / 2).copied().ok_or_else(|| "no floor".into())
    }
}

/// The other process. It ends with this value.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        // It has ended, or nobody needs it any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One of two processes.
struct Side<'a> {
    arena: &'a Arena,
    number: usize,
    name: &'a str,
    task: Task,
    time: Duration,
}

impl Side<'_> {
    fn play(
        &self,
        contestant: Contestant,
        meeting: Meeting<'_>,
        told: impl FnMut(f64, f64) -> Result<()>,
    ) -> Result<()> {
        let size = self.task.size;
        match contestant {
            Contestant::Copy => self.with(CopyEnd::new(self.arena, self.number, size), told),
            Contestant::Iceoryx2 => self.with(IceoryxEnd::new(self.name, self.number, size)?, told),
            Contestant::RdmaProcesses => self.with(VerbsEnd::join(self.name, self.number, size, meeting)?, told),
            Contestant::RdmaThreads | Contestant::Rtrb => Err("is of threads".into()),
        }
    }

    fn with(&self, mut end: impl End, told: impl FnMut(f64, f64) -> Result<()>) -> Result<()> {
        meet(self.arena)?;
        if self.number == 0 {
            call(self.arena, &mut end, self.task, self.time, told)
        } else {
            answer(self.arena, &mut end, self.task)
        }
    }
}

pub(crate) fn second(second: &Second) -> Result<()> {
    second.place.cores()?.pin(1)?;
    let arena = Arena::map(&second.arena, CopyEnd::memory(second.size))?;
    let task = Task { size: second.size, source: second.source };
    let side = Side { arena: &arena, number: 1, name: &second.name, task, time: Duration::ZERO };
    side.play(second.contestant, Meeting::Dial(&second.address), |_, _| Ok(()))
}
