//! How devices differ, as one value.

use crate::error::{Error, ErrorKind, Result};
use crate::verbs::pages::host_page;
use core::fmt;
use core::ops::Range;
use rdma_sys as sys;

/// The unit in which the depth of a queue is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DepthUnit {
    /// Frames of 4096 bytes: a message takes as many places as it has frames, one at least (Apple TN3205).
    Frames,
    /// Work requests.
    Requests,
}

impl fmt::Display for DepthUnit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            DepthUnit::Frames => "frames of 4 KiB",
            DepthUnit::Requests => "requests",
        })
    }
}

/// What a program must know to use a device well, made from the attributes that the device reports and its transport.
///
/// It is the only place where devices are told apart: nothing else in this crate asks which library or device it talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRules {
    unit: DepthUnit,
    max_depth: u32,
    max_message: u64,
    max_queue_pairs: u32,
    max_regions: u32,
    alignment: usize,
    thunderbolt: bool,
}

/// A frame of a Thunderbolt link, in bytes (Apple TN3205).
const FRAME: u64 = 4096;

/// The page of Apple silicon.
const APPLE_PAGE: usize = 16 * 1024;

/// What an Apple device's addresses are cut to (SQCU/mesh: data of a region that crosses a multiple of 4 GiB lands 4 GiB
/// too low).
const ADDRESS_WINDOW: u64 = 1 << 32;

impl DeviceRules {
    pub(crate) fn new(transport: sys::ibv_transport_type, device: &sys::ibv_device_attr, max_message: u32) -> Self {
        let thunderbolt = transport == sys::ibv_transport_type::IBV_TRANSPORT_THUNDERBOLT;
        let max_depth = u32::try_from(device.max_qp_wr).unwrap_or(0);
        // A device page larger than the host's shows as the smallest size that the device supports.
        let device_page = match device.page_size_cap.trailing_zeros() {
            bit @ 12..=24 => 1 << bit,
            _ => 1,
        };
        let apple_page = if thunderbolt { APPLE_PAGE } else { 1 };
        DeviceRules {
            unit: if thunderbolt { DepthUnit::Frames } else { DepthUnit::Requests },
            max_depth,
            max_message: match thunderbolt {
                // The attribute says 16 MiB; the queue holds 4095 frames (TN3205: 16,773,120 bytes).
                true => u64::from(max_message).min(u64::from(max_depth.min(u32::from(u16::MAX))) * FRAME),
                false => u64::from(max_message),
            },
            max_queue_pairs: u32::try_from(device.max_qp).unwrap_or(0),
            max_regions: u32::try_from(device.max_mr).unwrap_or(0),
            alignment: host_page().max(device_page).max(apple_page),
            thunderbolt,
        }
    }

    /// The unit of a queue's depth.
    pub fn depth_unit(&self) -> DepthUnit {
        self.unit
    }

    /// The greatest depth of a queue, in [`depth_unit`](Self::depth_unit).
    pub fn max_depth(&self) -> u32 {
        self.max_depth
    }

    /// The longest message, in bytes. A queue whose depth is granted smaller takes less.
    pub fn max_message(&self) -> u64 {
        self.max_message
    }

    /// How many places of a queue a message of `length` bytes takes.
    ///
    /// On Thunderbolt the receiver must post *the same number of places* as the sender, or the receive fails.
    pub fn places(&self, length: u64) -> u64 {
        match self.unit {
            DepthUnit::Requests => 1,
            DepthUnit::Frames => length.div_ceil(FRAME).max(1),
        }
    }

    /// Whether a message may be empty. On Thunderbolt an empty send is lost and never completes (Aileuxe/MCDMA,
    /// macOS 27), so it is refused here.
    pub fn allows_empty(&self) -> bool {
        !self.thunderbolt
    }

    /// What registered memory must be aligned to, in bytes.
    pub fn alignment(&self) -> usize {
        self.alignment
    }

    /// A memory region must lie between two multiples of this many bytes, if there is such a limit.
    pub fn address_window(&self) -> Option<u64> {
        self.thunderbolt.then_some(ADDRESS_WINDOW)
    }

    /// Cuts a range of addresses at the borders of [`address_window`](Self::address_window): the fewest pieces that can each
    /// be a region, as ranges of offsets. For memory of the caller's that is larger than a region may be.
    ///
    /// # Errors
    ///
    /// [`LimitReached`](ErrorKind::LimitReached) if there are more pieces than the device has regions, before any is
    /// registered; [`InvalidArgument`](ErrorKind::InvalidArgument) if the range goes past the end of the address space.
    pub fn pieces(&self, address: usize, length: usize) -> Result<Vec<Range<usize>>> {
        let Some(end) = address.checked_add(length) else {
            return Err(Error::argument(format!(
                "{length} bytes at {address:#x} go past the end of the address space"
            )));
        };
        let window = self.address_window().and_then(|window| usize::try_from(window).ok()).unwrap_or(usize::MAX);
        let count = if length == 0 { 0 } else { (end - 1) / window - address / window + 1 };
        if count > self.max_regions as usize {
            return Err(Error::new(
                ErrorKind::LimitReached,
                format!("{length} bytes are {count} regions, and the device has {}", self.max_regions),
            )
            .with_hint("register a part of it, or copy through a smaller region"));
        }
        let borders = (0..count).map(|piece| {
            let first = if piece == 0 { address } else { (address / window + piece) * window };
            let last = (address / window + piece).checked_add(1).and_then(|next| next.checked_mul(window));
            first - address..last.unwrap_or(end).min(end) - address
        });
        Ok(borders.collect())
    }

