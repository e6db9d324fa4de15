use crate::measure::{Choice, Mode, Plan, Sizes};
use clap::{ArgGroup, Parser, value_parser};
use std::time::Duration;

/// Latency and bandwidth of messages over RDMA, with every byte checked.
///
/// Without --server or --client: between two hosts of a software fabric in this process, each on a thread of its own,
/// beside what the hardware needs at least for handing a cache line from one core to the other. There, and with
/// --processes, the variables RDMA_SOFT_PROFILE, RDMA_SOFT_FAULTS and RDMA_SOFT_PAGE say how the fabric behaves.
#[derive(Debug, Parser)]
#[command(name = "pingpong", max_term_width = 110, group = ArgGroup::new("end").args(["server", "client"]))]
pub(crate) struct Arguments {
    /// The length of the messages, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = size)]
    size: usize,

    /// All powers of two from 2 bytes to 8 MiB, or to the device's longest message: a line each
    #[arg(long, conflicts_with = "size")]
    all: bool,

    /// How many messages to measure [default: 20000 up to 4 KiB, 2000 up to 256 KiB, else 200]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=100_000_000))]
    iters: Option<u64>,

    /// How many to send before, unmeasured [default: a tenth of --iters]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=100_000_000))]
    warmup: Option<u64>,

    /// Messages one way, many at a time
    #[arg(long)]
    bandwidth: bool,

    /// How the latencies are distributed, besides
    #[arg(long, conflicts_with = "bandwidth")]
    pub(crate) histogram: bool,

    /// Machine-readable output
    #[arg(long)]
    pub(crate) json: bool,

    /// Wait for a client
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "0.0.0.0:18515")]
    pub(crate) server: Option<String>,

    /// Measure with the server that listens there
    #[arg(long, value_name = "HOST:PORT", value_parser = place)]
    pub(crate) client: Option<String>,

    /// Two processes on a shared software fabric: starts the second one itself
    #[arg(long, conflicts_with_all = ["server", "client"])]
    pub(crate) processes: bool,

    /// This is the second one of two processes on one machine
    #[arg(long, hide = true, requires = "server")]
    pub(crate) second: bool,

    /// Where devices come from, for these two: `system`, the installed library, or `soft`, a host of the software fabric
    /// that the variables RDMA_SOFT_… describe [default: what RDMA_PROVIDER says, else system]
    #[arg(long, value_name = "NAME", requires = "end")]
    pub(crate) provider: Option<String>,

    /// The device [default: the first that is ACTIVE]
    #[arg(long, value_name = "NAME", requires = "end")]
    device: Option<String>,

    /// The place of its address in the GID table [default: IPv4-mapped before link-local]
    #[arg(long, value_name = "N", requires = "end")]
    gid_index: Option<u8>,

    /// How long to wait for the other end
    #[arg(long, value_name = "SECS", default_value_t = 30, value_parser = value_parser!(u64).range(1..=86400))]
    timeout: u64,
}

fn size(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("over Thunderbolt an empty message is lost: at least 1".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(format!("{error}")),
    }
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
    pub(crate) fn plan(&self) -> Plan {
        Plan {
            mode: if self.bandwidth { Mode::Bandwidth } else { Mode::Latency },
            sizes: if self.all { Sizes::ALL } else { Sizes::One(self.size) },
            iterations: self.iters,
            warmup: self.warmup,
        }
    }

    pub(crate) fn choice(&self) -> Choice {
        Choice { device: self.device.clone(), gid_index: self.gid_index }
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn contradictions_are_refused() {
        for wrong in [
            "--size 0",
            "--size x",
            "--size -1",
            "--iters 0",
            "--all --size 4",
            "--server --client a:1",
            "--device rdma_en2",
            "--client host",
            "--client :1",
            "--client host:0",
            "--client host:65536",
            "--processes --server",
            "--processes --device rdma_en2",
            "--second",
            "--gid-index 1",
            "--provider soft",
            "--server --gid-index 256",
            "--bandwidth --histogram",
            "--timeout 0",
            "something",
        ] {
            let words = ["pingpong"].into_iter().chain(wrong.split(' '));
            assert!(Arguments::try_parse_from(words).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_server_listens_somewhere_by_default() {
        let parse = |text: &str| Arguments::try_parse_from(text.split(' ')).unwrap().server;
        assert_eq!(parse("pingpong --server").as_deref(), Some("0.0.0.0:18515"));
        assert_eq!(parse("pingpong --server [::1]:9 --size 8").as_deref(), Some("[::1]:9"));
        assert_eq!(parse("pingpong --size 8"), None);
    }
}
