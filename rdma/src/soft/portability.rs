//! What a program does that works under one profile and not under another.

use super::profile::Profile;
use super::topology::{End, Topology};
use core::fmt;
use rdma_sys as sys;
use std::backtrace::Backtrace;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Something that not every device takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Habit {
    /// A message or a receive of more than one frame of 4096 bytes.
    ManyFrames,
    /// An empty message.
    EmptyMessage,
    /// A send whose receive was posted after it.
    LateReceive,
    /// A receive of more frames than its message.
    LooseReceive,
    /// Data that was sent inline.
    Inline,
    /// Immediate data.
    Immediate,
    /// A send without a completion.
    Unsignaled,
    /// A receive that was posted before the queue pair was in RTS.
    EarlyReceive,
    /// Memory that was registered after the queue pair that uses it left RESET.
    LateRegistration,
    /// Memory that does not start at a multiple of 16 KiB.
    UnalignedRegion,
    /// Memory across a multiple of 4 GiB.
    CrossingRegion,
    /// A region of more than 16,384,000 bytes.
    LargeRegion,
    /// A region with other access than local write.
    RemoteAccess,
    /// More than three queue pairs on a device.
    ManyQueuePairs,
    /// More than 100 regions on a device.
    ManyRegions,
    /// A connection from entry 0 of the GID table.
    FirstGid,
}

impl Habit {
    /// The profile or the device under which it fails.
    pub fn fails_on(self) -> &'static str {
        use Habit as H;
        match self {
            H::ManyFrames | H::EmptyMessage | H::LargeRegion | H::ManyQueuePairs | H::FirstGid => "thunderbolt_27",
            H::LateReceive => "classic",
            H::LooseReceive
            | H::Inline
            | H::Immediate
            | H::LateRegistration
            | H::UnalignedRegion
            | H::CrossingRegion
            | H::ManyRegions => "thunderbolt",
            H::Unsignaled => "thunderbolt, perhaps",
            H::EarlyReceive | H::RemoteAccess => "thunderbolt, by some reports",
        }
    }

    /// What happens there, and what to do.
    pub fn advice(self) -> &'static str {
        match self {
            Habit::ManyFrames => {
                "each frame fills a receive of its own there, and all but the last fail: send pieces of up to 4096 bytes"
            }
            Habit::EmptyMessage => "it is lost there, without a completion: send at least one byte",
            Habit::LateReceive => {
                "the message is lost there, and the send succeeds: post receives first, and let the peer know"
            }
            Habit::LooseReceive => "the receive fails there with LOC_LEN_ERR: post as many frames as are sent",
            Habit::Inline => "no inline data is granted there: send from registered memory",
            Habit::Immediate => "there is no immediate data there: put it into the message",
            Habit::Unsignaled => {
                "nobody has reported whether it works there: signal every send, as Apple's example does"
            }
            Habit::EarlyReceive => {
                "it is refused there: post receives after the transition to RTS, before the peer is told"
            }
            Habit::LateRegistration => "posting it fails there with EFAULT: register before the transition to INIT",
            Habit::UnalignedRegion => "it is refused there: align memory to 16384 bytes",
            Habit::CrossingRegion => "data arrives 4 GiB too low there: make two regions",
            Habit::LargeRegion => "it is refused there: make several regions",
            Habit::RemoteAccess => "it is refused there: ask for local write, and for more only if that fails",
            Habit::ManyQueuePairs => "the fourth fails there with EBUSY: use fewer",
            Habit::ManyRegions => "the 101st fails there with ENOMEM: cut few regions into many buffers",
            Habit::FirstGid => "that entry is no address there: look for an IPv4-mapped or a link-local one",
        }
    }
}

/// A [`Habit`] that a program was seen to have: where, and how often.
#[derive(Clone, Debug)]
pub struct Finding {
    habit: Habit,
    place: String,
    call: &'static str,
    wr_id: Option<u64>,
    times: u64,
    stack: Arc<Backtrace>,
}

impl Finding {
    /// What it is.
    pub fn habit(&self) -> Habit {
        self.habit
    }

    /// The call that showed it, by its C name.
    pub fn call(&self) -> &'static str {
        self.call
    }

    /// The id of the first work request that showed it, if it is about one.
    pub fn wr_id(&self) -> Option<u64> {
        self.wr_id
    }

    /// How often it was seen on this host's device.
    pub fn times(&self) -> u64 {
        self.times
    }

    /// The stack of the call that showed it first.
    pub fn stack(&self) -> &Backtrace {
        &self.stack
    }
}

/// `{}` is a line, `{:#}` has the stack, too.
impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.call)?;
        if let Some(id) = self.wr_id {
            write!(out, " (request {id:#x})")?;
        }
        write!(out, ": {:?} fails on {}: {}", self.habit, self.habit.fails_on(), self.habit.advice())?;
        if self.times > 1 {
            write!(out, " ({} times)", self.times)?;
        }
        if out.alternate() {
            write!(out, "\n{}", self.stack)?;
        }
        Ok(())
    }
}

/// Looks at what programs do.
pub(crate) struct Lint {
    names: Vec<Vec<String>>,
    findings: Mutex<Vec<(End, Finding)>>,
    prints: bool,
}

/// Whose call it is.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) end: End,
    pub(crate) call: &'static str,
    pub(crate) wr_id: Option<u64>,
}

impl Lint {
    pub(crate) fn new(topology: &Topology, prints: bool) -> Self {
        Lint { names: topology.hosts().to_vec(), findings: Mutex::default(), prints }
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        let findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        findings.iter().map(|(_, finding)| finding.clone()).collect()
    }

    pub(crate) fn note(&self, habit: Habit, caller: Caller) {
        let Caller { end, call, wr_id } = caller;
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) =
            findings.iter_mut().find(|(at, known)| *at == end && known.habit == habit && known.call == call)
        {
            known.times += 1;
            return;
        }
        let name = self.names.get(end.host).and_then(|names| names.get(end.device)).map_or("", String::as_str);
        let finding = Finding {
            habit,
            place: format!("host {} {name}", end.host),
            call,
            wr_id,
            times: 1,
            stack: Arc::new(Backtrace::force_capture()),
        };
        if self.prints {
            // Not `eprintln`, which panics where standard error takes nothing.
            let _ = writeln!(std::io::stderr(), "rdma: {finding}");
        }
        findings.push((end, finding));
    }

    /// A region that is registered.
    pub(crate) fn region(&self, address: usize, length: usize, access: u32, count: u32, end: End) {
        let caller = Caller { end, call: "ibv_reg_mr", wr_id: None };
        let thunderbolt = Profile::thunderbolt();
        let checks = [
            (!address.is_multiple_of(thunderbolt.page), Habit::UnalignedRegion),
            (address as u64 >> 32 != (address + (length - 1)) as u64 >> 32, Habit::CrossingRegion),
            (length as u64 > thunderbolt.max_mr_size, Habit::LargeRegion),
            (access != sys::IBV_ACCESS_LOCAL_WRITE, Habit::RemoteAccess),
            (count > thunderbolt.max_mr, Habit::ManyRegions),
        ];
        self.note_all(&checks, caller);
    }

    pub(crate) fn note_all(&self, checks: &[(bool, Habit)], caller: Caller) {
        for &(found, habit) in checks {
            if found {
                self.note(habit, caller);
            }
        }
    }
}
