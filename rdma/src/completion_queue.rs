//! Where work requests complete.

use crate::completion::Completion;
use crate::context::still_in_use;
use crate::error::{Error, Result};
use crate::patience::{Countdown, Patience};
use crate::verbs::context::RawContext;
use crate::verbs::queue::{Detour, RawQueue, Table};
use core::fmt;
use core::marker::PhantomData;
use rdma_sys as sys;
use std::cell::Cell;
use std::sync::Arc;

/// How many completions are taken from the device at once.
const STAGE: usize = 16;

/// A completion queue: one owner polls it. It may be another thread than the one that posts.
///
/// Keep it as long as its queue pairs: what completes after it was dropped is not to be had any more, and the memory of it
/// returns when the queue pair is closed.
///
/// Completions that have been taken from the device but not yet by the user stay in here; nothing is lost when a loop over
/// them is left early.
#[doc(alias = "ibv_cq")]
pub struct CompletionQueue {
    raw: Arc<RawQueue>,
    stage: [sys::ibv_wc; STAGE],
    first: usize,
    end: usize,
    /// A fault found after completions that were good: reported once those have been handed out.
    fault: Option<Error>,
    max_queue_pairs: u32,
    _not_sync: PhantomData<Cell<()>>,
}

impl CompletionQueue {
    pub(crate) fn create(context: &Arc<RawContext>, capacity: u32, max_queue_pairs: u32) -> Result<Self> {
        Ok(CompletionQueue {
            raw: RawQueue::create(context, capacity)?,
            stage: [sys::ibv_wc::default(); STAGE],
            first: 0,
            end: 0,
            fault: None,
            max_queue_pairs,
            _not_sync: PhantomData,
        })
    }

    pub(crate) fn raw(&self) -> &Arc<RawQueue> {
        &self.raw
    }

    /// Requests that a queue pair may have in flight in each direction if nobody says otherwise: an even share among the
    /// queue pairs that the device has (sixteen at most), but 16 if there is room for that.
    pub(crate) fn share(&self) -> u32 {
        let queues = 2 * self.max_queue_pairs.clamp(1, 16);
        (self.raw.capacity() / queues).max(16).min(self.raw.unreserved() / 2)
    }

    /// How many completions it holds: what the device granted.
    pub fn capacity(&self) -> u32 {
        self.raw.capacity()
    }

    /// How many requests queue pairs may still reserve.
    pub fn unreserved(&self) -> u32 {
        self.raw.unreserved()
    }

    /// How many completions came for queue pairs that had been closed, and were dropped.
    pub fn stale_completions(&self) -> u64 {
        self.raw.stale()
    }

    /// Takes the next completion, if there is one. Never waits.
    ///
    /// # Errors
    ///
    /// What `ibv_poll_cq` reports: then nothing is known to have completed. [`Poisoned`](crate::ErrorKind::Poisoned) if
    /// the device reported something impossible.
    #[doc(alias = "ibv_poll_cq")]
    #[inline]
    pub fn poll_one(&mut self) -> Result<Option<Completion>> {
        if self.fault.is_some() {
            return Err(self.take_fault());
        }
        let mut table = self.raw.lock();
        Stage { raw: &self.raw, stage: &mut self.stage, first: &mut self.first, end: &mut self.end }
            .next(&mut table, STAGE)
    }

    /// Takes as many completions as there are and fit, and says how many. The first so many elements are `Some`
    /// afterwards; what was in them is dropped. Never waits, allocates nothing.
    ///
    /// # Errors
    ///
    /// As for [`poll_one`](Self::poll_one); good completions come first, then the error.
    #[doc(alias = "ibv_poll_cq")]
    #[inline]
    pub fn poll(&mut self, completions: &mut [Option<Completion>]) -> Result<usize> {
        if self.fault.is_some() {
            return Err(self.take_fault());
        }
        let mut taken = 0;
        let mut table = self.raw.lock();
        while taken < completions.len() {
            if completions[taken].is_some() {
                // Dropping what the caller left there may run the caller's code: not under the latch.
                drop(table);
                completions[taken] = None;
                table = self.raw.lock();
            }
            let mut stage =
                Stage { raw: &self.raw, stage: &mut self.stage, first: &mut self.first, end: &mut self.end };
            match stage.next(&mut table, completions.len() - taken) {
                Ok(None) => break,
                Ok(Some(completion)) => completions[taken] = Some(completion),
                Err(error) if taken == 0 => return Err(error),
                Err(error) => {
                    self.fault = Some(error);
                    break;
                }
            }
            taken += 1;
        }
        Ok(taken)
    }

    #[cold]
    fn take_fault(&mut self) -> Error {
        self.fault.take().unwrap_or(Error::NO_COMPLETION)
    }

