//! What is plugged in and switched on, and the lock under which connections change.

use super::device::SoftDevice;
use super::faults::{Event, State};
use super::portability::Lint;
use super::profile::{self, Profile};
use super::shared::membership::Membership;
use super::topology::{End, Topology};
use crate::{Error, ErrorKind};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The cables of a fabric and their state.
pub(crate) struct Wiring {
    pub(crate) topology: Topology,
    flags: Flags,
    lock: Mutex<()>,
    faults: Option<State>,
    lint: Option<Lint>,
    /// The devices of this process, by host.
    devices: OnceLock<Vec<Vec<Weak<SoftDevice>>>>,
}

/// Which hosts are off and which cables are out.
enum Flags {
    Own { hosts_off: Box<[AtomicU8]>, cables_out: Box<[AtomicU8]> },
    Shared(Arc<Membership>),
}

/// While it is held, every connection that this process's queue pairs have stays as it is: it is the first of all locks
/// (then a queue pair's attributes, then latches).
pub(crate) struct Still<'a>(#[expect(dead_code, reason = "held, not read")] MutexGuard<'a, ()>);

impl Wiring {
    pub(crate) fn new(topology: Topology, profile: &Profile) -> Self {
        let clear = |count| (0..count).map(|_| AtomicU8::new(0)).collect();
        let flags = Flags::Own { hosts_off: clear(topology.hosts().len()), cables_out: clear(topology.cables().len()) };
        Wiring::with(topology, flags, profile)
    }

    pub(crate) fn shared(topology: Topology, membership: Arc<Membership>, profile: &Profile) -> Self {
        Wiring::with(topology, Flags::Shared(membership), profile)
    }

    fn with(topology: Topology, flags: Flags, profile: &Profile) -> Self {
        let faults = (!profile.faults.is_empty()).then(|| State::new(profile.faults.clone(), &topology));
        let lint = match profile.lint {
            profile::Lint::Off => None,
            kind => Some(Lint::new(&topology, kind == profile::Lint::Printed)),
        };
        Wiring { topology, flags, lock: Mutex::new(()), faults, lint, devices: OnceLock::new() }
    }

    /// Who looks at what programs do, if anybody does.
    #[inline]
    pub(crate) fn lint(&self) -> Option<&Lint> {
        self.lint.as_ref()
    }

    /// Says which devices there are, once.
    pub(crate) fn set_devices(&self, hosts: &[Vec<Arc<SoftDevice>>]) {
        let weak = |devices: &Vec<_>| devices.iter().map(Arc::downgrade).collect();
        let _ = self.devices.set(hosts.iter().map(weak).collect());
    }

    /// The plan of faults that is being carried out, if there is one.
    #[inline]
    pub(crate) fn faults(&self) -> Option<&State> {
        self.faults.as_ref()
    }

    /// Counts a call of a program's. Before any lock is taken.
    #[inline]
    pub(crate) fn called(&self, call: &'static str) -> Result<(), c_int> {
        match &self.faults {
            None => Ok(()),
            Some(faults) => faults.call(call, |event| self.carry_out(event)),
        }
    }

    #[cold]
    fn carry_out(&self, event: &Event) {
        // The plan was checked against the topology; in a shared fabric that has ended nothing is left to change.
        let _ = match *event {
            Event::Cable { cable, plugged } => self.set_cable(cable, plugged),
            Event::Host { host, on } => self.set_host(host, on),
            Event::Gid { host, device, index, gid } => {
                let known = self.devices.get().and_then(|hosts| hosts.get(host)?.get(device)?.upgrade());
                known.map_or(Ok(()), |device| device.set_gid(index, gid))
            }
        };
    }

    fn look_for_light(&self) {
        let devices = self.devices.get().into_iter().flatten().flatten().filter_map(Weak::upgrade);
        let devices: Vec<_> = devices.collect();
        let _still = self.lock();
        devices.iter().for_each(|device| device.look_for_light());
    }

    pub(crate) fn lock(&self) -> Still<'_> {
        Still(self.lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The fabric between processes that this is, if it is one.
    pub(crate) fn membership(&self) -> Option<&Arc<Membership>> {
        match &self.flags {
            Flags::Own { .. } => None,
            Flags::Shared(membership) => Some(membership),
        }
    }

    fn host_off(&self, host: usize) -> &AtomicU8 {
        match &self.flags {
            Flags::Own { hosts_off, .. } => &hosts_off[host],
            Flags::Shared(membership) => membership.host_off(host),
        }
    }

    fn cable_out(&self, cable: usize) -> &AtomicU8 {
        match &self.flags {
            Flags::Own { cables_out, .. } => &cables_out[cable],
            Flags::Shared(membership) => membership.cable_out(cable),
        }
    }

    /// Whether the port at an end is ACTIVE: a cable, plugged in, and both its hosts on. Whether anybody has opened the
    /// other side does not matter.
    pub(crate) fn is_active(&self, end: End) -> bool {
        let Some(cable) = self.topology.cable_of(end) else { return false };
        let (one, other) = self.topology.cables()[cable];
        let flags = [self.cable_out(cable), self.host_off(one.host), self.host_off(other.host)];
        flags.iter().all(|flag| flag.load(Ordering::Acquire) == 0)
    }

    pub(crate) fn set_host(&self, host: usize, on: bool) -> crate::Result<()> {
        if host >= self.topology.hosts().len() {
            return Err(Error::new(ErrorKind::UnknownDevice, format!("there is no host {host}")));
        }
        self.host_off(host).store(u8::from(!on), Ordering::Release);
        self.look_for_light();
        Ok(())
    }

    pub(crate) fn set_cable(&self, cable: usize, plugged: bool) -> crate::Result<()> {
        if cable >= self.topology.cables().len() {
            return Err(Error::new(ErrorKind::UnknownDevice, format!("there is no cable {cable}")));
        }
        self.cable_out(cable).store(u8::from(!plugged), Ordering::Release);
        self.look_for_light();
        Ok(())
    }
}
