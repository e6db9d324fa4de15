//! The software Thunderbolt device as a verbs library in C: nothing but exports.
//!
//! Programs that speak verbs, and have never heard of this project, run on it: with `LD_PRELOAD` where they were linked
//! against libibverbs, or by looking up `librdma.dylib` with `dlopen`, as programs on Macs do. Which host of which fabric
//! they are is told by the environment. See `docs/c-api.md` of the repository.

#![allow(unsafe_code)]
#![allow(unreachable_pub, reason = "exports are reached by their names")]

mod calls;
mod extras;
mod unsupported;
