//! Memory to be registered: of three kinds, aligned as Apple's device wants it, and never across a multiple of 4 GiB.
#![allow(unsafe_code)]

use std::ptr::{NonNull, null_mut};

/// The page of Apple silicon.
pub(crate) const PAGE: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `posix_memalign`.
    Heap,
    /// A private mapping.
    Private,
    /// A shared one.
    Shared,
}

/// Zeroed memory. It is read and written by copying only, as a device may write into it.
pub(crate) struct Memory {
    kind: Kind,
    /// What is to be given back, and where the aligned part begins.
    whole: NonNull<u8>,
    base: NonNull<u8>,
    length: usize,
}

impl Memory {
    /// `None` if the system has none, or puts it across a multiple of 4 GiB each time.
    pub(crate) fn new(kind: Kind, length: usize) -> Option<Self> {
        // Those that lie wrong are kept until there is one that does not, so that none is given out again.
        let mut wrong = Vec::new();
        while wrong.len() < 4 {
            let memory = Memory::anywhere(kind, length)?;
            let (first, last) = (memory.base.addr().get() as u64, (memory.base.addr().get() + length - 1) as u64);
            if first >> 32 == last >> 32 {
                return Some(memory);
            }
            wrong.push(memory);
        }
        None
    }

    fn anywhere(kind: Kind, length: usize) -> Option<Self> {
        assert!(length > 0);
        let flags = match kind {
            Kind::Heap => {
                let mut base = null_mut();
                // SAFETY: a power of two, and a pointer to fill.
                if unsafe { libc::posix_memalign(&mut base, PAGE, length) } != 0 {
                    return None;
                }
                let base = NonNull::new(base.cast::<u8>())?;
                // SAFETY: just allocated, of that length.
                unsafe { base.write_bytes(0, length) };
                return Some(Memory { kind, whole: base, base, length });
            }
            Kind::Private => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            Kind::Shared => libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        };
        // SAFETY: a new mapping at an address of the system's choice.
        let whole = unsafe { libc::mmap(null_mut(), length + PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if whole == libc::MAP_FAILED {
            return None;
        }
        let whole = NonNull::new(whole.cast::<u8>())?;
        let skip = whole.addr().get().next_multiple_of(PAGE) - whole.addr().get();
        // SAFETY: less than a page into a mapping that is a page longer than asked for.
        let base = unsafe { whole.add(skip) };
        Some(Memory { kind, whole, base, length })
    }

    /// The address of a part, which must be one.
    pub(crate) fn part(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(offset <= self.length && length <= self.length - offset, "within the memory");
        // SAFETY: within the memory.
        unsafe { self.base.add(offset) }.as_ptr()
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        let part = self.part(offset, bytes.len());
        // SAFETY: within the memory, which nobody holds a reference to.
        unsafe { part.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    pub(crate) fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        // SAFETY: within the memory, which nobody holds a reference to.
        unsafe { self.part(offset, length).copy_to_nonoverlapping(bytes.as_mut_ptr(), length) };
        bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.kind {
            // SAFETY: from posix_memalign, and given back once.
            Kind::Heap => unsafe { libc::free(self.whole.as_ptr().cast()) },
            // SAFETY: our mapping, given back once. A failure would leave it mapped, which harms nobody.
            Kind::Private | Kind::Shared => unsafe {
                libc::munmap(self.whole.as_ptr().cast(), self.length + PAGE);
            },
        }
    }
}
