//! Names, agreement, and what is left.
#![allow(unsafe_code)]

use super::end::End;
use super::hostile::file;
use super::process::{Process, connect, two};
use crate::support::fabrics;
use rdma::soft::{Fabric, Profile, Topology};
use rdma::{ErrorKind, Provider};
use std::os::unix::fs::FileExt;

fn mesh(hosts: usize) -> Topology {
    Topology::mesh(hosts).unwrap()
}

#[test]
fn who_disagrees_is_told() {
    let name = fabrics::name();
    let _host = Fabric::join(&name, mesh(2), 0).unwrap();
    for (topology, page) in [(mesh(3), 16384), (Topology::ring(2).unwrap(), 16384), (mesh(2), 4096)] {
        let profile = Profile::thunderbolt().with_page(page).unwrap();
        let error = Fabric::join_with(&name, topology, profile, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("2 hosts") && error.to_string().contains(&name), "{error}");
    }
    assert_eq!(Fabric::join(&name, mesh(2), 2).unwrap_err().kind(), ErrorKind::UnknownDevice);
    for bad in ["", "a/b", "..x/", "name with spaces", &"x".repeat(200)] {
        assert_eq!(Fabric::join(bad, mesh(2), 0).unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad:?}");
    }
}

/// Another process that disagrees is told the same.
#[test]
fn another_process_that_disagrees_is_told() {
    let two = two();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "shared::process::role", "--nocapture", "--test-threads=1"])
        .envs([("RDMA_TEST_ROLE", &*two.name), ("RDMA_TEST_TOPOLOGY", "ring:4")])
        .envs([("RDMA_TEST_HOST", "0"), ("RDMA_TEST_DEVICE", "0")])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("2 hosts, 2 devices") && said.contains("4 hosts, 8 devices"), "{said}");
}

/// Who names another fabric, or none, is told that the peer is not there.
#[test]
fn fabrics_do_not_mix() {
    let names = [fabrics::name(), fabrics::name()];
    let [mut here, mut there] = [0, 1].map(|host| End::open(&Fabric::join(&names[host], mesh(2), host).unwrap(), 0));
    let private = Fabric::mesh(2).unwrap();
    let mut alone = End::open(&private.host(1).unwrap(), 0);
    here.prepare();
    for theirs in [there.prepare(), alone.prepare()] {
        let error = here.try_connect(&theirs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnreachablePeer, "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("RDMA_SOFT_FABRIC")), "{error}");
        here.prepare();
    }
}

#[test]
fn a_fabric_of_another_version_is_left_alone() {
    let name = fabrics::name();
    let mut other = Process::start(&name, "mesh:2", 1, 0);
    let path = file(&name);
    // The word behind the magic. This process has no locks on the file that closing it could give up.
    let word = |write: Option<u32>| {
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 8).unwrap();
        write.inspect(|value| file.write_all_at(&value.to_ne_bytes(), 8).unwrap());
        u32::from_ne_bytes(bytes)
    };
    let version = word(Some(u32::MAX));
    let error = Fabric::join(&name, mesh(2), 0).unwrap_err();
    let text = error.to_string();
    assert!(
        error.kind() == ErrorKind::InvalidArgument && text.contains("not a software fabric of this version"),
        "{text}"
    );
    assert!(text.contains(path.to_str().unwrap()) && error.hint().is_some_and(|hint| hint.contains("another name")));
    // Nothing of it was touched: with the version that it had it goes on.
    assert_eq!(word(Some(version)), u32::MAX);
    let host = Fabric::join(&name, mesh(2), 0).unwrap();
    let mut end = End::open(&host, 0);
    connect(&mut end, &mut other);
    end.recv(10, 1);
    assert_eq!(other.ask("send 10 1"), "ok");
    assert_eq!(end.next(crate::support::LONG, 1), "received 1 10 good");
}

#[test]
fn nothing_is_left() {
    for _ in 0..1000 {
        let name = fabrics::name();
        let host = Fabric::join(&name, mesh(2), 0).unwrap();
        let again = Fabric::join(&name, mesh(2), 1).unwrap();
        let context = Provider::soft(&again).unwrap().first_active().unwrap().open().unwrap();
        assert!(file(&name).exists());
        drop((host, again));
        assert!(file(&name).exists(), "an open device is in the fabric");
        drop(context);
        assert!(!file(&name).exists());
    }
}

/// By exit of the last one, whichever that is; and a name is free again at once.
#[test]
fn the_last_one_out_removes_it() {
    for _ in 0..3 {
        let two = two();
        let path = file(&two.name);
        drop((two.end, two.host));
        assert!(path.exists());
        two.other.quit();
        assert!(!path.exists());
    }
}

/// If all are killed the entry stays, and the next one of that name starts afresh.
#[test]
fn what_the_dead_left_is_removed_by_the_next() {
    let name = fabrics::name();
    let mut processes: Vec<_> = (0..2).map(|host| Process::start(&name, "mesh:2", host, 0)).collect();
    processes.iter_mut().for_each(|process| assert!(!process.ask("prepare").is_empty()));
    processes.iter_mut().for_each(Process::kill);
    assert!(file(&name).exists());
    // Even with another shape: it is another fabric.
    let host = Fabric::join(&name, mesh(3), 0).unwrap();
    assert_eq!(Provider::soft(&host).unwrap().devices().unwrap().len(), 2);
    drop(host);
    assert!(!file(&name).exists());
}

