//! Tools of the system: run with a deadline, and nothing of them is left behind.

use crate::facts::Told;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How tools are run.
#[derive(Clone, Debug)]
pub(crate) struct Runner {
    /// How long each may take.
    pub(crate) deadline: Duration,
    /// Set when the user wants to leave.
    pub(crate) interrupt: Arc<AtomicBool>,
}

/// The user wants to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted;

/// How much of a tool's output is kept; what comes beyond is read and dropped.
const MOST: usize = 4 << 20;
/// How often is looked whether a tool has ended.
const INTERVAL: Duration = Duration::from_millis(5);
/// How long a killed process may take to go. One that waits for a driver which is stuck does not go at all.
const DYING: Duration = Duration::from_secs(2);

impl Runner {
    /// Runs a program to its end, or to the deadline. It has no input, and a process group of its own, which is killed as a
    /// whole.
    pub(crate) fn run(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<Told, Interrupted> {
        let end = Instant::now() + self.deadline;
        let mut command = Command::new(program);
        command.args(arguments).env("LC_ALL", "C").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Told::Missing),
            Err(error) => {
                let how = "an error at its start".to_owned();
                return Ok(Told::Failed { how, out: String::new(), error: error.to_string() });
            }
        };
        let mut process = Process { child, is_done: false };
        let (out, error) = (collect(process.child.stdout.take()), collect(process.child.stderr.take()));
        let Some(status) = self.wait(&mut process, end)? else { return Ok(Told::TimedOut(self.deadline)) };
        // A process that it started may hold the pipes open.
        let (Some(out), Some(error)) = (self.receive(&out, end)?, self.receive(&error, end)?) else {
            return Ok(Told::TimedOut(self.deadline));
        };
        process.is_done = true;
        if status.success() {
            return Ok(Told::Text(out));
        }
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("status {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown status".to_owned(),
        };
        Ok(Told::Failed { how, out, error })
    }

    /// `None`: the deadline passed.
    fn wait(&self, process: &mut Process, end: Instant) -> Result<Option<ExitStatus>, Interrupted> {
        loop {
            self.check()?;
            match process.child.try_wait() {
                Ok(Some(status)) => return Ok(Some(status)),
                // What cannot be waited for is as good as a process that does not end.
                Ok(None) | Err(_) if Instant::now() >= end => return Ok(None),
                Ok(None) | Err(_) => thread::sleep(INTERVAL),
            }
        }
    }

    fn receive(&self, text: &Receiver<String>, end: Instant) -> Result<Option<String>, Interrupted> {
        loop {
            self.check()?;
            match text.recv_timeout(INTERVAL) {
                Ok(text) => return Ok(Some(text)),
                Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
                Err(_) => return Ok(None),
            }
        }
    }

    fn check(&self) -> Result<(), Interrupted> {
        if self.interrupt.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
    }
}

/// A process. Its group is killed, and it is waited for, unless all of it is over.
struct Process {
    child: Child,
    is_done: bool,
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        // Its number is that of its group, and nobody else's: it has not been waited for, or another of the group lives and
        // holds its pipes.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let end = Instant::now() + DYING;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(INTERVAL);
        }
    }
}

/// Reads a pipe to its end, in a thread that nobody need wait for.
fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error counts.
            let _ = pipe.by_ref().take(MOST as u64).read_to_end(&mut bytes);
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        // If nobody waits for it any more, it is of no use.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}
