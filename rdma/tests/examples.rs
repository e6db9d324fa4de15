//! The examples as a person runs them: as programs, with their output, exit status and a deadline.
#![cfg(feature = "soft")]

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

mod examples {
    mod doctor;
    mod environment;
}

/// Nothing here takes longer than a second or two, unless the machine is very busy.
const DEADLINE: Duration = Duration::from_secs(60);

/// An example's program, which cargo builds next to the tests. What the environment says of providers does not count.
fn example(name: &str, arguments: &str) -> Command {
    let here = std::env::current_exe().unwrap();
    let program: PathBuf = here.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(program.exists(), "{} is not built: `cargo test` does, and `cargo build --examples`", program.display());
    let mut command = Command::new(program);
    command.args(arguments.split(' ').filter(|argument| !argument.is_empty()));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("RDMA_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The same over the software fabric that the environment describes: one of its own, which others could join.
fn soft(name: &str, arguments: &str) -> Command {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let fabric = format!("examples-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut command = example(name, arguments);
    command.env("RDMA_PROVIDER", "soft").env("RDMA_SOFT_FABRIC", fabric);
    command
}

/// A program on a fabric of its own folder in which everything is lost: two of them connect and then hear nothing of each
/// other, so one can be killed while the other waits.
fn in_silence(name: &str, arguments: &str, host: &str, folder: &Path) -> Command {
    let mut command = example(name, arguments);
    command.envs([("RDMA_PROVIDER", "soft"), ("RDMA_SOFT_FABRIC", "silence"), ("RDMA_SOFT_HOST", host)]);
    command.env("RDMA_SOFT_FAULTS", "lose share 1").env("RDMA_SOFT_DIRECTORY", folder);
    command
}

/// What a program did.
#[derive(Debug)]
struct Outcome {
    status: i32,
    out: String,
    error: String,
}

impl Outcome {
    fn succeeded(self) -> String {
        assert!(self.status == 0 && self.error.is_empty(), "{self:?}");
        self.out
    }

    /// Failed, with this status and one line that has these words in it.
    fn failed(self, status: i32, words: &str) {
        assert!(self.status == status && self.error.contains(words), "not {status}, {words:?}: {self:?}");
        assert_eq!(self.error.lines().count(), 1, "{self:?}");
    }
}

fn run(mut command: Command) -> Outcome {
    finish(command.spawn().unwrap(), DEADLINE)
}

/// Waits for a program, and kills it at the deadline.
fn finish(mut child: Child, deadline: Duration) -> Outcome {
    let (mut out, mut error) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let out = thread::spawn(move || read(&mut out));
    let error = thread::spawn(move || read(&mut error));
    let status = wait(&mut child, deadline);
    let (out, error) = (out.join().unwrap(), error.join().unwrap());
    let status = status.unwrap_or_else(|| panic!("did not end: {out}{error}"));
    Outcome { status: status.code().unwrap_or(-1), out, error }
}

fn read(pipe: &mut impl Read) -> String {
    let mut text = String::new();
    pipe.read_to_string(&mut text).unwrap();
    text
}

fn wait(child: &mut Child, deadline: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    while begin.elapsed() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

/// Starts a program and waits for the first line of its output; what comes with it is not needed.
fn start(mut command: Command) -> (Child, String) {
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

/// A pingpong server, once it listens, and where.
fn server(folder: &Path) -> (Child, String) {
    let (child, line) = start(in_silence("pingpong", "--server 127.0.0.1:0", "0", folder));
    let address = line.split("waiting on ").nth(1).and_then(|rest| rest.split(' ').next()).expect(&line);
    (child, address.to_owned())
}

#[test]
fn devices_are_listed_as_the_c_tools_list_them() {
    let out = run(example("devices", "--provider soft")).succeeded();
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("    device          \t   node GUID"));
    assert_eq!(lines.next(), Some("    ------          \t----------------"));
    assert!(lines.next().unwrap().starts_with("    rdma_en2        \t"));
    for line in [
        "hca_id:\trdma_en2",
        "\ttransport:\t\t\tThunderbolt (100)",
        "\tmax_qp_wr:\t\t\t4095",
        "\tmax_total_mcast_qp_attach:\t0",
        "\t\tport:\t1",
        "\t\t\tstate:\t\t\tPORT_ACTIVE (4)",
        "\t\t\tactive_width:\t\t8X (4)",
        "\t\t\tGID[  1]:\t\t0000:0000:0000:0000:0000:ffff:a9fe:0101",
    ] {
        assert!(out.lines().any(|found| found == line), "{line:?} is not in\n{out}");
    }
}

#[test]
fn devices_as_json() {
    // The variables that describe the fabric count, however it was asked for.
    let mut command = example("devices", "--provider soft --json");
    command.env("RDMA_SOFT_TOPOLOGY", "mesh:3").env("RDMA_SOFT_HOST", "2");
    let all: Value = serde_json::from_str(&run(command).succeeded()).unwrap();
    let names: Vec<_> = all.as_array().unwrap().iter().map(|device| device["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["rdma_en2", "rdma_en3"]);
    assert_eq!((&all[0]["max_qp"], &all[1]["ports"][0]["state"]), (&Value::from(11), &Value::from(4)));
    assert_eq!(all[0]["ports"][0]["gids"][1]["kind"], "Ipv4Mapped");
}

#[test]
fn devices_that_are_not_there() {
    let mut missing = example("devices", "");
    missing.env("RDMA_LIBRARY", "/nonexistent");
    run(missing).failed(1, "RDMA_LIBRARY names this file");
    run(example("devices", "--provider soft --device rdma_en9")).failed(1, "there is rdma_en2");
    let mut misspelt = example("devices", "");
    misspelt.env("RDMA_PROVIDER", "hard");
    run(misspelt).failed(1, "`system` or `soft`");
    run(example("devices", "--provider hard")).failed(1, "there is no provider `hard` (it is `system` or `soft`)");
}

#[test]
fn one_message() {
    assert_eq!(run(example("send_recv", "")).succeeded(), "sent \"hello\", received \"hello\"\n");
}

#[test]
fn memory_that_is_not_copied() {
    let out = run(example("zero_copy", "")).succeeded();
    assert_eq!(out.lines().count(), 2, "{out}");
}

#[test]
fn arguments_where_there_are_none() {
    for name in ["send_recv", "zero_copy"] {
        for argument in ["--help", "5"] {
            run(example(name, argument)).failed(2, "takes no arguments");
        }
    }
}

#[test]
fn all_to_all() {
    let out = run(example("mesh", "")).succeeded();
    assert!(out.contains("host 3 got 10000 bytes from host 0 over rdma_en2: \"from 0 to 3\""), "{out}");
    let out = run(example("mesh", "7 --size 1")).succeeded();
    assert_eq!(out.lines().last(), Some("7 hosts, 42 messages, every byte as it was sent"));
    run(example("mesh", "--size 16773121")).failed(1, "at most 16773120 bytes, not 16773121");
    assert_eq!(run(example("mesh", "--size 0")).status, 2);
    assert_eq!(run(example("mesh", "1")).status, 2);
}

/// A file of its own for each process, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    /// A folder, for the files of fabrics that killed processes leave behind.
    fn folder(name: &str) -> Self {
        let folder = Scratch::new(name);
        std::fs::create_dir(&folder.0).unwrap();
        folder
    }

    fn new(name: &str) -> Self {
        Scratch(std::env::temp_dir().join(format!("{}-{}", std::process::id(), name)))
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&std::fs::read(&self.0).unwrap()).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0).or_else(|_| std::fs::remove_dir_all(&self.0));
    }
}

#[test]
fn facts_are_asked_for() {
    let out = run(example("conformance", "--plan")).succeeded();
    assert!(out.contains("  messages ") && !out.contains("risky") && out.ends_with("Nothing was done.\n"), "{out}");
    let file = Scratch::new("facts.json");
    let mut command = example("conformance", "--risky --report");
    command.arg(&file.0);
    let out = run(command).succeeded();
    assert!(out.contains("  agrees  F301 server  queue pairs that can be made: 10\n"), "{out}");
    assert!(out.contains(" 0 differ, 0 steps were not completed\n"), "{out}");
    let report = file.json();
    assert_eq!((&report["role"], &report["unfinished"]), (&Value::from("client"), &Value::Null));
    assert_eq!(report["steps"][0]["here"][0]["id"], "F101");
    assert!(report["readable"].as_array().unwrap().iter().all(|line| out.contains(line.as_str().unwrap())));
}

/// Starts a server and reads where it waits.
fn conformance_server(mut command: Command) -> (Child, BufReader<ChildStdout>, String) {
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let waiting = lines.by_ref().lines().map(Result::unwrap).find_map(|line| {
        let (_, rest) = line.split_once("waiting on ")?;
        rest.split(' ').next().map(str::to_owned)
    });
    (child, lines, waiting.expect("it says where it waits"))
}

/// Two processes on a shared fabric, with fewer regions than a Mac has: both say so, and each has the other's words.
#[test]
fn facts_that_differ_between_two_processes() {
    let fabric = format!("facts-{}", std::process::id());
    let end = |host: &str, arguments: &str| {
        let mut command = soft("conformance", &format!("{arguments} --step memory --step messages --report"));
        command.env("RDMA_SOFT_FABRIC", &fabric).env("RDMA_SOFT_HOST", host);
        command.env("RDMA_SOFT_PROFILE", "thunderbolt,regions=50");
        command
    };
    let files = ["server", "client"].map(|name| Scratch::new(&format!("{name}.json")));
    let mut server = end("0", "--server 127.0.0.1:0");
    server.arg(&files[0].0);
    let (mut server, mut lines, address) = conformance_server(server);
    let rest = thread::spawn(move || read(&mut lines));
    let mut client = end("1", &format!("--client {address}"));
    client.arg(&files[1].0);
    let client = run(client);
    let status = wait(&mut server, DEADLINE).expect("the server ends, too");
    let server = rest.join().unwrap();
    assert_eq!((client.status, status.code()), (1, Some(1)), "{client:?} {server}");
    for (out, report) in [(client.out, files[1].json()), (server, files[0].json())] {
        assert_eq!(out.matches("  DIFFERS F304 ").count(), 4, "each twice: {out}");
        let there = report["steps"][0]["there"].as_array().unwrap();
        assert!(there.iter().any(|fact| fact["id"] == "F304" && fact["agrees"] == false && fact["expected"] == "100"));
    }
}

#[test]
fn facts_that_cannot_be_asked_for() {
    let mut missing = example("conformance", "--server");
    missing.env("RDMA_LIBRARY", "/nonexistent");
    run(missing).failed(2, "no verbs library");
    for (arguments, words) in [
        ("--provider system", "start one with --server, the other with --client"),
        ("--provider library:/nonexistent --server", "no verbs library: tried /nonexistent"),
        ("--provider soft --device rdma_en9", "there is rdma_en2"),
        ("--provider soft --server --device rdma_en9", "there is rdma_en2"),
        ("--provider hard --server", "there is no provider `hard`"),
        ("--provider hard", "there is no provider `hard`"),
        ("--provider soft --server 127.0.0.1:0 --timeout 1", "no peer connected to 127.0.0.1:"),
        ("--provider soft --client 127.0.0.1:9 --timeout 1", "no connection to the peer within 1s"),
        ("--provider soft --server nowhere", "cannot listen on nowhere"),
        ("--step early", "with --risky only"),
        ("--report /nonexistent/report", "cannot write /nonexistent/report"),
    ] {
        let outcome = run(soft("conformance", arguments));
        // The error stands alone, unless somebody had to wait for it.
        assert!(outcome.out.is_empty() || arguments.contains("--timeout"), "{outcome:?}");
        outcome.failed(2, words);
    }
    let nowhere = run(example("conformance", "--client nowhere"));
    assert!(nowhere.status == 2 && nowhere.error.contains("it is HOST:PORT"), "{nowhere:?}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = example("conformance", "").stdout(writer).spawn().unwrap();
    let outcome = child.wait_with_output().unwrap();
    assert_eq!(outcome.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&outcome.stderr).contains("cannot write the results"));
}

/// Where nothing arrives the waits end in time, and what is killed is noticed.
#[test]
fn facts_and_a_peer_that_is_killed() {
    let steps = "--step messages --step waiting --step frames";
    let folder = Scratch::folder("killed-facts");
    let server = in_silence("conformance", &format!("--server 127.0.0.1:0 {steps}"), "0", &folder.0);
    let (mut server, _lines, address) = conformance_server(server);
    let mut client = in_silence("conformance", &format!("--client {address} {steps}"), "1", &folder.0);
    let client = client.spawn().unwrap();
    // Time to connect; on a machine so busy that this is not enough, the client finds nobody instead.
    thread::sleep(Duration::from_millis(700));
    kill_process(Pid::from_child(&server), Signal::KILL).unwrap();
    let outcome = finish(client, DEADLINE);
    let known = ["the other end is gone", "no connection to the peer"];
    assert!(outcome.status == 2 && known.iter().any(|words| outcome.error.contains(words)), "{outcome:?}");
    wait(&mut server, DEADLINE).expect("the victim has ended");
}

#[test]
fn latencies_in_columns() {
    let out = run(example("pingpong", "--size 100 --iters 2000 --histogram")).succeeded();
    let heading = out.lines().position(|line| line.starts_with(" #bytes #iterations    t_min[usec]")).expect(&out);
    let row: Vec<f64> = out.lines().nth(heading + 1).unwrap().split_whitespace().map(|n| n.parse().unwrap()).collect();
    let [bytes, iterations, min, max, typical, average, _, p99, p999, floor, ratio] = row[..] else {
        panic!("{row:?}")
    };
    assert_eq!((bytes, iterations), (100.0, 2000.0));
    assert!(0.0 < min && min <= typical && typical <= p99 && p99 <= p999 && p999 <= max && average <= max, "{row:?}");
    // Not what they are: a floor that was interrupted is greater than what it is the floor of.
    assert!(floor > 0.0 && ratio.is_finite(), "{row:?}");
    assert!(out.contains(" usec "), "no histogram: {out}");
}

/// One batch can be interrupted, and then its floor is no floor.
#[test]
fn few_batches_have_no_floor() {
    let out = run(example("pingpong", "--iters 50")).succeeded();
    assert!(out.lines().any(|line| line.starts_with(" 64 ") && line.ends_with(" -             -")), "{out}");
}

/// The second process has nobody who reads what it prints, and both follow the same rules.
#[test]
fn two_processes() {
    for _ in 0..5 {
        run(example("pingpong", "--processes --iters 50")).succeeded();
    }
    let mut short = example("pingpong", "--processes --all --iters 5");
    short.env("RDMA_SOFT_PROFILE", "thunderbolt_27").env("RDMA_SOFT_FAULTS", "delay frame 9 looks 3");
    let out = run(short).succeeded();
    // The second takes memory first, and its error is the one that counts.
    let mut second = example("pingpong", "--processes");
    second.env("RDMA_SOFT_FAULTS", "fail ibv_reg_mr 1 ENOMEM");
    run(second).failed(1, "no second process: ibv_reg_mr");
    assert!(out.contains("at 4096 bytes.") && !out.contains("\n 8192 "), "{out}");
}

#[test]
fn measurements_as_json() {
    let json = |arguments| serde_json::from_str::<Value>(&run(example("pingpong", arguments)).succeeded()).unwrap();
    let few = json("--json --size 5000 --iters 50");
    assert!(few["results"][0]["t_typical"].is_number() && few["results"][0].get("floor").is_none(), "{few}");
    let latency = json("--json --size 5000 --iters 1000");
    assert_eq!((&latency["mode"], &latency["results"][0]["bytes"]), (&Value::from("latency"), &Value::from(5000)));
    assert!(latency["results"][0]["floor"]["ratio"].is_number());
    let bandwidth = json("--json --bandwidth --all --iters 2 --warmup 0");
    let rows = bandwidth["results"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[22]["bytes"], &rows[22]["iterations"]), (23, &(8 << 20).into(), &2.into()));
    assert!(rows.iter().all(|row| row["bw_average"].as_f64().unwrap() > 0.0));
}

#[test]
fn wrong_arguments() {
    for arguments in ["--size 0", "--size a", "--all --size 4", "--server --client a:1", "--device x", "--client", "x"]
    {
        let outcome = run(example("pingpong", arguments));
        assert!(outcome.status == 2 && outcome.error.starts_with("error: ") && outcome.out.is_empty(), "{outcome:?}");
    }
    run(example("pingpong", "--size 16773121")).failed(1, "at most 16773120 bytes");
}

#[test]
fn ends_without_another() {
    for end in ["--server", "--client 127.0.0.1:9"] {
        let mut missing = example("pingpong", end);
        missing.env("RDMA_LIBRARY", "/nonexistent");
        run(missing).failed(1, "no verbs library");
        run(soft("pingpong", &format!("{end} --device rdma_en9"))).failed(1, "there is rdma_en2");
        run(soft("pingpong", &format!("{end} --gid-index 99"))).failed(1, "GID[99] is empty");
    }
    run(soft("pingpong", "--server 127.0.0.1:0 --timeout 1")).failed(1, "no peer connected to 127.0.0.1:");
    run(soft("pingpong", "--client 127.0.0.1:9 --timeout 1"))
        .failed(1, "no connection to the peer within 1s: 127.0.0.1:9");
    // Before any device is looked for.
    let nowhere = run(example("pingpong", "--client nowhere"));
    assert!(nowhere.status == 2 && nowhere.error.contains("it is HOST:PORT"), "{nowhere:?}");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    run(soft("pingpong", &format!("--server {}", taken.local_addr().unwrap()))).failed(1, "cannot listen on");
}

#[test]
fn strangers_at_the_port() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = format!("--client {} --timeout 1", silent.local_addr().unwrap());
    run(soft("pingpong", &client)).failed(1, "the peer's endpoint");
    let folder = Scratch::folder("strangers");
    let (child, address) = server(&folder.0);
    drop(TcpStream::connect(address).unwrap());
    finish(child, DEADLINE).failed(1, "the peer closed the connection");
}

#[test]
fn a_peer_that_is_killed() {
    let folder = Scratch::folder("killed");
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        let (mut victim, address) = server(&folder.0);
        let mut survivor = in_silence("pingpong", &format!("--client {address} --timeout 20"), "1", &folder.0);
        let survivor = survivor.spawn().unwrap();
        // Time to connect. On a machine so busy that this is not enough, the client finds nobody instead.
        thread::sleep(Duration::from_millis(500));
        kill_process(Pid::from_child(&victim), signal).unwrap();
        let outcome = finish(survivor, DEADLINE);
        let known = ["the peer is gone", "the peer closed the connection", "no connection to the peer"];
        assert!(known.iter().any(|words| outcome.error.contains(words)), "{outcome:?}");
        outcome.failed(1, "");
        wait(&mut victim, DEADLINE).expect("the victim has ended");
    }
}

