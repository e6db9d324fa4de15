//! Who holds which of a device's limited resources: a word each, zero or the member that has it.
//!
//! Taking one is a compare-and-swap, giving it back a store, so a member that dies at any instruction leaves each word
//! either free or its own; and what belongs to the dead is free.

use super::membership::{Member, Membership};
use core::sync::atomic::{AtomicU32, Ordering};

/// Takes a free word. Returns its index.
pub(crate) fn take(words: &[AtomicU32], membership: &Membership) -> Option<usize> {
    let own = membership.member().word();
    let claim =
        |from: u32, word: &AtomicU32| word.compare_exchange(from, own, Ordering::SeqCst, Ordering::Relaxed).is_ok();
    if let Some(index) = words.iter().position(|word| claim(0, word)) {
        return Some(index);
    }
    if membership.leaks() {
        return None;
    }
    // All are taken: perhaps by members that are no more.
    words.iter().position(|word| {
        let holder = word.load(Ordering::Acquire);
        holder != own && !membership.is_alive(Member::from_word(holder)) && claim(holder, word)
    })
}

/// Gives one back.
pub(crate) fn give_back(word: &AtomicU32, membership: &Membership) {
    let own = membership.member().word();
    let _ = word.compare_exchange(own, 0, Ordering::SeqCst, Ordering::Relaxed);
}
