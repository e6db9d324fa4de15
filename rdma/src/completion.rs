//! What became of a work request.

use crate::buffer::Buffer;
use crate::error::catalogue::states;
use crate::error::{Error, ErrorKind};
use crate::memory::Memory;
use crate::verbs::parcel::Parcel;
use core::fmt;

/// The direction of a work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It was posted with `post_send`.
    Send,
    /// It was posted with `post_recv`.
    Receive,
}

/// The status of a completion: an integer, because a device may report one that nobody has a name for.
#[doc(alias = "ibv_wc_status")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(u32);

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $constant:ident;)*) => {
        impl Status {
            $( $(#[$doc])* pub const $name: Status = Status(rdma_sys::ibv_wc_status::$constant.0); )*

            /// The name, or `"unknown"`.
            pub fn name(self) -> &'static str {
                match self { $( Status::$name => stringify!($name), )* _ => "unknown" }
            }
        }
    };
}

statuses! {
    /// The request was carried out. For a send over UC: it left the host.
    SUCCESS = IBV_WC_SUCCESS;
    /// The message and the receive do not fit together. On Thunderbolt: they have different numbers of 4 KiB frames.
    LOC_LEN_ERR = IBV_WC_LOC_LEN_ERR;
    /// The queue pair could not carry the request out.
    LOC_QP_OP_ERR = IBV_WC_LOC_QP_OP_ERR;
    /// The memory is not registered for this, or not any more.
    LOC_PROT_ERR = IBV_WC_LOC_PROT_ERR;
    /// The queue pair went to the error state before the request's turn.
    WR_FLUSH_ERR = IBV_WC_WR_FLUSH_ERR;
    /// An unexpected answer (RC).
    BAD_RESP_ERR = IBV_WC_BAD_RESP_ERR;
    /// The memory does not allow local writes.
    LOC_ACCESS_ERR = IBV_WC_LOC_ACCESS_ERR;
    /// The peer found the request invalid (RC).
    REM_INV_REQ_ERR = IBV_WC_REM_INV_REQ_ERR;
    /// The peer's memory does not allow the access (RC).
    REM_ACCESS_ERR = IBV_WC_REM_ACCESS_ERR;
    /// The peer could not carry the request out (RC).
    REM_OP_ERR = IBV_WC_REM_OP_ERR;
    /// The peer did not answer (RC).
    RETRY_EXC_ERR = IBV_WC_RETRY_EXC_ERR;
    /// The peer had no receive posted (RC).
    RNR_RETRY_EXC_ERR = IBV_WC_RNR_RETRY_EXC_ERR;
    /// Anything else.
    GENERAL_ERR = IBV_WC_GENERAL_ERR;
}

impl Status {
    /// The status with this number.
    pub const fn from_raw(number: u32) -> Self {
        Status(number)
    }

    /// The number.
    pub const fn raw(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.name(), self.0)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Status({self})")
    }
}

/// The end of one work request, with the memory that was posted.
///
/// Success and failure have different shapes: what a failed completion leaves undefined cannot be read.
/// [`into_result`](Completion::into_result) tells them apart.
#[doc(alias = "ibv_wc")]
#[derive(Debug)]
#[must_use = "it holds the memory that was posted, and may be a failure"]
#[repr(transparent)]
pub struct Completion(pub(crate) Report);

/// All that is known of the end of a request, flat (see `verbs::parcel` for why).
#[repr(C)]
pub(crate) struct Report {
    pub(crate) memory: Parcel,
    pub(crate) token: u64,
    pub(crate) start: usize,
    /// Of a success: how many bytes. And the queue pair's number.
    pub(crate) length_and_queue_pair: Two,
    /// The status. And of a success: the immediate data, if there is any; of a failure: the provider's code.
    pub(crate) status_and_extra: Two,
    /// The last word, and the only one that cannot hold any value: the compiler puts the tags of `Option` and `Result` here,
    /// and copies the words before it as they were written.
    pub(crate) sort: Sort,
}

/// Two numbers in one word, which is written and read as one: a word that was written by halves stalls who reads it whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Two(u64);

impl Two {
    #[inline]
    pub(crate) const fn new(low: u32, high: u32) -> Self {
        Two(low as u64 | (high as u64) << 32)
    }

    #[inline]
    const fn low(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    const fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// What a request was, and whether `extra` is immediate data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Sort {
    Send,
    SendImmediate,
    Receive,
    ReceiveImmediate,
}

impl Sort {
    #[inline]
    pub(crate) fn new(receive: bool, immediate: bool) -> Self {
        match (receive, immediate) {
            (false, false) => Sort::Send,
            (false, true) => Sort::SendImmediate,
            (true, false) => Sort::Receive,
            (true, true) => Sort::ReceiveImmediate,
        }
    }
}

// No words but those above, whatever they are in.
const _: () = assert!(size_of::<Result<Option<Completion>, Error>>() == 9 * 8);

impl fmt::Debug for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Request")
            .field("token", &self.token)
            .field("direction", &self.direction())
            .field("queue_pair", &format_args!("{:#x}", self.queue_pair()))
            .field("status", &self.status())
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

impl Report {
    #[inline]
    fn status(&self) -> Status {
        Status::from_raw(self.status_and_extra.low())
    }

