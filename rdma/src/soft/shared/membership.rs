//! Being in a fabric: the file, its control part in memory, and who else is there.
//!
//! A process is one member of a fabric, however many hosts it plays. Joining and leaving happen behind a gate (a lock of
//! the kernel), so that they see a file that is whole. The file of a dead run, one without members, is replaced.

use super::blocks::{DeviceWords, GidEntry, QpBlock};
use super::file::{self, Window};
use super::layout::{self, Header, Layout, MAGIC, MEMBERS, TEXT, VERSION};
use super::locks::{self, Gate};
use super::owners;
use crate::soft::address;
use crate::soft::fork::{Birth, PerProcess};
use crate::soft::profile::Profile;
use crate::soft::topology::{End, Topology};
use crate::verbs::sync::AtomicU32;
use crate::{Error, ErrorKind, Gid, Result};
use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError, Weak};

/// A member, as the words of [`owners`] name it: its number plus one, and which of those who had that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member(u32);

const NUMBER_BITS: u32 = 11;
const _: () = assert!(MEMBERS < 1 << NUMBER_BITS);

impl Member {
    fn new(number: u32, incarnation: u32) -> Self {
        Member(incarnation << NUMBER_BITS | (number + 1))
    }

    pub(crate) fn from_word(word: u32) -> Self {
        Member(word)
    }

    pub(crate) fn word(self) -> u32 {
        self.0
    }

    fn number(self) -> Option<u32> {
        (self.0 & ((1 << NUMBER_BITS) - 1)).checked_sub(1).filter(|&number| number < MEMBERS)
    }
}

/// A process's place in a fabric.
pub(crate) struct Membership {
    path: PathBuf,
    /// Closed only when the process leaves: see [`locks`].
    file: Option<File>,
    control: Window,
    layout: Layout,
    member: Member,
    birth: Birth,
    /// Whether what the dead had stays taken.
    leak: bool,
    /// The areas that this process has used.
    areas: Mutex<HashMap<u64, Used>>,
}

/// An area in this process: its place, mapped whole, and how much of it has memory. Both are kept, so that a connection
/// after the first costs no system call, and because memory that was reserved is never taken from the file again.
struct Used {
    window: Arc<Window>,
    reserved: usize,
}

type Known = HashMap<PathBuf, Weak<Membership>>;

/// The fabrics that this process is in. An entry is removed once the process has left.
static FABRICS: PerProcess<(Mutex<Known>, Condvar)> = PerProcess::new();

fn fabrics() -> &'static (Mutex<Known>, Condvar) {
    FABRICS.get_or_init(Default::default)
}

impl Membership {
    /// Joins the fabric of this name, or makes it.
    ///
    /// The addresses of a new one are made from `number`.
    pub(crate) fn join(name: &str, number: u16, topology: &Topology, profile: &Profile) -> Result<Arc<Self>> {
        let path = file::path(name)?;
        let (known, left) = fabrics();
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let (text, digest) = layout::description(topology, profile);
        while let Some(entry) = known.get(&path) {
            if let Some(membership) = entry.upgrade() {
                // Should this be the last handle by now, its drop needs the lock.
                drop(known);
                return membership.agree(name, &text, digest).map(|()| membership);
            }
            // Its last user is just leaving, which closes the file, and with it every lock on it.
            known = left.wait(known).unwrap_or_else(PoisonError::into_inner);
        }
        let build = |file: &File, path: &Path, layout: &Layout| {
            build(file, path, layout, &text, digest)?;
            let control = Window::map(file, path, 0, layout.control)?;
            for end in layout.ends() {
                for (index, gid) in address::initial(number, end, topology, profile).into_iter().enumerate() {
                    word::<GidEntry>(&control, layout.gid(layout.device(end), index)).set(gid);
                }
            }
            Ok(())
        };
        let layout = Layout::new(topology, profile);
        let mut membership = Membership::enter(name, path.clone(), layout, &text, digest, build)?;
        membership.leak = profile.faults.leak();
        let membership = Arc::new(membership);
        known.insert(path, Arc::downgrade(&membership));
        leave_at_exit();
        Ok(membership)
    }

