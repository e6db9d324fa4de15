//! A program in C that uses the device as Apple's technical note TN3205 describes, and looks the library up as programs on
//! Macs do: `dlopen("librdma.dylib")`.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use support::{fabric, finish, installed, library};

/// The folder in which the library has the name that it has on Macs. The link is what docs/c-api.md tells users to make.
fn named_as_on_macs() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("librdma-{}", fabric()));
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(library(), folder.join("librdma.dylib")).unwrap();
    folder
}

fn compile(folder: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("tn3205");
    let status = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(here.join("../rdma-sys/include"))
        .arg(here.join("tests/c/tn3205.c"))
        .arg("-o")
        .arg(&program)
        .arg("-ldl")
        .status()
        .unwrap();
    assert!(status.success());
    program
}

#[test]
fn two_processes_exchange_messages() {
    if !installed("cc") {
        return;
    }
    let folder = named_as_on_macs();
    let program = compile(&folder);
    let fabric = fabric();
    let mut children: Vec<_> = (0..2)
        .map(|host| {
            Command::new(&program)
                .env("LD_LIBRARY_PATH", &folder)
                .env("RDMA_SOFT_FABRIC", &fabric)
                .env("RDMA_SOFT_HOST", host.to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut inputs: Vec<_> = children.iter_mut().map(|child| child.stdin.take().unwrap()).collect();
    let mut outputs: Vec<_> = children.iter_mut().map(|child| BufReader::new(child.stdout.take().unwrap())).collect();
    // Each prints its address, and then that it is ready, and reads the other's line.
    for _ in 0..2 {
        let lines = outputs.iter_mut().map(line).collect::<Vec<_>>();
        for (input, line) in inputs.iter_mut().zip(lines.iter().rev()) {
            input.write_all(line.as_bytes()).unwrap();
        }
    }
    drop(inputs);
    for (child, mut output) in children.into_iter().zip(outputs) {
        let outcome = finish(child);
        assert!(outcome.success, "{outcome:?}");
        assert_eq!(line(&mut output).trim(), "100 messages each way");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn line(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line
}

/// Calls with arguments that are wrong, and can be told to be.
#[test]
fn bad_calls_are_told() {
    if !installed("cc") {
        return;
    }
    let folder = named_as_on_macs();
    let program = compile(&folder);
    let child = Command::new(&program)
        .arg("bad-calls")
        .env("LD_LIBRARY_PATH", &folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let outcome = finish(child);
    assert!(outcome.success, "{outcome:?}");
    assert!(outcome.out.contains("all told"), "{outcome:?}");
    std::fs::remove_dir_all(folder).unwrap();
}
