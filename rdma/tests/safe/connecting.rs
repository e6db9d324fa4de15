//! From a builder to a connection, and what can go wrong on the way.

use crate::support::LONG;
use crate::support::pair::{Unconnected, device, fabric, pair};
use rdma::soft::Fabric;
use rdma::{Endpoint, ErrorKind, Gid, GidKind, Mtu, PreparedQueuePair, QueuePairState, QueuePairType, connect};
use std::time::Duration;

fn open(fabric: &Fabric, host: usize) -> Unconnected {
    Unconnected::open(&device(fabric, host), 1 << 16)
}

fn prepare(end: &Unconnected) -> (PreparedQueuePair, Endpoint) {
    let mut prepared = end.domain.queue_pair(&end.completions).build().unwrap();
    let port = end.context.port(1).unwrap();
    let endpoint = prepared.endpoint(&port, port.gid().unwrap()).unwrap();
    (prepared, endpoint)
}

#[test]
fn a_connected_queue_pair_is_ready_to_send() {
    let [a, b] = pair();
    assert_eq!(a.queue_pair.state().unwrap(), QueuePairState::RTS);
    assert_eq!(a.queue_pair.queue_pair_type(), QueuePairType::UC);
    assert_eq!(a.queue_pair.peer().number(), b.queue_pair.number());
}

/// What is made is what was asked for, or an error.
#[test]
fn other_types_are_unsupported() {
    let end = open(&fabric(), 0);
    for kind in [QueuePairType::RC, QueuePairType::UD] {
        let error = end.domain.queue_pair(&end.completions).queue_pair_type(kind).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(error.errno().unwrap().raw(), libc::EOPNOTSUPP);
        assert_eq!(error.failed_call(), Some("ibv_create_qp"));
        assert_eq!(error.subject().device.as_deref(), Some("rdma_en2"));
    }
}

