//! Any text as an endpoint or as a GID: what is accepted can be written and read again, and is then the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rdma::{Endpoint, Gid};

fuzz_target!(|text: &str| {
    match text.parse::<Endpoint>() {
        Ok(endpoint) => {
            assert_eq!(endpoint.to_string().parse::<Endpoint>().unwrap(), endpoint);
            assert_eq!(Endpoint::from_bytes(&endpoint.to_bytes()).unwrap(), endpoint);
        }
        // The message is for people, however long or strange the text was.
        Err(error) => assert!(error.to_string().len() < 4096),
    }
    if let Ok(gid) = text.parse::<Gid>() {
        assert_eq!(gid.to_string().parse::<Gid>().unwrap(), gid);
        assert_eq!(Gid::from_bytes(gid.to_bytes()), gid);
    }
});
