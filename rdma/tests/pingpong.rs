//! Both ends of the example `pingpong` in one process, as threads over one software fabric, and what can go wrong between
//! them. Its modules are taken in as they are, with their own tests.
#![cfg(feature = "soft")]

#[path = "../../examples/pingpong/arguments.rs"]
#[allow(dead_code)]
mod arguments;
#[path = "../../examples/pingpong/local.rs"]
mod local;
#[path = "../../examples/pingpong/measure/mod.rs"]
#[allow(dead_code, unused_imports)]
mod measure;
#[path = "../../examples/pingpong/remote.rs"]
#[allow(dead_code)]
mod remote;

use crate::measure::{Audience, Choice, Clock, Measured, Mode, Opened, Patience, Plan, Served, Sizes, Stop};
use rdma::soft::{Fabric, Profile, Topology};
use rdma::{ErrorKind, Provider};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Few messages, because on a busy machine each hop may take milliseconds.
const ITERATIONS: usize = 40;

fn plan(mode: Mode, size: usize) -> Plan {
    Plan { mode, sizes: Sizes::One(size), iterations: Some(ITERATIONS as u64), warmup: Some(10) }
}

fn patience(seconds: u64) -> Patience {
    Patience { timeout: Duration::from_secs(seconds), interrupt: Arc::new(AtomicBool::new(false)) }
}

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

fn provider(fabric: &Fabric, host: usize) -> Provider {
    Provider::soft(&fabric.host(host).unwrap()).unwrap()
}

fn open(fabric: &Fabric, host: usize, plan: &Plan) -> Opened {
    Opened::open(&provider(fabric, host), &Choice::default(), plan).unwrap()
}

/// Runs a server and a client, each with a plan and a patience of its own.
fn both(plans: [Plan; 2], patiences: [&Patience; 2]) -> (Result<Served, Stop>, Result<Vec<Measured>, Stop>) {
    let fabric = Fabric::mesh(2).unwrap();
    let (listener, address) = listener();
    thread::scope(|scope| {
        let opened = open(&fabric, 1, &plans[0]);
        let server = scope.spawn(|| remote::server(opened, &listener, patiences[0]));
        let mut results = Vec::new();
        let opened = open(&fabric, 0, &plans[1]);
        let outcome = remote::client(opened, &address, patiences[1], &Clock::new(), &mut results);
        (server.join().unwrap(), outcome.map(|()| results))
    })
}

#[test]
fn latencies_of_all_sorts_of_sizes() {
    for size in [1, 2, 7, 48, 49, 4095, 4096, 4097, 65_536, 300_001] {
        let mut results = Vec::new();
        local::run(
            &Fabric::mesh(2).unwrap(),
            &plan(Mode::Latency, size),
            &patience(60),
            None,
            &Clock::new(),
            &mut results,
        )
        .unwrap();
        let [Measured::Latency(latency)] = &results[..] else { panic!("{results:?}") };
        assert_eq!((latency.size, latency.samples.samples().len()), (size, ITERATIONS));
        assert!(latency.samples.least() > 0.0 && latency.floors.least() > 0.0, "{latency:?}");
        assert_eq!(latency.floors.samples().len(), latency.ratios.samples().len());
    }
}

#[test]
fn messages_of_which_only_one_fits_in_the_queue() {
    for (profile, size) in [
        ("thunderbolt", 8 << 20),
        // Together with one of the program's own it does not fit.
        ("thunderbolt", 16_773_120),
        ("thunderbolt,depths=3", 12_288),
        ("thunderbolt,depths=3", 8_193),
        ("thunderbolt,depths=1", 4096),
        ("thunderbolt_27", 4096),
    ] {
        for mode in [Mode::Latency, Mode::Bandwidth] {
            let plan = Plan { iterations: Some(5), warmup: Some(1), ..plan(mode, size) };
            let fabric = Fabric::new(Topology::mesh(2).unwrap(), profile.parse().unwrap());
            let outcome = local::run(&fabric, &plan, &patience(20), None, &Clock::new(), &mut Vec::new());
            outcome.unwrap_or_else(|stop| panic!("{profile}, {size}, {mode:?}: {stop}"));
        }
    }
}