    /// How many queue pairs the device says it has, all processes together. On macOS 26 one more than there are.
    pub fn max_queue_pairs(&self) -> u32 {
        self.max_queue_pairs
    }

    /// Whether memory must be registered before a queue pair that is to use it is connected (Anemll/mlx-rdma: a later
    /// one fails with −EFAULT when it is posted).
    pub fn registers_first(&self) -> bool {
        self.thunderbolt
    }

    /// Whether the device must not be asked to post and to poll at the same time (jonathan308/ThunderMLX: completions
    /// were lost). This crate sees to it.
    pub fn serialised(&self) -> bool {
        self.thunderbolt
    }

    /// Whether the two ends of a connection must be two hosts.
    pub fn refuses_loopback(&self) -> bool {
        self.thunderbolt
    }

    /// Whether a registration that is refused for local write alone may be tried with remote access.
    pub(crate) fn may_widen_access(&self) -> bool {
        self.thunderbolt
    }

    /// [`places`](Self::places) of a length that was checked.
    #[inline]
    pub(crate) fn depth_of(&self, length: u32) -> u16 {
        match self.unit {
            DepthUnit::Requests => 1,
            // At most max_message, which max_depth bounds: see `new`.
            DepthUnit::Frames => (length.div_ceil(FRAME as u32) as u16).max(1),
        }
    }

    #[cold]
    pub(crate) fn bad_length(&self, length: u64) -> Error {
        if length == 0 {
            return Error::argument("an empty message")
                .with_hint("over Thunderbolt it would be lost without a completion: send at least one byte");
        }
        Error::new(
            ErrorKind::InvalidArgument,
            format!("a message of {length} bytes, where {} is the most", self.max_message),
        )
        .with_hint("send it in pieces")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thunderbolt() -> DeviceRules {
        let device = sys::ibv_device_attr {
            max_qp_wr: 4095,
            max_qp: 11,
            max_mr: 100,
            page_size_cap: 0x4000,
            ..Default::default()
        };
        DeviceRules::new(sys::ibv_transport_type::IBV_TRANSPORT_THUNDERBOLT, &device, 0x100_0000)
    }

    #[test]
    fn thunderbolt_counts_frames() {
        let rules = thunderbolt();
        assert_eq!(rules.depth_unit(), DepthUnit::Frames);
        assert_eq!(rules.max_message(), 16_773_120);
        assert_eq!([1, 4096, 4097, 16_773_120].map(|length| rules.places(length)), [1, 1, 2, 4095]);
        assert_eq!(rules.depth_of(16_773_120), 4095);
        assert_eq!(rules.alignment(), APPLE_PAGE.max(host_page()));
    }

    #[test]
    fn other_transports_count_requests() {
        let device = sys::ibv_device_attr { max_qp_wr: 16384, page_size_cap: 0xffff_f000, ..Default::default() };
        let rules = DeviceRules::new(sys::ibv_transport_type::IBV_TRANSPORT_IB, &device, 1 << 30);
        assert_eq!(rules.depth_unit(), DepthUnit::Requests);
        assert_eq!(rules.max_message(), 1 << 30);
        assert_eq!(rules.places(1 << 20), 1);
        assert_eq!(rules.alignment(), host_page());
        assert!(rules.allows_empty() && rules.address_window().is_none() && !rules.serialised());
    }

    #[test]
    fn a_page_size_that_is_none_is_ignored() {
        for cap in [0, 1, 1 << 40, u64::MAX << 50] {
            let device = sys::ibv_device_attr { page_size_cap: cap, ..Default::default() };
            let rules = DeviceRules::new(sys::ibv_transport_type::IBV_TRANSPORT_IB, &device, 1);
            assert_eq!(rules.alignment(), host_page(), "{cap:#x}");
        }
    }

    /// Disjoint, in order, covering, none across a border, and as few as can be.
    #[test]
    fn pieces_end_at_borders() {
        let rules = thunderbolt();
        let window = ADDRESS_WINDOW as usize;
        let mut seed = 7_u64;
        let mut random = |limit: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 16) as usize % limit
        };
        for _ in 0..1000 {
            let (address, length) = (random(1 << 46) & !0x3fff, random(20 * window));
            let pieces = rules.pieces(address, length).unwrap();
            let mut next = 0;
            for piece in &pieces {
                assert_eq!(piece.start, next);
                assert!(piece.end > piece.start);
                assert_eq!((address + piece.start) / window, (address + piece.end - 1) / window);
                next = piece.end;
            }
            assert_eq!(next, length);
            let borders = if length == 0 { 0 } else { (address + length - 1) / window - address / window + 1 };
            assert_eq!(pieces.len(), borders);
        }
        assert_eq!(rules.pieces(window - 4096, 8192).unwrap(), [0..4096, 4096..8192]);
        assert_eq!(rules.pieces(0, 100 * window).unwrap().len(), 100);
        assert_eq!(rules.pieces(0, 100 * window + 1).unwrap_err().kind(), ErrorKind::LimitReached);
        assert_eq!(rules.pieces(usize::MAX, 2).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(rules.pieces(usize::MAX - 10, 10).is_ok());
    }
}
