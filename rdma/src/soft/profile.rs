//! The rules of a device, as data.
//!
//! Sources are named by these short tags: *TN3205* (Apple's technical note), *MLX* (ml-explore/mlx, the `jaccl`
//! transport and its issues), *ADU* (adurham/exo, device notes), *SQCU* (SQCU/mesh), *HEL*
//! (hellas-ai/thunderbolt-ibverbs), *MCD* (Aileuxe/MCDMA), *ANE* (Anemll/mlx-rdma), *LLAMA* (ggml-org/llama.cpp,
//! `transport-apple.cpp`). What no source tells is marked *inferred*.

use super::faults::Faults;
use crate::rules::DepthUnit;
use std::borrow::Cow;

/// How a provider says that a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReturnStyle {
    /// The errno, as the manual has it.
    Errno,
    /// The errno with a minus sign.
    NegativeErrno,
    /// −1, with `errno` set.
    MinusOne,
}

/// How messages and receives meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    /// One message, one receive, of the same number of frames; a send waits for its receive.
    Frames,
    /// As `Frames`; but the frames of a message that is longer than its receive go on into the next ones.
    Mispairing,
    /// Each frame fills a receive of its own; a send waits for them all.
    Packets,
    /// One message, one receive at least as long; a message without a receive is lost.
    Messages,
}

/// What becomes of requests beyond the granted depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverPosting {
    /// ENOMEM.
    Refused,
    /// They are accepted, and never heard of again; what comes after them is paired with the wrong messages.
    Lost,
}

/// Which access a registration may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Any,
    /// Local write, nothing else.
    LocalOnly,
    /// Local write, remote write and remote read, all three.
    AllThree,
}

/// What a device does, as a set of limits and switches. See the constructors for the profiles there are.
///
/// Any of them can be changed, by text: `"thunderbolt,regions=8,over_posting=lost".parse()`, see its
/// [`FromStr`](struct.Profile.html#impl-FromStr-for-Profile).
#[derive(Clone, Debug)]
pub struct Profile {
    pub(crate) name: Cow<'static, str>,
    pub(crate) transport: i32,
    pub(crate) link_layer: u8,
    /// How many queue pairs can be made. The attribute says `max_qp`.
    pub(crate) queue_pairs: u32,
    pub(crate) max_qp: u32,
    pub(crate) max_cq: u32,
    pub(crate) max_pd: u32,
    pub(crate) max_mr: u32,
    pub(crate) max_cqe: u32,
    pub(crate) max_mr_size: u64,
    pub(crate) depth_unit: DepthUnit,
    /// What a depth can be granted as; a request is rounded up to the next of these.
    pub(crate) grants: Cow<'static, [u32]>,
    /// The attribute `max_msg_sz`.
    pub(crate) max_msg_sz: u32,
    /// The longest message, in bytes.
    pub(crate) max_message: u64,
    /// Memory registrations start at a multiple of this.
    pub(crate) page: usize,
    /// No region may cross a multiple of 4 GiB.
    pub(crate) four_gib_rule: bool,
    /// Memory registered after a queue pair left RESET is unknown to it.
    pub(crate) register_first: bool,
    pub(crate) post_errors: ReturnStyle,
    /// Whether a failed post names the request that failed.
    pub(crate) sets_bad_wr: bool,
    pub(crate) matching: Matching,
    /// Whether a registration longer than `max_mr_size` is refused.
    pub(crate) enforces_mr_size: bool,
    pub(crate) over_posting: OverPosting,
    /// Whether the fields of a failed completion that mean nothing hold garbage.
    pub(crate) garbles_failures: bool,
    /// Whether a connection to one's own port is refused at once, instead of not being answered.
    pub(crate) refuses_loopback: bool,
    pub(crate) access: Access,
    /// Whether receives can be posted from RTS on only, instead of from INIT on.
    pub(crate) receives_need_rts: bool,
    /// Whether an empty message is lost, without a completion.
    pub(crate) loses_empty: bool,
    /// The bytes that can be sent inline, at most [`INLINE`](super::queue_pair::INLINE).
    pub(crate) max_inline: u32,
    pub(crate) takes_immediate: bool,
    /// Whether entry 0 of the GID table is the Thunderbolt domain's UUID.
    pub(crate) uuid_gid: bool,
    pub(crate) faults: Faults,
    pub(crate) lint: Lint,
}

