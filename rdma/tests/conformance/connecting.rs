//! Making connections.

use super::ends::Link;
use rdma::{Endpoint, ErrorKind, QueuePairType};

/// One after the other, with numbers of their own.
#[test]
fn many_connections() {
    let link = Link::open();
    let ends = link.ends();
    let mut last = 0;
    for round in 0..20_u64 {
        let [one, other] = ends.each_ref().map(|end| end.prepare(|builder| builder));
        assert_ne!(one.number(), last);
        last = one.number();
        let (mut one, mut other) = rdma::connect::pair(one, other).unwrap();
        other.post_recv(ends[1].region.buffer(64).unwrap(), round).unwrap();
        let mut buffer = ends[0].region.buffer(8).unwrap();
        buffer.copy_from_slice(&round.to_le_bytes());
        one.post_send(buffer, .., round).unwrap();
        one.close().unwrap();
        other.close().unwrap();
        assert_eq!(ends[0].region.available(), ends[0].region.len());
        assert_eq!(ends[1].region.available(), ends[1].region.len());
    }
}

/// What was granted is at least what was asked for.
#[test]
fn capacities_are_granted() {
    let link = Link::open();
    for end in link.ends() {
        let prepared = end.prepare(|builder| builder.depth(64).requests(16));
        let capacities = prepared.capacities();
        assert!(capacities.send_depth >= 64 && capacities.receive_depth >= 64, "{capacities:?}");
        prepared.close().unwrap();
    }
}

/// An endpoint survives its journey as bytes and as text.
#[test]
fn endpoints_travel() {
    let link = Link::open();
    let [one, _] = link.ends();
    let mut prepared = one.prepare(|builder| builder);
    let endpoint = prepared.publish().unwrap();
    assert_eq!(Endpoint::from_bytes(&endpoint.to_bytes()).unwrap(), endpoint);
    assert_eq!(endpoint.to_string().parse::<Endpoint>().unwrap(), endpoint);
    assert_eq!(endpoint.number(), prepared.number());
}

/// A type that the device lacks is refused; one that it has is made.
#[test]
fn types() {
    let link = Link::open();
    for end in link.ends() {
        for kind in [QueuePairType::UC, QueuePairType::RC] {
            match end.domain.queue_pair(&end.completions).queue_pair_type(kind).requests(4).build() {
                Ok(prepared) => assert_eq!(prepared.queue_pair_type(), kind),
                Err(error) => assert_eq!((error.kind(), kind), (ErrorKind::Unsupported, QueuePairType::RC), "{error}"),
            }
        }
    }
}
