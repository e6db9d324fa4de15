//! Where everything is in a fabric's file. It follows from topology and profile, so every member computes the same.

use super::area::{AREA_HEADER, DESCRIPTOR, LINK};
use super::blocks::{DeviceWords, GidEntry, QpBlock};
use crate::rules::DepthUnit;
use crate::soft::address::TABLE_LENGTH;
use crate::soft::profile::{FRAME, Profile};
use crate::soft::queue_pair::Limits;
use crate::soft::topology::{End, Topology};

/// Counted up when the meaning of anything in the file changes.
pub(crate) const VERSION: u32 = 1;

/// The most processes that can be in one fabric at once.
pub(crate) const MEMBERS: u32 = 1024;

/// Everything starts at multiples of this: the page of Apple silicon, a multiple of every other host's.
const PAGE: usize = 16 * 1024;

/// The description that a fabric's members compare, and show where they disagree.
pub(crate) const TEXT: usize = 1024;

/// The start of the file.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: u64,
    pub(crate) version: u32,
    pub(crate) text_length: u32,
    /// Of everything that members must agree on.
    pub(crate) digest: u64,
    pub(crate) text: [u8; TEXT],
}

/// How much to map to read the header.
pub(crate) const HEADER_PAGES: usize = PAGE;

pub(crate) const MAGIC: u64 = u64::from_ne_bytes(*b"rdmasoft");

/// Offsets in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) members: usize,
    pub(crate) hosts_off: usize,
    pub(crate) cables_out: usize,
    devices: usize,
    device_stride: usize,
    /// The number of the first device of each host.
    first_device: Vec<usize>,
    device_count: usize,
    pub(crate) queue_pairs: usize,
    pub(crate) domains: usize,
    pub(crate) completion_queues: usize,
    pub(crate) regions: usize,
    pub(crate) areas: usize,
    /// The length of the part that every member maps whole.
    pub(crate) control: usize,
    area_stride: usize,
    /// The frames of the longest message, where depth does not count frames.
    pub(crate) message_frames: u32,
    /// The most frames that an area can hold, and the most messages.
    pub(crate) frames: u32,
    pub(crate) descriptors: u32,
}

impl Layout {
    pub(crate) fn new(topology: &Topology, profile: &Profile) -> Self {
        let mut first_device = Vec::new();
        let mut device_count = 0;
        for devices in topology.hosts() {
            first_device.push(device_count);
            device_count += devices.len();
        }
        // A sender's whole depth that waits, behind the receiver's whole depth that nobody has polled.
        let depth = profile.grants.last().copied().unwrap_or(1).max(1);
        let frames = (2 * depth).min(u32::from(u16::MAX));
        let descriptors = frames.next_power_of_two();

        let members = size_of::<Header>().next_multiple_of(64);
        let hosts_off = members + MEMBERS as usize * 4;
        let cables_out = hosts_off + topology.hosts().len();
        let devices = (cables_out + topology.cables().len()).next_multiple_of(PAGE);
        let mut layout = Layout {
            members,
            hosts_off,
            cables_out,
            devices,
            device_stride: 0,
            first_device,
            device_count,
            queue_pairs: profile.queue_pairs as usize,
            domains: profile.max_pd as usize,
            completion_queues: profile.max_cq as usize,
            regions: profile.max_mr as usize,
            // A queue pair holds at most one area of its peer's device, so with twice as many there is always a free one.
            areas: 2 * profile.queue_pairs as usize,
            control: 0,
            area_stride: 0,
            message_frames: match profile.depth_unit {
                DepthUnit::Frames => 0,
                _ => Limits::frames_of(profile.max_msg_sz),
            },
            frames,
            descriptors,
        };
        layout.device_stride = (layout.blocks(0) + layout.queue_pairs * size_of::<QpBlock>()).next_multiple_of(128);
        layout.control = (devices + device_count * layout.device_stride).next_multiple_of(PAGE);
        layout.area_stride = AreaLayout::new(frames, descriptors).length;
        layout
    }

