//! Who holds which of a device's limited resources: a word each, zero or the member that has it.
//!
//! Taking one and giving it back are a compare-and-swap, so a member that dies at any instruction leaves each word either
//! free or its own; and what belongs to the dead is free.
//!
//! Explored with loom (`schedules.rs`): members that take, give back, and die while doing so.

use super::membership::{Member, Membership};
use crate::verbs::sync::{AtomicU32, Ordering};

/// Zero, or who has it.
pub(crate) type Word = AtomicU32;

/// Takes a free word. Returns its index.
pub(crate) fn take(words: &[Word], membership: &Membership) -> Option<usize> {
    // With that fault, what the dead had stays theirs.
    let is_alive = |holder| membership.leaks() || membership.is_alive(Member::from_word(holder));
    take_for(words, membership.member().word(), is_alive)
}

/// Gives one back.
pub(crate) fn give_back(word: &Word, membership: &Membership) {
    give_back_of(word, membership.member().word());
}

/// Takes a word for `own`: a free one, or that of a holder that is no more.
pub(crate) fn take_for(words: &[Word], own: u32, is_alive: impl Fn(u32) -> bool) -> Option<usize> {
    let claim = |from: u32, word: &Word| word.compare_exchange(from, own, Ordering::SeqCst, Ordering::Relaxed).is_ok();
    if let Some(index) = words.iter().position(|word| claim(0, word)) {
        return Some(index);
    }
    // All are taken: perhaps by members that are no more.
    words.iter().position(|word| {
        let holder = word.load(Ordering::Acquire);
        holder != own && !is_alive(holder) && claim(holder, word)
    })
}

/// Frees a word, if it is `own`'s.
pub(crate) fn give_back_of(word: &Word, own: u32) {
    let _ = word.compare_exchange(own, 0, Ordering::SeqCst, Ordering::Relaxed);
}