/// Whether it is looked for what works here and not everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lint {
    Off,
    Recorded,
    /// And said on standard error.
    Printed,
}

/// No memory is aligned to more.
const LONGEST_PAGE: usize = 1 << 30;

/// A frame of the Thunderbolt link, in bytes (TN3205: depth is counted in frames of 4096 bytes).
pub(crate) const FRAME: u64 = 4096;

/// `IBV_TRANSPORT_THUNDERBOLT` and `IBV_LINK_LAYER_THUNDERBOLT` (TN3205: "Thunderbolt (100)").
pub(crate) const THUNDERBOLT: i32 = 100;

impl Profile {
    /// Apple's device as macOS 26.2 to 26.6 show it: the default.
    pub fn thunderbolt() -> Self {
        Profile {
            name: Cow::Borrowed("thunderbolt"),
            transport: THUNDERBOLT,
            link_layer: THUNDERBOLT as u8,
            // Ten can be made, the eleventh fails with EBUSY, per device and across contexts; the attribute reads 11
            // (TN3205; MLX pull request 4209, issue 3162).
            queue_pairs: 10,
            max_qp: 11,
            max_cq: 11,
            max_pd: 11,
            // The 101st registration fails with ENOMEM (MLX issue 3162; ADU; SQCU).
            max_mr: 100,
            // TN3205 makes queues of 4096 entries; MCD names that as the maximum.
            max_cqe: 4096,
            // Reported, but not enforced before macOS 27 (MCD; SQCU registered gigabytes).
            max_mr_size: 0xfa_0000,
            depth_unit: DepthUnit::Frames,
            // Two points are measured: 256 is granted as 1023, 4095 as 4095 (SQCU). Between them: inferred.
            grants: Cow::Borrowed(&[1023, 2047, 4095]),
            max_msg_sz: 0x100_0000,
            // 4095 frames (TN3205).
            max_message: 4095 * FRAME,
            // The page of Apple silicon (TN3205: page-aligned memory).
            page: 16 * 1024,
            // Data lands 4 GiB too low (SQCU); the software device refuses instead.
            four_gib_rule: true,
            // −EFAULT at post (ANE; ADU).
            register_first: true,
            // −12, −14 seen (HEL pull requests 35 and 39; ANE).
            post_errors: ReturnStyle::NegativeErrno,
            // SQCU: not written.
            sets_bad_wr: false,
            // TN3205: the same number of frames on both sides; the send waits.
            matching: Matching::Frames,
            enforces_mr_size: false,
            // Conflict: −12 at a definite place (HEL pull requests 35, 41), or accepted without end (SQCU).
            over_posting: OverPosting::Refused,
            garbles_failures: false,
            refuses_loopback: false,
            // Conflict: TN3205, HEL, SQCU and MCD register for local write only, LLAMA and ANE found all three necessary.
            access: Access::Any,
            // Conflict: HEL and MCD post in INIT, LLAMA found RTS necessary.
            receives_need_rts: false,
            loses_empty: false,
            // Nobody has reported inline or immediate data; everybody asks for 0 bytes of it.
            max_inline: 0,
            takes_immediate: false,
            uuid_gid: false,
            faults: Faults::default(),
            lint: Lint::Off,
        }
    }

