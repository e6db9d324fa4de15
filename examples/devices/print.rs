//! The three forms of output.

use crate::attributes::{Attribute, Info, PortInfo, colons};
use rdma::Device;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// What `ibv_devices` prints: a name and a node GUID a line.
pub(crate) fn table(out: &mut impl Write, devices: &[Device]) -> io::Result<()> {
    writeln!(out, "    {:<16}\t   node GUID", "device")?;
    writeln!(out, "    {:<16}\t----------------", "------")?;
    for device in devices {
        let guid = device.guid().map_or_else(|| "-".to_owned(), |guid| colons(&guid.to_bytes()).replace(':', ""));
        writeln!(out, "    {:<16}\t{guid}", device.name())?;
    }
    Ok(())
}

/// What `ibv_devinfo -v` prints of a device.
pub(crate) fn info(out: &mut impl Write, info: &Info) -> io::Result<()> {
    writeln!(out, "hca_id:\t{}", info.name)?;
    attributes(out, &info.attributes, 1, 40)?;
    for PortInfo { number, attributes: port, gids } in &info.ports {
        writeln!(out, "\t\tport:\t{number}")?;
        attributes(out, port, 3, 48)?;
        for entry in gids {
            writeln!(out, "\t\t\tGID[{:>3}]:\t\t{}", entry.index(), colons(&entry.gid().to_bytes()))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Lines with so many tabs before, and as many between name and text as bring the text to a column.
fn attributes(out: &mut impl Write, attributes: &[Attribute], indent: usize, column: usize) -> io::Result<()> {
    for Attribute { name, text, .. } in attributes {
        let reached = 8 * indent + name.len() + 1;
        let tabs = (column - column.min(reached)).div_ceil(8).max(1);
        writeln!(out, "{}{name}:{}{text}", "\t".repeat(indent), "\t".repeat(tabs))?;
    }
    Ok(())
}

/// The same as JSON: an array of devices.
pub(crate) fn json(out: &mut impl Write, all: &[Info]) -> io::Result<()> {
    let devices: Vec<Value> = all
        .iter()
        .map(|info| {
            let ports = info.ports.iter().map(|port| {
                let gids = port.gids.iter().map(|entry| {
                    let (gid, kind) = (entry.gid().to_string(), format!("{:?}", entry.gid().kind()));
                    json!({ "index": entry.index(), "gid": gid, "kind": kind })
                });
                let first = [("port", port.number.into())];
                object(first, &port.attributes, "gids", gids.collect())
            });
            object([("name", info.name.clone().into())], &info.attributes, "ports", ports.collect())
        })
        .collect();
    serde_json::to_writer_pretty(&mut *out, &devices)?;
    writeln!(out)
}

/// An object of some attributes, with a list at the end.
fn object(first: [(&str, Value); 1], attributes: &[Attribute], last: &str, list: Vec<Value>) -> Value {
    let mut map = Map::new();
    map.extend(first.map(|(name, value)| (name.to_owned(), value)));
    map.extend(attributes.iter().map(|attribute| (attribute.name.to_owned(), attribute.value.clone())));
    map.insert(last.to_owned(), list.into());
    map.into()
}
