//! What the integration tests share: a C compiler, a folder for its files, and the rule for doing without.
//!
//! A machine without a C compiler or without `infiniband/verbs.h` is an ordinary one (building the crate needs neither),
//! so the tests that need them are skipped there, with a line that says so. Where `RDMA_ABI_PROBE=require` is set, as
//! in CI, they fail instead.

pub(crate) mod calls;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The project's own C declaration of the ABI, from which `src/bindings.rs` is generated.
pub(crate) const HEADER: &str = include_str!("../../include/thunderbolt_verbs.h");

/// Whether a test that cannot run is a failure.
pub(crate) fn required() -> bool {
    std::env::var_os("RDMA_ABI_PROBE").is_some_and(|value| value == "require")
}

/// Says that a test was skipped, and why. Fails where [`required`].
pub(crate) fn skip(what: &str, why: &str) {
    assert!(!required(), "{what}: cannot run although RDMA_ABI_PROBE=require: {why}");
    // Not eprintln!, whose output the test harness shows only for failing tests.
    let _ = writeln!(std::io::stderr(), "skipped: {what}: {why}");
}

/// A folder of this test's own, removed when it goes out of scope.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("rdma-sys-test-{}-{number}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Scratch(path),
                // Left behind by a killed process whose number is in use again.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("cannot make {}: {error}", path.display()),
            }
        }
    }

    /// Writes a file, with the folders on the way to it, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a path in the folder")).expect("make a folder");
        std::fs::write(&path, text).expect("write a file");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that failed already must not be hidden behind a second panic.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The system's C compiler: `$CC` (arguments allowed), or `cc`.
pub(crate) struct Compiler {
    command: Vec<String>,
}

impl Compiler {
    /// Finds a compiler that can make a program; else skips the test `what` and returns `None`.
    pub(crate) fn find(what: &str, scratch: &Scratch) -> Option<Compiler> {
        let chosen = std::env::var("CC").unwrap_or_default();
        let mut command: Vec<String> = chosen.split_whitespace().map(str::to_owned).collect();
        if command.is_empty() {
            command.push("cc".into());
        }
        let compiler = Compiler { command };
        // A compiler without a C library's headers, or a stub that asks for its installation (macOS), is none.
        let program = "#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n";
        match compiler.compile(&scratch.write("trivial.c", program), "trivial", &[""; 0]) {
            Ok(_) => Some(compiler),
            Err(diagnostics) => {
                skip(what, &format!("no usable C compiler: {diagnostics}"));
                None
            }
        }
    }

    /// Compiles one source to a file named `output` next to it. The error is what the compiler said.
    pub(crate) fn compile(
        &self,
        source: &Path,
        output: &str,
        arguments: &[impl AsRef<OsStr>],
    ) -> Result<PathBuf, String> {
        let output = source.with_file_name(output);
        let run = Command::new(&self.command[0])
            .args(&self.command[1..])
            .args(["-std=gnu11", "-o"])
            .arg(&output)
            .args(arguments)
            .arg(source)
            // The diagnostics are read by abi_probe.rs.
            .env("LC_ALL", "C")
            .output()
            .map_err(|error| format!("{}: {error}", self.command[0]))?;
        let said = String::from_utf8_lossy(&run.stderr);
        if run.status.success() { Ok(output) } else { Err(format!("{}\n{said}", run.status)) }
    }
}
