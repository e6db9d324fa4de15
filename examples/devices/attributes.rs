//! The attributes of a device and of its ports, under their names in C.

use rdma::{Context, Device, GidEntry, Port};
use serde_json::Value;

/// An attribute: its name in C, and its value as a program and as a person reads it.
pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    pub(crate) value: Value,
    pub(crate) text: String,
}

/// All about a device.
pub(crate) struct Info {
    pub(crate) name: String,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) ports: Vec<PortInfo>,
}

/// All about a port.
pub(crate) struct PortInfo {
    pub(crate) number: u8,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) gids: Vec<GidEntry>,
}

impl Info {
    /// Opens the device, asks, and closes it again.
    pub(crate) fn query(device: &Device) -> rdma::Result<Self> {
        let context = device.open()?;
        let ports = (1..=context.attributes().ports())
            .map(|number| {
                let port = context.port(number)?;
                Ok(PortInfo { number, attributes: port_attributes(&port), gids: port.gids()? })
            })
            .collect::<rdma::Result<_>>()?;
        Ok(Info { name: device.name().to_owned(), attributes: device_attributes(device, &context), ports })
    }
}

fn text(name: &'static str, text: String) -> Attribute {
    Attribute { name, value: Value::String(text.clone()), text }
}

fn hexadecimal(name: &'static str, number: u64, digits: usize) -> Attribute {
    Attribute { name, value: number.into(), text: format!("{number:#0width$x}", width = digits + 2) }
}

/// A number with a meaning: `meaning (number)`.
fn coded(name: &'static str, number: u32, meaning: &str) -> Attribute {
    Attribute { name, value: number.into(), text: format!("{meaning} ({number})") }
}

/// Numbers that are shown as they are, from the fields of a structure.
macro_rules! numbers {
    ($($raw:ident . $name:ident)*) => {
        [$( Attribute { name: stringify!($name), value: $raw.$name.into(), text: $raw.$name.to_string() } ),*]
    };
}

fn device_attributes(device: &Device, context: &Context) -> Vec<Attribute> {
    let attributes = context.attributes();
    let raw = attributes.as_raw();
    let mut all = vec![
        text("transport", device.transport().to_string()),
        text("fw_ver", attributes.firmware()),
        text("node_guid", attributes.node_guid().to_string()),
        text("sys_image_guid", colons(&raw.sys_image_guid.to_ne_bytes())),
        hexadecimal("vendor_id", raw.vendor_id.into(), 4),
    ];
    all.extend(numbers![raw.vendor_part_id]);
    all.push(hexadecimal("hw_ver", raw.hw_ver.into(), 1));
    all.extend(numbers![raw.phys_port_cnt]);
    all.push(hexadecimal("max_mr_size", raw.max_mr_size, 1));
    all.push(hexadecimal("page_size_cap", raw.page_size_cap, 1));
    all.extend(numbers![raw.max_qp raw.max_qp_wr]);
    all.push(hexadecimal("device_cap_flags", raw.device_cap_flags.into(), 8));
    all.extend(numbers![
        raw.max_sge raw.max_sge_rd raw.max_cq raw.max_cqe raw.max_mr raw.max_pd raw.max_qp_rd_atom raw.max_ee_rd_atom
        raw.max_res_rd_atom raw.max_qp_init_rd_atom raw.max_ee_init_rd_atom
    ]);
    let atomic = ["ATOMIC_NONE", "ATOMIC_HCA", "ATOMIC_GLOB"];
    all.push(coded("atomic_cap", raw.atomic_cap.0, named(&atomic, raw.atomic_cap.0, "invalid atomic capability")));
    all.extend(numbers![
        raw.max_ee raw.max_rdd raw.max_mw raw.max_raw_ipv6_qp raw.max_raw_ethy_qp raw.max_mcast_grp
        raw.max_mcast_qp_attach raw.max_total_mcast_qp_attach raw.max_ah raw.max_fmr raw.max_map_per_fmr raw.max_srq
        raw.max_srq_wr raw.max_srq_sge raw.max_pkeys raw.local_ca_ack_delay
    ]);
    all
}

