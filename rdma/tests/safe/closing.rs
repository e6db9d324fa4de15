//! Dropping, closing, leaking: in every order, with work in flight.

use crate::support::pair::{End, connect_devices, device, fabric, pair};
use crate::support::{LONG, fabrics};
use rdma::Direction;

/// Work in flight in both directions, waiting and done.
fn busy() -> [End; 2] {
    let fabric = fabric();
    let devices = [device(&fabric, 0), device(&fabric, 1)];
    let [mut a, mut b] = connect_devices([&devices[0], &devices[1]], 1 << 17, |builder| builder.depth(64).requests(16));
    for token in 0..3 {
        a.post_recv(64, token);
        b.post_recv(8192, token);
    }
    for token in 3..8 {
        a.post_send(&[1; 8192], token);
    }
    [a, b]
}

#[test]
fn closing_returns_what_is_in_flight() {
    let [a, mut b] = busy();
    // Three have gone out, two wait; nothing was polled, so all five are still the queue pair's.
    let unfinished = a.queue_pair.close().unwrap();
    let of = |direction| {
        unfinished.iter().filter(|item| item.direction == direction).map(|item| item.token).collect::<Vec<_>>()
    };
    assert_eq!(of(Direction::Send), [3, 4, 5, 6, 7]);
    assert_eq!(of(Direction::Receive), [0, 1, 2]);
    drop(unfinished);
    assert_eq!(a.region.available(), a.region.len());
    for token in 0..3 {
        let received = b.success();
        assert_eq!((received.token(), received.len()), (token, 8192));
    }
    assert!(b.is_idle());
}

#[test]
fn dropping_gives_the_memory_back() {
    let [a, b] = busy();
    drop(a.queue_pair);
    drop(b.queue_pair);
    assert_eq!((a.region.available(), b.region.available()), (a.region.len(), b.region.len()));
}

/// Each of an end's parts, to be dropped in any order.
enum Part {
    QueuePair(rdma::QueuePair),
    Completions(Box<rdma::CompletionQueue>),
    Region(rdma::MemoryRegion),
    Domain(rdma::ProtectionDomain),
    Context(rdma::Context),
}

impl Part {
    fn of(end: End) -> [Option<Part>; 5] {
        [
            Part::QueuePair(end.queue_pair),
            Part::Completions(Box::new(end.completions)),
            Part::Region(end.region),
            Part::Domain(end.domain),
            Part::Context(end.context),
        ]
        .map(Some)
    }

    fn end(self, leak: bool) {
        match self {
            Part::QueuePair(part) if leak => std::mem::forget(part),
            Part::Completions(part) if leak => std::mem::forget(part),
            Part::Region(part) if leak => std::mem::forget(part),
            Part::Domain(part) if leak => std::mem::forget(part),
            Part::Context(part) if leak => std::mem::forget(part),
            Part::QueuePair(part) => drop(part),
            Part::Completions(part) => drop(part),
            Part::Region(part) => drop(part),
            Part::Domain(part) => drop(part),
            Part::Context(part) => drop(part),
        }
    }
}

fn permutations() -> Vec<[usize; 5]> {
    let mut all = vec![];
    for number in 0..3125 {
        let order = [number % 5, number / 5 % 5, number / 25 % 5, number / 125 % 5, number / 625];
        if (0..5).all(|part| order.contains(&part)) {
            all.push(order);
        }
    }
    assert_eq!(all.len(), 120);
    all
}

/// Whatever is dropped first, and whatever is leaked: no call on a dead object, and the peer goes on.
#[test]
fn parts_can_go_in_every_order() {
    // What is leaked of a shared fabric stays in memory as long as the process.
    let every = if fabrics::are_shared() { 12 } else { 1 };
    for order in permutations().into_iter().step_by(every) {
        for leaked in 0..=5 {
            let [a, mut b] = busy();
            let mut parts = Part::of(a);
            for part in order {
                parts[part].take().unwrap().end(part == leaked);
            }
            for token in 0..3 {
                assert_eq!(b.success().token(), token);
            }
            b.post_send(b"to nobody, or to one that is leaked", 9);
            if leaked != 0 {
                b.success();
            }
        }
    }
}

/// A leaked completion keeps its buffer, and nothing else.
#[test]
fn a_leaked_completion_leaks_its_buffer_only() {
    let [mut a, mut b] = pair();
    b.post_recv(64, 1);
    a.post_send(b"x", 2);
    std::mem::forget(b.next());
    assert_eq!(b.region.available(), b.region.len() - 64);
    b.post_recv(64, 3);
    a.post_send(b"y", 4);
    assert_eq!(b.success().token(), 3);
}

/// Completions that were polled but not yet handed out when their queue pair was closed: the memory came from `close`, so
/// they are stale.
#[test]
fn completions_of_a_closed_queue_pair_are_stale() {
    let [mut a, mut b] = pair();
    for token in 0..3 {
        b.post_recv(64, token);
    }
    for token in 0..3 {
        a.post_send(b"x", token);
    }
    // One is handed out, two are staged.
    let mut three: [_; 3] = [const { None }; 3];
    assert_eq!(b.completions.poll(&mut three[..1]).unwrap(), 1);
    let unfinished = b.queue_pair.close().unwrap();
    assert_eq!(unfinished.iter().map(|item| item.token).collect::<Vec<_>>(), [1, 2]);
    assert!(b.completions.poll_one().unwrap().is_none());
}

/// A new queue pair on the same completion queue sees its own completions only.
#[test]
fn a_successor_sees_its_own_completions_only() {
    let fabric = fabric();
    let devices = [device(&fabric, 0), device(&fabric, 1)];
    let [one, other] = devices.each_ref().map(|device| crate::support::pair::Unconnected::open(device, 1 << 16));
    let (mut one, mut other) = (one, other);
    for round in 0..200_u64 {
        let join = |here: &crate::support::pair::Unconnected| {
            let mut prepared = here.domain.queue_pair(&here.completions).requests(8).build().unwrap();
            let port = here.context.port(1).unwrap();
            let endpoint = prepared.endpoint(&port, port.gid().unwrap()).unwrap();
            (prepared, endpoint)
        };
        let ((here, local), (there, peer)) = (join(&one), join(&other));
        let (mut here, mut there) = (here.connect(&peer).unwrap(), there.connect(&local).unwrap());
        for token in 0..8 {
            there.post_recv(other.region.buffer(8).unwrap(), round * 8 + token).unwrap();
            here.post_send(one.region.buffer(8).unwrap(), .., round * 8 + token).unwrap();
        }
        // Some are polled, the rest go with the queue pair.
        for token in 0..round % 8 {
            assert_eq!(other.completions.wait(LONG).unwrap().token(), round * 8 + token);
            assert_eq!(one.completions.wait(LONG).unwrap().token(), round * 8 + token);
        }
        drop(here);
        there.close().unwrap();
        assert!(one.completions.poll_one().unwrap().is_none() && other.completions.poll_one().unwrap().is_none());
    }
    assert_eq!((one.region.available(), other.region.available()), (one.region.len(), other.region.len()));
}
