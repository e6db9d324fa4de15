//! A queue pair of the software device, and the memory that its two ends share.
//!
//! Who may touch what:
//!
//! * [`SendQueue`] is under the latch `send`. Its holder is the only one that matches this queue pair's sends with the
//!   peer's receives: it consumes the peer's [`Slot`]s and copies between the two memories. That may be the poster, the
//!   peer's poster (when a receive comes late), or a poller of either side.
//! * [`ReceiveQueue`] is under the latch `receive`: its holder publishes receives.
//! * A cell of `sends` is written under the `send` latch while its counter is in `completed..posted`, and read by the
//!   poller once `completed` has passed it (release, acquire), until `polled` passes it.
//! * A cell of `receives` is written under the `receive` latch, and read by the poller once its slot says done.
//! * A [`Slot`] is the owner's until it says *posted*, the matcher's until it says *done*, then the poller's until
//!   `polled` passes it.
//!
//! To be sure that nobody copies into or out of a queue pair's memory, take `send` of it, `send` of its peer, and the
//! latch of its receive completion queue, once each, after having made new work impossible. See `fence.rs`.

use super::completion_queue::SoftCq;
use super::device::SoftDevice;
use super::faults::Fate;
use super::fork::Birth;
use super::object::QpObject;
use super::profile::{FRAME, Lint, Matching, OverPosting, Profile};
use super::protection_domain::SoftPd;
use super::quota::Ticket;
use super::registry::{Kind, Object};
use super::ring::Ring;
use super::shared::blocks::Link;
use super::shared::link::Presence;
use super::shared::outbound::Outbound;
use super::stream::Pace;
use crate::rules::DepthUnit;
use crate::verbs::latch::Latch;
use crate::verbs::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering, UnsafeCell as SlotUnsafeCell};
use core::cell::UnsafeCell;
use core::time::Duration;
use rdma_sys as sys;
use std::sync::{Arc, Mutex};

/// Keeps what different threads write on different cache lines (two, because processors fetch pairs).
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

#[repr(C)]
pub(crate) struct SoftQp {
    pub(crate) abi: UnsafeCell<QpObject>,
    pub(crate) birth: Birth,
    pub(crate) number: u32,
    pub(crate) signal_all: bool,
    pub(crate) limits: Limits,
    pub(crate) device: Arc<SoftDevice>,
    pub(crate) domain: Arc<SoftPd>,
    pub(crate) send_cq: Arc<SoftCq>,
    pub(crate) receive_cq: Arc<SoftCq>,
    /// What `ibv_query_qp` answers. Locked after the fabric's wiring, before any latch.
    pub(crate) attributes: Mutex<Attributes>,
    pub(crate) sends: Ring<SendRecord>,
    /// Where the data of inline sends is kept, if the device takes any. A cell goes with the one of `sends`.
    pub(crate) inline: Option<Ring<InlineCell>>,
    pub(crate) receives: Ring<ReceiveRecord>,
    pub(crate) slots: Ring<Slot>,
    pub(crate) send: Apart<Latch<SendQueue>>,
    pub(crate) receive: Apart<Latch<ReceiveQueue>>,
    /// How many sends have been completed. Stored by the matcher.
    pub(crate) completed: Apart<AtomicU64>,
    /// What the poller has given back, in places of the send and of the receive queue.
    pub(crate) released: Apart<Released>,
    /// What posters and pollers have to look after besides the ordinary.
    pub(crate) attention: Apart<Attention>,
    /// Its share of the device's limit, where that is counted by the process.
    pub(crate) ticket: Option<Ticket>,
    /// What the other processes of a shared fabric see of it.
    pub(crate) presence: Option<Presence>,
}

// SAFETY: the ABI prefix holds raw pointers to objects that the Arcs beside it keep alive; its one field that changes
// (`state`) is written under the `attributes` lock by `modify_qp` alone. Everything else is Sync by its type.
unsafe impl Sync for SoftQp {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for SoftQp {}

// SAFETY: repr(C), and the first field is the QpObject, whose first field is the ibv_qp.
unsafe impl Object for SoftQp {
    type Abi = sys::ibv_qp;
    const KIND: Kind = Kind::QueuePair;
}

/// Flags in one byte, so that looking for all of them is one load of a line that nobody writes.
#[derive(Default)]
pub(crate) struct Attention(AtomicU8);

impl Attention {
    /// For this side's poller: a send waits for a receive. A hint.
    pub(crate) const WAITS: u8 = 1;
    /// For this side's poster and poller: one of the peer's sends waits for a receive of ours. A hint.
    pub(crate) const AWAITED: u8 = 2;
    /// A completion was lost: the queue pair is to go to the error state (overrun.rs).
    pub(crate) const FAILING: u8 = 4;
    /// The peer has left, and may come back: the queue pair is to enter a new connection (exchange.rs).
    pub(crate) const DESERTED: u8 = 8;
    /// The cable is out, or a host at one of its ends is off.
    pub(crate) const DARK: u8 = 16;
    /// Both are for the owner's next call to see to.
    pub(crate) const ERRAND: u8 = Self::FAILING | Self::DESERTED;

