//! Who joins while somebody else is joining or leaving: another process holds the lock that makes them take turns.
#![allow(unsafe_code)]

use super::end::End;
use super::hostile::file;
use super::process::{Process, connect};
use crate::support::{LONG, fabrics};
use rdma::ErrorKind;
use rdma::soft::{Fabric, Topology};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Where the lock is: one byte, far behind the end of the file (`rdma/src/soft/shared/locks.rs`).
const GATE: i64 = 1 << 61;

/// Takes the lock, and removes the file if told so. Not a test of its own.
#[test]
fn keeper() {
    let Ok(path) = std::env::var("RDMA_TEST_GATE") else { return };
    let mut options = std::fs::File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(&path).unwrap();
    // SAFETY: plain numbers, of which zero is one.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    (lock.l_type, lock.l_whence, lock.l_start, lock.l_len) = (libc::F_WRLCK as _, libc::SEEK_SET as _, GATE, 1);
    // SAFETY: an open descriptor, and the structure that F_SETLK takes.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) }, 0);
    println!("@held");
    for line in std::io::stdin().lines() {
        if line.unwrap() == "remove" {
            std::fs::remove_file(&path).unwrap();
        }
    }
}

/// A process that holds the lock until it is dropped.
struct Keeper {
    child: Child,
    input: Option<ChildStdin>,
    /// Kept open, because the test harness has something to say in the end.
    _output: BufReader<ChildStdout>,
}

impl Keeper {
    fn of(name: &str) -> Keeper {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "shared::gate::keeper", "--nocapture", "--test-threads=1"])
            .env("RDMA_TEST_GATE", file(name))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        assert!(output.by_ref().lines().any(|line| line.unwrap().contains("@held")));
        Keeper { input: child.stdin.take(), child, _output: output }
    }

    fn remove_file(&mut self) {
        writeln!(self.input.as_ref().unwrap(), "remove").unwrap();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The end of its input is its end.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// It may have been stopped. Who waits for it is told after some time, and nothing is broken by that.
#[test]
fn waiting_for_a_turn_ends() {
    let name = fabrics::name();
    let mut other = Process::start(&name, "mesh:2", 1, 0);
    let keeper = Keeper::of(&name);
    let error = Fabric::join(&name, Topology::mesh(2).unwrap(), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(error.to_string().contains(&name) && error.hint().is_some_and(|hint| hint.contains("stopped")), "{error}");
    drop(keeper);
    exchange(&name, &mut other);
}

/// The last member may remove the file while somebody waits for a turn: who then got the lock of a file that has no name any
/// more would be alone in there.
#[test]
fn a_file_that_was_removed_meanwhile_is_not_used() {
    let name = fabrics::name();
    let mut keeper = Keeper::of(&name);
    std::thread::scope(|scope| {
        let joining = scope.spawn(|| Fabric::join(&name, Topology::mesh(2).unwrap(), 0).unwrap());
        // It has opened the file by then; if it has not, it makes a new one, which is no harm either.
        std::thread::sleep(Duration::from_millis(300));
        keeper.remove_file();
        crate::support::eventually("the file to go", || !file(&name).exists());
        drop(keeper);
        let _host = joining.join().unwrap();
        exchange(&name, &mut Process::start(&name, "mesh:2", 1, 0));
    });
    assert!(!file(&name).exists());
}

/// A message from another process to host 0, here.
fn exchange(name: &str, other: &mut Process) {
    let host = Fabric::join(name, Topology::mesh(2).unwrap(), 0).unwrap();
    let mut end = End::open(&host, 0);
    connect(&mut end, other);
    end.recv(10, 1);
    assert_eq!(other.ask("send 10 1"), "ok");
    assert_eq!(end.next(LONG, 1), "received 1 10 good");
}
