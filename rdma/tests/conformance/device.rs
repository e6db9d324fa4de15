//! What can be asked.

use super::ends::Link;
use rdma::{DepthUnit, ErrorKind, Transport};

#[test]
fn ports_are_active_and_have_addresses() {
    for device in &Link::open().devices {
        assert!(!device.name().is_empty());
        let context = device.open().unwrap();
        let port = context.port(1).unwrap();
        assert!(port.is_active());
        let gid = port.gid().unwrap();
        assert!(!gid.gid().is_zero());
        assert!(port.gids().unwrap().iter().any(|entry| entry.index() == gid.index() && entry.gid() == gid.gid()));
        assert_eq!(context.port(200).unwrap_err().kind(), ErrorKind::UnknownDevice);
    }
}

/// The attributes that rules are made from, and the rules that follow.
#[test]
fn rules_follow_from_the_device() {
    for device in &Link::open().devices {
        let context = device.open().unwrap();
        let (rules, attributes) = (context.rules(), context.attributes());
        assert!(attributes.max_queue_pairs() > 0 && attributes.max_completions() > 0);
        assert!(rules.max_depth() > 0 && rules.max_message() >= 4096);
        let thunderbolt = device.transport() == Transport::THUNDERBOLT;
        let frames = rules.depth_unit() == DepthUnit::Frames;
        assert_eq!(thunderbolt, frames);
        assert_eq!(rules.places(8192), if frames { 2 } else { 1 });
        assert_eq!(rules.allows_empty(), !thunderbolt);
    }
}

#[test]
fn memory_is_aligned_and_zero_and_comes_back() {
    for device in &Link::open().devices {
        let context = device.open().unwrap();
        let domain = context.protection_domain().unwrap();
        for length in [1, 4096, 100_000, 1 << 20] {
            let region = domain.allocate(length).unwrap();
            assert!(region.len() >= length);
            let buffer = region.buffer(length).unwrap();
            assert!(buffer.as_ptr().addr().is_multiple_of(context.rules().alignment()));
            assert!(buffer.iter().all(|&byte| byte == 0));
            drop(buffer);
            assert_eq!(region.available(), region.len());
            region.close().unwrap();
        }
        assert_eq!(domain.allocate(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}
