//! What went wrong, in order.

use super::Faults;
use core::fmt;

/// What a fabric's [`Faults`] have done so far in this process. A test that fails prints it; a fabric that is dropped while
/// a thread panics does so by itself.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub(super) plan: Faults,
    pub(super) lines: Vec<String>,
    /// How many came after those that were kept.
    pub(super) more: u64,
}

impl Trace {
    /// One line for each thing that went wrong.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.plan.is_empty() {
            return out.write_str("no faults are planned");
        }
        writeln!(out, "faults (seed {}):", self.plan.seed)?;
        for line in &self.lines {
            writeln!(out, "  {line}")?;
        }
        match (self.lines.len(), self.more) {
            (0, _) => out.write_str("  none has happened"),
            (_, 0) => Ok(()),
            (_, more) => write!(out, "  and {more} more"),
        }
    }
}
