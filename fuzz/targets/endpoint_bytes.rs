//! Any bytes as an endpoint: what is accepted is what would have been written, and survives as text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rdma::Endpoint;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(endpoint) = Endpoint::from_bytes(bytes) {
        assert_eq!(endpoint.to_bytes(), bytes);
        assert_eq!(endpoint.to_string().parse::<Endpoint>().unwrap(), endpoint);
    }
});
