//! Memory that one queue pair receives into and its peer writes to.
//!
//! Descriptors of one cache line each, in the order of the messages; payloads of up to 48 bytes travel in them. Longer
//! ones lie in frames of 4 KiB, linked by a chain. The writer keeps its own copy of everything it relies on; the reader
//! reads each word once and bounds it. So whatever a hostile process writes here, the worst it does is to garble messages.
//!
//! A writer may be stopped in the middle of a copy, and go on after the connection is gone. So it says which area it
//! holds, and an area that is held by a living member is not used for another connection.

use super::file::Window;
use super::layout::AreaLayout;
use super::membership::{Member, Membership};
use super::owners;
use crate::Result;
use crate::soft::profile::FRAME;
use crate::soft::queue_pair::INLINE;
use crate::soft::topology::End;
use crate::soft::{small, stream};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// The part in front of the descriptors.
pub(crate) const AREA_HEADER: usize = 128;

/// The size of a descriptor.
pub(crate) const DESCRIPTOR: usize = 64;

/// What the writer says when it leaves: the messages from this one on are not to be taken.
#[repr(C)]
struct Cut {
    generation: AtomicU32,
    count: AtomicU64,
}

#[repr(C, align(64))]
struct Descriptor {
    /// The connection's generation and the message's number: written last.
    mark: AtomicU64,
    /// The length, and the first frame.
    what: AtomicU64,
    payload: [u8; INLINE],
}

const _: () = assert!(size_of::<Descriptor>() == DESCRIPTOR && size_of::<Cut>() <= AREA_HEADER);

/// A message, as far as its descriptor says. Nothing in it is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) length: u32,
    pub(crate) first: u16,
    pub(crate) immediate: Option<u32>,
}

/// In a descriptor's `what`: there is immediate data, which takes the last bytes of its payload.
const IMMEDIATE: u64 = 1 << 48;

/// Where it is there.
const IMMEDIATE_AT: usize = INLINE - size_of::<u32>();

/// Whether a payload travels in the descriptor.
#[inline]
pub(crate) fn is_short(length: u32, immediate: bool) -> bool {
    length as usize <= if immediate { IMMEDIATE_AT } else { INLINE }
}

/// A part of a message: whole frames that come before it, and its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) skipped: u32,
    pub(crate) length: u32,
}

/// An area in memory.
pub(crate) struct Area {
    window: Arc<Window>,
    chain: usize,
    frames_at: usize,
    frames: u32,
    mask: u32,
}

fn mark(generation: u32, index: u64) -> u64 {
    u64::from(generation) << 32 | u64::from(index as u32)
}

impl Area {
    /// Maps an area of `frames` frames and `descriptors` (a power of two) descriptors. There is memory behind it.
    pub(crate) fn map(membership: &Membership, end: End, index: usize, frames: u32, descriptors: u32) -> Result<Self> {
        assert!(descriptors.is_power_of_two(), "descriptors are found by masking");
        let layout = AreaLayout::new(frames, descriptors);
        let window = membership.area(end, index, layout.length)?;
        Ok(Area { window, chain: layout.chain, frames_at: layout.frames, frames, mask: descriptors - 1 })
    }

    pub(crate) fn frames(&self) -> u32 {
        self.frames
    }

    pub(crate) fn descriptors(&self) -> u32 {
        self.mask + 1
    }

    fn cut(&self) -> &Cut {
        // SAFETY: `at` checks that it lies in the window; it is made of atomics.
        unsafe { self.window.at::<Cut>(0).as_ref() }
    }

    #[inline]
    fn descriptor(&self, index: u64) -> NonNull<Descriptor> {
        let offset = AREA_HEADER + (index as u32 & self.mask) as usize * DESCRIPTOR;
        // SAFETY: the window was mapped as long as the layout of `mask + 1` descriptors, and starts at a page.
        unsafe { self.window.at_unchecked(offset) }
    }

    #[inline]
    fn frame(&self, number: u16) -> NonNull<u8> {
        debug_assert!(u32::from(number) < self.frames);
        // SAFETY: callers bound the number by `frames`, and the window was mapped as long as the layout of so many.
        unsafe { self.window.at_unchecked(self.frames_at + usize::from(number) * FRAME as usize) }
    }

    #[inline]
    fn link(&self, number: u16) -> &AtomicU16 {
        debug_assert!(u32::from(number) < self.frames);
        // SAFETY: as for `frame`; it is an atomic.
        unsafe { self.window.at_unchecked::<AtomicU16>(self.chain + usize::from(number) * 2).as_ref() }
    }

    /// For the writer: puts a message that [is short](is_short).
    ///
    /// # Safety
    ///
    /// `length` bytes at `source` can be read.
    #[inline]
    pub(crate) unsafe fn put_inline(&self, generation: u32, index: u64, source: *const u8, message: Message) {
        let length = message.length as usize;
        debug_assert!(length <= INLINE);
        let payload = self.payload(index);
        // SAFETY: the payload has room for INLINE bytes. Other processes may read or write the same bytes; nothing relies on
        // their values.
        unsafe { small::copy(source, payload, length) };
        self.put(generation, index, message);
    }

