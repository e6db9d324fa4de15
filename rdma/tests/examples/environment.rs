//! What the variables of the software fabric change in the examples.

use crate::{example, run, soft};

#[test]
fn the_environment_says_how_the_fabric_behaves() {
    for (variable, value, words) in [
        ("RDMA_SOFT_PROFILE", "nonsense", "RDMA_SOFT_PROFILE: there is no profile"),
        ("RDMA_SOFT_FAULTS", "nonsense", "RDMA_SOFT_FAULTS: "),
        ("RDMA_SOFT_PAGE", "nonsense", "RDMA_SOFT_PAGE is \"nonsense\""),
        ("RDMA_SOFT_PAGE", "3", "RDMA_SOFT_PAGE: "),
    ] {
        for (name, arguments, status) in [
            ("pingpong", "--iters 5", 1),
            ("pingpong", "--iters 5 --processes", 1),
            ("mesh", "", 1),
            ("conformance", "", 2),
        ] {
            let mut command = example(name, arguments);
            command.env(variable, value);
            run(command).failed(status, words);
        }
    }
    let mut short = example("mesh", "");
    short.env("RDMA_SOFT_PROFILE", "thunderbolt_27");
    run(short).failed(1, "at most 4096 bytes, not 10000");
    let mut corrupt = example("mesh", "2");
    corrupt.env("RDMA_SOFT_FAULTS", "corrupt share 1");
    run(corrupt).failed(1, "is not what was sent");
}

/// Two processes without a name for their fabric could not meet: that is said before anybody waits.
#[test]
fn ends_that_could_not_meet() {
    for (name, status) in [("pingpong", 1), ("conformance", 2)] {
        for end in ["--server 127.0.0.1:0", "--client 127.0.0.1:9"] {
            let mut nameless = soft(name, end);
            nameless.env("RDMA_SOFT_FABRIC", "");
            run(nameless).failed(status, "set RDMA_SOFT_FABRIC to the same name on both sides");
            run(example(name, &format!("{end} --provider soft")))
                .failed(status, "RDMA_SOFT_HOST to 0 here and 1 there");
        }
    }
}
