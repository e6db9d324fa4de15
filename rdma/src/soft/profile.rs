//! The rules of a device, as data.
//!
//! Sources are named by these short tags: *TN3205* (Apple's technical note), *MLX* (ml-explore/mlx, the `jaccl`
//! transport and its issues), *ADU* (adurham/exo, device notes), *SQCU* (SQCU/mesh), *HEL*
//! (hellas-ai/thunderbolt-ibverbs), *MCD* (Aileuxe/MCDMA), *ANE* (Anemll/mlx-rdma), *LLAMA* (ggml-org/llama.cpp,
//! `transport-apple.cpp`). What no source tells is marked *inferred*.

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

/// What a device does, as a set of limits and switches. See the constructors for the profiles there are.
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
}

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
        }
    }

    /// The name of the profile.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same rules with another device page: a power of two, 4 KiB at least.
    ///
    /// Apple silicon has pages of 16 KiB, which is the default here even where the host's pages are smaller, so that a
    /// program that aligns to 4 KiB fails on Linux as it would on a Mac.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if `page` is not such a number.
    pub fn with_page(mut self, page: usize) -> crate::Result<Self> {
        if !page.is_power_of_two() || page < 4096 {
            return Err(crate::Error::argument(format!(
                "a device page is a power of two of at least 4096 bytes, not {page}"
            )));
        }
        self.page = page;
        Ok(self)
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