    /// The completions that there are now, one after another, without waiting.
    pub fn completions(&mut self) -> Completions<'_> {
        Completions { queue: self }
    }

    /// Waits for the next completion: a short while busily, then giving the processor away between looks, to whoever wants
    /// it. It never sleeps, because the device could not wake it: a processor that nobody else wants is busy all the time.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](crate::ErrorKind::TimedOut), and [`Cancelled`](crate::ErrorKind::Cancelled) if the program
    /// [wants so](Patience::unless): then everything in flight stays in flight. A peer that died is never reported by the
    /// device, so this is how it shows. Otherwise as for [`poll_one`](Self::poll_one).
    pub fn wait<'a>(&mut self, patience: impl Into<Patience<'a>>) -> Result<Completion> {
        self.next(&mut Countdown::new(patience.into()))
    }

    #[inline]
    fn next(&mut self, countdown: &mut Countdown<'_>) -> Result<Completion> {
        loop {
            if let Some(completion) = self.poll_one()? {
                return Ok(completion);
            }
            countdown.pause(|| self.raw.no_completion.again())?;
        }
    }

    /// Waits until there is a completion, and takes as many as there are and fit, as [`poll`](Self::poll) does: one at
    /// least. For a program that has much in flight: a look at the device takes many at once.
    ///
    /// ```
    /// # use rdma::CompletionQueue;
    /// # fn example(mut completions: CompletionQueue, timeout: std::time::Duration) -> rdma::Result<()> {
    /// let mut array = [const { None }; 16];
    /// let count = completions.wait_many(&mut array, timeout)?;
    /// for completion in array[..count].iter_mut().filter_map(Option::take) {
    ///     println!("{} is done", completion.ok()?.token());
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`wait`](Self::wait), and [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for an array without room.
    #[doc(alias = "ibv_poll_cq")]
    pub fn wait_many<'a>(
        &mut self,
        completions: &mut [Option<Completion>],
        patience: impl Into<Patience<'a>>,
    ) -> Result<usize> {
        if completions.is_empty() {
            return Err(Error::argument("an array of no elements, which no completion fits in"));
        }
        let mut countdown = Countdown::new(patience.into());
        loop {
            match self.poll(completions)? {
                0 => countdown.pause(|| self.raw.no_completion.again())?,
                count => return Ok(count),
            }
        }
    }

    /// Waits until `count` completions have come, and hands each to `each`. Ends early with the first error of `each`.
    ///
    /// # Errors
    ///
    /// As for [`wait`](Self::wait), where the time is for all together; those of `each`. What has been taken from the
    /// device by then and not been handed out comes with the next poll.
    pub fn wait_for<'a>(
        &mut self,
        count: usize,
        patience: impl Into<Patience<'a>>,
        mut each: impl FnMut(Completion) -> Result<()>,
    ) -> Result<()> {
        let mut countdown = Countdown::new(patience.into());
        for _ in 0..count {
            each(self.next(&mut countdown)?)?;
            countdown.again();
        }
        Ok(())
    }

    /// Destroys the queue and says whether that worked. Dropping it does the same, silently.
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) if a queue pair still uses it: then it is destroyed with the last of them.
    #[doc(alias = "ibv_destroy_cq")]
    pub fn close(self) -> Result<()> {
        match Arc::try_unwrap(self.raw) {
            Ok(raw) => raw.close(),
            Err(_) => Err(still_in_use("the completion queue")),
        }
    }
}

/// What has been taken from the device and not been handed out.
struct Stage<'a> {
    raw: &'a RawQueue,
    stage: &'a mut [sys::ibv_wc; STAGE],
    first: &'a mut usize,
    end: &'a mut usize,
}

impl Stage<'_> {
    /// The next completion. If nothing is staged, the device is asked for up to `room`.
    #[inline(always)]
    fn next(&mut self, table: &mut Table, room: usize) -> Result<Option<Completion>> {
        loop {
            let Some(wc) = self.stage[..*self.end].get(*self.first) else {
                *self.first = 0;
                *self.end = 0;
                match self.raw.poll(table, &mut self.stage[..room.min(STAGE)])? {
                    0 => return Ok(None),
                    count => *self.end = count,
                }
                continue;
            };
            match self.raw.route(table, wc) {
                Ok(completion) => {
                    *self.first += 1;
                    return Ok(Some(completion));
                }
                Err(Detour::Earlier(completion)) => return Ok(Some(completion)),
                Err(Detour::Stale) => *self.first += 1,
                Err(Detour::Fault(error)) => {
                    *self.first += 1;
                    return Err(error);
                }
            }
        }
    }
}

impl fmt::Debug for CompletionQueue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CompletionQueue")
            .field("capacity", &self.capacity())
            .field("unreserved", &self.unreserved())
            .finish_non_exhaustive()
    }
}

/// Iterates over the completions that there are: see [`CompletionQueue::completions`].
#[derive(Debug)]
pub struct Completions<'a> {
    queue: &'a mut CompletionQueue,
}

impl Iterator for Completions<'_> {
    type Item = Result<Completion>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.queue.poll_one().transpose()
    }
}
