//! Orders of events that threads and processes can produce, but tests from outside cannot.

use super::blocks::Link;
use super::outbound::Target;
use crate::soft::connection;
use crate::soft::fabric::Fabric;
use crate::soft::queue_pair::SoftQp;
use crate::soft::registry;
use crate::soft::topology::{End, Topology};
use crate::{PreparedQueuePair, Provider};
use core::sync::atomic::Ordering;
use std::sync::Arc;

pub(super) fn fabric(test: &str) -> Fabric {
    let name = format!("interleavings-{test}-{}", std::process::id());
    Fabric::join(&name, Topology::mesh(2).unwrap(), 0).unwrap().fabric()
}

/// A queue pair of a host and what is behind it.
pub(super) fn queue_pair(fabric: &Fabric, host: usize) -> (PreparedQueuePair, Arc<SoftQp>) {
    let provider = Provider::soft(&fabric.host(host).unwrap()).unwrap();
    let context = provider.devices().unwrap().remove(0).open().unwrap();
    let domain = context.protection_domain().unwrap();
    let completions = context.completion_queue(100).unwrap();
    let mut prepared = domain.queue_pair(&completions).build().unwrap();
    let port = context.port(1).unwrap();
    prepared.endpoint(&port, port.gid().unwrap()).unwrap();
    // SAFETY: the pointer is looked up, not followed.
    let behind = registry::borrow::<SoftQp>(unsafe { prepared.as_raw() }).unwrap();
    (prepared, behind)
}

pub(super) const HERE: End = End { host: 0, device: 0 };

/// A poller that has found something to do for a queue pair, and gets to it when the queue pair is destroyed and its place
/// is another one's.
#[test]
fn an_errand_for_a_queue_pair_that_is_no_more() {
    let fabric = fabric("errand");
    let (one, other) = (queue_pair(&fabric, 0), queue_pair(&fabric, 1));
    let numbers = (one.1.number, other.1.number);
    let mut connected = pair(one.0, other.0);
    let membership = fabric.0.wiring.membership().unwrap().clone();
    let areas = || membership.area_owners(HERE).iter().filter(|word| word.load(Ordering::Relaxed) != 0).count();
    drop(connected.remove(0));
    assert_eq!(areas(), 0);
    let (fresh, behind) = queue_pair(&fabric, 0);
    let block = membership.block(HERE, 0);
    assert_eq!(block.head.0.number.load(Ordering::Relaxed), behind.number);
    let link = Link::new(1000, 1000).0;
    block.head.0.link.store(link, Ordering::SeqCst);
    connection::renew(&one.1);
    connection::enter_error(&one.1);
    assert_eq!((block.head.0.link.load(Ordering::SeqCst), areas()), (link, 1));
    assert_ne!(numbers.0, behind.number);
    drop(fresh);
    assert_eq!(areas(), 0);
}

pub(super) fn pair(one: PreparedQueuePair, other: PreparedQueuePair) -> Vec<crate::QueuePair> {
    <[_; 2]>::from(crate::connect::pair(one, other).unwrap()).into_iter().collect()
}

/// A member that takes a dead one's block has not cleared it yet, and the dead one's area is taken by somebody else.
#[test]
fn the_block_of_the_dead_leads_nowhere() {
    let fabric = fabric("dead");
    let (one, other) = (queue_pair(&fabric, 0), queue_pair(&fabric, 1));
    let membership = fabric.0.wiring.membership().unwrap().clone();
    let presence = one.1.presence.as_ref().unwrap();
    let far = End { host: 1, device: 0 };
    let number = other.1.number;
    let _connected = pair(one.0, other.0);
    assert!(matches!(presence.find(number, &[]), Target::Open(_)));
    let area = membership.block(far, 0).head.0.area.load(Ordering::Relaxed) as usize - 1;
    let owner = membership.area_owners(far)[area].swap(0x7ff, Ordering::SeqCst);
    assert!(matches!(presence.find(number, &[]), Target::Absent));
    membership.area_owners(far)[area].store(owner, Ordering::SeqCst);
}

/// A poller that counts the messages of the old connection while the new one is being prepared.
#[test]
fn the_count_of_a_new_connection_begins_with_it() {
    let fabric = fabric("count");
    let (one, other) = (queue_pair(&fabric, 0), queue_pair(&fabric, 1));
    let number = other.1.number;
    let _connected = pair(one.0, other.0);
    let presence = one.1.presence.as_ref().unwrap();
    let (old, _) = presence.prepare(number, 0).unwrap();
    let (_, generation) = presence.prepare(number, 5).unwrap();
    old.taken(5);
    presence.announce(generation, number);
    let membership = fabric.0.wiring.membership().unwrap().clone();
    assert_eq!(membership.block(HERE, 0).taken.0.load(Ordering::Relaxed), 0);
}

/// A sender that is stopped in the middle of a message: its area is nobody else's until it has let go of it.
#[test]
fn an_area_that_is_held_is_not_used_again() {
    let fabric = fabric("held");
    let (one, other) = (queue_pair(&fabric, 0), queue_pair(&fabric, 1));
    let (numbers, far) = ((one.1.number, other.1.number), End { host: 1, device: 0 });
    let _connected = pair(one.0, other.0);
    let membership = fabric.0.wiring.membership().unwrap().clone();
    let Target::Open(outbound) = one.1.presence.as_ref().unwrap().find(numbers.1, &[]) else { panic!("no peer") };
    let area = || membership.block(far, 0).head.0.area.load(Ordering::Relaxed);
    let (held, theirs) = (area(), other.1.presence.as_ref().unwrap());
    theirs.close();
    theirs.prepare(numbers.0, 0).unwrap();
    assert_ne!(area(), held);
    // Nor by those that come later, though its owner has given it back.
    let owner = |area: u32| membership.area_owners(far)[area as usize - 1].load(Ordering::Relaxed);
    assert_eq!(owner(held), 0);
    let later: Vec<_> = (0..5).map(|_| queue_pair(&fabric, 1)).collect();
    assert_eq!(owner(held), 0);
    outbound.leave(0);
    let _last = queue_pair(&fabric, 1);
    assert_ne!(owner(held), 0);
    drop(later);
}
