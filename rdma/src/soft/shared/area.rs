//! Memory that one queue pair receives into and its peer writes to.
//!
//! Descriptors of one cache line each, in the order of the messages; payloads of up to 48 bytes travel in them. Longer
//! ones lie in frames of 4 KiB, linked by a chain. The writer keeps its own copy of everything it relies on; the reader
//! reads each word once and bounds it. So whatever a hostile process writes here, the worst it does is to garble messages.
//!
//! A writer may be stopped in the middle of a copy, and go on after the connection is gone. So it says which area it
//! holds, and an area that is held by a living member is not used for another connection.

use super::descriptor::{Cut, Descriptor, Message, is_short};
use super::file::Window;
use super::layout::AreaLayout;
use super::membership::{Member, Membership};
use super::owners;
use crate::Result;
use crate::soft::prefetch;
use crate::soft::profile::FRAME;
use crate::soft::stream::Pace;
use crate::soft::topology::End;
use crate::verbs::sync::{AtomicU16, Ordering, fence};
use core::ptr::{self, NonNull};
use std::sync::Arc;

/// The part in front of the descriptors.
pub(crate) const AREA_HEADER: usize = 128;

/// The size of a descriptor.
pub(crate) const DESCRIPTOR: usize = size_of::<Descriptor>();

/// The size of a link of the chain of frames.
pub(crate) const LINK: usize = size_of::<AtomicU16>();

const _: () = assert!(size_of::<Cut>() <= AREA_HEADER && AREA_HEADER.is_multiple_of(align_of::<Descriptor>()));

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
    /// Who uses which frame when, for loom.
    #[cfg(all(loom, test))]
    uses: Arc<[crate::verbs::sync::UnsafeCell<()>]>,
}

impl Area {
    /// Maps an area of `frames` frames and `descriptors` (a power of two) descriptors. There is memory behind it.
    pub(crate) fn map(membership: &Membership, end: End, index: usize, frames: u32, descriptors: u32) -> Result<Self> {
        assert!(descriptors.is_power_of_two(), "descriptors are found by masking");
        let layout = AreaLayout::new(frames, descriptors);
        let window = membership.area(end, index, layout.length)?;
        Ok(Area::over(window, layout, frames, descriptors))
    }

