//! What was found out, as texts. The findings follow from these alone, so that any machine can be judged on any other.

use crate::parse::os::Release;
use std::time::Duration;

/// What a tool said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Told {
    /// It ended well, and wrote this.
    Text(String),
    /// It ended otherwise: how, what it wrote, and what it wrote as errors.
    Failed { how: String, out: String, error: String },
    /// There is no such tool, or no such file.
    #[default]
    Missing,
    /// It did not end in time, and was killed.
    TimedOut(Duration),
}

impl Told {
    /// What it wrote, however it ended.
    pub(crate) fn text(&self) -> &str {
        match self {
            Told::Text(text) | Told::Failed { out: text, .. } => text,
            Told::Missing | Told::TimedOut(_) => "",
        }
    }

    /// Why there may be nothing to read.
    pub(crate) fn why(&self) -> String {
        match self {
            Told::Text(text) if text.trim().is_empty() => "it wrote nothing".to_owned(),
            Told::Text(text) => format!("it wrote: {text}"),
            Told::Failed { how, out, error } => {
                let words = if error.trim().is_empty() { out } else { error };
                format!("it ended with {how}: {words}")
            }
            Told::Missing => "it is not there".to_owned(),
            Told::TimedOut(deadline) => format!("it did not end within {deadline:?}, and was killed"),
        }
    }
}

/// What a Mac is judged by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mac {
    /// `sw_vers`.
    pub(crate) os: Told,
    /// `sysctl -n machdep.cpu.brand_string`.
    pub(crate) chip: Told,
    /// `rdma_ctl status`.
    pub(crate) rdma_ctl: Told,
    /// `system_profiler SPThunderboltDataType -json`.
    pub(crate) thunderbolt: Told,
    /// `networksetup -listallhardwareports`.
    pub(crate) hardware_ports: Told,
    /// `ifconfig -a`.
    pub(crate) interfaces: Told,
    /// `pmset -g`.
    pub(crate) power: Told,
    /// This program, asking the library in a process of its own.
    pub(crate) library: Told,
    /// The variable `RDMA_LIBRARY`.
    pub(crate) named_library: Option<String>,
    /// Whether `RDMA_PROVIDER` is `soft`.
    pub(crate) is_soft: bool,
    /// What the peer runs.
    pub(crate) peer: Option<Release>,
}

/// What a Linux machine is judged by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Linux {
    /// This program, asking the library in a process of its own.
    pub(crate) library: Told,
    /// The variable `RDMA_LIBRARY`.
    pub(crate) named_library: Option<String>,
    /// Whether `RDMA_PROVIDER` is `soft`.
    pub(crate) is_soft: bool,
    /// `/proc/self/limits`.
    pub(crate) limits: Told,
    /// `/proc/self/status`.
    pub(crate) status: Told,
}

/// What works without hardware, and how to get it if it is not used already.
pub(crate) fn soft(is_soft: bool) -> &'static str {
    if is_soft {
        "the software fabric, which is used now, works"
    } else {
        "the software fabric works (RDMA_PROVIDER=soft)"
    }
}