#[test]
fn nonsense_is_refused_by_the_builder() {
    let fabric = fabric();
    let (end, other) = (open(&fabric, 0), open(&fabric, 0));
    let kind = |builder: rdma::QueuePairBuilder<'_>| builder.build().unwrap_err().kind();
    let builder = || end.domain.queue_pair(&end.completions);
    assert_eq!(kind(builder().requests(0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(builder().requests(u32::MAX)), ErrorKind::InvalidArgument);
    assert_eq!(kind(builder().depth(0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(builder().depth(4096)), ErrorKind::InvalidArgument);
    assert_eq!(kind(end.domain.queue_pair(&other.completions)), ErrorKind::InvalidArgument, "another open");
    assert_eq!(kind(builder().receive_completions(&other.completions)), ErrorKind::InvalidArgument);
}

#[test]
fn sends_and_receives_can_complete_in_two_queues() {
    let fabric = fabric();
    let (a, b) = (open(&fabric, 0), open(&fabric, 1));
    let mut receives = b.context.completion_queue(64).unwrap();
    let mut there = b.domain.queue_pair(&b.completions).receive_completions(&receives).requests(4).build().unwrap();
    let port = b.context.port(1).unwrap();
    let endpoint = there.endpoint(&port, port.gid().unwrap()).unwrap();
    let (here, local) = prepare(&a);
    let mut here = here.connect(&endpoint).unwrap();
    let mut there = there.connect(&local).unwrap();
    let (mut a, mut b) = (a, b);
    there.post_recv(b.region.buffer(64).unwrap(), 1).unwrap();
    there.post_send(b.region.buffer(64).unwrap(), .., 2).unwrap();
    here.post_recv(a.region.buffer(64).unwrap(), 3).unwrap();
    here.post_send(a.region.buffer(64).unwrap(), .., 4).unwrap();
    assert_eq!(receives.wait(LONG).unwrap().token(), 1);
    assert_eq!(b.completions.wait(LONG).unwrap().token(), 2);
    assert!(receives.poll_one().unwrap().is_none() && b.completions.poll_one().unwrap().is_none());
    a.completions.wait_for(2, LONG, |completion| completion.ok().map(drop)).unwrap();
    drop((here, there));
    assert_eq!((receives.unreserved(), b.completions.unreserved()), (64, 4096));
}

#[test]
fn the_usual_endpoint_is_published_once() {
    let end = open(&fabric(), 0);
    let mut prepared = end.domain.queue_pair(&end.completions).build().unwrap();
    let endpoint = prepared.publish().unwrap();
    assert_eq!(endpoint.number(), prepared.number());
    let port = end.context.port(1).unwrap();
    assert_eq!(endpoint.gid(), port.gid().unwrap().gid());
    // The peer may have it, and its sequence number is a random one: it stays.
    assert_eq!((prepared.publish().unwrap(), prepared.published().unwrap()), (endpoint, endpoint));
    // One that was chosen replaces it, and stays, too.
    let chosen = prepared.endpoint(&port, port.gid_at(2).unwrap()).unwrap();
    assert_eq!(prepared.publish().unwrap(), chosen);
}

#[test]
fn a_pair_of_one_process() {
    let fabric = fabric();
    let (a, b) = (open(&fabric, 0), open(&fabric, 1));
    let prepare = |end: &Unconnected| end.domain.queue_pair(&end.completions).build().unwrap();
    let mut other = prepare(&b);
    let published = other.publish().unwrap();
    let (one, other) = connect::pair(prepare(&a), other).unwrap();
    assert_eq!((one.peer(), other.peer().number()), (&published, one.number()));
    assert_eq!([one.state().unwrap(), other.state().unwrap()], [QueuePairState::RTS; 2]);
    drop((one, other));
    // Without a cable between them: an error, and no queue pair is left of either.
    for _ in 0..20 {
        let error = connect::pair(prepare(&a), prepare(&a)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnreachablePeer, "{error}");
    }
}

#[test]
fn an_endpoint_must_be_published_first() {
    let end = open(&fabric(), 0);
    let prepared = end.domain.queue_pair(&end.completions).build().unwrap();
    assert_eq!(prepared.published().unwrap_err().kind(), ErrorKind::InvalidState);
    let peer = Endpoint::new(1, 0x900, 0, "fe80::1".parse().unwrap(), Mtu::B4096);
    assert_eq!(prepared.connect(&peer).unwrap_err().kind(), ErrorKind::InvalidState);
}

#[test]
fn peers_that_cannot_be_are_refused() {
    let fabric = fabric();
    let (a, b) = (open(&fabric, 0), open(&fabric, 1));
    let (_there, peer) = prepare(&b);
    let with_gid = |gid: Gid| Endpoint::new(peer.lid(), peer.number(), peer.psn(), gid, peer.mtu());
    let attempt = |peer: &Endpoint| {
        let (prepared, _) = prepare(&a);
        prepared.connect(peer).unwrap_err()
    };
    let error = attempt(&with_gid(Gid::ZERO));
    assert_eq!(error.kind(), ErrorKind::NoUsableGid, "{error}");
    // The other kind.
    let error = attempt(&with_gid(b.context.port(1).unwrap().gid_of_kind(GidKind::LinkLocal).unwrap().gid()));
    assert_eq!(error.kind(), ErrorKind::NoUsableGid, "{error}");
    assert!(error.to_string().contains("is IPv4-mapped, the peer's fe80::"), "{error}");
    // Our own.
    let error = attempt(&with_gid(a.context.port(1).unwrap().gid().unwrap().gid()));
    assert_eq!(error.kind(), ErrorKind::UnreachablePeer, "{error}");
    // Nobody's: asked of the device.
    let gid: Gid = "::ffff:203.0.113.9".parse().unwrap();
    let error = attempt(&with_gid(gid));
    assert_eq!(error.kind(), ErrorKind::UnreachablePeer);
    assert_eq!(error.errno().unwrap().raw(), libc::ETIMEDOUT);
    let text = error.to_string();
    for part in ["ibv_modify_qp", "rdma_en2", "port 1", "::ffff:203.0.113.9", "INIT to RTR", "GID[1]"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // None of these cost a queue pair.
    let (prepared, _) = prepare(&a);
    prepared.connect(&peer).unwrap();
}

/// Both ends use the smaller MTU, whichever they can do.
#[test]
fn the_smaller_mtu_is_used() {
    let fabric = fabric();
    let (a, b) = (open(&fabric, 0), open(&fabric, 1));
    let ((here, local), (there, peer)) = (prepare(&a), prepare(&b));
    let small = Endpoint::new(peer.lid(), peer.number(), peer.psn(), peer.gid(), Mtu::B1024);
    let here = here.connect(&small).unwrap();
    let there = there.connect(&local).unwrap();
    assert_eq!(here.peer().mtu(), Mtu::B1024);
    drop(there);
}

#[test]
fn a_port_that_is_down_is_an_error_before_anything_else() {
    let fabric = fabric();
    let end = open(&fabric, 0);
    let mut prepared = end.domain.queue_pair(&end.completions).build().unwrap();
    let mut port = end.context.port(1).unwrap();
    let gid = port.gid().unwrap();
    fabric.set_cable(0, false).unwrap();
    port.refresh().unwrap();
    let error = prepared.endpoint(&port, gid).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PortDown);
    let error = port.wait_active(Duration::from_millis(30)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("PORT_DOWN (1)"), "{error}");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            fabric.set_cable(0, true).unwrap();
        });
        port.wait_active(LONG).unwrap();
    });
    prepared.endpoint(&port, gid).unwrap();
}

#[test]
fn a_port_of_another_device_is_refused() {
    let fabric = fabric();
    let (a, b) = (open(&fabric, 0), open(&fabric, 1));
    let mut prepared = a.domain.queue_pair(&a.completions).build().unwrap();
    let port = b.context.port(1).unwrap();
    let error = prepared.endpoint(&port, port.gid().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn gids_are_found_by_kind_and_index() {
    let end = open(&fabric(), 0);
    let port = end.context.port(1).unwrap();
    let table = port.gids().unwrap();
    assert_eq!(table.iter().map(|entry| entry.index()).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(port.gid().unwrap(), table[1], "IPv4-mapped first");
    assert_eq!(port.gid_of_kind(GidKind::LinkLocal).unwrap(), table[0]);
    assert_eq!(port.gid_at(2).unwrap(), table[2]);
    let error = port.gid_at(3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoUsableGid);
    let error = port.gid_of_kind(GidKind::Other).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("GID[1] ::ffff:169.254.") && text.contains("ifconfig en2"), "{text}");
    assert_eq!(port.wait_gid(GidKind::Ipv4Mapped, Duration::ZERO).unwrap(), table[1]);
    assert!(port.wait_gid(GidKind::Other, Duration::from_millis(10)).is_err());
    assert_eq!(end.context.port(0).unwrap_err().kind(), ErrorKind::UnknownDevice);
    assert_eq!(end.context.port(2).unwrap_err().kind(), ErrorKind::UnknownDevice);
}