#[test]
fn interrupts() {
    let endless = "--iters 100000000";
    // Under nohup there is no SIGHUP.
    let ignores = Command::new("sh").args(["-c", "kill -HUP $$; echo ignored"]).output().unwrap().stdout;
    let hangup = if ignores.is_empty() { Signal::HUP } else { Signal::TERM };
    for signal in [Signal::INT, Signal::TERM, hangup] {
        for command in [
            example("pingpong", endless),
            example("pingpong", &format!("{endless} --bandwidth --size 65536")),
            soft("pingpong", "--server 127.0.0.1:0"),
            soft("conformance", "--server 127.0.0.1:0"),
        ] {
            let (child, _) = start(command);
            kill_process(Pid::from_child(&child), signal).unwrap();
            finish(child, Duration::from_secs(25)).failed(130, "interrupted");
        }
    }
}

#[test]
fn output_that_nobody_takes() {
    for (name, arguments) in [
        ("pingpong", "--iters 10"),
        ("devices", "--provider soft"),
        ("devices", "--provider soft --list"),
        ("doctor", ""),
        ("mesh", ""),
        ("send_recv", ""),
        ("zero_copy", ""),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut child = example(name, arguments).stdout(writer).spawn().unwrap();
        let mut error = child.stderr.take().unwrap();
        let status = wait(&mut child, DEADLINE).expect(name);
        let error = read(&mut error);
        assert_eq!((status.code(), error.lines().count()), (Some(1), 1), "{name}: {error}");
        assert!(error.contains("cannot write the results"), "{name}: {error}");
    }
}
