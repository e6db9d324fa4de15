use crate::steps::{STEPS, Step};
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Parser, value_parser};
use std::path::PathBuf;
use std::time::Duration;

/// Asks a device, fact by fact, whether it is as docs/device.md says.
///
/// Between two hosts of a software fabric in this process; or with --server on one machine and --client on the other,
/// between the two devices at the ends of a cable. Needs no root. --plan tells what would be done, and does nothing.
///
/// In this process the variables RDMA_SOFT_PROFILE, RDMA_SOFT_FAULTS and RDMA_SOFT_PAGE say how the fabric behaves.
///
/// Interrupt it with ^C: it ends its step, which takes seconds, and destroys what it made. Do not kill it.
#[derive(Debug, Parser)]
#[command(name = "conformance", max_term_width = 110, group = ArgGroup::new("end").args(["server", "client"]))]
pub(crate) struct Arguments {
    /// Where devices come from: `soft`, `system` (the installed library) or `library:PATH` (a verbs library, which you
    /// vouch for) [default: soft in this process; with --server or --client what RDMA_PROVIDER says, else system]
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// The device [default: the first that is ACTIVE]
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,

    /// Wait for the other machine
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "0.0.0.0:18516")]
    pub(crate) server: Option<String>,

    /// Go to the machine that waits there
    #[arg(long, value_name = "HOST:PORT", value_parser = place)]
    pub(crate) client: Option<String>,

    /// Also the steps of which reports differ, or there are none. Both ends must say so
    #[arg(long)]
    pub(crate) risky: bool,

    /// These steps only. Both ends must say the same
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(STEPS.iter().map(|step| step.name)))]
    step: Vec<String>,

    /// Tell what would be done, and end
    #[arg(long)]
    pub(crate) plan: bool,

    /// Write the results to this file, in JSON that a person can read, and anew after each step. A link, a pipe or a device
    /// stays what it is and is written to: a pipe gets one report after the other
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// How long to wait for the other end to start
    #[arg(long, value_name = "SECS", default_value_t = 120, value_parser = value_parser!(u64).range(1..=86400))]
    timeout: u64,
}

/// Whether it has the shape. Whether there is such a host shows when it is dialled.
fn place(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0) => {
            Ok(text.to_owned())
        }
        _ => Err("it is HOST:PORT".to_owned()),
    }
}

impl Arguments {
    /// The steps to make, in their order.
    pub(crate) fn steps(&self) -> Vec<&'static Step> {
        let chosen = |step: &&Step| match &self.step[..] {
            [] => self.risky || !step.risky,
            names => names.iter().any(|name| name == step.name),
        };
        STEPS.iter().filter(chosen).collect()
    }

    /// Those that were named, but want a word more.
    pub(crate) fn unasked(&self) -> Option<&str> {
        let step = self.steps().into_iter().find(|step| step.risky && !self.risky)?;
        Some(step.name)
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(text: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(["conformance"].into_iter().chain(text.split_whitespace()))
    }

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn contradictions_are_refused() {
        for wrong in
            ["--server --client a:1", "--step nothing", "--timeout 0", "--client", "--client host", "something"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn risk_is_asked_for() {
        assert!(parse("").unwrap().steps().iter().all(|step| !step.risky));
        assert_eq!(parse("--risky").unwrap().steps().len(), STEPS.len());
        assert_eq!(parse("--step early").unwrap().unasked(), Some("early"));
        assert_eq!(parse("--step early --risky").unwrap().unasked(), None);
        let names: Vec<_> = parse("--step memory --step device").unwrap().steps().iter().map(|s| s.name).collect();
        assert_eq!(names, ["device", "memory"]);
    }
}
