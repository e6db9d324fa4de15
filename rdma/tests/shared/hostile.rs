//! A neighbour that writes garbage into everything that is shared.
#![allow(unsafe_code)]

use super::process::{connect, two};
use crate::support::fabrics;
use rdma::ErrorKind;
use rdma::soft::{Fabric, Topology};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The file of a fabric.
pub(super) fn file(name: &str) -> std::path::PathBuf {
    let folder = if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
    // SAFETY: no preconditions.
    folder.join(format!("rdma-soft-{}-{name}", unsafe { libc::geteuid() }))
}

/// Overwrites what is in a fabric's file, again and again. It is another process, because to close the file here would
/// give up this process's locks. Not a test of its own.
#[test]
fn vandal() {
    let Ok(path) = std::env::var("RDMA_TEST_VANDAL") else { return };
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    let mut random = 1_u64;
    let mut garbage = vec![0_u8; 1 << 16];
    // 64 KiB of different garbage in turn: noise, ones, small numbers, zeroes.
    for round in 0_u64.. {
        for word in garbage.chunks_exact_mut(8) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let value = match round % 4 {
                0 => random,
                1 => u64::MAX,
                2 => random & 0x0000_0003_0000_0003,
                _ => 0,
            };
            word.copy_from_slice(&value.to_ne_bytes());
        }
        let (mut at, mut end) = (0, 0);
        loop {
            if at >= end {
                // SAFETY: plain calls on an open file.
                unsafe {
                    at = libc::lseek(file.as_raw_fd(), end, libc::SEEK_DATA);
                    end = libc::lseek(file.as_raw_fd(), at, libc::SEEK_HOLE);
                }
                if at < 0 || end < 0 {
                    break;
                }
                // The header and what follows it in its page are looked at when somebody joins.
                at = at.max(4096);
                continue;
            }
            let length = (end - at).min(garbage.len() as i64) as usize;
            file.write_all_at(&garbage[..length], at as u64).unwrap();
            at += length as i64;
        }
    }
}

/// Posting, polling, connecting and closing go on: errors and garbled messages, no crash, no hang, no lost buffer.
#[test]
fn garbage_is_survived() {
    let mut two = two();
    let mut vandal = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "shared::hostile::vandal", "--test-threads=1"])
        .env("RDMA_TEST_VANDAL", file(&two.name))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let mut connections = 0;
    while start.elapsed() < Duration::from_secs(3) {
        // The other one, too, has to live with it; it may fail to build a queue pair, and then says so by ending.
        for length in [8, 600, 70_000] {
            if two.end.queue_pair.is_some() {
                let buffer = two.end.region.buffer(length).unwrap();
                let _ = two.end.queue_pair.as_mut().unwrap().post_recv(buffer, 0);
                two.end.send(length, 0);
            }
            for _ in 0..20 {
                two.end.next(Duration::ZERO, 0);
            }
        }
        two.end.queue_pair = None;
        assert_eq!(two.end.region.available(), two.end.region.len(), "buffers were lost");
        let endpoint = two.end.domain.queue_pair(&two.end.completions).depth(1023).requests(1000).build();
        if let Ok(mut prepared) = endpoint {
            let port = two.end.context.port(1).unwrap();
            let own = port.gid().and_then(|gid| prepared.endpoint(&port, gid));
            // With itself as the peer: a number that is there, though it is not the far device's.
            if let Ok(own) = own
                && let Ok(queue_pair) = prepared.connect(&own)
            {
                two.end.queue_pair = Some(queue_pair);
                connections += 1;
            }
        }
    }
    vandal.kill().unwrap();
    vandal.wait().unwrap();
    println!("{connections} connections among garbage");
}

/// Messages from a peer that is being vandalised: whatever comes, comes as a completion or not at all.
#[test]
fn garbled_messages_are_messages_or_errors() {
    let mut two = two();
    let mut vandal = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "shared::hostile::vandal", "--test-threads=1"])
        .env("RDMA_TEST_VANDAL", file(&two.name))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let mut outcomes = std::collections::BTreeMap::new();
    while start.elapsed() < Duration::from_secs(3) {
        for length in [8, 600, 70_000] {
            let Ok(buffer) = two.end.region.buffer(length) else { continue };
            if two.end.queue_pair.as_mut().unwrap().post_recv(buffer, 0).is_err() {
                break;
            }
            two.end.send(length, 1);
            for _ in 0..10 {
                let word = two.end.next(Duration::ZERO, 1);
                let kind = word.split_whitespace().next().unwrap().to_owned();
                *outcomes.entry(kind).or_insert(0) += 1;
            }
        }
    }
    vandal.kill().unwrap();
    vandal.wait().unwrap();
    println!("{outcomes:?}");
    two.end.queue_pair = None;
    assert_eq!(two.end.region.available(), two.end.region.len(), "buffers were lost");
}

/// What stands in the way of a fabric's file is not used, and not removed.
#[test]
fn files_that_are_not_fabrics() {
    let topology = || Topology::mesh(2).unwrap();
    let name = fabrics::name();
    let path = file(&name);
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    assert!(Fabric::join(&name, topology(), 0).is_err());
    std::fs::remove_file(&path).unwrap();
    // Not even to a file of ours that nobody else can use, and that would be emptied.
    let precious = path.with_extension("precious");
    std::fs::write(&precious, "").unwrap();
    std::fs::set_permissions(&precious, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&precious, &path).unwrap();
    assert!(Fabric::join(&name, topology(), 0).is_err());
    assert_eq!(std::fs::metadata(&precious).unwrap().len(), 0);
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&precious).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(Fabric::join(&name, topology(), 0).is_err());
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, "open to all").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&path, mode).unwrap();
    let error = Fabric::join(&name, topology(), 0).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(&name), "{error}");
    std::fs::remove_file(&path).unwrap();
    Fabric::join(&name, topology(), 0).unwrap();
    assert!(!path.exists());
}

/// The connection of a vandalised fabric is over; a fabric of another name is not affected.
#[test]
fn a_fresh_fabric_works_beside_a_ruined_one() {
    let mut one = two();
    let mut other = two();
    assert_ne!(one.name, other.name);
    connect(&mut one.end, &mut one.other);
    other.end.recv(10, 1);
    assert_eq!(other.other.ask("send 10 1"), "ok");
    assert_eq!(other.end.next(crate::support::LONG, 1), "received 1 10 good");
}
