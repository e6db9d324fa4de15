//! Connecting over TCP: what peers may do, and what ends the waiting for them.

use crate::support::LONG;
use crate::support::pair::{Unconnected, device, fabric};
use rdma::connect::{self, Patience};
use rdma::soft::Fabric;
use rdma::{Endpoint, ErrorKind, PreparedQueuePair};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

fn open(fabric: &Fabric, host: usize) -> Unconnected {
    Unconnected::open(&device(fabric, host), 1 << 16)
}

fn prepare(end: &Unconnected) -> (PreparedQueuePair, Endpoint) {
    let mut prepared = end.domain.queue_pair(&end.completions).build().unwrap();
    let endpoint = prepared.publish().unwrap();
    (prepared, endpoint)
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
    assert!(error.subject().peer.is_some());
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

/// What a peer has said before it left does not hide that it has left; and it still counts.
#[test]
fn a_peer_that_leaves_at_a_barrier_is_seen_gone() {
    let fabric = fabric();
    let (ours, theirs) = streams();
    let (end, other_end) = (open(&fabric, 0), open(&fabric, 1));
    let (prepared, other_prepared) = (prepare(&end).0, prepare(&other_end).0);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| connect::establish(other_prepared, theirs, LONG).unwrap());
        let (_queue_pair, mut link) = connect::establish(prepared, ours, LONG).unwrap();
        let (other_queue_pair, mut other_link) = other.join().unwrap();
        assert!(link.is_alive());
        // It is ready, and nobody else is: it gives up.
        assert_eq!(other_link.ready(Duration::from_millis(10)).unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(link.is_alive() && link.is_alive());
        drop((other_link, other_queue_pair));
        // Several threads may ask.
        std::thread::scope(|scope| {
            let gone = || crate::support::eventually("the peer to be seen gone", || !link.is_alive());
            scope.spawn(gone);
            gone();
        });
        link.ready(LONG).unwrap();
        assert_eq!(link.ready(LONG).unwrap_err().kind(), ErrorKind::PeerGone);
    });
}

/// No time is no time, and no reason to blame the peer.
#[test]
fn no_time_is_told() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = connect::dial(address, Duration::ZERO).unwrap_err();
    assert!(error.kind() == ErrorKind::TimedOut && error.to_string().contains("no time"), "{error}");
    let fabric = fabric();
    let (ours, _theirs) = streams();
    let error = connect::establish(prepare(&open(&fabric, 0)).0, ours, Duration::ZERO).unwrap_err();
    assert!(error.kind() == ErrorKind::TimedOut && error.to_string().contains("no time"), "{error}");
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

/// Whatever is waited for, the program can end it: at once if it says so from the start, and in the middle.
#[test]
fn waiting_can_be_ended() {
    let fabric = fabric();
    let end = open(&fabric, 0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for asked in [0, 2] {
        // Answers yes when it has been asked so many times.
        let ended = |count: &Cell<u32>| count.replace(count.get() + 1) >= asked;
        let count = Cell::new(0);
        let question = || ended(&count);
        let patience = Patience::from(LONG).unless(&question);
        let errors = [
            connect::dial(nobody, patience).unwrap_err(),
            {
                count.set(0);
                connect::accept(&listener, patience).unwrap_err()
            },
            {
                count.set(0);
                let (ours, _theirs) = streams();
                connect::establish(prepare(&end).0, ours, patience).unwrap_err()
            },
            {
                let (ours, mut theirs) = streams();
                let (_there, peer) = prepare(&open(&fabric, 1));
                theirs.write_all(&peer.to_bytes()).unwrap();
                let (_queue_pair, mut link) = connect::establish(prepare(&end).0, ours, LONG).unwrap();
                count.set(0);
                link.ready(patience).unwrap_err()
            },
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
            assert!(!error.is_retryable());
        }
    }
    // A question that is never answered with yes costs nothing.
    let never = || false;
    let patience = Patience::from(Duration::from_millis(250)).unless(&never);
    assert_eq!(connect::accept(&listener, patience).unwrap_err().kind(), ErrorKind::TimedOut);
    connect::dial(listener.local_addr().unwrap(), patience).unwrap();
    connect::accept(&listener, patience).unwrap();
}

/// Each time-out says what was waited for, of whom, for how long, and what to look at.
#[test]
fn a_timeout_has_a_remedy() {
    let short = Duration::from_millis(30);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = connect::accept(&listener, short).unwrap_err().to_string();
    let start = format!("no peer connected to {} within 30ms (start the dialling side", listener.local_addr().unwrap());
    assert!(text.starts_with(&start), "{text}");
    let fabric = fabric();
    let end = open(&fabric, 0);
    let (ours, theirs) = streams();
    let peer = ours.peer_addr().unwrap();
    let text = connect::establish(prepare(&end).0, ours, short).unwrap_err().to_string();
    let start = format!("peer {peer}: waited 30ms in vain for the peer's endpoint (");
    assert!(text.starts_with(&start), "{text}");
    let (_there, endpoint) = prepare(&open(&fabric, 1));
    drop(theirs);
    let (ours, mut theirs) = streams();
    theirs.write_all(&endpoint.to_bytes()).unwrap();
    let (_queue_pair, mut link) = connect::establish(prepare(&end).0, ours, LONG).unwrap();
    let error = link.ready(short).unwrap_err();
    assert!(error.to_string().contains("Link::ready"), "{error}");
    assert_eq!(error.subject().peer, link.peer_address().ok());
}
