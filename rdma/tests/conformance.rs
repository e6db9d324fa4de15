//! One suite for every provider: what a program may rely on, whatever it runs on.
//!
//! | `RDMA_TEST_PROVIDER` | |
//! |---|---|
//! | not set, `soft` | two hosts of a software fabric in this process |
//! | `shared` | two hosts of a shared software fabric |
//! | `library:PATH` | the software device as a C library, through `dlopen`: the way that a Mac's library is reached |
//! | `system` | the installed library; `RDMA_TEST_DEVICES=A,B` names the devices at the two ends of a link (or one, twice) |
//!
//! `RDMA_TEST_PROFILE` is the profile of `soft` and `shared` (`thunderbolt`). `RDMA_TEST_TYPE=rc` runs it on reliable connections. Numbers of messages are small: an emulated machine is slow.

mod conformance {
    mod connecting;
    mod device;
    mod ends;
    mod messages;
    mod queues;
}
#[allow(unused_imports)]
mod support;
