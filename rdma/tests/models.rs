//! Models of the device and of the safe API, driven with random operations. A failure is shrunk, and its seed written to
//! `models.proptest-regressions`, which is committed: it is tried first from then on.
//!
//! `PROPTEST_CASES` sets how many cases each test runs, `RDMA_TEST_PROFILE` the profile for the tests of traffic.
#![allow(unsafe_code)]

#[path = "models/regions.rs"]
mod regions;
#[path = "models/states.rs"]
mod states;
mod support;
#[path = "models/traffic.rs"]
mod traffic;

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};

/// `cases`, unless the environment says otherwise.
fn config(cases: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    Config {
        cases: asked.unwrap_or(cases),
        max_shrink_iters: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..Config::default()
    }
}

fn traffic_op() -> impl Strategy<Value = traffic::Op> {
    use traffic::{Kind, LENGTHS, LINES, Op};
    let length = || prop_oneof![8 => prop::sample::select(&LENGTHS[..6]), 3 => prop::sample::select(&LENGTHS[..])];
    let kind = prop_oneof![3 => Just(Kind::Plain), 1 => Just(Kind::Frozen), 2 => Just(Kind::Unsignaled)];
    let place = || (0..LINES, 0..2_usize);
    prop_oneof![
        4 => place().prop_map(|(line, side)| Op::Build { line, side }),
        6 => place().prop_map(|(line, side)| Op::Connect { line, side }),
        8 => (place(), length()).prop_map(|((line, side), length)| Op::Receive { line, side, length }),
        10 => (place(), length(), kind)
            .prop_map(|((line, side), length, kind)| Op::Send { line, side, length, kind }),
        2 => (place(), [length(), length(), length()], any::<bool>())
            .prop_map(|((line, side), lengths, receives)| Op::Batch { line, side, lengths, receives }),
        6 => (0..2_usize, 1..20_usize).prop_map(|(side, count)| Op::Poll { side, count }),
        1 => place().prop_map(|(line, side)| Op::Close { line, side }),
        1 => place().prop_map(|(line, side)| Op::Drop { line, side }),
        1 => prop::bool::weighted(0.7).prop_map(|plugged| Op::Cable { plugged }),
    ]
}

fn fabric() -> rdma::soft::Fabric {
    let profile = std::env::var("RDMA_TEST_PROFILE").unwrap_or_else(|_| "thunderbolt".to_owned());
    support::fabrics::new(rdma::soft::Topology::mesh(2).unwrap(), profile.parse().unwrap())
}

proptest! {
    #![proptest_config(config(300))]

    /// Queues, budgets and the fabric: connect, send, lose, kill by drop, reconnect.
    #[test]
    fn traffic_follows_the_model(ops in prop::collection::vec(traffic_op(), 1..120)) {
        // From a connected pair, as most programs are; the model takes it apart soon enough.
        let open = (0..traffic::LINES).flat_map(|line| {
            let build = [0, 1].map(|side| traffic::Op::Build { line, side });
            build.into_iter().chain([0, 1].map(|side| traffic::Op::Connect { line, side }))
        });
        traffic::World::run(fabric(), &open.chain(ops).collect::<Vec<_>>());
    }

    #[test]
    fn traffic_from_nothing_follows_the_model(ops in prop::collection::vec(traffic_op(), 1..120)) {
        traffic::World::run(fabric(), &ops);
    }
}

proptest! {
    #![proptest_config(config(1500))]

    /// States, masks and refusals, through the function table.
    #[test]
    fn states_follow_the_model(ops in prop::collection::vec(states::op(), 1..60)) {
        states::run(&ops);
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// The table of registered memory, through the function table.
    #[test]
    fn regions_follow_the_model(
        // From an empty table, or one that is nearly full.
        first in prop::sample::select(&[0_usize, 97][..]),
        ops in prop::collection::vec(regions::op(), 1..100),
    ) {
        regions::run(first, &ops);
    }
}