#[test]
fn streams() {
    for size in [1, 64, 4097, 70_000] {
        let (served, results) = both([plan(Mode::Bandwidth, size); 2], [&patience(60); 2]);
        let served = served.unwrap();
        let messages = ITERATIONS as u64 + 10;
        assert_eq!((served.messages, served.bytes), (messages, messages * size as u64));
        let [Measured::Bandwidth(bandwidth)] = results.unwrap()[..] else { panic!() };
        assert_eq!((bandwidth.size, bandwidth.messages), (size, ITERATIONS as u64));
        assert!(bandwidth.peak > 0.0 && bandwidth.nanoseconds > 0);
    }
}

#[test]
fn server_and_client_measure_all_sizes() {
    let all = Plan { mode: Mode::Latency, sizes: Sizes::ALL, iterations: Some(3), warmup: Some(0) };
    let (served, results) = both([all; 2], [&patience(60); 2]);
    // A batch of up to 128 has one message more, which is not measured; so do batches of one.
    assert!(served.unwrap().messages >= 23 * 4);
    let results = results.unwrap();
    let sizes = results.iter().map(|result| match result {
        Measured::Latency(latency) => latency.size,
        Measured::Bandwidth(_) => panic!(),
    });
    assert_eq!(sizes.collect::<Vec<_>>(), all.sizes());
    assert_eq!((all.sizes()[0], all.longest()), (2, 8 << 20));
}

/// Of all sizes, those that the device has.
#[test]
fn all_sizes_of_a_device_with_short_messages() {
    struct Last(Option<Plan>, Vec<usize>);
    impl Audience for Last {
        fn begin(&mut self, plan: &Plan) -> Result<(), Stop> {
            self.0 = Some(*plan);
            Ok(())
        }

        fn add(&mut self, measured: Measured) -> Result<(), Stop> {
            self.1.push(match measured {
                Measured::Latency(latency) => latency.size,
                Measured::Bandwidth(bandwidth) => bandwidth.size,
            });
            Ok(())
        }
    }
    let fabric = Fabric::new(Topology::mesh(2).unwrap(), Profile::thunderbolt_27());
    let sizes: Vec<_> = (1..=12).map(|power| 1 << power).collect();
    for mode in [Mode::Latency, Mode::Bandwidth] {
        let all = Plan { mode, sizes: Sizes::ALL, iterations: Some(3), warmup: Some(0) };
        let mut last = Last(None, Vec::new());
        local::run(&fabric, &all, &patience(60), None, &Clock::new(), &mut last).unwrap();
        assert_eq!((last.0.unwrap().sizes, &last.1), (Sizes::UpTo(4096), &sizes));
    }
}

#[test]
fn ends_with_different_devices_measure_what_both_have() {
    let all = Plan { sizes: Sizes::ALL, ..plan(Mode::Latency, 1) };
    let short = all.within(5000);
    assert_eq!((all.agreed(short), short.agreed(all)), (Some(short), Some(short)));
    assert_eq!((short.longest(), all.within(u64::MAX)), (4096, all));
    assert_eq!((all.agreed(plan(Mode::Latency, 4096)), plan(Mode::Latency, 4096).agreed(all)), (None, None));
    assert_eq!(short.agreed(Plan { warmup: None, ..all }), None);
    assert_eq!(all.agreed(Plan { sizes: Sizes::UpTo(0), ..all }).unwrap().sizes(), []);
}

