//! Programs that nobody here wrote, from Debian's packages, unmodified, on the library.

mod support;

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;
use support::{Outcome, fabric, finish, installed, library, preloaded};

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Runs a program as server on host 0 and as client on host 1.
fn both(command: &str, profile: Option<&str>) -> [Outcome; 2] {
    let fabric = fabric();
    let command = format!("{command} -p {}", free_port());
    let start = |host, arguments: &str| {
        let mut command = preloaded(&format!("{command} {arguments}"), &fabric, host);
        if let Some(profile) = profile {
            command.env("RDMA_SOFT_PROFILE", profile);
        }
        command.spawn().unwrap()
    };
    let server = start(0, "");
    // The client gives up at once if nobody listens, so it is started again until somebody does.
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(100));
        let client = finish(start(1, "127.0.0.1"));
        if client.success || !refused(&client) {
            let server = finish(server);
            return [server, client];
        }
    }
    panic!("the server never listened: {:?}", finish(server));
}

fn refused(client: &Outcome) -> bool {
    let said = format!("{}{}", client.out, client.err);
    ["Couldn't connect", "Connection refused", "Unable to init the socket connection"]
        .iter()
        .any(|word| said.contains(word))
}

#[track_caller]
fn all_well(outcomes: &[Outcome]) {
    for outcome in outcomes {
        assert!(outcome.success, "{outcome:?}");
        for word in ["Failed", "Couldn't", "error", "Error"] {
            assert!(!outcome.out.contains(word) && !outcome.err.contains(word), "{outcome:?}");
        }
    }
}

#[test]
fn ibv_devices_lists_them() {
    if !installed("ibv_devices") {
        return;
    }
    let mut command = preloaded("ibv_devices", &fabric(), 0);
    let outcome = finish(command.env("RDMA_SOFT_TOPOLOGY", "mesh:4").spawn().unwrap());
    assert!(outcome.success, "{outcome:?}");
    let names: Vec<_> = outcome.out.lines().skip(2).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["rdma_en2", "rdma_en3", "rdma_en5"], "{outcome:?}");
}

#[test]
fn ibv_devinfo_shows_the_device_of_tn3205() {
    if !installed("ibv_devinfo") {
        return;
    }
    let outcome = finish(preloaded("ibv_devinfo -v", &fabric(), 0).spawn().unwrap());
    assert!(outcome.success, "{outcome:?}");
    let plain: String = outcome.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for fact in [
        "hca_id: rdma_en2",
        "transport: invalid transport (100)",
        "phys_port_cnt: 1",
        "max_mr_size: 0xfa0000",
        "max_qp: 11",
        "max_qp_wr: 4095",
        "max_sge: 1",
        "max_mr: 100",
        "state: PORT_ACTIVE (4)",
        "max_mtu: 4096 (5)",
        "active_width: 8X (4)",
        "active_speed: 10.0 Gbps (4)",
        "GID[ 1]: ::ffff:169.254.",
    ] {
        assert!(plain.contains(fact), "{fact:?} is not in {}", outcome.out);
    }
}

/// 500 receives posted in INIT, memory aligned to 4 KiB, a completion queue of 501.
#[test]
fn ibv_uc_pingpong_between_two_processes() {
    if !installed("ibv_uc_pingpong") {
        return;
    }
    for arguments in ["", "-s 8192 -n 100 -r 100", "-s 1 -m 2048"] {
        let outcomes = both(&format!("ibv_uc_pingpong -d rdma_en2 -g 1 {arguments}"), None);
        all_well(&outcomes);
        assert!(outcomes.iter().all(|outcome| outcome.out.contains("bytes in")), "{outcomes:?}");
    }
}

/// perftest knows InfiniBand (1) and Ethernet (2) as link layers, and refuses others.
const FOR_PERFTEST: Option<&str> = Some("thunderbolt,link_layer=2,transport=0");

#[test]
fn perftest_measures_latency() {
    if !installed("ib_send_lat") {
        return;
    }
    let outcomes = both("ib_send_lat -c UC -d rdma_en2 -x 1 -s 64 -n 1000 -F", FOR_PERFTEST);
    all_well(&outcomes);
    assert!(outcomes[1].out.contains("t_typical"), "{outcomes:?}");
}

