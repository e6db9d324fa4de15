//! Asks the system.

use crate::assess;
use crate::environment;
use crate::facts::{Linux, Mac, Told};
use crate::finding::Finding;
use crate::parse::os::Release;
use crate::tool::{Interrupted, Runner};
use std::io::{self, Read};

/// The argument by which this program asks the library, in a process of its own.
pub(crate) const PROBE: &str = "--probe-library";

/// The platform that findings are about.
pub(crate) const PLATFORM: &str = std::env::consts::OS;

/// The findings about this machine.
pub(crate) fn findings(runner: &Runner, peer: Option<Release>) -> Result<Vec<Finding>, Interrupted> {
    if cfg!(target_os = "macos") {
        return Ok(assess::mac(&mac(runner, peer)?));
    }
    let mut all = assess::linux(&linux(runner)?);
    if peer.is_some() {
        all.push(Finding::warning("peer-os", "a peer's macOS is compared with a Mac's only", "run this on the Mac"));
    }
    Ok(all)
}

fn mac(runner: &Runner, peer: Option<Release>) -> Result<Mac, Interrupted> {
    // By their paths: what a changed PATH finds is another tool.
    Ok(Mac {
        os: runner.run("/usr/bin/sw_vers", &[])?,
        chip: runner.run("/usr/sbin/sysctl", &["-n", "machdep.cpu.brand_string"])?,
        rdma_ctl: runner.run("/usr/bin/rdma_ctl", &["status"])?,
        thunderbolt: runner.run("/usr/sbin/system_profiler", &["SPThunderboltDataType", "-json"])?,
        hardware_ports: runner.run("/usr/sbin/networksetup", &["-listallhardwareports"])?,
        interfaces: runner.run("/sbin/ifconfig", &["-a"])?,
        power: runner.run("/usr/bin/pmset", &["-g"])?,
        library: library(runner)?,
        named_library: named_library(),
        is_soft: environment::is_soft(),
        peer,
    })
}

fn linux(runner: &Runner) -> Result<Linux, Interrupted> {
    Ok(Linux {
        library: library(runner)?,
        named_library: named_library(),
        is_soft: environment::is_soft(),
        limits: file("/proc/self/limits"),
        status: file("/proc/self/status"),
    })
}

fn library(runner: &Runner) -> Result<Told, Interrupted> {
    match std::env::current_exe() {
        Ok(program) => runner.run(program, &[PROBE]),
        Err(error) => {
            let how = "an error before its start".to_owned();
            Ok(Told::Failed { how, out: String::new(), error: error.to_string() })
        }
    }
}

fn named_library() -> Option<String> {
    std::env::var_os("RDMA_LIBRARY").filter(|path| !path.is_empty()).map(|path| path.to_string_lossy().into_owned())
}

fn file(path: &str) -> Told {
    let mut text = String::new();
    match std::fs::File::open(path).and_then(|file| file.take(1 << 16).read_to_string(&mut text)) {
        Ok(_) => Told::Text(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Told::Missing,
        Err(error) => Told::Failed { how: "an error".to_owned(), out: text, error: error.to_string() },
    }
}
