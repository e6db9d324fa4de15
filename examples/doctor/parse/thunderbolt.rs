//! `system_profiler SPThunderboltDataType -json`: receptacles, cables and what is at their other ends.

use serde_json::{Map, Value};

/// A receptacle of this Mac.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Receptacle {
    /// The N of "Thunderbolt N".
    pub(crate) number: Option<u32>,
    /// Its Thunderbolt domain: the peer sees it as this.
    pub(crate) domain: Option<String>,
    pub(crate) connected: bool,
    pub(crate) speed: Option<Speed>,
    pub(crate) neighbours: Vec<Neighbour>,
}

/// A link's speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speed {
    /// In Gb/s.
    pub(crate) gigabits: u32,
    /// What an idle receptacle could do, not what a link does.
    pub(crate) up_to: bool,
}

/// What is cabled to a receptacle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Neighbour {
    pub(crate) name: String,
    pub(crate) model: String,
    /// A host has a domain of its own, a device has none.
    pub(crate) domain: Option<String>,
    /// Whether the host offers RDMA, where its services are listed.
    pub(crate) rdma: Option<bool>,
    /// The device that it is behind, if it is not at the cable's end.
    pub(crate) behind: Option<String>,
}

impl Neighbour {
    pub(crate) fn is_host(&self) -> bool {
        self.domain.is_some()
    }
}

impl Receptacle {
    /// The host at the other end of its cable.
    pub(crate) fn peer(&self) -> Option<&Neighbour> {
        self.neighbours.iter().find(|neighbour| neighbour.is_host() && neighbour.behind.is_none())
    }
}

/// The service by which a host offers RDMA to its neighbours (hellas-ai/thunderbolt-ibverbs).
const RDMA_PROTOCOL: u64 = 0xFA57;
/// The same in early builds, by name (exo-explore/exo issue 1390).
const RDMA_KEY: &str = "rdma";

/// `None` if it is not what the tool writes. Controllers without a receptacle are left out.
pub(crate) fn parse(text: &str) -> Option<Vec<Receptacle>> {
    let value: Value = serde_json::from_str(text).ok()?;
    let buses = value.get("SPThunderboltDataType")?.as_array()?;
    Some(buses.iter().filter_map(Value::as_object).filter_map(receptacle).collect())
}

fn receptacle(bus: &Map<String, Value>) -> Option<Receptacle> {
    let tag = bus
        .iter()
        .filter(|(key, _)| key.starts_with("receptacle_") && key.ends_with("_tag"))
        .find_map(|(_, value)| value.as_object())?;
    let mut neighbours = Vec::new();
    neighbours_of(bus, None, &mut neighbours);
    let status = string(tag, "receptacle_status_key").unwrap_or_default();
    Some(Receptacle {
        number: tag.get("receptacle_id_key").and_then(number),
        domain: string(bus, "domain_uuid_key").map(str::to_ascii_uppercase),
        connected: status.ends_with("connected") && !status.contains("no_device"),
        speed: string(tag, "current_speed_key").and_then(speed),
        neighbours,
    })
}

/// A chain of devices, and the host that may be at its end. The depth is bounded by that of the JSON.
fn neighbours_of(parent: &Map<String, Value>, behind: Option<&str>, all: &mut Vec<Neighbour>) {
    for item in parent.get("_items").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        let name = string(item, "_name").unwrap_or("a device");
        all.push(Neighbour {
            name: name.to_owned(),
            model: string(item, "device_name_key").unwrap_or_default().to_owned(),
            domain: string(item, "domain_uuid_key").map(str::to_ascii_uppercase),
            rdma: item.get("services_title").and_then(Value::as_array).map(|services| services.iter().any(offers_rdma)),
            behind: behind.map(str::to_owned),
        });
        neighbours_of(item, Some(name), all);
    }
}

fn offers_rdma(service: &Value) -> bool {
    let is = |key: &str| service.get(key).and_then(Value::as_str).is_some_and(|name| name == RDMA_KEY);
    service.get("protocol_id_key").and_then(Value::as_u64) == Some(RDMA_PROTOCOL)
        || is("service_key_key")
        || is("_name")
}

fn string<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// A number, or digits as a string.
fn number(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => text.parse().ok(),
        _ => value.as_u64().and_then(|number| number.try_into().ok()),
    }
}

/// `80 Gb/s`, `Up to 120 Gb/s`.
fn speed(text: &str) -> Option<Speed> {
    let before = text.split("Gb/s").next().filter(|before| before.len() < text.len())?;
    let gigabits = before.split_whitespace().last()?.parse().ok()?;
    Some(Speed { gigabits, up_to: before.to_ascii_lowercase().contains("up to") })
}
