use super::{PostError, QueuePair, bounds};
use crate::error::{Error, ErrorKind};
use crate::memory::{Memory, Receivable, Sendable};
use crate::verbs::batch::{Broken, Items};
use crate::verbs::post::SendKind;
use core::fmt;
use core::ops::RangeBounds;

/// Sends that are posted together: the device is told once.
///
/// It borrows the queue pair, lives on the stack, and holds up to `N` requests. Nothing is posted before
/// [`submit`](Self::submit); dropping it gives the memory back to its regions.
///
/// ```
/// # use rdma::{QueuePair, Buffer};
/// # fn example(mut queue_pair: QueuePair, buffers: Vec<Buffer>) -> rdma::Result<()> {
/// let mut batch = queue_pair.send_batch::<16>();
/// for (token, buffer) in buffers.into_iter().enumerate() {
///     batch.push(buffer, .., token as u64)?;
/// }
/// batch.submit()?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "nothing is posted before `submit`"]
pub struct SendBatch<'a, const N: usize> {
    queue_pair: &'a mut QueuePair,
    items: Items<N>,
}

/// Receives that are posted together: see [`SendBatch`].
#[derive(Debug)]
#[must_use = "nothing is posted before `submit`"]
pub struct ReceiveBatch<'a, const N: usize> {
    queue_pair: &'a mut QueuePair,
    items: Items<N>,
}

impl QueuePair {
    /// Begins a batch of up to `N` sends.
    pub fn send_batch<const N: usize>(&mut self) -> SendBatch<'_, N> {
        SendBatch { queue_pair: self, items: Items::new() }
    }

    /// Begins a batch of up to `N` receives.
    pub fn receive_batch<const N: usize>(&mut self) -> ReceiveBatch<'_, N> {
        ReceiveBatch { queue_pair: self, items: Items::new() }
    }
}

/// A batch that holds all it can.
fn full<const N: usize>() -> Error {
    Error::new(ErrorKind::QueueFull, format!("the batch holds {N} requests already"))
        .with_hint("submit it, then begin another")
}

macro_rules! add {
    ($self:ident, $memory:ident, $range:ident, $token:ident, $kind:expr, $send:literal) => {{
        if $self.items.is_full() {
            return Err(PostError::new(full::<N>(), $memory));
        }
        let extent = $memory.extent();
        let (start, length) = match bounds(&$range, extent.length) {
            Ok(bounds) => bounds,
            Err(error) => return Err(PostError::new(error, $memory)),
        };
        match $self.queue_pair.raw.admit(&extent, start, length, $send, $self.items.ahead()) {
            Ok(depth) => {
                $self.items.push($memory.into_parcel().0, &extent, (start, length), $token, depth, $kind);
                Ok(())
            }
            Err(error) => Err(PostError::new(error, $memory)),
        }
    }};
}

impl<const N: usize> SendBatch<'_, N> {
    /// Adds a send, as [`QueuePair::post_send`] would post it.
    ///
    /// # Errors
    ///
    /// Those of [`QueuePair::post_send`] that are found before the device is asked, with the memory; the batch stays as it
    /// was. [`QueueFull`](ErrorKind::QueueFull) also if it holds `N` requests.
    #[inline]
    pub fn push<M: Sendable>(
        &mut self,
        memory: M,
        range: impl RangeBounds<usize>,
        token: u64,
    ) -> Result<(), PostError<M>> {
        add!(self, memory, range, token, SendKind::default(), true)
    }

    /// Adds a send without a completion of its own, as [`QueuePair::post_send_unsignaled`] would post it.
    ///
    /// # Errors
    ///
    /// As for [`push`](Self::push).
    #[inline]
    pub fn push_unsignaled<M: Sendable>(
        &mut self,
        memory: M,
        range: impl RangeBounds<usize>,
        token: u64,
    ) -> Result<(), PostError<M>> {
        add!(self, memory, range, token, SendKind { unsignaled: true, immediate: None }, true)
    }

    /// How many sends it holds.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.items.length()
    }

    /// Posts them.
    ///
    /// # Errors
    ///
    /// See [`BatchError`].
    #[inline]
    pub fn submit(self) -> Result<(), BatchError> {
        if self.items.length() == 0 {
            return Ok(());
        }
        self.queue_pair.raw.submit_sends(self.items).map_err(BatchError::from)
    }
}

impl<const N: usize> ReceiveBatch<'_, N> {
    /// Adds a receive into the whole of `memory`, as [`QueuePair::post_recv`] would post it.
    ///
    /// # Errors
    ///
    /// Those of [`QueuePair::post_recv`] that are found before the device is asked, with the memory; the batch stays as it
    /// was. [`QueueFull`](ErrorKind::QueueFull) also if it holds `N` requests.
    #[inline]
    pub fn push<M: Receivable>(&mut self, memory: M, token: u64) -> Result<(), PostError<M>> {
        self.push_range(memory, .., token)
    }

    /// Adds a receive into a range of `memory`.
    ///
    /// # Errors
    ///
    /// As for [`push`](Self::push).
    #[inline]
    pub fn push_range<M: Receivable>(
        &mut self,
        memory: M,
        range: impl RangeBounds<usize>,
        token: u64,
    ) -> Result<(), PostError<M>> {
        add!(self, memory, range, token, SendKind::default(), false)
    }

    /// How many receives it holds.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.items.length()
    }

    /// Posts them.
    ///
    /// # Errors
    ///
    /// See [`BatchError`].
    #[inline]
    pub fn submit(self) -> Result<(), BatchError> {
        if self.items.length() == 0 {
            return Ok(());
        }
        self.queue_pair.raw.submit_receives(self.items).map_err(BatchError::from)
    }
}

/// A batch that the device refused in the middle.
///
/// If the device says where (`bad_wr`), the requests before are in flight and the memory of the others is in here. If it
/// does not (Apple's was seen not to), nobody knows which are in flight: all memory stays with the queue pair, which is
/// [poisoned](ErrorKind::Poisoned), and returns it when it is closed. Budgets are counted before the device is asked, so
/// this is rare.
pub struct BatchError {
    error: Error,
    posted: usize,
    returned: Vec<(u64, Memory)>,
}

impl BatchError {
    /// Why.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// How many requests of the batch, from its beginning, are in flight for certain.
    pub fn posted(&self) -> usize {
        self.posted
    }

    /// The requests that are certainly not in flight, by token.
    pub fn into_returned(self) -> Vec<(u64, Memory)> {
        self.returned
    }
}

impl From<Broken> for BatchError {
    fn from(broken: Broken) -> Self {
        BatchError { error: broken.error, posted: broken.posted, returned: broken.returned }
    }
}

impl From<BatchError> for Error {
    fn from(error: BatchError) -> Self {
        error.error
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({} posted)", self.error, self.posted)
    }
}

impl fmt::Debug for BatchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "BatchError({self})")
    }
}

impl core::error::Error for BatchError {}
