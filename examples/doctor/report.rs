//! The two forms of output.

use crate::finding::{Finding, Level};
use serde_json::json;
use std::io::{self, Write};

/// The worst of them.
pub(crate) fn verdict(findings: &[Finding]) -> Level {
    findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
}

/// For a person.
pub(crate) fn text(out: &mut impl Write, findings: &[Finding]) -> io::Result<()> {
    for finding in findings {
        let level = match finding.level {
            Level::Ok => "ok",
            Level::Warning => "WARNING",
            Level::Problem => "PROBLEM",
        };
        let subject = finding.subject.as_ref().map(|subject| format!("{subject}: ")).unwrap_or_default();
        writeln!(out, "{level:<8} {:<14} {subject}{}", finding.check, finding.summary)?;
        let more = [
            ("saw", finding.evidence.as_str()),
            ("do", finding.remedy.as_deref().unwrap_or_default()),
            ("see", finding.source),
        ];
        // What is as it should be need not be proved.
        let more = more.into_iter().filter(|(_, words)| !words.is_empty() && finding.level > Level::Ok);
        for (what, words) in more {
            writeln!(out, "{:>8} {what}: {words}", "")?;
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    writeln!(out, "\nproblems: {}, warnings: {}", count(Level::Problem), count(Level::Warning))
}

/// For a program.
pub(crate) fn json(out: &mut impl Write, platform: &str, findings: &[Finding]) -> io::Result<()> {
    let all = json!({ "version": 1, "platform": platform, "verdict": verdict(findings), "findings": findings });
    serde_json::to_writer_pretty(&mut *out, &all)?;
    writeln!(out)
}
