//! A completion queue that is given more completions than it holds.
//!
//! As on classic verbs (inferred for Thunderbolt: nobody has reported it): the completion is lost, and its queue pair goes
//! to the error state. Because completions have no ring of their own here, nothing would overflow by itself; and counting
//! every completion in one place would cost a contended cache line a message. So a queue is counted only from the moment
//! at which a poster has more requests in flight than its even share of the capacity: before that no overrun is possible.

use super::completion_queue::SoftCq;
use super::connection;
use super::queue_pair::{Attention, SoftQp};
use super::registry;
use crate::verbs::sync::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::Arc;

/// How full a completion queue is, where that matters.
#[derive(Default)]
pub(crate) struct Fill {
    /// The requests that each attached queue may have in flight without anybody counting.
    share: AtomicU32,
    watched: AtomicBool,
    /// Completions that were made and not polled. Kept while watched; one that was made while watching began may be missed, so it can be one below.
    unpolled: AtomicI64,
}

impl Fill {
    /// The number of attached queues has changed.
    pub(crate) fn divide(&self, capacity: u32, queues: usize) {
        self.share.store(capacity / (queues.max(1) as u32), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn share(&self) -> u64 {
        u64::from(self.share.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Begins to count, with what is `waiting`. For whoever holds the poll latch.
    #[cold]
    pub(crate) fn watch(&self, waiting: impl FnOnce() -> u64) {
        if !self.watched.swap(true, Ordering::SeqCst) {
            self.unpolled.store(waiting() as i64, Ordering::SeqCst);
        }
    }

    /// Completions were dropped without being polled: `waiting` are left.
    pub(crate) fn recount(&self, waiting: impl FnOnce() -> u64) {
        if self.watched.load(Ordering::Relaxed) {
            self.unpolled.store(waiting() as i64, Ordering::Relaxed);
        }
    }

    /// Completions that were polled.
    #[inline]
    pub(crate) fn polled(&self, count: u64) {
        if self.watched.load(Ordering::Relaxed) {
            self.unpolled.fetch_sub(count as i64, Ordering::Relaxed);
        }
    }
}

/// Begins to count. Called by a poster that has more in flight than its share.
#[cold]
pub(crate) fn watch(cq: &SoftCq) {
    if cq.fill.watched.load(Ordering::Relaxed) {
        return;
    }
    let sources = cq.poll.0.lock();
    cq.fill.watch(|| sources.waiting());
}

/// Makes room for one completion. Returns false if there is none: it is lost, and `qp` fails.
#[inline]
pub(crate) fn admit(cq: &SoftCq, qp: &SoftQp) -> bool {
    !cq.fill.watched.load(Ordering::Relaxed) || counted(cq, qp)
}

#[cold]
fn counted(cq: &SoftCq, qp: &SoftQp) -> bool {
    let room = cq.fill.unpolled.fetch_add(1, Ordering::Relaxed) < i64::from(cq.capacity());
    if !room {
        cq.fill.unpolled.fetch_sub(1, Ordering::Relaxed);
        qp.attention.0.set(Attention::FAILING);
    }
    room
}

/// Does what a matcher found to be necessary and could not do, holding latches: so the queue pair's owner does it, at its
/// next call. See [`Attention::ERRAND`].
#[cold]
pub(crate) fn run_errand(qp: &SoftQp) {
    let pointer = core::ptr::from_ref(qp).cast_mut().cast();
    if let Ok(qp) = registry::borrow::<SoftQp>(pointer) {
        run_errand_now(&qp);
    }
}

pub(crate) fn run_errand_now(qp: &Arc<SoftQp>) {
    if qp.attention.0.clear(Attention::FAILING) {
        connection::enter_error(qp);
    }
    if qp.attention.0.clear(Attention::DESERTED) {
        connection::renew(qp);
    }
}
