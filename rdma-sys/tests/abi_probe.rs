//! Compares the ABI that this crate declares with an installed `infiniband/verbs.h`, by way of a C program: each row of
//! `src/abi.rs`, each constant of `src/bindings.rs`, and the prototype of each call in `src/verbs.rs`.
//!
//! It works alike against rdma-core's header and the one in Apple's SDK; `CC` chooses the compiler and may carry
//! arguments (`CC="cc -I/some/include"`) to choose the header. Without either the tests are skipped, or fail where
//! `RDMA_ABI_PROBE=require` is set.

mod probe;
mod support;

use probe::rows;
use rdma_sys::Verbs;
use std::io::Write;
use support::{Compiler, Scratch, skip};

/// The compiler, if there is one that finds the header; else skips the test.
fn compiler(what: &str, scratch: &Scratch) -> Option<Compiler> {
    let compiler = Compiler::find(what, scratch)?;
    if probe::has_header(&compiler, scratch) {
        return Some(compiler);
    }
    skip(what, "infiniband/verbs.h is not installed (Debian: libibverbs-dev; macOS: the SDK of 26.2 or later)");
    None
}

#[test]
fn the_installed_header_agrees() {
    let scratch = Scratch::new();
    let Some(compiler) = compiler("comparison with infiniband/verbs.h", &scratch) else { return };
    let rows = rows::all();
    let (wrong, tolerated) = probe::judge(&rows, &probe::measure(&compiler, &scratch, &[], &rows));
    let mut report = format!("compared {} rows with infiniband/verbs.h\n", rows.len());
    tolerated.iter().for_each(|line| report += &format!("tolerated: {line}\n"));
    let _ = std::io::stderr().write_all(report.as_bytes());
    assert!(wrong.is_empty(), "{} of {} rows differ:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// The test above is worth what it can notice. Here the header is wrong on purpose, in one place of each kind.
#[test]
fn a_header_that_differs_is_noticed() {
    let scratch = Scratch::new();
    let Some(compiler) = compiler("comparison with a wrong infiniband/verbs.h", &scratch) else { return };
    // Included before anything else, with the real header inside; that header's own guard makes it the only one.
    let header = scratch.write(
        "wrong.h",
        "#define ibv_wc ibv_renamed_wc\n#define lkey renamed_lkey\n#define IBV_MTU_4096 IBV_RENAMED_MTU\n\
         #define ibv_close_device ibv_renamed_close\n#define ibv_dereg_mr ibv_renamed_dereg\n\
         #include <infiniband/verbs.h>\n\
         #undef ibv_wc\n#undef lkey\n#undef IBV_MTU_4096\n#undef ibv_close_device\n#undef ibv_dereg_mr\n\
         struct ibv_wc { uint64_t wr_id; enum ibv_wc_status status; };\nvoid ibv_dereg_mr(struct ibv_mr *);\n\
         #define IBV_QPT_UC 33\n#define IBV_EVENT_COMM_EST 44\n",
    );
    let arguments = ["-include".into(), header.display().to_string()];
    let rows = rows::all();
    // What the header as it is gets wrong is the other test's to report.
    let (before, _) = probe::judge(&rows, &probe::measure(&compiler, &scratch, &[], &rows));
    let (mut wrong, _) = probe::judge(&rows, &probe::measure(&compiler, &scratch, &arguments, &rows));
    wrong.retain(|line| !before.contains(line));
    for expected in [
        "size of struct ibv_wc: the header says 16, not 48",
        "offset of struct ibv_wc.qp_num: not in the header",
        "offset of struct ibv_mr.lkey: not in the header",
        "offset of struct ibv_sge.lkey: not in the header",
        "IBV_QPT_UC: the header says 33, not 3",
        "IBV_MTU_4096: not in the header",
        "IBV_EVENT_COMM_EST: the header says 44, not 4",
        "prototype of ibv_close_device as int (*)(struct ibv_context *): not in the header",
        "prototype of ibv_dereg_mr as int (*)(struct ibv_mr *): the header says 0, not 1",
    ] {
        assert!(wrong.iter().any(|line| line == expected), "not noticed: {expected}; noticed:\n{}", wrong.join("\n"));
    }
    let others = wrong.iter().filter(|line| !line.contains("struct ibv_wc.")).count();
    assert_eq!(others, 8, "right places were called wrong:\n{}", wrong.join("\n"));
}

/// Which deviations pass: the two names of ours, and the size that one structure has since rdma-core 49.
#[test]
fn only_known_deviations_are_tolerated() {
    let rows = rows::layout(include_str!("../src/abi.rs"));
    let judge = |label: &str, number| {
        let index = rows.iter().position(|row| row.label == label).unwrap_or_else(|| panic!("no row {label}"));
        let (wrong, tolerated) = probe::judge(&rows[index..=index], &[number]);
        (wrong.len(), tolerated.len())
    };
    assert_eq!(judge("size of struct ibv_port_attr", Some(52)), (0, 0));
    assert_eq!(judge("size of struct ibv_port_attr", Some(56)), (0, 1));
    assert_eq!(judge("size of struct ibv_port_attr", Some(60)), (1, 0));
    assert_eq!(judge("size of struct ibv_qp_attr", Some(148)), (1, 0));
    assert_eq!(judge("IBV_LINK_LAYER_THUNDERBOLT", None), (0, 1));
    assert_eq!(judge("IBV_TRANSPORT_THUNDERBOLT", Some(101)), (1, 0));
    let tolerant: Vec<_> = rows.iter().filter(|row| row.may_be_missing.is_some()).map(|row| &row.label).collect();
    assert_eq!(tolerant, ["IBV_LINK_LAYER_THUNDERBOLT", "IBV_TRANSPORT_THUNDERBOLT"]);
}

/// The rows and the calls are read from text. Reading fewer than there are must not go unnoticed.
#[test]
fn nothing_is_left_out() {
    let text = include_str!("../src/abi.rs");
    let literals = text.lines().filter(|line| line.starts_with("    ") && line.ends_with(';')).filter(|line| {
        let number = line.rsplit("= ").next().unwrap_or_default().trim_end_matches(';');
        number.parse::<i64>().is_ok()
    });
    assert_eq!(rows::layout(text).len(), literals.count());
    assert!(rows::layout(text).len() >= 273, "src/abi.rs has lost rows");

    let symbols = |required: bool| -> Vec<&str> {
        support::calls::calls().iter().filter(|call| call.required == required).map(|call| call.symbol).collect()
    };
    assert_eq!(symbols(true), Verbs::REQUIRED);
    assert_eq!(symbols(false), Verbs::OPTIONAL);
}
