//! UCX by its own program, ucx_perftest: whether ours is fair to it. What it measures cannot be looked into, so the floor is measured before and after, and
//! a run counts if both agree.

use crate::cores::Cores;
use crate::{Result, trips};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) const NAME: &str = "ucx_perftest";
const DEADLINE: &str = "60";

/// Ended with this value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It ends by itself after a client.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn perftest(core: usize, port: u16) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["--foreground", DEADLINE, "ucx_perftest", "-c", &core.to_string(), "-p", &port.to_string()])
        .env("UCX_TLS", "posix")
        .env("UCX_LOG_LEVEL", "fatal")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The time of one way, in nanoseconds: the median of a run's messages.
pub(crate) fn play(cores: Cores, size: usize) -> Result<f64> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let mut server = perftest(cores.0[1], port).stdout(Stdio::null()).spawn().map(Server)?;
    let trips = trips(size) * 20;
    let begin = Instant::now();
    loop {
        let output = perftest(cores.0[0], port)
            .args(["127.0.0.1", "-t", "tag_lat", "-f", "-v"])
            .args(["-s", &size.to_string(), "-n", &trips.to_string(), "-w", &(trips / 4).to_string()])
            .output()?;
        if output.status.success() {
            return median(&String::from_utf8_lossy(&output.stdout));
        }
        // The server is not there yet.
        if begin.elapsed() > Duration::from_secs(10) || server.0.try_wait()?.is_some() {
            return Err("ucx_perftest (package ucx-utils) does not work here".into());
        }
        sleep(Duration::from_millis(10));
    }
}

/// Of a heading and a line of values, those separated by commas.
fn median(output: &str) -> Result<f64> {
    let mut lines = output.lines().filter(|line| line.contains(','));
    let (heading, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut pairs = heading.split(',').zip(values.split(','));
    let value = pairs.find_map(|(name, value)| name.contains("50.0_percentile").then(|| value.trim().parse::<f64>()));
    match value {
        Some(Ok(microseconds)) if microseconds > 0.0 => Ok(microseconds * 1000.0),
        _ => Err(format!("ucx_perftest says {output:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perftest_prints() {
        let good = "iterations,50.0_percentile_lat,avg_lat\n20000,0.622,7.026\n";
        assert_eq!(median(good).unwrap(), 622.0);
        for wrong in
            ["", "iterations,50.0_percentile_lat\n20000,x\n", "iterations,avg_lat\n1,2\n", "a,50.0_percentile_lat\n"]
        {
            assert!(median(wrong).is_err(), "{wrong}");
        }
    }
}
