//! Counts with a limit, of a device.

use super::shared::membership::Membership;
use super::shared::owners;
use super::topology::End;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// What there are only so many of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Resource {
    Domain,
    CompletionQueue,
    Region,
}

/// How many of a resource are in use: by this process, or by all members of a shared fabric.
pub(crate) enum Quota {
    Own { used: AtomicU32, limit: u32 },
    Shared { membership: Arc<Membership>, end: End, resource: Resource },
}

/// Which one was taken.
#[derive(Debug)]
pub(crate) struct Ticket(usize);

impl Quota {
    pub(crate) fn own(limit: u32) -> Self {
        Quota::Own { used: AtomicU32::new(0), limit }
    }

    fn words(membership: &Membership, end: End, resource: Resource) -> &[owners::Word] {
        match resource {
            Resource::Domain => membership.domain_owners(end),
            Resource::CompletionQueue => membership.cq_owners(end),
            Resource::Region => membership.region_owners(end),
        }
    }

    /// Takes one, or says that there is none left.
    pub(crate) fn take(&self) -> Option<Ticket> {
        match self {
            Quota::Own { used, limit } => used
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| (used < *limit).then_some(used + 1))
                .ok()
                .map(|_| Ticket(0)),
            Quota::Shared { membership, end, resource } => {
                owners::take(Self::words(membership, *end, *resource), membership).map(Ticket)
            }
        }
    }

    pub(crate) fn give_back(&self, ticket: &Ticket) {
        match self {
            Quota::Own { used, .. } => {
                used.fetch_sub(1, Ordering::Relaxed);
            }
            Quota::Shared { membership, end, resource } => {
                owners::give_back(&Self::words(membership, *end, *resource)[ticket.0], membership);
            }
        }
    }
}