#[test]
fn ends_that_were_started_differently_both_say_so() {
    let here = plan(Mode::Latency, 64);
    for there in [
        plan(Mode::Latency, 65),
        plan(Mode::Bandwidth, 64),
        Plan { sizes: Sizes::ALL, ..here },
        Plan { iterations: None, ..here },
        Plan { warmup: Some(0), ..here },
        plan(Mode::Latency, 1 << 20),
    ] {
        let (served, results) = both([here, there], [&patience(10); 2]);
        let texts = [served.unwrap_err(), results.unwrap_err()].map(|stop| stop.to_string());
        for text in texts {
            assert!(text.contains(&here.to_string()) && text.contains(&there.to_string()), "{text}");
        }
    }
}

/// Interrupts one of two ends that measure for ever, some time after they began.
fn interrupt(mode: Mode, side: usize, after: Duration) -> [Stop; 2] {
    let endless = Plan { mode, iterations: Some(1_000_000_000), ..plan(mode, 64) };
    let patiences = [patience(60), patience(60)];
    let (served, results) = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(after);
            patiences[side].interrupt.store(true, Ordering::Relaxed);
        });
        both([endless; 2], [&patiences[0], &patiences[1]])
    });
    [served.unwrap_err(), results.unwrap_err()]
}

#[test]
fn an_interrupt_ends_both() {
    for mode in [Mode::Latency, Mode::Bandwidth] {
        for side in [0, 1] {
            // On a machine that is busy the first one may come before the two are connected; then the other end has no peer
            // that could be gone, and times out.
            let both_end = [1, 10, 60].map(Duration::from_secs).iter().any(|&after| {
                let stops = interrupt(mode, side, after / 3);
                assert!(matches!(stops[side], Stop::Interrupted), "{stops:?}");
                matches!(stops[1 - side], Stop::PeerGone)
            });
            assert!(both_end, "the other end never learnt of it");
        }
    }
}

#[test]
fn an_interrupt_ends_the_waiting_for_a_peer() {
    let (fabric, patience) = (Fabric::mesh(2).unwrap(), patience(60));
    patience.interrupt.store(true, Ordering::Relaxed);
    let (listener, address) = listener();
    let plan = plan(Mode::Latency, 8);
    let stop = remote::server(open(&fabric, 0, &plan), &listener, &patience).unwrap_err();
    assert!(matches!(stop, Stop::Interrupted), "{stop}");
    drop(listener);
    let opened = open(&fabric, 0, &plan);
    let stop = remote::client(opened, &address, &patience, &Clock::new(), &mut Vec::new()).unwrap_err();
    assert!(matches!(stop, Stop::Interrupted), "{stop}");
}

#[test]
fn a_peer_that_leaves_in_the_middle_is_noticed() {
    let fabric = Fabric::mesh(2).unwrap();
    let (listener, address) = listener();
    let (plan, patience) = (plan(Mode::Latency, 64), patience(60));
    let served = thread::scope(|scope| {
        let [opened, far] = [open(&fabric, 0, &plan), open(&fabric, 1, &plan)];
        let server = scope.spawn(|| remote::server(far, &listener, &patience));
        drop(opened.connect(TcpStream::connect(&address).unwrap(), &patience).unwrap());
        server.join().unwrap()
    });
    assert!(matches!(served, Err(Stop::PeerGone)), "{served:?}");
}

#[test]
fn a_peer_on_another_fabric_is_not_there() {
    let (one, other) = (Fabric::mesh(2).unwrap(), Fabric::mesh(2).unwrap());
    let (listener, address) = listener();
    let (plan, patience) = (plan(Mode::Latency, 64), patience(30));
    let [opened, far] = [open(&one, 0, &plan), open(&other, 1, &plan)];
    thread::scope(|scope| {
        let server = scope.spawn(|| remote::server(far, &listener, &patience));
        let client = remote::client(opened, &address, &patience, &Clock::new(), &mut Vec::new());
        let stops = [server.join().unwrap().unwrap_err(), client.unwrap_err()];
        let is_told = |stop: &Stop| matches!(stop, Stop::Rdma(error) if error.kind() == ErrorKind::UnreachablePeer);
        assert!(stops.iter().any(is_told), "{stops:?}");
    });
}

