//! What was found out about a Mac, read and joined.

use crate::facts::Mac;
use crate::parse::chip::{self, Chip};
use crate::parse::hardware_ports;
use crate::parse::interfaces::{self, Interface};
use crate::parse::library::{self, Device, Library};
use crate::parse::os::{self, Release};
use crate::parse::rdma_ctl;
use crate::parse::thunderbolt::{self, Receptacle};

/// A receptacle, and the network interface that belongs to it.
pub(super) struct Link {
    pub(super) receptacle: Receptacle,
    pub(super) interface: Option<String>,
}

impl Link {
    /// How people call it.
    pub(super) fn name(&self) -> String {
        let number = self.receptacle.number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        match &self.interface {
            Some(interface) => format!("Thunderbolt {number} ({interface})"),
            None => format!("Thunderbolt {number}"),
        }
    }
}

pub(super) struct View<'a> {
    pub(super) facts: &'a Mac,
    pub(super) os: Option<Release>,
    pub(super) chip: Option<Chip>,
    pub(super) switched_on: Option<bool>,
    /// Where it is known.
    pub(super) links: Option<Vec<Link>>,
    pub(super) interfaces: Vec<Interface>,
    pub(super) library: Option<Library>,
}

/// What Thunderbolt 5 does on one link, in Gb/s; Thunderbolt 4 does 40.
pub(super) const THUNDERBOLT_5: u32 = 80;

impl<'a> View<'a> {
    pub(super) fn new(facts: &'a Mac) -> Self {
        let ports = hardware_ports::parse(facts.hardware_ports.text());
        let link = |receptacle: Receptacle| {
            let port = ports.iter().find(|port| port.receptacle().is_some() && port.receptacle() == receptacle.number);
            Link { interface: port.map(|port| port.interface.clone()), receptacle }
        };
        let receptacles = thunderbolt::parse(facts.thunderbolt.text());
        View {
            facts,
            os: os::parse(facts.os.text()),
            chip: chip::parse(facts.chip.text()),
            switched_on: rdma_ctl::parse(facts.rdma_ctl.text()),
            links: receptacles.map(|receptacles| receptacles.into_iter().map(link).collect()),
            interfaces: interfaces::parse(facts.interfaces.text()),
            library: library::parse(facts.library.text()),
        }
    }

    /// Receptacles whose cable leads to another host.
    pub(super) fn peers(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().flatten().filter(|link| link.receptacle.peer().is_some())
    }

    /// Whether it is Thunderbolt 5. `None`: nothing tells.
    pub(super) fn thunderbolt_5(&self) -> Option<bool> {
        let speeds = || self.links.iter().flatten().filter_map(|link| link.receptacle.speed);
        if speeds().any(|speed| speed.gigabits >= THUNDERBOLT_5) {
            return Some(true);
        }
        // A slow link may be the cable's or the neighbour's fault; an idle receptacle tells its own.
        if speeds().any(|speed| speed.up_to) {
            return Some(false);
        }
        self.chip.as_ref().and_then(|chip| if chip.is_apple { chip.thunderbolt_5 } else { Some(false) })
    }

    pub(super) fn devices(&self) -> &[Device] {
        match &self.library {
            Some(Library::Devices(devices)) => devices,
            _ => &[],
        }
    }

    pub(super) fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }
}
