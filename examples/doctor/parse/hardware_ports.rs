//! `networksetup -listallhardwareports`: which `enN` is which receptacle.

/// A port of the network configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HardwarePort {
    /// As `Thunderbolt 2`.
    pub(crate) name: String,
    /// As `en3`.
    pub(crate) interface: String,
}

impl HardwarePort {
    /// The receptacle's number, if it is one of Thunderbolt.
    pub(crate) fn receptacle(&self) -> Option<u32> {
        self.name.strip_prefix("Thunderbolt ")?.parse().ok()
    }
}

/// All ports that are told with an interface.
pub(crate) fn parse(text: &str) -> Vec<HardwarePort> {
    let mut ports = Vec::new();
    let mut name = None;
    for line in text.lines() {
        match line.split_once(':') {
            Some(("Hardware Port", value)) => name = Some(value.trim()),
            Some(("Device", value)) if is_interface(value.trim()) => {
                if let Some(name) = name.take() {
                    ports.push(HardwarePort { name: name.to_owned(), interface: value.trim().to_owned() });
                }
            }
            _ => {}
        }
    }
    ports
}

/// Whether it may be an interface's name: it becomes part of commands that are shown.
pub(crate) fn is_interface(name: &str) -> bool {
    (1..=15).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
