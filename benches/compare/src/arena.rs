//! Memory that both sides reach, threads or processes: by what they find each other, and the line that the floor is
//! measured with.
#![allow(unsafe_code)]

use crate::Result;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// Where the words are; pingpong.h has the first two as well.
const WORD: usize = 0;
const LINE: usize = 128;
const READY: usize = 256;
/// From here on the memory is the contestant's.
const REST: usize = 4096;

#[derive(Debug)]
pub(crate) struct Arena {
    map: MmapRaw,
}

impl Arena {
    /// Maps a file, made or made longer if need be, with so much memory for the contestant. New memory is zero.
    pub(crate) fn map(path: &Path, contestant: usize) -> Result<Self> {
        let length = REST + contestant;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() < length as u64 {
            file.set_len(length as u64)?;
        }
        Ok(Arena { map: MmapOptions::new().len(length).map_raw(&file)? })
    }

    fn atomic(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the mapping, which is longer, page-aligned, and used at these places by atomics only.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    /// The number of the batch that may begin.
    pub(crate) fn word(&self) -> &AtomicU64 {
        self.atomic(WORD)
    }

    /// What goes to and fro.
    pub(crate) fn line(&self) -> &AtomicU64 {
        self.atomic(LINE)
    }

    /// How many sides are ready.
    pub(crate) fn ready(&self) -> &AtomicU64 {
        self.atomic(READY)
    }

    /// The contestant's memory.
    pub(crate) fn rest(&self) -> (*mut u8, usize) {
        // SAFETY: the mapping is at least that long.
        (unsafe { self.map.as_mut_ptr().add(REST) }, self.map.len() - REST)
    }
}