    fn over(window: Arc<Window>, layout: AreaLayout, frames: u32, descriptors: u32) -> Self {
        Area {
            window,
            chain: layout.chain,
            frames_at: layout.frames,
            frames,
            mask: descriptors - 1,
            #[cfg(all(loom, test))]
            uses: (0..frames).map(|_| crate::verbs::sync::UnsafeCell::new(())).collect(),
        }
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
    fn descriptor(&self, index: u64) -> &Descriptor {
        let offset = AREA_HEADER + (index as u32 & self.mask) as usize * DESCRIPTOR;
        // SAFETY: the window was mapped as long as the layout of `mask + 1` descriptors, and starts at a page. Any bytes are a
        // descriptor, and all of it may change at any time: atomics, and a payload in a cell.
        unsafe { self.window.at_unchecked::<Descriptor>(offset).as_ref() }
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
        unsafe { self.window.at_unchecked::<AtomicU16>(self.chain + usize::from(number) * LINK).as_ref() }
    }

    /// Says that the frames of these numbers are read or written now. Nothing in the product.
    #[inline]
    fn uses(&self, _frames: impl Iterator<Item = u16>) {
        #[cfg(all(loom, test))]
        _frames.for_each(|frame| {
            self.uses[usize::from(frame)].get();
        });
    }

    /// For the writer, who will soon write this descriptor.
    #[inline]
    pub(crate) fn prepare(&self, index: u64) {
        prefetch::to_write(self.descriptor(index));
    }

    /// For the writer: see [`Descriptor::put_inline`].
    ///
    /// # Safety
    ///
    /// `message.length` bytes at `source` can be read.
    #[inline]
    pub(crate) unsafe fn put_inline(&self, generation: u32, index: u64, source: *const u8, message: Message) {
        // SAFETY: passed on to the caller.
        unsafe { self.descriptor(index).put_inline(generation, index, source, message) };
    }

    /// For the writer: see [`Descriptor::put`].
    #[inline]
    pub(crate) fn put(&self, generation: u32, index: u64, message: Message) {
        self.descriptor(index).put(generation, index, message);
    }

    /// For the writer: fills frames, which it knows to be below [`frames`](Self::frames), and links them.
    ///
    /// # Safety
    ///
    /// `length` bytes at `source` can be read.
    #[inline]
    pub(crate) unsafe fn fill(&self, frames: &[u16], source: *const u8, length: usize, pace: &mut Pace) {
        let mut done = 0;
        let mut rest = frames;
        while let Some(run) = rest.chunk_by(|one, next| one.wrapping_add(1) == *next).next() {
            let bytes = (run.len() * FRAME as usize).min(length - done);
            self.uses(run.iter().copied());
            // SAFETY: the frames of the run lie one behind the other in the window; the source is as long as promised.
            unsafe { pace.copy(source.add(done), self.frame(run[0]).as_ptr(), bytes) };
            done += bytes;
            rest = &rest[run.len()..];
        }
        for pair in frames.windows(2) {
            self.link(pair[0]).store(pair[1], Ordering::Relaxed);
        }
    }

    /// For the writer: see [`Cut::set`].
    pub(crate) fn cut_at(&self, generation: u32, count: u64) {
        self.cut().set(generation, count);
    }

    /// For the reader: see [`Cut::is_before`].
    #[inline]
    pub(crate) fn is_cut(&self, generation: u32, index: u64) -> bool {
        self.cut().is_before(generation, index)
    }

    /// For the reader: see [`Descriptor::look`].
    #[inline]
    pub(crate) fn look(&self, generation: u32, index: u64) -> Option<Message> {
        self.descriptor(index).look(generation, index)
    }

    /// For the reader: copies a part of a message's payload out, which begins after so many whole frames. Returns false if
    /// its frames are not frames.
    ///
    /// # Safety
    ///
    /// `length` bytes at `target` can be written.
    #[inline(always)]
    pub(crate) unsafe fn take(&self, index: u64, message: Message, part: Part, target: *mut u8) -> bool {
        if is_short(message.length, message.immediate.is_some()) {
            // SAFETY: passed on to the caller.
            unsafe { self.descriptor(index).take(target, part.length as usize) };
            return true;
        }
        // SAFETY: passed on to the caller.
        unsafe { self.take_frames(message, part, target) }
    }

    /// # Safety
    ///
    /// As for [`take`](Self::take).
    unsafe fn take_frames(&self, message: Message, part: Part, target: *mut u8) -> bool {
        let length = part.length as usize;
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
            self.uses(first..=last);
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
/// The caller has ended the connection before: see [`Head::take_hold`](super::blocks::Head::take_hold).
pub(crate) fn is_held(membership: &Membership, far: Option<End>, index: usize) -> bool {
    let Some(far) = far else { return false };
    fence(Ordering::SeqCst);
    membership.qp_owners(far).iter().enumerate().any(|(slot, owner)| {
        let owner = owner.load(Ordering::SeqCst);
        owner != 0 && membership.block(far, slot).head.0.holds(index) && membership.is_alive(Member::from_word(owner))
    })
}

#[cfg(all(loom, test))]
impl Area {
    /// An area in ordinary memory, which is not freed: loom's words are larger than the product's, and made one by one.
    pub(crate) fn on_heap(frames: u32, descriptors: u32) -> Self {
        let layout = AreaLayout::new(frames, descriptors);
        let area = Area::over(Arc::new(Window::on_heap(layout.length)), layout, frames, descriptors);
        // SAFETY: all of it lies in the window, which is as long as the layout, and nobody else has it yet.
        unsafe {
            area.window.at::<Cut>(0).write(Cut::default());
            for index in 0..descriptors as usize {
                area.window.at::<Descriptor>(AREA_HEADER + index * DESCRIPTOR).write(Descriptor::empty());
            }
            for number in 0..frames as usize {
                area.window.at::<AtomicU16>(layout.chain + number * LINK).write(AtomicU16::new(0));
            }
        }
        area
    }

    /// As the other end has it.
    pub(crate) fn seen_again(&self) -> Self {
        Area { window: self.window.clone(), uses: self.uses.clone(), ..*self }
    }
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
