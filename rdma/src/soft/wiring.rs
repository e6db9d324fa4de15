//! What is plugged in and switched on, and the lock under which connections change.

use super::topology::{End, Topology};
use crate::{Error, ErrorKind, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The cables of a fabric and their state.
pub(crate) struct Wiring {
    pub(crate) topology: Topology,
    state: Mutex<State>,
}

/// Which hosts are on and which cables are in. Whoever holds it keeps every connection of the fabric as it is: it is the
/// first of all locks (then a queue pair's attributes, then latches).
pub(crate) struct State {
    hosts_on: Vec<bool>,
    cables_in: Vec<bool>,
}

impl Wiring {
    pub(crate) fn new(topology: Topology) -> Self {
        let state =
            State { hosts_on: vec![true; topology.hosts().len()], cables_in: vec![true; topology.cables().len()] };
        Wiring { topology, state: Mutex::new(state) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the port at an end is ACTIVE: a cable, plugged in, and both its hosts on. Whether anybody has opened the
    /// other side does not matter.
    pub(crate) fn is_active(&self, end: End) -> bool {
        self.is_active_in(&self.lock(), end)
    }

    pub(crate) fn is_active_in(&self, state: &State, end: End) -> bool {
        let Some(cable) = self.topology.cable_of(end) else { return false };
        let (one, other) = self.topology.cables()[cable];
        state.cables_in[cable] && state.hosts_on[one.host] && state.hosts_on[other.host]
    }

    pub(crate) fn set_host(&self, host: usize, on: bool) -> Result<()> {
        match self.lock().hosts_on.get_mut(host) {
            Some(state) => *state = on,
            None => return Err(Error::new(ErrorKind::UnknownDevice, format!("there is no host {host}"))),
        }
        Ok(())
    }

    pub(crate) fn set_cable(&self, cable: usize, plugged: bool) -> Result<()> {
        match self.lock().cables_in.get_mut(cable) {
            Some(state) => *state = plugged,
            None => return Err(Error::new(ErrorKind::UnknownDevice, format!("there is no cable {cable}"))),
        }
        Ok(())
    }
}