    fn enter(
        name: &str,
        path: PathBuf,
        layout: Layout,
        text: &str,
        digest: u64,
        build: impl Fn(&File, &Path, &Layout) -> Result<()>,
    ) -> Result<Self> {
        loop {
            let file = file::open(&path)?;
            if locks::has_other_copy(file.as_fd(), MEMBERS) {
                // To close it would drop the other copy's locks.
                core::mem::forget(file);
                return Err(Error::argument(format!(
                    "this process is in the software fabric {name} already, with another copy of the library"
                ))
                .with_hint("use either the crate or the C library, or fabrics of different names"));
            }
            let Some(gate) = Gate::enter(file.as_fd()) else {
                return Err(Error::new(
                    ErrorKind::TimedOut,
                    format!("a process that joins or leaves the software fabric {name} does not get on with it"),
                )
                .with_hint("is one of its processes stopped? It may be continued or killed"));
            };
            if !file::is_at(&file, &path) {
                // Removed while we waited: its last member left.
                drop(gate);
                continue;
            }
            let empty = file.metadata().is_ok_and(|known| known.len() == 0);
            if !empty && !locks::has_members(file.as_fd(), MEMBERS) {
                // Left by processes that were killed. A file of their name is not theirs again.
                let _ = std::fs::remove_file(&path);
                drop(gate);
                continue;
            }
            let made = if empty { build(&file, &path, &layout) } else { Ok(()) };
            let entered = made.and_then(|()| Membership::open(name, &file, &path, &layout, text, digest));
            if entered.is_err() && empty {
                let _ = std::fs::remove_file(&path);
            }
            let (control, member) = entered?;
            drop(gate);
            return Ok(Membership {
                path,
                file: Some(file),
                control,
                layout,
                member,
                birth: Birth::now(),
                leak: false,
                areas: Mutex::default(),
            });
        }
    }

    /// Maps the control part of a file whose gate we hold, and becomes a member.
    fn open(
        name: &str,
        file: &File,
        path: &Path,
        layout: &Layout,
        text: &str,
        digest: u64,
    ) -> Result<(Window, Member)> {
        let long = file.metadata().map_or(0, |known| known.len());
        if long < size_of::<Header>() as u64 {
            return Err(other_kind(path));
        }
        let header = Window::map(file, path, 0, layout::HEADER_PAGES)?;
        compare(&header, name, path, text, digest)?;
        // The digest agrees, so the rest is as long as our layout says, unless somebody cut it.
        if long < layout.total() {
            return Err(other_kind(path));
        }
        let control = Window::map(file, path, 0, layout.control)?;
        let number = (0..MEMBERS).find(|&number| locks::become_member(file.as_fd(), number)).ok_or_else(|| {
            Error::new(ErrorKind::LimitReached, format!("{MEMBERS} processes are in the software fabric {name}"))
        })?;
        let incarnations: &AtomicU32 = word(&control, layout.members + 4 * number as usize);
        let incarnation = incarnations.load(Ordering::Relaxed).wrapping_add(1) & (u32::MAX >> NUMBER_BITS);
        incarnations.store(incarnation, Ordering::SeqCst);
        Ok((control, Member::new(number, incarnation)))
    }

    fn agree(&self, name: &str, text: &str, digest: u64) -> Result<()> {
        compare(&self.control, name, &self.path, text, digest)
    }

    /// Whether this process joined, or a parent of it.
    pub(crate) fn is_here(&self) -> bool {
        self.birth.is_here()
    }

    pub(crate) fn leaks(&self) -> bool {
        self.leak
    }

