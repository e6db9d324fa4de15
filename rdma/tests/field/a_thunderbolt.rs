//! Group A: RDMA over Thunderbolt. Addresses, connecting, waiting.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::pair::{Unconnected, device, fabric, pair};
use crate::support::raw::{self, Host};
use crate::support::{LONG, SHORT};
use rdma::soft::{End, Fabric, Topology};
use rdma::{Endpoint, ErrorKind, Gid, GidKind, PreparedQueuePair, Provider};
use rdma_sys::{self as sys, ibv_qp_state as state};

const HERE: End = End { host: 0, device: 0 };

fn open(fabric: &Fabric, host: usize) -> Unconnected {
    Unconnected::open(&device(fabric, host), 1 << 16)
}

fn prepare(end: &Unconnected) -> (PreparedQueuePair, Endpoint) {
    let mut prepared = end.domain.queue_pair(&end.completions).build().unwrap();
    let port = end.context.port(1).unwrap();
    let endpoint = prepared.endpoint(&port, port.gid().unwrap()).unwrap();
    (prepared, endpoint)
}

/// Leaves a device with this table alone.
fn set_table(fabric: &Fabric, end: End, table: &[&str]) {
    for index in 0..16 {
        let gid = table.get(index).map_or(Gid::ZERO, |text| text.parse().unwrap());
        fabric.set_gid(end, index, gid).unwrap();
    }
}

/// The scan for an IPv4-mapped GID falls through, and garbage reaches RTR.
#[test]
fn a01_no_usable_gid_is_an_error_where_it_is_chosen() {
    let fabric = fabric();
    set_table(&fabric, HERE, &["fe80::1"]);
    let end = open(&fabric, 0);
    let error = end.context.port(1).unwrap().gid_of_kind(GidKind::Ipv4Mapped).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoUsableGid);
    let text = error.to_string();
    assert!(text.contains("GID[0] fe80::1") && text.contains("ifconfig en2"), "{text}");
    assert_eq!((error.subject().device.as_deref(), error.subject().port), (Some("rdma_en2"), Some(1)));
    set_table(&fabric, HERE, &[]);
    assert_eq!(end.context.port(1).unwrap().gid().unwrap_err().kind(), ErrorKind::NoUsableGid);
    // And a GID of zeroes never gets past RTR.
    let (mut a, mut b) = (Host::open(&fabric, 1), Host::open(&fabric, 0));
    let (qp_a, qp_b) = (a.queue_pair(1), b.queue_pair(1));
    assert_eq!(a.to_init(qp_a), 0);
    let (mut attributes, mask) = raw::rtr(&b, qp_b);
    attributes.ah_attr.grh.dgid = sys::ibv_gid { raw: [0; 16] };
    assert_eq!(a.modify(qp_a, attributes, mask), libc::EINVAL);
    assert_eq!(a.state(qp_a), state::IBV_QPS_INIT);
}

/// The usable entry sits at index 2: address and index go together.
#[test]
fn a02_gid_and_index_travel_together() {
    let fabric = fabric();
    set_table(&fabric, HERE, &["fe80::1", "::", "::ffff:169.254.1.1"]);
    let (a, b) = (open(&fabric, 0), open(&fabric, 1));
    let entry = a.context.port(1).unwrap().gid().unwrap();
    assert_eq!((entry.index(), entry.gid().to_string().as_str()), (2, "::ffff:169.254.1.1"));
    let ((here, local), (there, peer)) = (prepare(&a), prepare(&b));
    let here = here.connect(&peer).unwrap();
    there.connect(&local).unwrap();
    // SAFETY: a live queue pair.
    let used = unsafe {
        let (mut attributes, mut init) = (sys::ibv_qp_attr::default(), sys::ibv_qp_init_attr::default());
        let provider = Provider::soft(&fabric.host(0).unwrap()).unwrap();
        (provider.verbs().query_qp)(here.as_raw(), &mut attributes, 1, &mut init);
        attributes.ah_attr.grh.sgid_index
    };
    assert_eq!(used, 2);
    // By hand: the empty index is refused, the right one is not.
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (qp_a, qp_b) = (a.queue_pair(1), b.queue_pair(1));
    assert_eq!(a.to_init(qp_a), 0);
    let (mut attributes, mask) = raw::rtr(&b, qp_b);
    assert_eq!(a.modify(qp_a, attributes, mask), libc::EINVAL, "index 1 is empty");
    attributes.ah_attr.grh.sgid_index = 2;
    assert_eq!(a.modify(qp_a, attributes, mask), 0);
}

