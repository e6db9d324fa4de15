//! How tools are run: to their end, or to the deadline, and nothing of them stays.

use crate::facts::Told;
use crate::tool::{Interrupted, Runner};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Long enough for any of these that ends by itself.
const LONG: Duration = Duration::from_secs(60);

fn runner(deadline: Duration) -> Runner {
    Runner { deadline, interrupt: Arc::new(AtomicBool::new(false)) }
}

fn shell(script: &str) -> Told {
    runner(LONG).run("/bin/sh", &["-c", script]).unwrap()
}

#[test]
fn ends() {
    assert_eq!(shell("echo one; echo two >&2"), Told::Text("one\n".to_owned()));
    let failed = |how: &str, out: &str, error: &str| Told::Failed {
        how: how.to_owned(),
        out: out.to_owned(),
        error: error.to_owned(),
    };
    assert_eq!(shell("echo out; echo error >&2; exit 3"), failed("status 3", "out\n", "error\n"));
    assert_eq!(shell("kill -9 $$"), failed("signal 9", "", ""));
    assert_eq!(runner(LONG).run("/nonexistent/tool", &[]), Ok(Told::Missing));
    let Ok(Told::Failed { .. }) = runner(LONG).run("/", &[]) else { panic!("a folder was run") };
    // It has no input, which it could wait for.
    assert_eq!(shell("cat"), Told::Text(String::new()));
}

#[test]
fn output_that_is_too_long_or_no_text() {
    let Told::Text(text) = shell("head -c 9000000 /dev/zero") else { panic!() };
    assert_eq!(text.len(), 4 << 20);
    assert_eq!(shell(r"printf '\377x'"), Told::Text("\u{fffd}x".to_owned()));
}

/// A pipe with a name, which is at its end once all who could write into it are gone.
struct Witness(PathBuf);

impl Witness {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rdma-doctor-{}-{name}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        Witness(path)
    }

    /// Runs a script that has the pipe open, and waits until nobody has it any more.
    fn run(&self, runner: &Runner, script: &str) -> Result<Told, Interrupted> {
        let (sender, receiver) = channel();
        let path = self.0.clone();
        thread::spawn(move || {
            let mut text = String::new();
            File::open(path).unwrap().read_to_string(&mut text).unwrap();
            sender.send(text).unwrap();
        });
        let script = format!("exec 9>'{}'; echo here >&9; {script}", self.0.display());
        let told = runner.run("/bin/sh", &["-c", &script]);
        let seen = receiver.recv_timeout(LONG).expect("nothing of it is left");
        assert_eq!(seen, "here\n");
        told
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn what_hangs_is_killed_with_all_that_it_started() {
    let witness = Witness::new("hangs");
    let deadline = Duration::from_secs(1);
    for script in ["sleep 1000", "sleep 1000 & sleep 1000", "trap '' TERM INT HUP; sleep 1000 & wait", "sleep 1000 &"] {
        assert_eq!(witness.run(&runner(deadline), script), Ok(Told::TimedOut(deadline)), "{script}");
    }
}

#[test]
fn an_interrupt_leaves_nothing_either() {
    let witness = Witness::new("interrupt");
    let runner = runner(LONG);
    let interrupt = runner.interrupt.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        interrupt.store(true, Ordering::Relaxed);
    });
    assert_eq!(witness.run(&runner, "sleep 1000 & sleep 1000"), Err(Interrupted));
}
