//! A provider that breaks the rules: it invents, repeats, withholds and mislabels completions, answers in every style,
//! fails what cannot fail. Whatever it does, no buffer is lost to view twice, nothing hangs, nothing panics.
//!
//! It is the software device with some of its calls replaced. The one thing that a provider is trusted for is kept: it
//! reports a completion only when the device is done with the memory.
#![allow(unsafe_code, unreachable_pub)]

mod support;

mod hostile {
    mod batches;
    mod completions;
    mod errnos;
    mod posts;
    pub mod provider;
    mod teardown;
}
