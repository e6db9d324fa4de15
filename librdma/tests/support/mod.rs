//! Where the library is, and programs that run on it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a program may take before the test fails.
const LONG: Duration = Duration::from_secs(60);

/// The library. Cargo does not build a library of C for the tests of its package, so this does.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let program = std::env::current_exe().unwrap();
        // target/PROFILE/deps/PROGRAM
        let folder = program.ancestors().nth(2).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--package", "thunderbolt-librdma", "--target-dir"]);
        cargo.arg(folder.parent().unwrap());
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(
            cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success(),
            "the library does not build"
        );
        folder.join(format!("{}rdma{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
    })
}

/// Whether a program is installed. With `RDMA_C_PROGRAMS=require` one that is missing is a failure.
pub(crate) fn installed(program: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .chain(["/usr/bin".into(), "/usr/sbin".into()])
        .any(|folder| folder.join(program).exists());
    let required = std::env::var_os("RDMA_C_PROGRAMS").is_some_and(|value| value == "require");
    assert!(found || !required, "{program} is not installed (Debian: ibverbs-utils, perftest, binutils, gcc)");
    if !found {
        println!("{program} is not installed: nothing is tested");
    }
    found
}

/// A name for a fabric that no other test has.
pub(crate) fn fabric() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("c-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A program that is to run on the library, as a host of a fabric.
pub(crate) fn preloaded(command: &str, fabric: &str, host: u32) -> Command {
    let mut words = command.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command
        .args(words)
        .env("LD_PRELOAD", library())
        .env("RDMA_SOFT_FABRIC", fabric)
        .env("RDMA_SOFT_HOST", host.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a program has left.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) success: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Waits for a program, not for ever.
pub(crate) fn finish(mut child: Child) -> Outcome {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LONG {
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            panic!("it does not end: {}", String::from_utf8_lossy(&output.stdout));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    Outcome {
        success: output.status.success(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
