//! Waiting until nobody copies.
//!
//! `ibv_destroy_qp` and `ibv_dereg_mr` promise that the memory is the caller's again when they return. A copy into or
//! out of a queue pair's memory is made by
//!
//! 1. the holder of its own `send` latch (out of it, and into the peer's),
//! 2. the holder of the peer's `send` latch (into it),
//! 3. the poller of its receive completion queue (into it: payloads that travelled with the completion, and between
//!    processes all payloads).
//!
//! So a fence first makes new copies impossible, and then takes each of these latches once. Connections cannot change
//! meanwhile, because the fabric's wiring lock is held.

use super::queue_pair::SoftQp;
use super::wiring::Still;

/// Waits for the copies that are under way in a queue pair's memory. New ones must have been made impossible.
pub(crate) fn wait_for_copies(_wiring: &Still, qp: &SoftQp) {
    let send = qp.send.0.lock();
    let peer = send.peer.clone();
    drop(send);
    if let Some(peer) = peer {
        drop(peer.send.0.lock());
    }
    drop(qp.receive_cq.poll.0.lock());
}