/// The address changes between publishing and connecting: a clear error, and trying again works.
#[test]
fn a03_a_stale_gid_is_noticed_and_can_be_tried_again() {
    let fabric = fabric();
    let (a, b) = (open(&fabric, 0), open(&fabric, 1));
    let ((here, _), (there, peer)) = (prepare(&a), prepare(&b));
    fabric.set_gid(HERE, 1, "::ffff:169.254.77.7".parse().unwrap()).unwrap();
    let error = here.connect(&peer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StaleGid);
    assert!(error.is_retryable());
    let text = error.to_string();
    assert!(text.contains("GID[1]") && text.contains("::ffff:169.254.77.7"), "{text}");
    // It may be gone altogether, too.
    let (here, _) = prepare(&a);
    fabric.set_gid(HERE, 1, Gid::ZERO).unwrap();
    assert_eq!(here.connect(&peer).unwrap_err().kind(), ErrorKind::StaleGid);
    fabric.set_gid(HERE, 1, "::ffff:169.254.78.8".parse().unwrap()).unwrap();
    let (here, local) = prepare(&a);
    let _here = here.connect(&peer).unwrap();
    there.connect(&local).unwrap();
}

/// A well-formed GID that is on another cable: a time-out, told apart from a bad argument, in bounded time.
#[test]
fn a04_the_wrong_cable_is_unreachable() {
    let fabric = fabrics::ring(2);
    let devices = |host: usize| Provider::soft(&fabric.host(host).unwrap()).unwrap().devices().unwrap();
    let a = Unconnected::open(&devices(0)[0], 4096);
    let wrong = Unconnected::open(&devices(1)[0], 4096);
    let right = Unconnected::open(&devices(1)[1], 4096);
    let ((_wrong_qp, wrong_end), (right_qp, right_end)) = (prepare(&wrong), prepare(&right));
    let error = prepare(&a).0.connect(&wrong_end).unwrap_err();
    assert_eq!((error.kind(), error.errno().unwrap().raw()), (ErrorKind::UnreachablePeer, libc::ETIMEDOUT));
    let text = error.to_string();
    assert!(text.contains("rdma_en2") && text.contains(&wrong_end.gid().to_string()), "{text}");
    let (here, local) = prepare(&a);
    let _here = here.connect(&right_end).unwrap();
    right_qp.connect(&local).unwrap();
}

/// "No library", "no devices" and "port down" are three results.
#[test]
fn a11_three_ways_of_having_nothing() {
    // SAFETY: there is no such file, so nothing is loaded.
    let no_library = unsafe { Provider::library("/nonexistent/librdma.dylib") }.unwrap_err();
    let mut topology = Topology::new();
    topology.host(0).unwrap();
    let empty = fabrics::new(topology, Default::default());
    let no_devices = Provider::soft(&empty.host(0).unwrap()).unwrap().first_active().unwrap_err();
    let dark = fabric();
    dark.set_cable(0, false).unwrap();
    let port_down = Provider::soft(&dark.host(0).unwrap()).unwrap().first_active().unwrap_err();
    let kinds = [no_library.kind(), no_devices.kind(), port_down.kind()];
    assert_eq!(kinds, [ErrorKind::LibraryNotFound, ErrorKind::NoDevices, ErrorKind::PortDown]);
    assert!(no_library.to_string().contains("/nonexistent/librdma.dylib"), "{no_library}");
}