/// A program that a member starts has nothing of the fabric.
#[test]
fn programs_that_are_started_inherit_nothing() {
    let name = fabrics::name();
    let _host = Fabric::join(&name, mesh(2), 0).unwrap();
    let listed = std::process::Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&listed.stdout).contains(&name));
}

/// Many join and leave at once: all that are in it at one time are in the same one.
#[test]
fn joining_and_leaving_at_once() {
    let name = fabrics::name();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let host = Fabric::join(&name, mesh(2), 0).unwrap();
                    assert!(Provider::soft(&host).unwrap().first_active().is_ok());
                }
            });
        }
    });
    assert!(!file(&name).exists());
}

/// A process that finds the folder under another name, or has gone to another one meanwhile, is in the same fabric.
#[test]
fn a_folder_has_many_names() {
    let folder = std::env::temp_dir().join(fabrics::name());
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(&folder, folder.join("again")).unwrap();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "shared::joining::in_a_folder_of_many_names", "--nocapture", "--test-threads=1"])
        .env("RDMA_SOFT_DIRECTORY", ".")
        .current_dir(&folder)
        .output()
        .unwrap();
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(left, ["again"]);
}

/// Not a test of its own: it does something only in a process that was told to.
#[test]
fn in_a_folder_of_many_names() {
    const FOLDER: &str = "RDMA_SOFT_DIRECTORY";
    if std::env::var(FOLDER).as_deref() != Ok(".") {
        return;
    }
    let first = Fabric::join("many", mesh(2), 0).unwrap();
    // SAFETY: this process has no other thread that reads the environment now.
    unsafe { std::env::set_var(FOLDER, "again") };
    let second = Fabric::join("many", mesh(2), 1).unwrap();
    first.fabric().set_cable(0, false).unwrap();
    assert!(!Provider::soft(&second).unwrap().devices().unwrap()[0].open().unwrap().port(1).unwrap().is_active());
    drop(second);
    assert!(std::path::Path::new("again").read_dir().unwrap().count() == 2);
    std::env::set_current_dir("/").unwrap();
}

/// A process that may not have long files gets an error, not a signal.
#[test]
fn a_limit_of_file_lengths_is_an_error_with_amounts() {
    let name = fabrics::name();
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 2048; exec \"$0\" --exact shared::process::role --nocapture --test-threads=1"])
        .arg(std::env::current_exe().unwrap())
        .envs([("RDMA_TEST_ROLE", &*name), ("RDMA_TEST_TOPOLOGY", "mesh:2")])
        .envs([("RDMA_TEST_HOST", "0"), ("RDMA_TEST_DEVICE", "0")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some() && said.contains("ulimit"), "{} {said}", output.status);
    assert!(!file(&name).exists());
}

/// Connecting and closing many times costs no descriptors, no mappings.
#[test]
fn connections_leave_nothing() {
    let mut two = two();
    let mut known = None;
    for round in 0..300 {
        connect(&mut two.end, &mut two.other);
        two.end.recv(5000, round);
        assert_eq!(two.other.ask(&format!("send 5000 {round}")), "ok");
        assert_eq!(two.end.next(crate::support::LONG, round), format!("received {round} 5000 good"));
        if round >= 100 {
            let now = two.other.ask("count");
            assert!(known.as_ref().is_none_or(|known| *known == now), "{known:?} {now:?}");
            known = Some(now);
        }
    }
}

/// In a file system with room for next to nothing: an error with amounts, never a bus error.
#[test]
fn a_full_file_system_is_an_error_with_amounts() {
    let folder = std::env::temp_dir().join(fabrics::name());
    std::fs::create_dir(&folder).unwrap();
    let script = r#"mount -t tmpfs -o size=8m tmpfs "$RDMA_SOFT_DIRECTORY" || exit 99; exec "$0" "$@""#;
    let program = std::env::current_exe().unwrap();
    let run = std::process::Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .arg(program)
        .args(["--exact", "shared::joining::in_a_small_file_system", "--nocapture", "--test-threads=1"])
        .env("RDMA_SOFT_DIRECTORY", &folder)
        .env("RDMA_TEST_SMALL", "1")
        .output();
    std::fs::remove_dir(&folder).unwrap();
    match run {
        Ok(run)
            if run.status.code() != Some(99) && !String::from_utf8_lossy(&run.stderr).contains("unshare failed") =>
        {
            let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
            assert!(run.status.success(), "{out}{err}");
            assert!(out.contains("@small"), "{out}{err}");
        }
        // Where nobody may mount, nothing can be shown.
        other => println!("no file system of its own here: {other:?}"),
    }
}

/// Run by the test above, in its file system.
#[test]
fn in_a_small_file_system() {
    if std::env::var_os("RDMA_TEST_SMALL").is_none() {
        return;
    }
    println!("@small");
    // The control part fits for two hosts, and does not for sixty.
    let error = Fabric::join(&fabrics::name(), mesh(60), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("KiB"), "{error}");
    let host = Fabric::join(&fabrics::name(), mesh(2), 0).unwrap();
    let context = Provider::soft(&host).unwrap().first_active().unwrap().open().unwrap();
    let domain = context.protection_domain().unwrap();
    let completions = context.completion_queue(64).unwrap();
    // A depth of 4095 needs four times as much as there is.
    let error = domain.queue_pair(&completions).depth(4095).requests(4).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let text = error.to_string();
    assert!(text.contains("ibv_create_qp") && text.contains("KiB are free"), "{text}");
    assert!(error.hint().is_some_and(|hint| hint.contains("RDMA_SOFT_DIRECTORY")), "{error:?}");
}