    #[inline]
    pub(crate) fn has(&self, flags: u8) -> bool {
        self.0.load(Ordering::Relaxed) & flags != 0
    }

    pub(crate) fn set(&self, flag: u8) {
        self.0.fetch_or(flag, Ordering::SeqCst);
    }

    /// Returns whether it was set.
    pub(crate) fn clear(&self, flag: u8) -> bool {
        self.0.fetch_and(!flag, Ordering::SeqCst) & flag != 0
    }
}

/// Counts that only grow.
#[derive(Default)]
pub(crate) struct Released {
    pub(crate) send_places: AtomicU64,
    pub(crate) sends: AtomicU64,
    pub(crate) receive_places: AtomicU64,
    pub(crate) receives: AtomicU64,
}

/// What the data path asks of the profile, beside the queues it asks for.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) max_message: u32,
    pub(crate) frames: bool,
    pub(crate) matching: Matching,
    /// Whether anything but the rules of `Matching::Frames` is to be looked after: see `rules.rs`.
    pub(crate) special: bool,
    pub(crate) loses_empty: bool,
    pub(crate) loses_excess: bool,
    pub(crate) takes_immediate: bool,
    pub(crate) max_inline: u32,
    pub(crate) first_receive: sys::ibv_qp_state,
}

impl Limits {
    pub(crate) fn of(profile: &Profile) -> Self {
        Limits {
            max_message: u32::try_from(profile.max_message).unwrap_or(u32::MAX),
            frames: profile.depth_unit == DepthUnit::Frames,
            matching: profile.matching,
            special: profile.matching != Matching::Frames
                || profile.takes_immediate
                || profile.loses_empty
                || !profile.faults.is_empty()
                || profile.lint != Lint::Off,
            loses_empty: profile.loses_empty,
            loses_excess: profile.over_posting == OverPosting::Lost,
            takes_immediate: profile.takes_immediate,
            max_inline: profile.max_inline,
            first_receive: match profile.receives_need_rts {
                true => sys::ibv_qp_state::IBV_QPS_RTS,
                false => sys::ibv_qp_state::IBV_QPS_INIT,
            },
        }
    }

    /// The frames that a message has.
    pub(crate) fn frames_of(length: u32) -> u32 {
        (length.max(1) - 1) / FRAME as u32 + 1
    }

    /// The places that a message takes, if it is not too long.
    #[inline]
    pub(crate) fn places(self, length: u32) -> Option<u32> {
        if length > self.max_message {
            return None;
        }
        Some(if self.frames { Limits::frames_of(length) } else { 1 })
    }
}

/// A queue pair's attributes, as they were last set.
pub(crate) struct Attributes {
    pub(crate) state: sys::ibv_qp_state,
    pub(crate) set: sys::ibv_qp_attr,
    pub(crate) init: sys::ibv_qp_init_attr,
    /// Registrations up to this one are known to the queue pair; the later ones came after it left RESET.
    pub(crate) known_regions: u64,
    /// The last registration before the queue pair left RESET.
    pub(crate) early_regions: u64,
    /// A transition to RTR failed half-way.
    pub(crate) half_made: bool,
}

// SAFETY: the raw pointers in the init attributes are answers for ibv_query_qp, never followed.
unsafe impl Send for Attributes {}

/// The poster's side of the send queue.
pub(crate) struct SendQueue {
    pub(crate) state: sys::ibv_qp_state,
    pub(crate) peer: Option<Arc<SoftQp>>,
    pub(crate) known_regions: u64,
    /// The last registration before the queue pair left RESET.
    pub(crate) early_regions: u64,
    /// Granted depth, in the profile's unit.
    pub(crate) depth: u32,
    pub(crate) posted: u64,
    pub(crate) posted_places: u64,
    /// What was given back, as far as the poster has looked.
    pub(crate) returned: u64,
    pub(crate) returned_places: u64,
    /// How many have been matched, lost or flushed: `completed` without the atomic.
    pub(crate) matched: u64,
    /// The peer's next receive: a counter of its slots. Valid while there is a peer.
    pub(crate) next_slot: u64,
    /// How long messages are copied.
    pub(crate) pace: Pace,
    /// How much of the send that is next was delivered to receives, in bytes, where one message may take several.
    pub(crate) delivered: u32,
    /// What the plan of faults has for that send, once it was asked.
    pub(crate) fate: Option<Fate>,
    /// By the fabric's clock, where there is a plan: when it was last used.
    pub(crate) used: Duration,
    /// It has been idle for too long.
    pub(crate) dead: bool,
    /// In a shared fabric: how many have been written to the peer's area, lost or flushed.
    pub(crate) written: u64,
    pub(crate) outbound: Option<Box<Outbound>>,
    /// The peer's number.
    pub(crate) peer_number: u32,
    /// The connections that we have left and whose other ends have not noticed it.
    pub(crate) left: Vec<Link>,
}

