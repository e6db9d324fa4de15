//! How devices differ, as one value.

use crate::error::{Error, ErrorKind, Result};
use crate::gid::{Gid, GidKind};
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
    max_region: u64,
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
    pub(crate) fn new(
        transport: sys::ibv_transport_type,
        device: &sys::ibv_device_attr,
        max_message: u32,
        first_gid: Gid,
    ) -> Self {
        let thunderbolt = transport == sys::ibv_transport_type::IBV_TRANSPORT_THUNDERBOLT;
        // What tells macOS 27 from 26 is entry 0 of the GID table: the domain's UUID instead of a link-local address
        // (Aileuxe/MCDMA; captured output of ibv_devinfo). The attributes are the same.
        let packets = thunderbolt && first_gid.kind() == GidKind::Other;
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
                // A longer one would fill several receives, of which all but one fail.
                true if packets => FRAME,
                // The attribute says 16 MiB; the queue holds 4095 frames (TN3205: 16,773,120 bytes).
                true => u64::from(max_message).min(u64::from(max_depth.min(u32::from(u16::MAX))) * FRAME),
                false => u64::from(max_message),
            },
            max_region: match device.max_mr_size {
                // macOS 26 reports a limit, too, but does not keep to it: regions of gigabytes work (SQCU/mesh).
                _ if thunderbolt && !packets => u64::MAX,
                0 => u64::MAX,
                longest => longest,
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
    ///
    /// On Thunderbolt it is 16,773,120 on macOS 26 (Apple TN3205) and 4096 on macOS 27, where each frame of a longer one fills
    /// a receive of its own, and all but the last end in an error (Aileuxe/MCDMA).
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

    /// The longest region, in bytes, if the device has such a limit. On macOS 27 it is 16,384,000 (Aileuxe/MCDMA).
    pub fn max_region(&self) -> Option<u64> {
        (self.max_region != u64::MAX).then_some(self.max_region)
    }

    /// Cuts a range of addresses into the fewest pieces that can each be a region, as ranges of offsets: at the borders of
    /// [`address_window`](Self::address_window), and none longer than [`max_region`](Self::max_region). For memory of the
    /// caller's that is larger than a region may be.
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
        // A piece ends at a multiple of the alignment, because the next one begins there.
        let longest = usize::try_from(self.max_region).unwrap_or(usize::MAX);
        let longest = (longest - longest % self.alignment).max(self.alignment);
        let mut pieces = Vec::new();
        let mut first = address;
        while first != end {
            if pieces.len() == self.max_regions as usize {
                return Err(Error::new(
                    ErrorKind::LimitReached,
                    format!("{length} bytes are more regions than the {} that the device has", self.max_regions),
                )
                .with_hint("register a part of it, or copy through a smaller region"));
            }
            let border = (first / window).checked_add(1).and_then(|next| next.checked_mul(window)).unwrap_or(end);
            let next = border.min(first.saturating_add(longest)).min(end);
            pieces.push(first - address..next - address);
            first = next;
        }
        Ok(pieces)
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
            DepthUnit::Frames => ((length.max(1) - 1) / FRAME as u32 + 1) as u16,
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
        DeviceRules::new(sys::ibv_transport_type::IBV_TRANSPORT_THUNDERBOLT, &device, 0x100_0000, Gid::ZERO)
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
        let rules = DeviceRules::new(sys::ibv_transport_type::IBV_TRANSPORT_IB, &device, 1 << 30, Gid::ZERO);
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
            let rules = DeviceRules::new(sys::ibv_transport_type::IBV_TRANSPORT_IB, &device, 1, Gid::ZERO);
            assert_eq!(rules.alignment(), host_page(), "{cap:#x}");
        }
    }

    /// Entry 0 of the GID table tells macOS 27, where messages of one frame are all that can be offered.
    #[test]
    fn macos_27_takes_single_frames() {
        let device =
            sys::ibv_device_attr { max_qp_wr: 4095, max_mr: 100, max_mr_size: 0xfa_0000, ..Default::default() };
        let of = |gid| DeviceRules::new(sys::ibv_transport_type::IBV_TRANSPORT_THUNDERBOLT, &device, 0x100_0000, gid);
        let uuid = of(Gid::from_bytes([0x5a; 16]));
        assert_eq!((uuid.max_message(), uuid.max_region()), (4096, Some(16_384_000)));
        let pieces = uuid.pieces(1 << 32, 40_000_000).unwrap();
        assert_eq!(pieces, [0..16_384_000, 16_384_000..32_768_000, 32_768_000..40_000_000]);
        let mut link_local = [0; 16];
        link_local[..2].copy_from_slice(&[0xfe, 0x80]);
        for gid in [Gid::from_bytes(link_local), Gid::from_ipv4([169, 254, 1, 1].into()), Gid::ZERO] {
            let rules = of(gid);
            assert_eq!((rules.max_message(), rules.max_region()), (16_773_120, None));
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