    pub(crate) fn member(&self) -> Member {
        self.member
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn file(&self) -> &File {
        self.file.as_ref().expect("the file is closed by drop only")
    }

    /// Whether a member's process exists. A system call, except for ourselves.
    pub(crate) fn is_alive(&self, member: Member) -> bool {
        if member == self.member {
            return true;
        }
        let Some(number) = member.number() else { return false };
        let incarnations: &AtomicU32 = word(&self.control, self.layout.members + 4 * number as usize);
        Member::new(number, incarnations.load(Ordering::Acquire)) == member
            && Some(number) != self.member.number()
            && locks::is_member(self.file().as_fd(), number)
    }

    /// An area of a device, of which the first `length` bytes can be touched.
    pub(crate) fn area(&self, end: End, index: usize, length: usize) -> Result<Arc<Window>> {
        let offset = self.layout.area(end, index);
        let mut areas = self.areas.lock().unwrap_or_else(PoisonError::into_inner);
        let used = match areas.entry(offset) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let window = Window::map(self.file(), &self.path, offset, self.layout.area_stride())?;
                place.insert(Used { window: Arc::new(window), reserved: 0 })
            }
        };
        if used.reserved < length {
            file::reserve(self.file(), &self.path, offset, length as u64)?;
            used.reserved = length;
        }
        Ok(used.window.clone())
    }

    pub(crate) fn host_off(&self, host: usize) -> &AtomicU8 {
        word(&self.control, self.layout.hosts_off + host)
    }

    pub(crate) fn cable_out(&self, cable: usize) -> &AtomicU8 {
        word(&self.control, self.layout.cables_out + cable)
    }

    pub(crate) fn device(&self, end: End) -> &DeviceWords {
        word(&self.control, self.layout.device(end))
    }

    pub(crate) fn gid(&self, end: End, index: usize) -> Gid {
        word::<GidEntry>(&self.control, self.layout.gid(self.layout.device(end), index)).get()
    }

    /// Sets an entry of a GID table. Writers take turns at the gate.
    pub(crate) fn set_gid(&self, end: End, index: usize, gid: Gid) -> Result<()> {
        let Some(gate) = Gate::enter(self.file().as_fd()) else {
            return Err(Error::new(ErrorKind::TimedOut, "another process keeps the fabric's file locked"));
        };
        word::<GidEntry>(&self.control, self.layout.gid(self.layout.device(end), index)).set(gid);
        drop(gate);
        Ok(())
    }

    pub(crate) fn block(&self, end: End, slot: usize) -> &QpBlock {
        assert!(slot < self.layout.queue_pairs, "there is no such block");
        word(&self.control, self.layout.block(self.layout.device(end), slot))
    }

    pub(crate) fn qp_owners(&self, end: End) -> &[AtomicU32] {
        self.words(self.layout.qp_owners(self.layout.device(end)), self.layout.queue_pairs)
    }

    pub(crate) fn area_owners(&self, end: End) -> &[AtomicU32] {
        self.words(self.layout.area_owners(self.layout.device(end)), self.layout.areas)
    }

    pub(crate) fn domain_owners(&self, end: End) -> &[AtomicU32] {
        self.words(self.layout.domain_owners(self.layout.device(end)), self.layout.domains)
    }

    pub(crate) fn cq_owners(&self, end: End) -> &[AtomicU32] {
        self.words(self.layout.cq_owners(self.layout.device(end)), self.layout.completion_queues)
    }

    pub(crate) fn region_owners(&self, end: End) -> &[AtomicU32] {
        self.words(self.layout.region_owners(self.layout.device(end)), self.layout.regions)
    }

    fn words(&self, offset: usize, count: usize) -> &[AtomicU32] {
        if count == 0 {
            return &[];
        }
        self.control.at::<AtomicU32>(offset + 4 * (count - 1));
        // SAFETY: first and last of them lie in the window (`at` checks), which lives as long as `self`; an atomic may be
        // shared with whoever.
        unsafe { core::slice::from_raw_parts(self.control.at::<AtomicU32>(offset).as_ptr(), count) }
    }

    /// Goes: releases what this process holds, and removes the file if nobody is left in it.
    fn leave(&self) {
        self.give_all_back();
        self.close();
    }

    fn give_all_back(&self) {
        for end in self.layout.ends() {
            for words in [
                self.qp_owners(end),
                self.area_owners(end),
                self.domain_owners(end),
                self.cq_owners(end),
                self.region_owners(end),
            ] {
                words.iter().for_each(|word| owners::give_back(word, self));
            }
        }
    }

    /// Removes the file if nobody is left in it.
    fn close(&self) {
        // Whoever is at the gate may be stopped, but then is a member, and the file stays.
        let file = self.file();
        if let Some(gate) = Gate::enter(file.as_fd()) {
            // Not only when the process ends: two that leave at once would each take the other for a member.
            if let Some(number) = self.member.number() {
                locks::stay_no_more(file.as_fd(), number);
            }
            if !locks::has_members(file.as_fd(), MEMBERS) && file::is_at(file, &self.path) {
                let _ = std::fs::remove_file(&self.path);
            }
            drop(gate);
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if !self.birth.is_here() {
            // A child's copy. To close the file would drop the child's own locks on it, should it have joined, too.
            core::mem::forget(self.file.take());
            return;
        }
        let (known, left) = fabrics();
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        self.leave();
        self.file = None;
        known.remove(&self.path);
        left.notify_all();
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Membership").field("path", &self.path).field("member", &self.member).finish_non_exhaustive()
    }
}

