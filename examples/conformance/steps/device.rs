//! What the device says of itself. Takes nothing of it.

use crate::end::{Broken, End};
use rdma::{Gid, GidKind};
use rdma_sys as sys;

pub(crate) fn run(end: &mut End) -> Result<(), Broken> {
    identity(end);
    attributes(end);
    port(end);
    addresses(end);
    Ok(())
}

fn identity(end: &mut End) {
    let name = end.opened.context.device_name().to_owned();
    let named =
        name.strip_prefix("rdma_en").is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()));
    end.fact("F101", "the device's name", "rdma_enN", name, named);
    let unit = end.opened.context.rules().depth_unit().to_string();
    end.equal("F101", "the transport is Thunderbolt, 100: depth is counted in", "frames of 4 KiB".to_owned(), unit);
    let (events, commands) = end.opened.descriptors();
    end.equal("F307", "the descriptor for asynchronous events", -1, events);
    end.question("Q01", "the descriptor for commands", commands);
    let channels = if end.opened.has_channels() { "there" } else { "missing" };
    end.question("Q01", "the calls for completion channels", channels);
}

fn attributes(end: &mut End) {
    let device = match end.opened.device_attributes() {
        Ok(device) => device,
        Err(answer) => return end.answers("F103", "ibv_query_device", None, answer),
    };
    for (what, expected, observed) in [
        ("max_qp", 11, i64::from(device.max_qp)),
        ("max_cq", 11, device.max_cq.into()),
        ("max_pd", 11, device.max_pd.into()),
        ("max_mr", 100, device.max_mr.into()),
        ("max_qp_wr", 4095, device.max_qp_wr.into()),
        ("max_sge", 1, device.max_sge.into()),
        ("max_cqe", 4096, device.max_cqe.into()),
        ("max_mr_size", 16_384_000, i64::try_from(device.max_mr_size).unwrap_or(i64::MAX)),
        ("max_qp_rd_atom", 0, device.max_qp_rd_atom.into()),
        ("max_srq", 0, device.max_srq.into()),
        ("atomic_cap", 0, device.atomic_cap.0.into()),
        ("device_cap_flags", 0, device.device_cap_flags.into()),
        ("vendor_id", 0, device.vendor_id.into()),
        ("vendor_part_id", 0, device.vendor_part_id.into()),
        ("hw_ver", 0, device.hw_ver.into()),
    ] {
        end.equal("F103", what, expected, observed);
    }
    end.equal("F107", "ports of the device", 1, device.phys_port_cnt);
    end.question("Q02", "page_size_cap", format!("{:#x}", device.page_size_cap));
    end.question("Q02", "max_sge_rd, max_pkeys, max_ah, max_mcast_grp", {
        format!("{}, {}, {}, {}", device.max_sge_rd, device.max_pkeys, device.max_ah, device.max_mcast_grp)
    });
    let firmware = end.opened.context.attributes().firmware();
    end.question("Q02", "the firmware's version", firmware);
}

fn port(end: &mut End) {
    let (port, written) = match end.opened.port(1) {
        Ok(both) => both,
        Err(answer) => return end.answers("F104", "ibv_query_port", None, answer),
    };
    for (what, expected, observed) in [
        ("link_layer", 100, i64::from(port.link_layer)),
        ("max_mtu", 5, port.max_mtu.0.into()),
        ("active_mtu", 5, port.active_mtu.0.into()),
        ("max_msg_sz", 0x100_0000, port.max_msg_sz.into()),
        ("lmc", 0, port.lmc.into()),
        ("active_width", 4, port.active_width.into()),
        ("active_speed", 4, port.active_speed.into()),
    ] {
        end.equal("F104", what, expected, observed);
    }
    let from_1 = (1..=64).contains(&port.lid);
    end.fact("F105", "the LID", "the number of the port", port.lid, from_1);
    end.fact("F106", "bytes that ibv_query_port writes", "48 at most", written, written <= 48);
    end.equal("F108", "the port's state (4: ACTIVE)", sys::ibv_port_state::IBV_PORT_ACTIVE.0, port.state.0);
    end.question("Q03", "gid_tbl_len", port.gid_tbl_len);
    end.question("Q03", "pkey_tbl_len, sm_lid, phys_state, port_cap_flags", {
        format!("{}, {}, {}, {:#x}", port.pkey_tbl_len, port.sm_lid, port.phys_state, port.port_cap_flags)
    });
    for number in [0, 2] {
        let answer = end.opened.port(number).err();
        let observed = answer.map_or("success".to_owned(), |answer| answer.to_string());
        let refused = answer.is_some_and(|answer| answer.is(libc::EINVAL));
        end.fact("F107", &format!("port {number}"), "EINVAL", observed, refused);
    }
    let beyond = end.opened.gid(port.gid_tbl_len.clamp(0, 1024));
    let observed = beyond.as_ref().map_or_else(|answer| answer.to_string(), |_| "an entry".to_owned());
    end.fact("F107", "the GID behind the last", "EINVAL", observed, beyond.is_err());
}

/// The kinds only: the report need not say what this machine's addresses are.
fn addresses(end: &mut End) {
    let length = end.opened.port(1).map_or(0, |(port, _)| port.gid_tbl_len.clamp(0, 64));
    let kinds: Vec<_> = (0..length)
        .map(|index| end.opened.gid(index).map_or_else(|answer| answer.to_string(), |gid| sort(gid).to_owned()))
        .collect();
    let used = kinds.iter().rposition(|kind| kind != "empty").map_or(0, |last| last + 1);
    end.question("Q03", "the kinds of GIDs, from index 0", kinds[..used].join(", "));
    let expected = ["link-local from the MAC", "IPv4-mapped", "link-local"];
    end.fact(
        "F201",
        "the first three GIDs",
        expected.join(", "),
        kinds[..used.min(3)].join(", "),
        kinds[..used] == expected,
    );
}

fn sort(bytes: [u8; 16]) -> &'static str {
    match Gid::from_bytes(bytes).kind() {
        GidKind::Zero => "empty",
        GidKind::Ipv4Mapped => "IPv4-mapped",
        GidKind::LinkLocal if bytes[11..13] == [0xff, 0xfe] => "link-local from the MAC",
        GidKind::LinkLocal => "link-local",
        _ => "another",
    }
}
