//! From a builder to a connection, and what can go wrong on the way.

use crate::support::LONG;
use crate::support::pair::{Unconnected, device, fabric, pair};
use rdma::soft::Fabric;
use rdma::{Endpoint, ErrorKind, Gid, GidKind, Mtu, PreparedQueuePair, QueuePairState, QueuePairType, connect};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
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
    a.completions.wait_for(2, LONG, |completion| completion.into_result().map(drop).map_err(Into::into)).unwrap();
    drop((here, there));
    assert_eq!((receives.unreserved(), b.completions.unreserved()), (64, 4096));
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
    assert!(error.to_string().contains("LinkLocal") && error.to_string().contains("Ipv4Mapped"), "{error}");
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

/// A listener, and one TCP connection to it.
fn streams() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = connect::dial(listener.local_addr().unwrap(), LONG).unwrap();
    (one, connect::accept(&listener, LONG).unwrap())
}

/// The peer's part is played by `script`; what `establish` says is returned.
fn against(timeout: Duration, script: impl FnOnce(TcpStream, Endpoint) + Send) -> rdma::Error {
    let fabric = fabric();
    let (a, b) = (open(&fabric, 0), open(&fabric, 1));
    let (prepared, _) = prepare(&a);
    let (_there, peer) = prepare(&b);
    let (ours, theirs) = streams();
    std::thread::scope(|scope| {
        scope.spawn(move || script(theirs, peer));
        match connect::establish(prepared, ours, timeout) {
            Ok((_queue_pair, mut link)) => link.ready(timeout).unwrap_err(),
            Err(error) => error,
        }
    })
}

#[test]
fn hostile_peers_are_errors_in_time() {
    let short = Duration::from_millis(100);
    let error = against(LONG, |stream, _| drop(stream));
    assert_eq!(error.kind(), ErrorKind::PeerGone, "{error}");
    // Half an endpoint, then the end: the count is said, and no old errno.
    let error = against(LONG, |mut stream, peer| stream.write_all(&peer.to_bytes()[..10]).unwrap());
    assert_eq!(error.kind(), ErrorKind::PeerGone, "{error}");
    if error.errno().is_none() {
        assert!(error.to_string().contains("10 of 32"), "{error}");
    }
    let error = against(short, |stream, _| {
        std::thread::sleep(4 * short);
        drop(stream);
    });
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    // A byte now and then does not move the deadline.
    let error = against(short, |mut stream, peer| {
        for byte in peer.to_bytes() {
            if stream.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    for garbage in
        [[0_u8; 64], [0xff; 64], *b"GET / HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\nUser-Agent: \r\n\r\n"]
    {
        let error = against(LONG, |mut stream, _| {
            let _ = stream.write_all(&garbage);
            let _ = stream.read(&mut [0; 64]);
        });
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    }
    // A good endpoint, then something else than ready.
    let error = against(LONG, |mut stream, peer| {
        stream.write_all(&peer.to_bytes()).unwrap();
        stream.write_all(b"?").unwrap();
        let _ = stream.read(&mut [0; 64]);
    });
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
}

#[test]
fn a_link_is_a_barrier_and_a_sign_of_life() {
    let fabric = fabric();
    let (ours, theirs) = streams();
    let fabric = &fabric;
    let run = |host: usize, stream| {
        let end = open(fabric, host);
        let (prepared, _) = prepare(&end);
        let (queue_pair, mut link) = connect::establish(prepared, stream, LONG).unwrap();
        for _ in 0..3 {
            link.ready(LONG).unwrap();
        }
        (end, queue_pair, link)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(move || run(1, theirs));
        let (_end, queue_pair, mut link) = run(0, ours);
        let (other_end, other_queue_pair, other_link) = other.join().unwrap();
        assert!(link.is_alive() && other_link.is_alive());
        assert!(link.peer_address().is_ok());
        drop((other_link, other_queue_pair, other_end));
        crate::support::eventually("the peer to be seen gone", || !link.is_alive());
        assert_eq!(link.ready(LONG).unwrap_err().kind(), ErrorKind::PeerGone);
        drop(queue_pair);
    });
}

#[test]
fn dialling_nobody_ends_in_time() {
    // A port that was just given back.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = connect::dial(address, Duration::from_millis(100)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert_eq!(connect::dial("no address", LONG).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(connect::accept(&listener, Duration::from_millis(20)).unwrap_err().kind(), ErrorKind::TimedOut);
}

/// Both sides connect at the same moment, with random delays at each step: the first message always arrives.
#[test]
fn simultaneous_connects_lose_nothing() {
    for round in 0..50_u64 {
        let fabric = fabric();
        let (ours, theirs) = streams();
        let delay = |step: u64| std::thread::sleep(Duration::from_micros((round * 7919 + step * 104_729) % 2000));
        let fabric = &fabric;
        let run = move |host: usize, stream, step: u64| {
            let mut end = open(fabric, host);
            delay(step);
            let (prepared, _) = prepare(&end);
            delay(step + 1);
            let (mut queue_pair, mut link) = connect::establish(prepared, stream, LONG).unwrap();
            delay(step + 2);
            queue_pair.post_recv(end.region.buffer(8).unwrap(), 1).unwrap();
            link.ready(LONG).unwrap();
            delay(step + 3);
            let mut buffer = end.region.buffer(8).unwrap();
            buffer.copy_from_slice(&round.to_le_bytes());
            queue_pair.post_send(buffer, .., 2).unwrap();
            end.completions
                .wait_for(2, LONG, |completion| {
                    assert_eq!(completion.into_result()?.bytes(), round.to_le_bytes());
                    Ok(())
                })
                .unwrap();
            // Nobody leaves before the other has what it was sent.
            link.ready(LONG).unwrap();
        };
        std::thread::scope(|scope| {
            scope.spawn(move || run(0, ours, 0));
            scope.spawn(move || run(1, theirs, 4));
        });
    }
}
