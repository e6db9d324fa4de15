//! A process that ends, while what it has is still in use.
#![allow(unsafe_code)]

use super::hostile::file;
use crate::support::fabrics;
use rdma::soft::{Fabric, Host, Topology};
use rdma::{PreparedQueuePair, Provider};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Says that it was reached, and waits until it may go on.
extern "C" fn linger() {
    let (said, mut byte) = (b"@leaving\n", 0_u8);
    // SAFETY: a text to write and a byte to fill.
    unsafe {
        libc::write(1, said.as_ptr().cast(), said.len());
        libc::read(0, (&raw mut byte).cast(), 1);
    }
}

fn queue_pair(host: &Host) -> rdma::Result<PreparedQueuePair> {
    let context = Provider::soft(host)?.first_active()?.open()?;
    let domain = context.protection_domain()?;
    domain.queue_pair(&context.completion_queue(100)?).build()
}

/// Has everything and ends in the regular way. Not a test of its own.
#[test]
fn leaver() {
    let Ok(name) = std::env::var("RDMA_TEST_LEAVER") else { return };
    // What is registered first is done last: when the library has done its part.
    // SAFETY: a function that may be called at exit.
    unsafe { libc::atexit(linger) };
    let host = Fabric::join(&name, Topology::mesh(2).unwrap(), 1).unwrap();
    (0..10).for_each(|_| std::mem::forget(queue_pair(&host).unwrap()));
    std::process::exit(0);
}

/// Threads of a process that exits go on to the end, so until then nobody else gets what they use. Others that are left may
/// remove the file.
#[test]
fn what_an_exiting_process_has_is_its_own_to_the_end() {
    let name = fabrics::name();
    let host = Fabric::join(&name, Topology::mesh(2).unwrap(), 1).unwrap();
    let mut leaver = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "shared::leaving::leaver", "--nocapture", "--test-threads=1"])
        .env("RDMA_TEST_LEAVER", &name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(leaver.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with("@leaving")));
    assert!(queue_pair(&host).is_err(), "a queue pair is taken from a process that exits");
    drop(leaver.stdin.take());
    assert!(leaver.wait().unwrap().success());
    let all: Vec<_> = (0..10).map(|_| queue_pair(&host).unwrap()).collect();
    drop((all, host));
    assert!(!file(&name).exists());
}
