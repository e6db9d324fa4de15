//! The fabrics that tests run on: in this process, or shared as between processes (`RDMA_TEST_FABRIC=shared`).

use rdma::soft::{Fabric, Profile, Topology};
use std::sync::atomic::{AtomicU32, Ordering};

/// Whether the tests run on shared fabrics.
pub fn are_shared() -> bool {
    std::env::var_os("RDMA_TEST_FABRIC").is_some_and(|value| value == "shared")
}

/// A name that no other fabric of any test has.
pub fn name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

pub fn new(topology: Topology, profile: Profile) -> Fabric {
    if are_shared() {
        return Fabric::join_with(&name(), topology, profile, 0).unwrap().fabric();
    }
    Fabric::new(topology, profile)
}

/// Two hosts of a shared fabric.
pub fn shared() -> Fabric {
    Fabric::join(&name(), Topology::mesh(2).unwrap(), 0).unwrap().fabric()
}

pub fn mesh(hosts: usize) -> Fabric {
    new(Topology::mesh(hosts).unwrap(), Profile::default())
}

pub fn ring(hosts: usize) -> Fabric {
    new(Topology::ring(hosts).unwrap(), Profile::default())
}