/// The poster's side of the receive queue.
pub(crate) struct ReceiveQueue {
    pub(crate) state: sys::ibv_qp_state,
    pub(crate) peer: Option<Arc<SoftQp>>,
    pub(crate) known_regions: u64,
    pub(crate) early_regions: u64,
    pub(crate) depth: u32,
    pub(crate) posted: u64,
    pub(crate) posted_places: u64,
    /// What was given back, as far as the poster has looked.
    pub(crate) returned: u64,
    pub(crate) returned_places: u64,
    /// The first receive that no send has taken. Kept by the peer (`next_slot`) while there is one.
    pub(crate) consumed: u64,
    /// In a shared fabric: the connection's generation, and the receive that its first message is paired with.
    pub(crate) connection: Option<(u32, u64)>,
}

/// A posted send.
#[derive(Clone, Copy, Default)]
pub(crate) struct SendRecord {
    pub(crate) wr_id: u64,
    pub(crate) address: u64,
    pub(crate) length: u32,
    pub(crate) key: u32,
    pub(crate) places: u32,
    pub(crate) status: u32,
    pub(crate) signaled: bool,
    /// There is no completion of it: the completion queue had no room.
    pub(crate) lost: bool,
    /// The payload is in an [`InlineCell`], no region's.
    pub(crate) owned: bool,
    /// In a shared fabric: the plan of faults has it delivered twice.
    pub(crate) doubled: bool,
    pub(crate) immediate: Option<u32>,
    /// In a shared fabric: its number among the messages of the connection, if it is one.
    pub(crate) message: Option<u64>,
}

impl SendRecord {
    /// Whether the poller is to see its completion, once it has ended.
    #[inline]
    pub(crate) fn has_completion(&self) -> bool {
        !self.lost && (self.signaled || self.status != sys::ibv_wc_status::IBV_WC_SUCCESS.0)
    }
}

/// A posted receive, for its owner's eyes.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReceiveRecord {
    pub(crate) wr_id: u64,
    pub(crate) address: u64,
    pub(crate) key: u32,
    pub(crate) places: u32,
}

/// How many bytes of payload travel with a completion: what is left of its cache line.
pub(crate) const INLINE: usize = 48;

/// Data that was sent inline.
pub(crate) type InlineCell = [u8; INLINE];

/// The one cache line that crosses between the two cores for a small message: first the posted receive, then its
/// completion.
#[repr(C, align(64))]
pub(crate) struct Slot {
    pub(crate) mark: AtomicU32,
    pub(crate) body: SlotUnsafeCell<Body>,
}

#[cfg(not(all(loom, test)))]
const _: () = assert!(size_of::<Slot>() == 64);

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Body {
    pub(crate) posted: Posted,
    pub(crate) done: Done,
}

/// A receive that waits for a message. Packed, because it follows the mark, and the address is one word.
#[repr(C, packed(4))]
#[derive(Clone, Copy)]
pub(crate) struct Posted {
    pub(crate) length: u32,
    pub(crate) address: u64,
    pub(crate) key: u32,
    pub(crate) places: u32,
    /// The range or the region's access do not allow the write.
    pub(crate) forbidden: u32,
}

/// A receive that is over.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Done {
    pub(crate) status: u16,
    /// Of [`Done::INLINE`] and [`Done::IMMEDIATE`].
    pub(crate) flags: u16,
    pub(crate) length: u32,
    /// As it crossed: big-endian.
    pub(crate) immediate: u32,
    pub(crate) payload: [u8; INLINE],
}

impl Done {
    /// The payload is here and not in the receiver's memory yet.
    pub(crate) const INLINE: u16 = 1;
    /// There is immediate data.
    pub(crate) const IMMEDIATE: u16 = 2;
}

/// The `status` of a receive whose completion was lost: the completion queue had no room for it.
pub(crate) const LOST: u16 = u16::MAX;

impl Slot {
    pub(crate) fn empty() -> Self {
        let done = Done { status: 0, flags: 0, length: 0, immediate: 0, payload: [0; INLINE] };
        Slot { mark: AtomicU32::new(0), body: SlotUnsafeCell::new(Body { done }) }
    }

    /// The mark of a posted receive in this lap of the ring.
    #[inline]
    pub(crate) fn posted(lap: u32) -> u32 {
        lap.wrapping_mul(2).wrapping_add(1)
    }

    /// The mark of a finished one.
    #[inline]
    pub(crate) fn done(lap: u32) -> u32 {
        lap.wrapping_mul(2).wrapping_add(2)
    }
}
