//! The rows to ask about, read from the sources: whoever adds a number there has it checked.

use super::Row;
use crate::support::calls::{c_type, calls};
use crate::support::required;
use std::mem::{offset_of, size_of};

/// The names that are this project's own. Apple's note gives the number of the transport, not its name.
const OURS: [&str; 2] = ["IBV_LINK_LAYER_THUNDERBOLT", "IBV_TRANSPORT_THUNDERBOLT"];

/// Apple's header is a cut of rdma-core's, and what it leaves out beyond the rows of `src/abi.rs` is not known.
const SUBSET: Option<&str> =
    if cfg!(target_os = "linux") { None } else { Some("this header is a subset of rdma-core's") };

/// Optional calls that the header of a distribution still in use lacks.
const OLDER_THAN: [(&str, &str); 2] =
    [("ibv_reg_dmabuf_mr", "it came with rdma-core 34"), ("ibv_query_qp_data_in_order", "it came with rdma-core 36")];

/// Every row.
pub(crate) fn all() -> Vec<Row> {
    let mut rows = layout(include_str!("../../src/abi.rs"));
    let constants = constants(include_str!("../../src/bindings.rs"), &rows);
    rows.extend(constants);
    rows.extend(nested());
    rows.extend(prototypes());
    rows
}

fn row(label: String, expression: String, expected: i64) -> Row {
    Row { label, expression, expected, also: None, may_be_missing: None }
}

/// The tables of `src/abi.rs`. Panics on a line inside a table that it does not understand, so that none is left out.
pub(crate) fn layout(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    // The table we are in: its macro and the type that it is about.
    let mut table: Option<(&str, &str)> = None;
    for line in text.lines() {
        let words: Vec<&str> = line.trim_end_matches([';', '}', ' ']).split_whitespace().collect();
        match (&table, words.as_slice()) {
            (None, [kind @ ("sizes!" | "flags!"), "{"]) => table = Some((kind, "")),
            (None, [kind @ ("offsets!" | "values!"), "{", name, "{"]) => table = Some((kind, name)),
            (None, _) => {}
            (Some(_), []) if line.starts_with('}') => table = None,
            (Some((kind, name)), [_evidence, item, "=", number]) if line.ends_with(';') => {
                let expected = number.parse().unwrap_or_else(|_| panic!("src/abi.rs: no number: {line}"));
                rows.push(layout_row(kind, name, item, expected));
            }
            _ => panic!("src/abi.rs: cannot read: {line}"),
        }
    }
    assert!(table.is_none(), "src/abi.rs: a table does not end");
    rows
}

fn layout_row(kind: &str, name: &str, item: &str, expected: i64) -> Row {
    match kind {
        "sizes!" => {
            let c = c_type(item);
            let mut row = row(format!("size of {c}"), format!("sizeof({c})"), expected);
            if item == "ibv_port_attr" {
                row.also =
                    Some((56, "rdma-core 49 appended a field, which the exported ibv_query_port does not write"));
            }
            row
        }
        "offsets!" => offset(name, item, expected),
        _ => {
            let may_be_missing = OURS.contains(&item).then_some("the name is ours");
            Row { may_be_missing, ..row(item.into(), item.into(), expected) }
        }
    }
}

fn offset(name: &str, path: &str, expected: i64) -> Row {
    let c = c_type(name);
    row(format!("offset of {c}.{path}"), format!("__builtin_offsetof({c}, {path})"), expected)
}

/// The constants of `src/bindings.rs` that are in no table: `pub const IBV_X: type = number;`, bare or in a newtype.
fn constants(text: &str, known: &[Row]) -> Vec<Row> {
    let constants = text.lines().filter_map(|line| line.trim().strip_prefix("pub const IBV_"));
    let rows = constants.map(|line| {
        let (name, rest) = line.split_once(": ").expect("a constant has a type");
        let (_, value) = rest.split_once(" = ").expect("a constant has a value");
        let digits = value.trim_end_matches([';', ')']).rsplit('(').next().unwrap_or_default();
        let expected = digits.parse().unwrap_or_else(|_| panic!("src/bindings.rs: no number: {line}"));
        let name = format!("IBV_{name}");
        Row { may_be_missing: SUBSET, ..row(name.clone(), name, expected) }
    });
    rows.filter(|row| known.iter().all(|known| known.label != row.label)).collect()
}

/// Places inside unions and nested structures, which the tables of `src/abi.rs` cannot spell, and those whose path is
/// another one here than in C.
fn nested() -> Vec<Row> {
    macro_rules! places {
        ($($name:ident { $($($path:ident).+ = $c:literal;)* })*) => {
            vec![$($( offset(stringify!($name), $c, offset_of!(rdma_sys::$name, $($path).+) as i64) ),*),*]
        };
    }
    let mut rows = places! {
        ibv_send_wr {
            wr.rdma.remote_addr = "wr.rdma.remote_addr";
            wr.rdma.rkey = "wr.rdma.rkey";
            wr.atomic.remote_addr = "wr.atomic.remote_addr";
            wr.atomic.compare_add = "wr.atomic.compare_add";
            wr.atomic.swap = "wr.atomic.swap";
            wr.atomic.rkey = "wr.atomic.rkey";
            wr.ud.ah = "wr.ud.ah";
            wr.ud.remote_qpn = "wr.ud.remote_qpn";
            wr.ud.remote_qkey = "wr.ud.remote_qkey";
            xrc_remote_srqn = "qp_type.xrc.remote_srqn";
            reserved_bind_mw_or_tso = "bind_mw";
        }
        ibv_gid {
            global.subnet_prefix = "global.subnet_prefix";
            global.interface_id = "global.interface_id";
        }
        ibv_async_event {
            element.cq = "element.cq";
            element.qp = "element.qp";
            element.port_num = "element.port_num";
            event_type = "event_type";
        }
    };
    let size = size_of::<rdma_sys::ibv_async_event>() as i64;
    rows.push(row("size of struct ibv_async_event".into(), "sizeof(struct ibv_async_event)".into(), size));
    rows.iter_mut().for_each(|row| row.may_be_missing = SUBSET);
    rows
}

/// The prototypes of the calls in `src/verbs.rs`: 1 where the header's declaration is the same type as ours.
fn prototypes() -> Vec<Row> {
    let rows = calls().into_iter().map(|call| {
        let arguments = if call.arguments.is_empty() { "void".into() } else { call.arguments.join(", ") };
        let ours = format!("{} (*)({arguments})", call.returned);
        // linux/types.h makes 64-bit numbers `unsigned long long` where stdint.h makes them `unsigned long`: to C two
        // types, to every LP64 calling convention one.
        let mut spellings = vec![ours.clone(), ours.replace("uint64_t", "unsigned long long")];
        if call.symbol == "ibv_query_port" {
            // The exported function is the frozen one that writes the structure's first 48 bytes.
            spellings.push(ours.replace("struct ibv_port_attr", "struct _compat_ibv_port_attr"));
        }
        let same =
            |spelling: &String| format!("__builtin_types_compatible_p(__typeof__(&{}), {spelling})", call.symbol);
        let expression = spellings.iter().map(same).collect::<Vec<_>>().join(" || ");
        // A machine that is to compare everything must have them all.
        let older = OLDER_THAN.iter().find(|(symbol, _)| *symbol == call.symbol && !required()).map(|(_, why)| *why);
        let may_be_missing = if call.required { None } else { SUBSET.or(older) };
        Row { may_be_missing, ..row(format!("prototype of {} as {ours}", call.symbol), expression, 1) }
    });
    rows.collect()
}
