//! What goes wrong in a fabric, and when: a plan, made before, with a seed. The same plan and the same calls give the same
//! faults.

mod fate;
mod state;
mod text;
mod trace;

pub(crate) use fate::Fate;
pub(crate) use state::State;
pub use trace::Trace;

use super::completion_queue::Side;
use super::topology::Topology;
use crate::{Error, Gid, Result};
use core::ffi::c_int;
use core::time::Duration;

/// A plan of faults for a fabric. It is written as text: see [`FromStr`](struct.Faults.html#impl-FromStr-for-Faults).
///
/// ```
/// use rdma::soft::{Fabric, Profile, Topology};
///
/// let plan = "seed 7; lose share 0.01; fail ibv_reg_mr 3 ENOMEM".parse()?;
/// let fabric = Fabric::new(Topology::mesh(2)?, Profile::thunderbolt().with_faults(plan));
/// # // The third registration fails, and one message in a hundred is lost.
/// println!("{}", fabric.trace());
/// # Ok::<(), rdma::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    seed: u64,
    messages: Vec<MessageFault>,
    calls: Vec<CallFault>,
    silences: Vec<(Side, u64)>,
    strays: Vec<u64>,
    /// Transitions to RTR that fail half-way: which, and with what.
    halves: Vec<(u64, c_int)>,
    events: Vec<(Moment, Event)>,
    idle: Option<Duration>,
    leak: bool,
}

/// Something that befalls messages on their way.
#[derive(Clone, Debug, PartialEq)]
struct MessageFault {
    what: Damage,
    when: Choice,
    host: Option<usize>,
    device: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Lose,
    Corrupt,
    Duplicate,
    /// Held back until so many looks at it have been in vain.
    Delay(u32),
}

/// Which frames of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Choice {
    /// The n-th that it sends, from 1.
    Frame(u64),
    Share(f64),
}

/// A call that fails: the n-th of its kind and those that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CallFault {
    call: String,
    first: u64,
    times: u64,
    errno: c_int,
}

/// When something happens to hosts and cables: with the next call after so many frames, or calls, of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Frame(u64),
    Call(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Cable { cable: usize, plugged: bool },
    Host { host: usize, on: bool },
    Gid { host: usize, device: usize, index: usize, gid: Gid },
}

impl Faults {
    /// Whether anything goes wrong at all.
    pub fn is_empty(&self) -> bool {
        *self == Faults { seed: self.seed, ..Faults::default() }
    }

    /// Whether what killed processes of a shared fabric had stays taken.
    pub(crate) fn leak(&self) -> bool {
        self.leak
    }

    /// Refuses a plan that names what a topology does not have.
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        let host = |host: usize| topology.hosts().get(host).ok_or_else(|| no("host", host, topology.hosts().len()));
        for (_, event) in &self.events {
            match *event {
                Event::Cable { cable, .. } if cable >= topology.cables().len() => {
                    return Err(no("cable", cable, topology.cables().len()));
                }
                Event::Host { host: number, .. } => drop(host(number)?),
                Event::Gid { host: number, device, .. } if device >= host(number)?.len() => {
                    return Err(no("device", device, host(number)?.len()));
                }
                _ => {}
            }
        }
        for fault in &self.messages {
            let devices = match fault.host {
                Some(number) => host(number)?.iter().collect::<Vec<_>>(),
                None => topology.hosts().iter().flatten().collect(),
            };
            if let Some(name) = fault.device.as_ref().filter(|name| !devices.contains(name)) {
                return Err(Error::argument(format!("the plan of faults names device {name}, which no such host has")));
            }
        }
        Ok(())
    }
}

fn no(what: &str, number: usize, count: usize) -> Error {
    Error::argument(format!("the plan of faults names {what} {number}, and the topology has {count}"))
}
