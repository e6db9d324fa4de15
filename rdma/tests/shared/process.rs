//! Other processes: this test program, started again with a role.

use super::end::End;
use rdma::Endpoint;
use rdma::soft::{Fabric, Profile, Topology};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Obeys what comes in line by line. Not a test of its own: it does something only in a process that was told to.
#[test]
fn role() {
    let Ok(name) = std::env::var("RDMA_TEST_ROLE") else { return };
    let number = |variable: &str| std::env::var(variable).unwrap().parse::<usize>().unwrap();
    let topology: Topology = std::env::var("RDMA_TEST_TOPOLOGY").unwrap().parse().unwrap();
    let faults = std::env::var("RDMA_TEST_FAULTS").unwrap_or_default().parse().unwrap();
    let profile = Profile::thunderbolt().with_faults(faults);
    let host = Fabric::join_with(&name, topology, profile, number("RDMA_TEST_HOST")).unwrap();
    let mut end = End::open(&host, number("RDMA_TEST_DEVICE"));
    println!("@ready");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        if line == "quit" {
            return;
        }
        println!("@{}", end.obey(&line));
    }
}

/// A process that plays a host. Killed when dropped.
pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(super) fn start(fabric: &str, topology: &str, host: usize, device: usize) -> Process {
        Process::start_with(fabric, topology, host, device, "")
    }

    /// One that expects a plan of faults.
    pub(super) fn start_with(fabric: &str, topology: &str, host: usize, device: usize, faults: &str) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "shared::process::role", "--nocapture", "--test-threads=1"])
            .env("RDMA_TEST_ROLE", fabric)
            .env("RDMA_TEST_TOPOLOGY", topology)
            .env("RDMA_TEST_FAULTS", faults)
            .env("RDMA_TEST_HOST", host.to_string())
            .env("RDMA_TEST_DEVICE", device.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Process { child, input, output };
        assert_eq!(process.answer(), "ready");
        process
    }

    /// The next line that is an answer.
    #[track_caller]
    pub(super) fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the process is gone");
            // The test harness prints the name of the test in front of the first one.
            if let Some((_, answer)) = line.trim_end().split_once('@') {
                return answer.to_owned();
            }
        }
    }

    pub(super) fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    #[track_caller]
    pub(super) fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.answer()
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Stops it: it makes no further call until it is continued.
    pub(super) fn stop(&self) {
        self.signal("-STOP");
        // The signal is delivered when the process is seen to be stopped.
        let path = format!("/proc/{}/stat", self.child.id());
        crate::support::eventually("the process to stop", || {
            std::fs::read_to_string(&path).map_or(true, |stat| stat.contains(") T "))
        });
    }

    pub(super) fn go_on(&self) {
        self.signal("-CONT");
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn quit(mut self) {
        self.tell("quit");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects an end of this process with that of another one.
pub(super) fn connect(end: &mut End, other: &mut Process) {
    let theirs: Endpoint = other.ask("prepare").parse().unwrap();
    let ours = end.prepare();
    end.connect(&theirs);
    assert_eq!(other.ask(&format!("connect {ours}")), "ok");
}

/// A fabric of two hosts: host 0 here, host 1 in another process, connected.
pub(super) struct Two {
    pub name: String,
    pub end: End,
    pub other: Process,
    pub host: rdma::soft::Host,
}

pub(super) fn two() -> Two {
    let name = crate::support::fabrics::name();
    let host = Fabric::join(&name, Topology::mesh(2).unwrap(), 0).unwrap();
    let mut end = End::open(&host, 0);
    let mut other = Process::start(&name, "mesh:2", 1, 0);
    connect(&mut end, &mut other);
    Two { name, end, other, host }
}