    /// All devices.
    pub(crate) fn ends(&self) -> impl Iterator<Item = End> + '_ {
        let hosts = self.first_device.iter().enumerate();
        hosts.flat_map(|(host, &first)| {
            let next = self.first_device.get(host + 1).copied().unwrap_or(self.device_count);
            (0..next - first).map(move |device| End { host, device })
        })
    }

    pub(crate) fn device(&self, end: End) -> usize {
        self.devices + (self.first_device[end.host] + end.device) * self.device_stride
    }

    pub(crate) fn gid(&self, device: usize, index: usize) -> usize {
        device + size_of::<DeviceWords>() + index * size_of::<GidEntry>()
    }

    fn owners(&self, device: usize) -> usize {
        device + size_of::<DeviceWords>() + TABLE_LENGTH * size_of::<GidEntry>()
    }

    pub(crate) fn domain_owners(&self, device: usize) -> usize {
        self.owners(device)
    }

    pub(crate) fn cq_owners(&self, device: usize) -> usize {
        self.domain_owners(device) + 4 * self.domains
    }

    pub(crate) fn region_owners(&self, device: usize) -> usize {
        self.cq_owners(device) + 4 * self.completion_queues
    }

    pub(crate) fn area_owners(&self, device: usize) -> usize {
        self.region_owners(device) + 4 * self.regions
    }

    pub(crate) fn qp_owners(&self, device: usize) -> usize {
        self.area_owners(device) + 4 * self.areas
    }

    fn blocks(&self, device: usize) -> usize {
        (self.qp_owners(device) + 4 * self.queue_pairs).next_multiple_of(128)
    }

    pub(crate) fn block(&self, device: usize, slot: usize) -> usize {
        self.blocks(device) + slot * size_of::<QpBlock>()
    }

    pub(crate) fn area_stride(&self) -> usize {
        self.area_stride
    }

    /// The offset of an area of a device in the file.
    pub(crate) fn area(&self, end: End, index: usize) -> u64 {
        let device = self.first_device[end.host] + end.device;
        self.control as u64 + (device * self.areas + index) as u64 * self.area_stride as u64
    }

    /// The length of the file. Only what is reserved has memory behind it.
    pub(crate) fn total(&self) -> u64 {
        self.control as u64 + (self.device_count * self.areas) as u64 * self.area_stride as u64
    }
}

/// Where everything is in an area of so many frames and descriptors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AreaLayout {
    pub(crate) chain: usize,
    pub(crate) frames: usize,
    pub(crate) length: usize,
}

impl AreaLayout {
    pub(crate) fn new(frames: u32, descriptors: u32) -> Self {
        let chain = AREA_HEADER + descriptors as usize * DESCRIPTOR;
        let first = (chain + frames as usize * LINK).next_multiple_of(PAGE);
        AreaLayout { chain, frames: first, length: (first + frames as usize * FRAME as usize).next_multiple_of(PAGE) }
    }
}

/// What members must agree on, in words and as a number.
pub(crate) fn description(topology: &Topology, profile: &Profile) -> (String, u64) {
    let devices: usize = topology.hosts().iter().map(Vec::len).sum();
    let text = format!(
        "{} hosts, {devices} devices, {} cables, profile {}, page {}",
        topology.hosts().len(),
        topology.cables().len(),
        profile.name(),
        profile.page
    );
    // FNV-1a: the same in every build, which the standard library's hasher does not promise.
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for byte in format!("{topology:?} {profile:?}").bytes() {
        digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (text, digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        let (topology, profile) = (Topology::mesh(3).unwrap(), Profile::thunderbolt());
        let layout = Layout::new(&topology, &profile);
        let end = |host, device| End { host, device };
        let device = layout.device(end(0, 0));
        assert!(layout.block(device, layout.queue_pairs) <= layout.device(end(0, 1)));
        assert!(layout.block(layout.device(end(2, 1)), layout.queue_pairs) <= layout.control);
        assert!(
            layout.block(device, 0).is_multiple_of(128)
                && layout.block(layout.device(end(1, 1)), 3).is_multiple_of(128)
        );
        let area = AreaLayout::new(layout.frames, layout.descriptors);
        assert_eq!(layout.area(end(0, 0), 1) - layout.area(end(0, 0), 0), area.length as u64);
        assert_eq!(layout.area(end(2, 1), layout.areas), layout.total());
        assert!(layout.descriptors >= layout.frames && area.frames > area.chain);
    }

    /// What is mapped begins and ends at pages of 16 KiB, as Apple silicon has them, whatever the host's are.
    #[test]
    fn what_is_mapped_is_whole_pages() {
        let mut odd = Topology::new();
        odd.host(3).unwrap();
        odd.host(1).unwrap();
        for topology in [Topology::mesh(2).unwrap(), Topology::ring(7).unwrap(), odd] {
            for profile in [Profile::thunderbolt(), Profile::classic()] {
                let layout = Layout::new(&topology, &profile);
                let is_whole = |bytes: u64| assert!(bytes.is_multiple_of(16 * 1024), "{bytes:#x}");
                is_whole(layout.control as u64);
                is_whole(layout.total());
                is_whole(layout.area_stride() as u64);
                for end in layout.ends() {
                    (0..layout.areas).for_each(|index| is_whole(layout.area(end, index)));
                }
                for frames in [1, 2, 255, 1023, layout.frames] {
                    let area = AreaLayout::new(frames, frames.next_power_of_two());
                    is_whole(area.frames as u64);
                    is_whole(area.length as u64);
                    assert!(area.length <= layout.area_stride());
                }
            }
        }
    }

    #[test]
    fn the_digest_sees_every_difference() {
        let base = (Topology::mesh(2).unwrap(), Profile::thunderbolt());
        let other = [
            (Topology::mesh(3).unwrap(), Profile::thunderbolt()),
            (Topology::ring(2).unwrap(), Profile::thunderbolt()),
            (Topology::mesh(2).unwrap(), Profile::thunderbolt().with_page(4096).unwrap()),
        ];
        let known = description(&base.0, &base.1);
        assert_eq!(description(&base.0, &base.1), known);
        for (topology, profile) in other {
            assert_ne!(description(&topology, &profile), known);
        }
    }
}