#[test]
fn a_cable_that_loses_everything_is_silence() {
    let profile = Profile::thunderbolt().with_faults("seed 1; lose share 1".parse().unwrap());
    let fabric = Fabric::new(Topology::mesh(2).unwrap(), profile);
    let (listener, address) = listener();
    let (plan, patience) = (plan(Mode::Latency, 64), patience(1));
    let [opened, far] = [open(&fabric, 0, &plan), open(&fabric, 1, &plan)];
    thread::scope(|scope| {
        let server = scope.spawn(|| remote::server(far, &listener, &patience));
        let client = remote::client(opened, &address, &patience, &Clock::new(), &mut Vec::new());
        // Whoever loses patience first leaves, and the other sees that.
        for stop in [server.join().unwrap().unwrap_err(), client.unwrap_err()] {
            assert!(matches!(stop, Stop::Silent(_) | Stop::PeerGone), "{stop}");
        }
    });
}

#[test]
fn nobody_there() {
    let fabric = Fabric::mesh(2).unwrap();
    let (listener, address) = listener();
    let (plan, patience) = (plan(Mode::Latency, 8), patience(1));
    let begin = Instant::now();
    let stop = remote::server(open(&fabric, 0, &plan), &listener, &patience).unwrap_err();
    assert!(matches!(&stop, Stop::Rdma(error) if error.kind() == ErrorKind::TimedOut), "{stop}");
    drop(listener);
    let opened = open(&fabric, 0, &plan);
    let stop = remote::client(opened, &address, &patience, &Clock::new(), &mut Vec::new()).unwrap_err();
    assert!(matches!(&stop, Stop::Rdma(error) if error.kind() == ErrorKind::TimedOut), "{stop}");
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_stranger_at_the_port_is_refused() {
    let fabric = Fabric::mesh(2).unwrap();
    let (plan, patience) = (plan(Mode::Latency, 8), patience(1));
    for (words, kind) in [
        ("GET / HTTP/1.1\r\nHost: somebody else's\r\n\r\n", ErrorKind::Protocol),
        ("RDMA", ErrorKind::PeerGone),
        ("", ErrorKind::PeerGone),
    ] {
        let (listener, address) = listener();
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(words.as_bytes()).unwrap();
        stranger.shutdown(std::net::Shutdown::Write).unwrap();
        let stop = remote::server(open(&fabric, 0, &plan), &listener, &patience).unwrap_err();
        assert!(matches!(&stop, Stop::Rdma(error) if error.kind() == kind), "{words:?}: {stop}");
    }
}

#[test]
fn what_the_device_cannot_do_is_said_before_anybody_waits() {
    let fabric = Fabric::mesh(2).unwrap();
    let provider = provider(&fabric, 0);
    let open = |choice: &Choice, size| Opened::open(&provider, choice, &plan(Mode::Latency, size)).unwrap_err();
    let anything = Choice::default();
    assert!(open(&anything, 16_773_121).to_string().contains("at most 16773120 bytes"));
    let other = Choice { device: Some("rdma_en9".to_owned()), ..anything.clone() };
    assert!(open(&other, 8).to_string().contains("there is rdma_en2"));
    let empty = Choice { gid_index: Some(200), ..anything };
    assert!(open(&empty, 8).to_string().contains("GID[200]"));
}

#[test]
fn output_that_cannot_be_written_ends_the_run() {
    struct Gone;
    impl Audience for Gone {
        fn begin(&mut self, _: &Plan) -> Result<(), Stop> {
            Ok(())
        }

        fn add(&mut self, _: Measured) -> Result<(), Stop> {
            Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into())
        }
    }
    let stop =
        local::run(&Fabric::mesh(2).unwrap(), &plan(Mode::Latency, 8), &patience(60), None, &Clock::new(), &mut Gone)
            .unwrap_err();
    assert!(matches!(stop, Stop::System { .. }), "{stop}");
}