    /// Apple's device as macOS 27.0 is reported to show it (MCD; captured output of `ibv_devinfo`): three queue pairs,
    /// regions of at most 16,384,000 bytes, and a message of more than one frame fills as many receives.
    ///
    /// Each receive but the message's last ends with `LOC_LEN_ERR` and 4096 bytes; a receive longer than a frame fails; an
    /// empty send is lost. So this crate offers messages of one frame there: see
    /// [`DeviceRules::max_message`](crate::DeviceRules::max_message).
    pub fn thunderbolt_27() -> Self {
        Profile {
            name: Cow::Borrowed("thunderbolt_27"),
            queue_pairs: 3,
            max_qp: 3,
            // ADU, of a device with three queue pairs.
            max_cq: 6,
            max_pd: 6,
            enforces_mr_size: true,
            matching: Matching::Packets,
            loses_empty: true,
            uuid_gid: true,
            ..Profile::thunderbolt()
        }
    }

    /// Unreliable connections as a network adapter has them (the InfiniBand specification; measured with Linux's `rdma_rxe`):
    /// depth is counted in requests, a receive may be longer than its message, a message without a receive is lost, and one
    /// that is longer than its receive ends the receiver's queue pair.
    pub fn classic() -> Self {
        Profile {
            name: Cow::Borrowed("classic"),
            // InfiniBand's verbs over Ethernet (RoCE).
            transport: 0,
            link_layer: 2,
            queue_pairs: 64,
            max_qp: 64,
            max_cq: 64,
            max_pd: 64,
            max_mr: 1024,
            max_cqe: 32_767,
            max_mr_size: u64::MAX,
            depth_unit: DepthUnit::Requests,
            // rdma_rxe rounds up to one less than a power of two.
            grants: Cow::Borrowed(&[7, 15, 31, 63, 127, 255, 511, 1023, 2047, 4095]),
            // rdma_rxe's.
            max_msg_sz: 0x80_0000,
            max_message: 0x80_0000,
            page: 4096,
            four_gib_rule: false,
            register_first: false,
            post_errors: ReturnStyle::Errno,
            sets_bad_wr: true,
            matching: Matching::Messages,
            max_inline: 32,
            takes_immediate: true,
            ..Profile::thunderbolt()
        }
    }

    /// The profile of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Profile::thunderbolt, Profile::thunderbolt_27, Profile::classic]
            .into_iter()
            .map(|make| make())
            .find(|profile| profile.name == name)
    }

    /// The name of the profile.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same rules with another device page: a power of two from 4 KiB to 1 GiB.
    ///
    /// Apple silicon has pages of 16 KiB, which is the default here even where the host's pages are smaller, so that a
    /// program that aligns to 4 KiB fails on Linux as it would on a Mac.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if `page` is not such a number.
    pub fn with_page(mut self, page: usize) -> crate::Result<Self> {
        if !page.is_power_of_two() || !(4096..=LONGEST_PAGE).contains(&page) {
            return Err(crate::Error::argument(format!(
                "a device page is a power of two from 4096 to {LONGEST_PAGE} bytes, not {page}"
            )));
        }
        self.page = page;
        Ok(self)
    }

    /// The same rules in a fabric in which things go wrong. All processes of a shared fabric must name the same plan.
    pub fn with_faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// The same rules, and a look at what the program does that works here and not under every profile: see
    /// [`Fabric::findings`](super::Fabric::findings).
    pub fn with_lint(mut self) -> Self {
        self.lint = Lint::Recorded;
        self
    }

    /// The depth that is granted to a request of `asked`, or `None` if it is refused.
    pub(crate) fn grant(&self, asked: u32) -> Option<u32> {
        self.grants.iter().copied().find(|&granted| asked <= granted)
    }
}

impl Default for Profile {
    fn default() -> Self {
        Profile::thunderbolt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_granted_in_steps() {
        let profile = Profile::thunderbolt();
        let grants = [1, 256, 1023, 1024, 2047, 2048, 4095].map(|asked| profile.grant(asked));
        assert_eq!(grants, [1023, 1023, 1023, 2047, 2047, 4095, 4095].map(Some));
        assert_eq!(profile.grant(4096), None);
    }

    #[test]
    fn a_page_is_a_power_of_two() {
        assert!(Profile::thunderbolt().with_page(4096).is_ok());
        for wrong in [0, 1, 2048, 5000] {
            assert!(Profile::thunderbolt().with_page(wrong).is_err(), "{wrong}");
        }
    }
}
