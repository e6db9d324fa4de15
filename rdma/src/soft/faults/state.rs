//! A plan that is being carried out: counters, and the trace.

use super::{Choice, Damage, Event, Fate, Faults, Moment, Trace};
use crate::error::Errno;
use crate::soft::address::scramble;
use crate::soft::completion_queue::Side;
use crate::soft::topology::{End, Topology};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Lines that are kept of the trace.
const KEPT: usize = 4096;

pub(crate) struct State {
    plan: Faults,
    /// The names of the devices, for the trace and for faults of one device.
    names: Vec<Vec<String>>,
    start: Instant,
    /// What `Fabric::pass_time` has added to the clock, in nanoseconds.
    passed: AtomicU64,
    frames: AtomicU64,
    calls: AtomicU64,
    /// Some event may be due at the next call.
    due: AtomicBool,
    counts: Mutex<Counts>,
    trace: Mutex<(Vec<String>, u64)>,
}

#[derive(Default)]
struct Counts {
    calls: HashMap<&'static str, u64>,
    /// The frames that each device has sent.
    frames: HashMap<(usize, usize), u64>,
    completions: [u64; 2],
    polled: u64,
    transitions: u64,
    fired: Vec<bool>,
}

impl State {
    pub(crate) fn new(plan: Faults, topology: &Topology) -> Self {
        State {
            counts: Mutex::new(Counts { fired: vec![false; plan.events.len()], ..Counts::default() }),
            due: AtomicBool::new(!plan.events.is_empty()),
            plan,
            names: topology.hosts().to_vec(),
            start: Instant::now(),
            passed: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            trace: Mutex::default(),
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, line: impl FnOnce() -> String) {
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        let (lines, more) = &mut *trace;
        if lines.len() < KEPT {
            lines.push(line());
        } else {
            *more += 1;
        }
    }

    pub(crate) fn trace(&self) -> Trace {
        let (lines, more) = self.trace.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Trace { plan: self.plan.clone(), lines, more }
    }

    fn name(&self, end: End) -> String {
        let name = self.names.get(end.host).and_then(|names| names.get(end.device)).map_or("", String::as_str);
        format!("host {} {name}", end.host)
    }

    /// Counts a call, and says whether it fails. Before any lock is taken, because events are carried out here, too.
    pub(crate) fn call(&self, call: &'static str, carry_out: impl FnMut(&Event)) -> Result<(), c_int> {
        let all = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if self.due.load(Ordering::Relaxed) {
            self.happen(all, carry_out);
        }
        if !self.plan.calls.iter().any(|fault| fault.call == call) {
            return Ok(());
        }
        let number = {
            let mut counts = self.counts();
            let count = counts.calls.entry(call).or_default();
            *count += 1;
            *count
        };
        let due = |first: u64, times: u64| number >= first && number - first < times;
        match self.plan.calls.iter().find(|fault| fault.call == call && due(fault.first, fault.times)) {
            None => Ok(()),
            Some(fault) => {
                self.note(|| format!("{call}, call {number}, fails with {}", Errno::from_raw(fault.errno)));
                Err(fault.errno)
            }
        }
    }

    #[cold]
    fn happen(&self, calls: u64, mut carry_out: impl FnMut(&Event)) {
        let frames = self.frames.load(Ordering::Relaxed);
        let mut now = Vec::new();
        {
            let mut counts = self.counts();
            for (index, (moment, event)) in self.plan.events.iter().enumerate() {
                let due = match *moment {
                    Moment::Frame(frame) => frames >= frame,
                    Moment::Call(call) => calls >= call,
                };
                if due && !counts.fired[index] {
                    counts.fired[index] = true;
                    now.push(event);
                }
            }
            if counts.fired.iter().all(|&fired| fired) {
                self.due.store(false, Ordering::Relaxed);
            }
        }
        for event in now {
            self.note(|| format!("call {calls}: {}", told(event)));
            carry_out(event);
        }
    }

    /// Decides what becomes of a message of so many frames, which a device is about to send.
    pub(crate) fn fate(&self, end: End, frames: u32) -> Fate {
        self.frames.fetch_add(u64::from(frames), Ordering::Relaxed);
        let mut fate = Fate::default();
        if self.plan.messages.is_empty() {
            return fate;
        }
        let first = {
            let mut counts = self.counts();
            let sent = counts.frames.entry((end.host, end.device)).or_default();
            *sent += u64::from(frames);
            *sent - u64::from(frames) + 1
        };
        let last = first + u64::from(frames) - 1;
        for (index, fault) in self.plan.messages.iter().enumerate() {
            let named = |name: &String| self.names.get(end.host).and_then(|all| all.get(end.device)) == Some(name);
            if fault.host.is_some_and(|host| host != end.host) || fault.device.as_ref().is_some_and(|name| !named(name))
            {
                continue;
            }
            let random = |frame: u64| {
                let salt = (index as u64) << 48 | (end.host as u64) << 40 | (end.device as u64) << 32;
                scramble(scramble(self.plan.seed ^ salt) ^ frame)
            };
            let hit = match fault.when {
                Choice::Frame(frame) => (first..=last).contains(&frame).then_some(frame),
                Choice::Share(share) => (first..=last).find(|&frame| random(frame) as f64 / u64::MAX as f64 <= share),
            };
            let Some(frame) = hit else { continue };
            let word = match fault.what {
                Damage::Lose => {
                    fate.lost = true;
                    "lost"
                }
                Damage::Corrupt => {
                    fate.corrupt = Some(random(!frame));
                    "corrupted"
                }
                Damage::Duplicate => {
                    fate.again = true;
                    "duplicated"
                }
                Damage::Delay(looks) => {
                    fate.held = looks;
                    "delayed"
                }
            };
            self.note(|| format!("{}: frame {frame} {word}", self.name(end)));
        }
        fate
    }

    /// Whether a completion never comes.
    pub(crate) fn silences(&self, end: End, side: Side) -> bool {
        if self.plan.silences.is_empty() {
            return false;
        }
        let number = {
            let mut counts = self.counts();
            let count = &mut counts.completions[side as usize];
            *count += 1;
            *count
        };
        let silent = self.plan.silences.contains(&(side, number));
        if silent {
            self.note(|| format!("{}: completion {number} of a {} never comes", self.name(end), side.name()));
        }
        silent
    }

    /// After completions were polled: the id of one more, which nobody posted, if there is to be one.
    pub(crate) fn stray(&self, polled: usize) -> Option<u64> {
        if self.plan.strays.is_empty() || polled == 0 {
            return None;
        }
        let mut counts = self.counts();
        let before = counts.polled;
        counts.polled += polled as u64;
        let number = *self.plan.strays.iter().find(|&&number| number > before && number <= counts.polled)?;
        drop(counts);
        let id = scramble(self.plan.seed ^ number);
        self.note(|| format!("after completion {number}: one for the id {id:#x}, which nobody posted"));
        Some(id)
    }

    /// Whether this transition to RTR fails half-way.
    pub(crate) fn half(&self) -> Option<c_int> {
        if self.plan.halves.is_empty() {
            return None;
        }
        let number = {
            let mut counts = self.counts();
            counts.transitions += 1;
            counts.transitions
        };
        let (_, errno) = *self.plan.halves.iter().find(|&&(which, _)| which == number)?;
        self.note(|| format!("transition {number} to RTR fails half-way with {}", Errno::from_raw(errno)));
        Some(errno)
    }

    /// The fabric's clock.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed() + Duration::from_nanos(self.passed.load(Ordering::Relaxed))
    }

    pub(crate) fn pass(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2);
        self.passed.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Whether a queue pair that was last used then is dead by now.
    pub(crate) fn decayed(&self, end: End, number: u32, used: Duration) -> bool {
        let Some(idle) = self.plan.idle else { return false };
        let dead = self.now().saturating_sub(used) >= idle;
        if dead {
            self.note(|| format!("{}: queue pair {number:#x} is dead after {idle:?} without traffic", self.name(end)));
        }
        dead
    }
}

/// The trace of a run that failed.
impl Drop for State {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Not `eprintln`, which panics where standard error takes nothing.
            let _ = writeln!(std::io::stderr(), "{}", self.trace());
        }
    }
}

fn told(event: &Event) -> String {
    match event {
        Event::Cable { cable, plugged: true } => format!("cable {cable} is plugged in"),
        Event::Cable { cable, plugged: false } => format!("cable {cable} is pulled out"),
        Event::Host { host, on: true } => format!("host {host} is switched on"),
        Event::Host { host, on: false } => format!("host {host} is switched off"),
        Event::Gid { host, device, index, gid } => {
            format!("GID {index} of device {device} of host {host} is now {gid}")
        }
    }
}
