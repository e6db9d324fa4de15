//! What the example `doctor` says of machines that are not here: its parsers on recorded shapes and on anything, its
//! findings on whole machines, and how it runs tools. Its modules are taken in as they are.
//!
//! What is recorded has the shape that the tools give it on Macs in public captures, with invented names, addresses and
//! domains.
#![cfg(all(feature = "soft", unix))]

#[path = "../../examples/doctor/assess/mod.rs"]
mod assess;
#[path = "../../examples/doctor/facts.rs"]
mod facts;
#[path = "../../examples/doctor/finding.rs"]
mod finding;
#[path = "../../examples/doctor/parse/mod.rs"]
mod parse;
#[path = "../../examples/doctor/report.rs"]
mod report;
#[path = "../../examples/doctor/tool.rs"]
mod tool;

mod doctor {
    mod anything;
    mod linux;
    mod macs;
    mod parsing;
    pub(crate) mod recorded;
    mod tools;
}
