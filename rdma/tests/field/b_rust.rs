//! Group B: users and authors of Rust verbs libraries. Objects and their owners.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::pair::{Unconnected, connect, device, fabric, pair};
use crate::support::raw::{Host, errno, send_wr, two};
use rdma::{ErrorKind, Provider, QueuePairType};
use rdma_sys as sys;
use std::ptr::{null_mut, without_provenance_mut};

/// A pointer that is no completion queue of this context is noticed; two queues carry what is theirs.
#[test]
fn b01_completion_queues_are_checked_and_kept_apart() {
    let fabric = fabrics::mesh(2);
    let host = Host::open(&fabric, 0);
    let other = Host::open(&fabric, 0);
    for wrong in [null_mut(), without_provenance_mut(0x1000), host.pd.cast(), other.cq] {
        let mut init = sys::ibv_qp_init_attr { send_cq: wrong, ..host.init_attr(1) };
        // SAFETY: a live domain; the queue is checked before it is used.
        assert!(unsafe { (host.verbs.create_qp)(host.pd, &mut init) }.is_null());
        assert_eq!(errno(), libc::EINVAL);
    }
    // The separation of two queues: tests/safe/connecting.rs, `sends_and_receives_can_complete_in_two_queues`.
}

/// A thousand queue pairs, with the stack full of garbage in between.
#[test]
fn b02_no_attribute_is_left_to_chance() {
    #[inline(never)]
    fn poison() -> u8 {
        let garbage = std::hint::black_box([0xaa_u8; 65536]);
        garbage[std::hint::black_box(17)]
    }
    let end = Unconnected::open(&device(&fabric(), 0), 4096);
    for _ in 0..1000 {
        assert_eq!(poison(), 0xaa);
        let mut prepared = end.domain.queue_pair(&end.completions).requests(4).build().unwrap();
        let port = end.context.port(1).unwrap();
        prepared.endpoint(&port, port.gid().unwrap()).unwrap();
    }
}

/// The masks of a UC queue pair are exactly these: see tests/device/states.rs, where each missing bit and each extra one is
/// refused. Here: the safe layer's own pass, whoever connects first.
#[test]
fn b03_uc_has_its_own_attribute_sets() {
    for _ in 0..2 {
        let [a, b] = pair();
        assert_eq!(a.queue_pair.state().unwrap(), rdma::QueuePairState::RTS);
        assert_eq!(b.queue_pair.state().unwrap(), rdma::QueuePairState::RTS);
    }
}

/// Clones of a domain, a region and a queue pair, dropped in any order: tests/hostile/teardown.rs counts the calls
/// (`each_object_is_freed_once`). Here: nothing is left, so that all of it can be made again.
#[test]
fn b04_nothing_is_freed_twice_or_left() {
    let fabric = fabric();
    let device = device(&fabric, 0);
    for _ in 0..30 {
        let context = device.open().unwrap();
        let (domain, queue) = (context.protection_domain().unwrap(), context.completion_queue(64).unwrap());
        let (second, third) = (domain.clone(), domain.clone());
        let region = third.allocate(4096).unwrap();
        let queue_pair = second.queue_pair(&queue).build().unwrap();
        drop((second, region, domain, queue, queue_pair, third, context));
    }
    let context = device.open().unwrap();
    let domains: Vec<_> = (0..11).map(|_| context.protection_domain().unwrap()).collect();
    drop(domains);
}

/// Local and remote key differ, and using the one for the other is an error.
#[test]
fn b05_the_remote_key_is_not_the_local_one() {
    let two = two();
    // SAFETY: registered.
    let (lkey, rkey) = unsafe { ((*two.mem_a.mr).lkey, (*two.mem_a.mr).rkey) };
    assert_ne!(lkey, rkey);
    let sge = sys::ibv_sge { lkey: rkey, ..two.mem_a.sge(0, 8) };
    assert_eq!(two.a.post_send(two.qp_a, 1, sge), -libc::EFAULT);
}