    /// The payload of a descriptor: INLINE bytes in the window.
    #[inline]
    fn payload(&self, index: u64) -> *mut u8 {
        // SAFETY: the descriptor lies in the window.
        unsafe { (&raw mut (*self.descriptor(index).as_ptr()).payload).cast() }
    }

    /// For the writer: puts a message whose payload was written to the frames from `first` on.
    #[inline]
    pub(crate) fn put(&self, generation: u32, index: u64, message: Message) {
        let mut what = u64::from(message.length) | u64::from(message.first) << 32;
        if let Some(immediate) = message.immediate {
            what |= IMMEDIATE;
            // SAFETY: the last bytes of the payload, aligned as the descriptor is. Whatever a reader finds there will do.
            unsafe { self.payload(index).add(IMMEDIATE_AT).cast::<u32>().write_volatile(immediate) };
        }
        // SAFETY: the descriptor lies in the window; atomics.
        unsafe {
            let descriptor = self.descriptor(index).as_ref();
            descriptor.what.store(what, Ordering::Relaxed);
            descriptor.mark.store(mark(generation, index), Ordering::Release);
        }
    }

    /// For the writer: fills frames, which it knows to be below [`frames`](Self::frames), and links them.
    ///
    /// # Safety
    ///
    /// `length` bytes at `source` can be read.
    #[inline]
    pub(crate) unsafe fn fill(&self, frames: &[u16], source: *const u8, length: usize) {
        let mut done = 0;
        let mut rest = frames;
        while let Some(run) = rest.chunk_by(|one, next| one.wrapping_add(1) == *next).next() {
            let bytes = (run.len() * FRAME as usize).min(length - done);
            // SAFETY: the frames of the run lie one behind the other in the window; the source is as long as promised.
            unsafe { stream::copy(source.add(done), self.frame(run[0]).as_ptr(), bytes) };
            done += bytes;
            rest = &rest[run.len()..];
        }
        for pair in frames.windows(2) {
            self.link(pair[0]).store(pair[1], Ordering::Relaxed);
        }
    }

    /// For the writer, when it leaves: the reader is to take the messages before `count`, no others.
    pub(crate) fn cut_at(&self, generation: u32, count: u64) {
        let cut = self.cut();
        cut.count.store(count, Ordering::Relaxed);
        cut.generation.store(generation, Ordering::Release);
    }

    /// For the reader: whether the writer has left, and message `index` is not to be taken.
    #[inline]
    pub(crate) fn is_cut(&self, generation: u32, index: u64) -> bool {
        let cut = self.cut();
        cut.generation.load(Ordering::Acquire) == generation && index >= cut.count.load(Ordering::Relaxed)
    }

    /// For the reader: whether message `index` is there.
    #[inline]
    pub(crate) fn look(&self, generation: u32, index: u64) -> Option<Message> {
        // SAFETY: the descriptor lies in the window; atomics.
        let descriptor = unsafe { self.descriptor(index).as_ref() };
        if descriptor.mark.load(Ordering::Acquire) != mark(generation, index) {
            return None;
        }
        let what = descriptor.what.load(Ordering::Relaxed);
        // SAFETY: as in `put`.
        let immediate = || unsafe { self.payload(index).add(IMMEDIATE_AT).cast::<u32>().read_volatile() };
        Some(Message {
            length: what as u32,
            first: (what >> 32) as u16,
            immediate: (what & IMMEDIATE != 0).then(immediate),
        })
    }

    /// For the reader: copies a part of a message's payload out, which begins after so many whole frames. Returns false if
    /// its frames are not frames.
    ///
    /// # Safety
    ///
    /// `length` bytes at `target` can be written.
    #[inline]
    pub(crate) unsafe fn take(&self, index: u64, message: Message, part: Part, target: *mut u8) -> bool {
        let length = part.length as usize;
        if is_short(message.length, message.immediate.is_some()) {
            // SAFETY: the payload holds INLINE bytes, which is as much as a short message has; the target is as long as
            // promised. Another process may be writing the source: any bytes will do.
            unsafe { small::copy(self.payload(index), target, length.min(INLINE)) };
            return true;
        }
        let (mut done, mut first) = (0, message.first);
        for _ in 0..part.skipped {
            if u32::from(first) >= self.frames {
                return false;
            }
            first = self.link(first).load(Ordering::Relaxed);
        }
        while done < length {
            if u32::from(first) >= self.frames {
                return false;
            }
            // Frames that follow each other are copied as one.
            let (mut last, mut bytes, mut next) = (first, FRAME as usize, first);
            while done + bytes < length {
                next = self.link(last).load(Ordering::Relaxed);
                if next != last.wrapping_add(1) || u32::from(next) >= self.frames {
                    break;
                }
                last = next;
                bytes += FRAME as usize;
            }
            let bytes = bytes.min(length - done);
            // SAFETY: frames `first` to `last` are below `frames`, so they lie in the window; the target has room for
            // `length` bytes.
            unsafe { ptr::copy_nonoverlapping(self.frame(first).as_ptr(), target.add(done), bytes) };
            done += bytes;
            first = next;
        }
        true
    }
}

