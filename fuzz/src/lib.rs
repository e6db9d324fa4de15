//! What the targets share.

use rdma::soft::{Fabric, Profile, Topology};

/// Two hosts, whose devices behave as one of these profiles says: the last byte chooses, so that the others mean the same
/// whichever it is.
pub fn pair(bytes: &[u8], profiles: &[&str]) -> Fabric {
    let choice = bytes.last().map_or(0, |&byte| usize::from(byte) % profiles.len());
    let profile: Profile = profiles[choice].parse().expect("a profile");
    Fabric::new(Topology::mesh(2).expect("a topology"), profile)
}

/// Reads a target's choices off the fuzzer's bytes. At the end of the bytes every choice is the first.
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Choices(bytes)
    }

    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        if count <= 256 { usize::from(self.byte()) % count } else { self.word() as usize % count }
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}