/// Lengths are not cut to 32 bits: `queue_pair::tests::a_slice_beyond_four_gib_is_not_cut`. Here: a message too long.
#[test]
fn b06_a_message_that_is_too_long_is_an_error() {
    let fabric = fabric();
    let devices = [device(&fabric, 0), device(&fabric, 1)];
    let [mut a, _b] = crate::support::pair::connect_devices([&devices[0], &devices[1]], 17 << 20, |builder| builder);
    let buffer = a.region.buffer(16_773_121).unwrap();
    let error = a.queue_pair.post_send(buffer, .., 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(error.into_memory().unwrap().len(), 16_773_121);
}

/// The address that is registered is the one that is written, however the handles move.
#[test]
fn b07_memory_stays_where_it_was_registered() {
    let [mut a, mut b] = pair();
    let mut buffer = b.region.buffer(64).unwrap();
    let address = buffer.as_ptr().addr();
    for _ in 0..10 {
        buffer = std::thread::spawn(move || buffer).join().unwrap();
    }
    b.queue_pair.post_recv(buffer, 1).unwrap();
    a.post_send(b"there", 2);
    let received = b.success();
    assert_eq!((received.bytes().as_ptr().addr(), received.bytes()), (address, &b"there"[..]));
}

/// A refused queue pair is an error with the right errno, not a null pointer that goes on.
#[test]
fn b09_null_is_an_error_at_once() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let mut init = host.init_attr(1 << 20);
    // SAFETY: live objects.
    assert!(unsafe { (host.verbs.create_qp)(host.pd, &mut init) }.is_null());
    assert_eq!(errno(), libc::EINVAL);
    let end = Unconnected::open(&device(&fabric(), 0), 4096);
    let all: Vec<_> = (0..10).map(|_| end.domain.queue_pair(&end.completions).requests(1).build().unwrap()).collect();
    let error = end.domain.queue_pair(&end.completions).requests(1).build().unwrap_err();
    assert_eq!((error.errno().unwrap().raw(), error.failed_call()), (libc::EBUSY, Some("ibv_create_qp")));
    drop(all);
}

/// What is made is what was asked for.
#[test]
fn b10_the_type_is_the_one_that_was_asked_for() {
    let end = Unconnected::open(&device(&fabric(), 0), 4096);
    let prepared =
        end.domain.queue_pair(&end.completions).queue_pair_type(QueuePairType::UC).depth(100).build().unwrap();
    assert_eq!(prepared.queue_pair_type(), QueuePairType::UC);
    assert!(prepared.capacities().send_depth >= 100 && prepared.capacities().receive_depth >= 100);
}

/// One device opened a hundred times, each closed on its own; the survivor works.
#[test]
fn b11_an_open_device_is_closed_by_its_owner_only() {
    let fabric = fabric();
    let provider = Provider::soft(&fabric.host(0).unwrap()).unwrap();
    let survivor = provider.first_active().unwrap().open().unwrap();
    for _ in 0..100 {
        drop(provider.first_active().unwrap().open().unwrap());
    }
    assert!(survivor.port(1).unwrap().is_active());
    survivor.protection_domain().unwrap();
    survivor.close().unwrap();
}

/// Inline data is refused where none was granted: nothing is posted. (There is no inline post in the safe API.)
#[test]
fn b12_inline_is_refused_where_it_is_not_granted() {
    let two = two();
    let mut sge = two.mem_a.sge(0, 1);
    let mut wr = send_wr(1, &mut sge, sys::IBV_SEND_SIGNALED | sys::IBV_SEND_INLINE);
    // SAFETY: a live queue pair and a request over registered memory.
    assert_eq!(unsafe { sys::ibv_post_send(two.qp_a, &mut wr, &mut null_mut()) }, -libc::EINVAL);
    assert!(two.a.poll().is_empty());
}

/// The posted operation holds its memory: dropping every handle changes nothing until the completion was polled.
#[test]
fn b15_a_posted_operation_holds_its_memory() {
    let [a, mut b] = connect(&fabric(), |builder| builder.requests(4));
    let crate::support::pair::End { mut queue_pair, mut completions, region, domain, context } = a;
    queue_pair.post_recv(region.buffer(4096).unwrap(), 1).unwrap();
    drop((region, domain, context));
    b.post_send(b"into memory that nobody holds", 2);
    let received = completions.wait(crate::support::LONG).unwrap().into_result().unwrap();
    assert_eq!(received.bytes(), b"into memory that nobody holds");
}
