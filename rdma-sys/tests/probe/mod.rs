//! Asking a C compiler for numbers, and judging the answers.

pub(crate) mod rows;

use crate::support::calls::calls;
use crate::support::{Compiler, Scratch};
use std::fmt::Write;
use std::process::Command;

/// One number that a C header must agree with.
pub(crate) struct Row {
    /// What it is, for the message.
    pub(crate) label: String,
    /// The C expression that gives it.
    pub(crate) expression: String,
    pub(crate) expected: i64,
    /// Another number that is right as well, and why.
    pub(crate) also: Option<(i64, &'static str)>,
    /// Why a header may lack the name; `None` if it must have it.
    pub(crate) may_be_missing: Option<&'static str>,
}

/// Whether the compiler finds `infiniband/verbs.h`.
pub(crate) fn has_header(compiler: &Compiler, scratch: &Scratch) -> bool {
    let source = "#if !__has_include(<infiniband/verbs.h>)\n#error no header\n#endif\nint main(void) { return 0; }\n";
    compiler.compile(&scratch.write("header.c", source), "header", &[""; 0]).is_ok()
}

/// The number of each row according to the header, `None` where a name is missing.
///
/// All rows make one program. Where it does not compile, the compiler's messages tell which lines are at fault; those
/// rows are taken out and the rest is compiled again. (Once is not enough: clang gives up after twenty errors.)
pub(crate) fn measure(compiler: &Compiler, scratch: &Scratch, arguments: &[String], rows: &[Row]) -> Vec<Option<i64>> {
    let mut present = vec![true; rows.len()];
    let program = loop {
        let (text, first) = program(rows, &present);
        match compiler.compile(&scratch.write("probe.c", &text), "probe", arguments) {
            Ok(program) => break program,
            Err(diagnostics) => {
                let mut progress = false;
                for line in diagnostics.lines().filter_map(faulty_line) {
                    if let Some(flag) = line.checked_sub(first).and_then(|index| present.get_mut(index)) {
                        progress |= std::mem::replace(flag, false);
                    }
                }
                assert!(progress, "infiniband/verbs.h was found but does not compile:\n{diagnostics}");
            }
        }
    };
    let output = Command::new(program).output().expect("run the probe");
    assert!(output.status.success(), "the probe ended with {}", output.status);
    let mut numbers = vec![None; rows.len()];
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (index, number) = line.split_once(' ').expect("two numbers a line");
        numbers[index.parse::<usize>().expect("an index")] = Some(number.parse().expect("a number"));
    }
    numbers
}

/// The C program, one row a line, and the number of the line of the first row.
fn program(rows: &[Row], present: &[bool]) -> (String, usize) {
    let mut text = String::from("#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n");
    // The header declares this one, named by the frozen ibv_query_port, only where it has not been renamed.
    text += "struct _compat_ibv_port_attr;\n#include <infiniband/verbs.h>\n";
    // Macros that shadow functions: ibv_query_port, ibv_reg_mr, ibv_get_device_list.
    for call in calls() {
        writeln!(text, "#undef {}", call.symbol).expect("a string");
    }
    text += "int main(void) {\n";
    let first = text.lines().count() + 1;
    for (index, (row, present)) in rows.iter().zip(present).enumerate() {
        if *present {
            write!(text, "printf(\"{index} %lld\\n\", (long long)({}));", row.expression).expect("a string");
        }
        text.push('\n');
    }
    text += "return 0;\n}\n";
    (text, first)
}

/// The line that a message of gcc or clang (`…/probe.c:LINE:COLUMN: error: …`) complains about.
fn faulty_line(message: &str) -> Option<usize> {
    let (place, _) = message.split_once(": error:")?;
    let (_, place) = place.split_once("probe.c:")?;
    place.split(':').next()?.parse().ok()
}

/// What is wrong, one line each; and what was tolerated, with the reason.
pub(crate) fn judge(rows: &[Row], numbers: &[Option<i64>]) -> (Vec<String>, Vec<String>) {
    let (mut wrong, mut tolerated) = (Vec::new(), Vec::new());
    for (row, number) in rows.iter().zip(numbers) {
        match (number, row.also, row.may_be_missing) {
            (Some(number), _, _) if *number == row.expected => {}
            (Some(number), Some((also, why)), _) if *number == also => {
                tolerated.push(format!("{}: {number}, not {}: {why}", row.label, row.expected));
            }
            (Some(number), _, _) => {
                wrong.push(format!("{}: the header says {number}, not {}", row.label, row.expected))
            }
            (None, _, Some(why)) => tolerated.push(format!("{}: not in the header: {why}", row.label)),
            (None, _, None) => wrong.push(format!("{}: not in the header", row.label)),
        }
    }
    (wrong, tolerated)
}