fn port_attributes(port: &Port) -> Vec<Attribute> {
    let raw = port.attributes();
    let mtus = ["", "256", "512", "1024", "2048", "4096"];
    let mtu = |name, number: u32| coded(name, number, named(&mtus, number, "invalid MTU"));
    let mut all = vec![
        Attribute { name: "state", value: port.state().raw().into(), text: port.state().to_string() },
        mtu("max_mtu", raw.max_mtu.0),
        mtu("active_mtu", raw.active_mtu.0),
    ];
    all.extend(numbers![raw.sm_lid]);
    // ibv_devinfo calls this one port_lid, and the next one port_lmc.
    all.push(Attribute { name: "port_lid", value: raw.lid.into(), text: raw.lid.to_string() });
    all.push(hexadecimal("port_lmc", raw.lmc.into(), 2));
    let layer = match raw.link_layer {
        0 | 1 => "InfiniBand",
        2 => "Ethernet",
        100 => "Thunderbolt",
        _ => "Unknown",
    };
    all.push(Attribute { name: "link_layer", value: raw.link_layer.into(), text: layer.to_owned() });
    all.push(hexadecimal("max_msg_sz", raw.max_msg_sz.into(), 1));
    all.push(hexadecimal("port_cap_flags", raw.port_cap_flags.into(), 8));
    all.push(hexadecimal("port_cap_flags2", raw.port_cap_flags2.into(), 4));
    let lanes = ["", "1", "2", "4", "8", "15"];
    all.push(coded("max_vl_num", raw.max_vl_num.into(), named(&lanes, raw.max_vl_num.into(), "invalid value")));
    all.push(hexadecimal("bad_pkey_cntr", raw.bad_pkey_cntr.into(), 1));
    all.push(hexadecimal("qkey_viol_cntr", raw.qkey_viol_cntr.into(), 1));
    all.extend(numbers![raw.sm_sl raw.pkey_tbl_len raw.gid_tbl_len raw.subnet_timeout raw.init_type_reply]);
    all.push(coded("active_width", raw.active_width.into(), width(raw.active_width)));
    all.push(coded("active_speed", raw.active_speed.into(), speed(raw.active_speed)));
    let states = ["", "SLEEP", "POLLING", "DISABLED", "PORT_CONFIGURATION TRAINING", "LINK_UP", "LINK_ERROR_RECOVERY"];
    let physical = raw.phys_state.into();
    all.push(coded("phys_state", physical, named(&states, physical, "invalid physical state")));
    all
}

/// The name of a number, from a list in which some may be missing.
fn named<'a>(names: &[&'a str], number: u32, otherwise: &'a str) -> &'a str {
    usize::try_from(number)
        .ok()
        .and_then(|index| names.get(index))
        .copied()
        .filter(|name| !name.is_empty())
        .unwrap_or(otherwise)
}

fn width(code: u8) -> &'static str {
    match code {
        1 => "1X",
        2 => "4X",
        4 => "8X",
        8 => "12X",
        16 => "2X",
        _ => "invalid width",
    }
}

fn speed(code: u8) -> &'static str {
    match code {
        1 => "2.5 Gbps",
        2 => "5.0 Gbps",
        4 | 8 => "10.0 Gbps",
        16 => "14.0 Gbps",
        32 => "25.0 Gbps",
        64 => "50.0 Gbps",
        128 => "100.0 Gbps",
        _ => "invalid speed",
    }
}

/// Bytes in groups of two, as GUIDs and GIDs are shown.
pub(crate) fn colons(bytes: &[u8]) -> String {
    bytes
        .chunks(2)
        .map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect::<Vec<String>>()
        .join(":")
}