/// A heartbeat on the same queue pair: receives match in order, whoever meant them for what.
#[test]
fn a22_receives_match_in_order() {
    let [mut a, mut b] = pair();
    b.post_recv(4096, 1);
    b.post_recv(64, 2);
    a.post_send(b"H", 3);
    a.post_send(b"U", 4);
    let (first, second) = (b.success(), b.success());
    assert_eq!((first.token(), first.bytes()), (1, &b"H"[..]));
    assert_eq!((second.token(), second.bytes()), (2, &b"U"[..]));
}

/// A queue pair cannot be connected to its own port: an error, in bounded time.
#[test]
fn a23_loopback_is_refused() {
    let fabric = fabric();
    let end = open(&fabric, 0);
    let (one, local) = prepare(&end);
    let (other, _) = prepare(&end);
    let error = other.connect(&local).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnreachablePeer);
    assert!(error.hint().unwrap().contains("own port"), "{error}");
    drop(one);
}

/// A SEND without a receive waits; on classic UC it would be gone.
#[test]
fn a26_a_send_waits_for_its_receive() {
    let [mut a, mut b] = pair();
    a.post_send(b"held", 1);
    std::thread::sleep(2 * SHORT);
    assert!(a.is_idle() && b.is_idle());
    b.post_recv(64, 2);
    assert_eq!(b.success().bytes(), b"held");
    assert_eq!(a.success().token(), 1);
}

/// Rails paired by index although the cables are crossed: an error, not a hang.
#[test]
fn a30_crossed_cables_are_paired_by_address() {
    let mut topology = Topology::new();
    let (one, two) = (topology.host(2).unwrap(), topology.host(2).unwrap());
    let at = |host, device| End { host, device };
    topology.cable(at(one, 0), at(two, 1)).unwrap();
    topology.cable(at(one, 1), at(two, 0)).unwrap();
    let fabric = fabrics::new(topology, Default::default());
    let devices = |host: usize| Provider::soft(&fabric.host(host).unwrap()).unwrap().devices().unwrap();
    let ends: Vec<_> = devices(0).iter().map(|device| Unconnected::open(device, 4096)).collect();
    let peers: Vec<_> = devices(1).iter().map(|device| Unconnected::open(device, 4096)).collect();
    let mut found = Vec::new();
    for (index, end) in ends.iter().enumerate() {
        for (other, peer) in peers.iter().enumerate() {
            let (_prepared, endpoint) = prepare(peer);
            match prepare(end).0.connect(&endpoint) {
                Ok(_) => found.push((index, other)),
                Err(error) => assert_eq!(error.kind(), ErrorKind::UnreachablePeer),
            }
        }
    }
    assert_eq!(found, [(0, 1), (1, 0)]);
}

/// The side channel ends: "peer closed" is told apart from an error of the system, and an old errno is not shown.
#[test]
fn a33_a_closed_side_channel_is_no_errno() {
    use std::io::{Read, Write};
    let fabric = fabric();
    let end = open(&fabric, 0);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = rdma::connect::dial(listener.local_addr().unwrap(), LONG).unwrap();
    let mut theirs = rdma::connect::accept(&listener, LONG).unwrap();
    let (prepared, _) = prepare(&end);
    let worker = std::thread::spawn(move || {
        // All of our endpoint is read, so that closing sends no reset.
        theirs.read_exact(&mut [0; Endpoint::LENGTH]).unwrap();
        theirs.write_all(&[1; 10]).unwrap();
    });
    // ENOENT, left by something else.
    assert!(std::fs::metadata("/nonexistent").is_err());
    let error = rdma::connect::establish(prepared, ours, LONG).unwrap_err();
    worker.join().unwrap();
    assert_eq!(error.kind(), ErrorKind::PeerGone);
    assert_eq!(error.errno(), None);
    assert!(error.to_string().contains("10 of 32 bytes"), "{error}");
}
