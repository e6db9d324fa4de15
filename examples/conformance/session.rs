//! One end's way through the steps, together with the other end.

use crate::channel::{Channel, Hello, Lost, Message};
use crate::end::{Broken, End, Role};
use crate::observation::Observation;
use crate::place::Place;
use crate::report::{Record, Report};
use crate::steps::Step;
use crate::watch::Watch;
use rdma::{Context, Provider};
use std::net::TcpStream;
use std::rc::Rc;
use std::time::Duration;

/// How long the other end may take within a step. Its waits for completions take less together; a transition to RTR that
/// nobody answers has a time of the system's own.
const PATIENCE: Duration = Duration::from_secs(120);

/// What an end begins with.
pub(crate) struct Session<'a> {
    pub(crate) provider: &'a Provider,
    pub(crate) name: &'a str,
    pub(crate) context: Context,
    pub(crate) stream: TcpStream,
    pub(crate) role: Role,
    pub(crate) steps: &'a [&'static Step],
    pub(crate) watch: &'a Watch,
    pub(crate) place: Option<&'a Place>,
    /// Where the lines go.
    pub(crate) out: &'a mut dyn FnMut(&str),
}

impl Role {
    /// The names of this end and of the other one.
    fn ends(self) -> [&'static str; 2] {
        match self {
            Role::Server => ["server", "client"],
            Role::Client => ["client", "server"],
        }
    }
}

impl Session<'_> {
    /// Makes all steps. Everything is destroyed when it returns.
    pub(crate) fn run(mut self) -> Result<Report, String> {
        let system = crate::system::describe();
        let names = self.steps.iter().map(|step| step.name.to_owned()).collect();
        let own = Hello { version: env!("CARGO_PKG_VERSION").to_owned(), steps: names, system: system.clone() };
        let mut channel = Channel::new(self.stream, PATIENCE).map_err(|error| error.to_string())?;
        let peer = greet(&mut channel, &own)?;
        let mut report = Report {
            readable: Vec::new(),
            program: format!("conformance {}", own.version),
            role: self.role.ends()[0].to_owned(),
            provider: self.name.to_owned(),
            device: self.context.device_name().to_owned(),
            system,
            peer_system: peer.system.chars().filter(|c| !c.is_control()).take(200).collect(),
            unfinished: None,
            interrupted: false,
            steps: Vec::new(),
        };
        report.readable.push(format!(
            "{}, {} of {}: {}; the other end: {}",
            report.role, report.device, report.provider, report.system, report.peer_system
        ));
        (self.out)(&report.readable[0]);
        let mut end = End::new(self.provider, self.context, channel, self.role)?;
        let mut lost = None;
        for step in self.steps {
            match begin(&mut end, self.watch) {
                Ok(true) => {}
                Ok(false) => {
                    report.interrupted = true;
                    break;
                }
                Err(error) => {
                    lost = Some(error);
                    break;
                }
            }
            report.unfinished = Some(step.name.to_owned());
            write(&report, self.place)?;
            self.watch.begin(step.name);
            let outcome = walk(&mut end, step);
            self.watch.end();
            report.unfinished = None;
            let (record, error) = outcome;
            for line in report.add(record, self.role.ends()) {
                (self.out)(line);
            }
            write(&report, self.place)?;
            if error.is_some() {
                lost = error;
                break;
            }
        }
        self.watch.begin("the end");
        finish(&mut report, end, self.role, &mut self.out);
        self.watch.end();
        if let Some(error) = lost {
            report.readable.push(error.to_string());
            write(&report, self.place)?;
            return Err(error.to_string());
        }
        write(&report, self.place)?;
        Ok(report)
    }
}

/// Destroys what is left, and says whether it went.
fn finish(report: &mut Report, end: End, role: Role, out: &mut dyn FnMut(&str)) {
    let opened = Rc::clone(&end.opened);
    drop(end);
    let troubles = opened.troubles.borrow();
    let observation = Observation {
        id: "F707".to_owned(),
        what: "destroying everything, children before parents".to_owned(),
        expected: Some("success".to_owned()),
        observed: if troubles.is_empty() { "success".to_owned() } else { troubles.join(", ") },
        agrees: Some(troubles.is_empty()),
    };
    let record = Record { step: "the end".to_owned(), incomplete: None, here: vec![observation], there: Vec::new() };
    for line in report.add(record, role.ends()) {
        out(line);
    }
}

fn write(report: &Report, place: Option<&Place>) -> Result<(), String> {
    let Some(place) = place else { return Ok(()) };
    report.write(place).map_err(|error| format!("cannot write {}: {error}", place.path().display()))
}

/// Both ends must be the same program, and do the same.
fn greet(channel: &mut Channel, own: &Hello) -> Result<Hello, String> {
    let lost = |error: Lost| error.to_string();
    channel.send(&Message::Hello(own.clone())).map_err(lost)?;
    match channel.receive().map_err(lost)? {
        Message::Hello(peer) if peer.version != own.version => {
            Err("the other end is another version of this program".to_owned())
        }
        Message::Hello(peer) if peer.steps != own.steps => {
            Err("the other end was told to make other steps: start both with the same --risky and --step".to_owned())
        }
        Message::Hello(peer) => Ok(peer),
        _ => Err(lost(Lost::Protocol("no greeting".to_owned()))),
    }
}

/// Agrees on the next step: `false` if one of the ends was interrupted.
fn begin(end: &mut End, watch: &Watch) -> Result<bool, Lost> {
    let stop = watch.interrupted();
    end.channel.send(&Message::Begin { stop, unreachable: end.unreachable })?;
    match end.channel.receive()? {
        Message::Begin { stop: theirs, unreachable } => {
            end.unreachable |= unreachable;
            Ok(!stop && !theirs)
        }
        _ => Err(Lost::Protocol("no beginning of a step".to_owned())),
    }
}

/// Makes one step. What it made is destroyed before the other end is told of its end.
fn walk(end: &mut End, step: &Step) -> (Record, Option<Lost>) {
    let outcome = if step.connects && end.unreachable {
        Err(Broken::Here("left out: the ends could not be connected, and this is not tried twice".to_owned()))
    } else {
        (step.run)(end)
    };
    let here = std::mem::take(&mut end.seen);
    let (incomplete, lost) = match outcome {
        Ok(()) => (None, None),
        Err(Broken::Here(reason)) => (Some(reason), None),
        Err(Broken::There) => (Some("the other end could not go on".to_owned()), None),
        Err(Broken::Lost(lost)) => (Some(lost.to_string()), Some(lost)),
    };
    let (there, lost) = match lost {
        Some(lost) => (Vec::new(), Some(lost)),
        None => match end.channel.end_step(here.clone()) {
            Ok(there) => (there, None),
            Err(lost) => (Vec::new(), Some(lost)),
        },
    };
    (Record { step: step.name.to_owned(), incomplete, here, there }, lost)
}
