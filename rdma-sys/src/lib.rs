//! The verbs ABI: types, numbers, layouts and the function table of `librdma.dylib` (macOS 26.2+, RDMA over
//! Thunderbolt) and `libibverbs.so.1` (Linux).
//!
//! Nothing is linked: [`Verbs::system`] looks the platform's library up at run time, and its absence is an `Err`.
//! The safe API is the crate `thunderbolt-rdma` (library name `rdma`); use this one to write your own.
//!
//! ```
//! use rdma_sys::{LoadError, Verbs};
//!
//! fn device_count(verbs: &Verbs) -> i32 {
//!     let mut count = 0;
//!     // SAFETY: `count` may be written; the list is freed once, and not used afterwards.
//!     unsafe {
//!         let list = (verbs.get_device_list)(&mut count);
//!         if list.is_null() {
//!             return 0;
//!         }
//!         (verbs.free_device_list)(list);
//!     }
//!     count
//! }
//!
//! match Verbs::system() {
//!     Ok(verbs) => println!("{} RDMA devices", device_count(&verbs)),
//!     // The ordinary answer on a machine without RDMA: each file that was tried, with the loader's reason.
//!     Err(LoadError::NotFound { tried }) => {
//!         assert!(!tried.is_empty());
//!         tried.iter().for_each(|attempt| println!("tried {attempt}"));
//!     }
//!     Err(error) => eprintln!("{error}"),
//! }
//! ```
//!
//! What to know before you use it:
//!
//! * Objects that the library allocates ([`ibv_context`], [`ibv_cq`], [`ibv_qp`], [`ibv_pd`], [`ibv_mr`],
//!   [`ibv_device`]) are known here up to the last field that macOS and Linux share. Hold them by pointer only.
//! * C enums are integers in newtypes: Apple's transport type and link layer are 100, which rdma-core does not know,
//!   and a provider may answer anything.
//! * Nobody exports `ibv_post_send`, `ibv_post_recv`, `ibv_poll_cq` or `ibv_req_notify_cq`. In C they are inline
//!   functions that go through `context->ops`; so they are here ([`ibv_post_send`], …).
//! * Return values come in three styles (errno, negative errno, −1 with `errno` set); see [`errno_of`].

#![cfg_attr(docsrs, feature(doc_cfg))]

mod abi;
#[rustfmt::skip]
#[allow(missing_docs, non_camel_case_types, non_upper_case_globals, clippy::undocumented_unsafe_blocks)]
mod bindings;
mod errno;
mod flags;
mod inline;
mod library;
mod verbs;

/// Runs the README's example with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use bindings::*;
pub use errno::errno_of;
pub use flags::{AccessFlags, QpAttrMask, SendFlags, WcFlags};
pub use inline::{ibv_poll_cq, ibv_post_recv, ibv_post_send, ibv_req_notify_cq};
pub use library::{Attempt, LIBRARY_VARIABLE, LoadError};
pub use verbs::Verbs;
