//! What the tools write, read. Each of these is a function of a text, which may be anything: what cannot be read is `None`
//! or left out, never a panic.

pub(crate) mod chip;
pub(crate) mod hardware_ports;
pub(crate) mod interfaces;
pub(crate) mod library;
pub(crate) mod limits;
pub(crate) mod os;
pub(crate) mod power;
pub(crate) mod rdma_ctl;
pub(crate) mod thunderbolt;