    #[inline]
    fn queue_pair(&self) -> u32 {
        self.length_and_queue_pair.high()
    }

    #[inline]
    fn extra(&self) -> u32 {
        self.status_and_extra.high()
    }

    #[inline]
    fn direction(&self) -> Direction {
        match self.sort {
            Sort::Send | Sort::SendImmediate => Direction::Send,
            Sort::Receive | Sort::ReceiveImmediate => Direction::Receive,
        }
    }
}

macro_rules! common {
    ($type:ident) => {
        impl $type {
            /// The number that was given when the request was posted.
            #[inline]
            pub fn token(&self) -> u64 {
                self.0.token
            }

            /// The number of the queue pair ([`QueuePair::number`](crate::QueuePair::number)).
            #[inline]
            pub fn queue_pair(&self) -> u32 {
                self.0.queue_pair()
            }

            /// Whether it was a send or a receive.
            #[inline]
            pub fn direction(&self) -> Direction {
                self.0.direction()
            }
        }
    };
}

macro_rules! memory {
    ($type:ident) => {
        impl $type {
            /// The whole memory that was posted.
            #[inline]
            pub fn into_memory(self) -> Memory {
                self.0.memory.into_memory()
            }

            /// The whole buffer that was posted, if it was a [`Buffer`].
            #[inline]
            pub fn into_buffer(self) -> Option<Buffer> {
                self.0.memory.into_buffer()
            }
        }
    };
}

common!(Completion);
common!(Transfer);
common!(Failure);
memory!(Transfer);
memory!(Failure);

impl Completion {
    /// How it ended.
    #[inline]
    pub fn status(&self) -> Status {
        self.0.status()
    }

    /// The transfer, for a program that needs no more of a failure than its reason: for `?`.
    ///
    /// ```
    /// # use rdma::CompletionQueue;
    /// # fn example(mut completions: CompletionQueue, timeout: std::time::Duration) -> rdma::Result<()> {
    /// let received = completions.wait(timeout)?.ok()?;
    /// println!("{} bytes", received.len());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Failed`](ErrorKind::Failed), with the [status](Error::status). The memory is not in it: it has returned to its
    /// region, from where it can be taken again. [`into_result`](Self::into_result) keeps it.
    #[inline]
    pub fn ok(self) -> Result<Transfer, Error> {
        self.into_result().map_err(Error::from)
    }

    /// Tells success from failure, where the memory is wanted either way.
    ///
    /// # Errors
    ///
    /// The [`Failure`], with the memory. `?` makes an [`Error`] of it as [`ok`](Self::ok) does, or, in a function that
    /// returns `Box<dyn Error>` and the like, keeps it inside.
    #[inline]
    pub fn into_result(self) -> Result<Transfer, Failure> {
        if self.0.status() == Status::SUCCESS { Ok(Transfer(self.0)) } else { Err(Failure(self.0)) }
    }
}

/// A work request that succeeded.
///
/// For a send over UC that means: the peer had a receive posted and the bytes left this host. It is no acknowledgement.
#[derive(Debug)]
#[repr(transparent)]
pub struct Transfer(Report);

impl Transfer {
    /// How many bytes were received or sent. For a receive that may be fewer than were posted.
    #[allow(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(&self) -> usize {
        self.0.length_and_queue_pair.low() as usize
    }

    /// The bytes that were received or sent: those of the posted range, up to the message's length. Empty for a
    /// [`SharedBuffer`](crate::SharedBuffer), whose memory cannot be seen as a slice.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.0.memory.bytes().get(self.0.start..self.0.start + self.len()).unwrap_or(&[])
    }

    /// The immediate data, if the message carried any.
    pub fn immediate(&self) -> Option<u32> {
        matches!(self.0.sort, Sort::SendImmediate | Sort::ReceiveImmediate).then_some(self.0.extra())
    }
}

/// A work request that failed. What the buffer holds is not known; how much was transferred neither.
///
/// As an error of the standard library it reads like the [`Error`] that it becomes.
#[derive(Debug)]
#[repr(transparent)]
pub struct Failure(Report);

impl Failure {
    /// Why.
    pub fn status(&self) -> Status {
        self.0.status()
    }

    /// The provider's own code for it.
    pub fn vendor_error(&self) -> u32 {
        self.0.extra()
    }
}

impl Failure {
    fn to_error(&self) -> Error {
        let (token, queue_pair, status, extra) = (self.0.token, self.0.queue_pair(), self.0.status(), self.0.extra());
        let what = match self.0.direction() {
            Direction::Send => "send",
            Direction::Receive => "receive",
        };
        let vendor = if extra == 0 { String::new() } else { format!(", vendor error {extra:#x}") };
        let detail = format!("the {what} with token {token} completed with {status}{vendor}");
        match states::status(status) {
            Some(entry) => Error::known(entry, detail),
            None => Error::new(ErrorKind::Failed, detail),
        }
        .with_status(status)
        .on_queue_pair(queue_pair)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_error(), out)
    }
}

impl core::error::Error for Failure {}

impl From<Failure> for Error {
    #[cold]
    fn from(failure: Failure) -> Self {
        failure.to_error()
    }
}
