//! What goes wrong on purpose.
#![allow(unsafe_code)]

mod support;

mod faults {
    mod calls;
    mod events;
    mod messages;

    use crate::support::fabrics;
    use rdma::soft::{Fabric, Profile, Topology};

    /// Two hosts and a plan.
    fn fabric(plan: &str) -> Fabric {
        let profile = Profile::thunderbolt().with_faults(plan.parse().unwrap());
        fabrics::new(Topology::mesh(2).unwrap(), profile)
    }
}