/// The value at an offset of a window. For types that are made of atomics.
fn word<T>(window: &Window, offset: usize) -> &T {
    // SAFETY: `at` checks that the value lies in the window and is aligned; the window lives as long as the borrow; each
    // `T` of this module's callers consists of atomics, for which every bit pattern is valid.
    unsafe { window.at::<T>(offset).as_ref() }
}

/// Writes the control part of a new file. Its gate is ours, and nobody else has looked inside.
fn build(file: &File, path: &Path, layout: &Layout, text: &str, digest: u64) -> Result<()> {
    file::set_length(file, path, layout.total())?;
    file::reserve(file, path, 0, layout.control as u64)?;
    let mut header = Header { magic: MAGIC, version: VERSION, text_length: 0, digest, text: [0; TEXT] };
    let bytes = &text.as_bytes()[..text.len().min(TEXT)];
    header.text[..bytes.len()].copy_from_slice(bytes);
    header.text_length = bytes.len() as u32;
    let window = Window::map(file, path, 0, layout::HEADER_PAGES)?;
    // SAFETY: the header lies in the window (`at` checks), and nobody else reads before the gate is open.
    unsafe { window.at::<Header>(0).write(header) };
    Ok(())
}

fn other_kind(path: &Path) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!("{} is in use, and is not a software fabric of this version of the library", path.display()),
    )
    .with_hint("build all its programs with one version, or choose another name for the fabric")
}

/// Checks that a fabric that exists is the one that is meant.
fn compare(window: &Window, name: &str, path: &Path, text: &str, digest: u64) -> Result<()> {
    // SAFETY: the header lies in the window (`at` checks) and is plain numbers, written before the gate was opened.
    let header = unsafe { window.at::<Header>(0).read() };
    if header.magic != MAGIC || header.version != VERSION {
        return Err(other_kind(path));
    }
    if header.digest == digest {
        return Ok(());
    }
    let length = (header.text_length as usize).min(TEXT);
    let theirs = String::from_utf8_lossy(&header.text[..length]).into_owned();
    let difference =
        if theirs == text { "cabled differently, or has other rules or faults".to_owned() } else { theirs };
    Err(Error::argument(format!("the software fabric {name} exists and is {difference}; this process asks for {text}"))
        .with_hint(
            "all its processes must name the same topology, profile, page and plan of faults: RDMA_SOFT_TOPOLOGY, \
             RDMA_SOFT_PROFILE, RDMA_SOFT_PAGE (if not set, 16384 for programs in Rust and 4096 for those in C) and \
             RDMA_SOFT_FAULTS",
        ))
}

/// At a regular exit nobody drops what statics hold.
fn leave_at_exit() {
    extern "C" fn leave() {
        let (known, _) = fabrics();
        // A thread that holds it is just leaving itself.
        let Ok(known) = known.try_lock() else { return };
        known.values().filter_map(Weak::upgrade).for_each(|membership| {
            // What it has, other threads use to the end. Then it is the dead's.
            membership.close();
            core::mem::forget(membership);
        });
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a function of this library, which is never unloaded while it has objects.
        unsafe { libc::atexit(leave) };
    });
}