#[test]
fn perftest_measures_bandwidth() {
    if !installed("ib_send_bw") {
        return;
    }
    for arguments in ["-s 4096 -n 1000", "-s 65536 -n 200 -r 16 -t 16", "-s 524288 -n 30 -r 4 -t 4"] {
        let outcomes = both(&format!("ib_send_bw -c UC -d rdma_en2 -x 1 -F -Q 1 {arguments}"), FOR_PERFTEST);
        all_well(&outcomes);
        assert!(outcomes[1].out.contains("BW average"), "{outcomes:?}");
    }
}

/// What is wrong with the variables is said, and the program ends as if there were no devices.
#[test]
fn wrong_variables_are_named() {
    if !installed("ibv_devices") {
        return;
    }
    for (variable, value) in [
        ("RDMA_SOFT_TOPOLOGY", "star:7"),
        ("RDMA_SOFT_TOPOLOGY", "file:/nowhere/at/all"),
        ("RDMA_SOFT_HOST", "2"),
        ("RDMA_SOFT_HOST", "x"),
        ("RDMA_SOFT_PROFILE", "infiniband"),
        ("RDMA_SOFT_PAGE", "5000"),
        ("RDMA_SOFT_FABRIC", "no/name"),
    ] {
        let mut command = preloaded("ibv_devices", &fabric(), 0);
        let outcome = finish(command.env(variable, value).spawn().unwrap());
        assert!(!outcome.success, "{outcome:?}");
        assert!(outcome.err.starts_with("librdma: "), "{variable}={value}: {outcome:?}");
    }
}

/// A program that knows nothing of plans of faults runs into them.
#[test]
fn faults_reach_programs() {
    if !installed("ibv_devinfo") || !installed("ibv_devices") {
        return;
    }
    let run = |command: &str, plan: &str| {
        let mut command = preloaded(command, &fabric(), 0);
        finish(command.env("RDMA_SOFT_FAULTS", plan).spawn().unwrap())
    };
    let outcome = run("ibv_devinfo", "at call 1 pull 0");
    assert!(outcome.success && outcome.out.contains("PORT_DOWN"), "{outcome:?}");
    let outcome = run("ibv_devinfo", "fail ibv_query_device 1 EIO");
    assert!(!outcome.success && outcome.err.contains("Failed to query device"), "{outcome:?}");
    let outcome = run("ibv_devices", "pull the plug");
    assert!(outcome.err.contains("plan of faults") && outcome.err.contains("pull the plug"), "{outcome:?}");
}

/// Every verbs call that these programs make is one of ours: what is missing would go to the real library, with objects
/// that it has not made.
#[test]
fn nothing_falls_through_to_the_real_library() {
    let programs = ["ibv_devices", "ibv_devinfo", "ibv_uc_pingpong", "ib_send_lat", "ib_send_bw"];
    if !installed("nm") || !programs.iter().all(|program| installed(program)) {
        return;
    }
    let symbols = |arguments: &[&str]| {
        let output = Command::new("nm").args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let name = |line: &str| Some(line.split_whitespace().last()?.split('@').next()?.to_owned());
        text.lines().filter_map(name).filter(|name| name.contains("ibv_")).collect::<Vec<_>>()
    };
    let ours = symbols(&["-D", "--defined-only", library().to_str().unwrap()]);
    assert!(ours.len() > 50, "{ours:?}");
    for program in programs {
        let folder =
            ["/usr/bin", "/usr/sbin"].iter().find(|folder| std::path::Path::new(folder).join(program).exists());
        let path = format!("{}/{program}", folder.unwrap());
        let theirs = symbols(&["-D", "--undefined-only", &path]);
        assert!(!theirs.is_empty(), "{program} calls no verbs");
        // Those of mlx5dv are about devices of Mellanox.
        let missing: Vec<_> =
            theirs.iter().filter(|name| !name.starts_with("mlx5dv_") && !ours.contains(name)).collect();
        assert!(missing.is_empty(), "{program} calls {missing:?}");
    }
}
