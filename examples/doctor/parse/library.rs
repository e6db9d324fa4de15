//! What the program itself tells of the verbs library, as JSON: it asks in a process of its own, because a library or a
//! driver in a bad state hangs or crashes whoever asks (exo-explore/exo issue 1712).

use serde::{Deserialize, Serialize};

/// What there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Library {
    /// None could be loaded.
    Missing(String),
    /// It is there, and does not list devices.
    Failed(String),
    /// Its devices.
    Devices(Vec<Device>),
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) transport: i32,
    /// Its ports, or why it could not be asked.
    pub(crate) ports: Result<Vec<Port>, String>,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Port {
    pub(crate) number: u8,
    /// As `PORT_ACTIVE (4)`.
    pub(crate) state: String,
    pub(crate) active: bool,
    pub(crate) gids: Vec<String>,
}

impl Device {
    pub(crate) fn is_active(&self) -> bool {
        self.ports.as_ref().is_ok_and(|ports| ports.iter().any(|port| port.active))
    }
}

/// `None` if it is not what this program writes.
pub(crate) fn parse(text: &str) -> Option<Library> {
    serde_json::from_str(text).ok()
}