/// Takes an area of a device that no living writer holds. Returns its index.
pub(crate) fn claim(membership: &Membership, end: End, far: Option<End>) -> Option<usize> {
    let words = membership.area_owners(end);
    let own = membership.member().word();
    words.iter().enumerate().position(|(index, word)| {
        let holder = word.load(Ordering::Acquire);
        let free = holder == 0 || (holder != own && !membership.is_alive(Member::from_word(holder)));
        if !free || word.compare_exchange(holder, own, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return false;
        }
        let held = is_held(membership, far, index);
        if held {
            owners::give_back(word, membership);
        }
        !held
    })
}

/// Whether a living queue pair at the far end may still write to an area.
///
/// A writer stores what it holds, and then looks whether the connection still stands (both sequentially consistent, see
/// [`Outbound`](super::outbound::Outbound)); the area's owner ends the connection, and then looks here. So one of the two
/// sees the other.
pub(crate) fn is_held(membership: &Membership, far: Option<End>, index: usize) -> bool {
    let Some(far) = far else { return false };
    membership.qp_owners(far).iter().enumerate().any(|(slot, owner)| {
        let owner = owner.load(Ordering::SeqCst);
        owner != 0
            && membership.block(far, slot).head.0.hold.load(Ordering::SeqCst) == index as u32 + 1
            && membership.is_alive(Member::from_word(owner))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soft::fabric::Fabric;
    use crate::soft::topology::Topology;

    const FRAMES: u32 = 4;
    const BYTES: usize = FRAME as usize;

    fn area(test: &str) -> (Fabric, Area) {
        let name = format!("area-{test}-{}", std::process::id());
        let fabric = Fabric::join(&name, Topology::mesh(2).unwrap(), 0).unwrap().fabric();
        let membership = fabric.0.wiring.membership().unwrap();
        let area = Area::map(membership, End { host: 0, device: 0 }, 0, FRAMES, FRAMES).unwrap();
        (fabric, area)
    }

    fn take(area: &Area, length: usize, first: u16) -> bool {
        take_part(area, length, first, 0)
    }

    /// All of a message but so many frames.
    fn take_part(area: &Area, length: usize, first: u16, skipped: u32) -> bool {
        let message = Message { length: length as u32, first, immediate: None };
        let part = Part { skipped, length: (length - skipped as usize * BYTES) as u32 };
        let mut target = vec![0; length];
        // SAFETY: the target is as long as the message.
        unsafe { area.take(0, message, part, target.as_mut_ptr()) }
    }

    #[test]
    fn a_message_begins_in_a_frame() {
        let (_fabric, area) = area("begins");
        assert!(take(&area, BYTES, 3));
        for first in [4, 5, 8190, u16::MAX] {
            assert!(!take(&area, 49, first), "{first}");
        }
    }

    #[test]
    fn a_message_goes_on_in_a_frame() {
        let (_fabric, area) = area("goes-on");
        for (number, next) in [(0, 1), (1, 2), (2, 3), (3, 4)] {
            area.link(number).store(next, Ordering::Relaxed);
        }
        assert!(take(&area, 4 * BYTES, 0) && take_part(&area, 4 * BYTES, 0, 3));
        assert!(!take_part(&area, 5 * BYTES, 0, 4) && !take_part(&area, 9 * BYTES, 3, 8));
        assert!(!take(&area, 4 * BYTES + 1, 0) && !take(&area, BYTES + 1, 3));
        area.link(1).store(u16::MAX, Ordering::Relaxed);
        assert!(take(&area, 2 * BYTES, 0) && !take(&area, 2 * BYTES + 1, 0));
    }

    /// As long as it says, whatever it consists of.
    #[test]
    fn a_message_that_bites_its_tail_ends() {
        let (_fabric, area) = area("tail");
        area.link(2).store(2, Ordering::Relaxed);
        assert!(take(&area, 1 << 20, 2));
    }

    #[test]
    fn a_message_is_known_by_connection_and_number() {
        let (_fabric, area) = area("known");
        let message = Message { length: 100, first: 1, immediate: Some(9) };
        area.put(7, 1, message);
        assert_eq!(area.look(7, 1), Some(message));
        assert!(area.look(7, 5).is_none() && area.look(8, 1).is_none() && area.look(7, 0).is_none());
    }
}
