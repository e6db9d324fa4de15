//! `ifconfig -a`: addresses, and what is a member of the bridge.

use super::hardware_ports::is_interface;
use std::net::Ipv4Addr;

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    /// Whether it is switched on.
    pub(crate) up: bool,
    pub(crate) ipv4: Vec<Ipv4Addr>,
    /// Of a bridge.
    pub(crate) members: Vec<String>,
}

/// All interfaces.
pub(crate) fn parse(text: &str) -> Vec<Interface> {
    let mut all: Vec<Interface> = Vec::new();
    for line in text.lines() {
        if !line.starts_with(char::is_whitespace) {
            if let Some((name, rest)) = line.split_once(':').filter(|(name, _)| is_interface(name)) {
                all.push(Interface { name: name.to_owned(), up: is_up(rest), ..Interface::default() });
            }
            continue;
        }
        let mut words = line.split_whitespace();
        let (Some(last), Some(word), Some(value)) = (all.last_mut(), words.next(), words.next()) else { continue };
        match word {
            "inet" => last.ipv4.extend(value.parse::<Ipv4Addr>()),
            "member:" if is_interface(value) => last.members.push(value.to_owned()),
            _ => {}
        }
    }
    all
}

/// `flags=8863<UP,BROADCAST,…> mtu 1500`.
fn is_up(flags: &str) -> bool {
    let inside = flags.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(inside, _)| inside);
    inside.is_some_and(|inside| inside.split(',').any(|flag| flag == "UP"))
}
