use crate::error::{Error, ErrorKind, Result};
use crate::wait::Deadline;
use core::fmt;
use std::time::Duration;

/// How long to wait for a peer: a timeout, and what may end the waiting before it.
///
/// What waits in [this module](super) takes one, and a [`Duration`] is one. A program that a person may interrupt adds a
/// question:
///
/// ```
/// use rdma::{ErrorKind, connect::{self, Patience}};
/// use std::{net::TcpListener, sync::atomic::{AtomicBool, Ordering}, time::Duration};
///
/// // Set by a handler of SIGINT, for example.
/// static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// # INTERRUPTED.store(true, Ordering::Relaxed);
///
/// let interrupted = || INTERRUPTED.load(Ordering::Relaxed);
/// let patience = Patience::from(Duration::from_secs(30)).unless(&interrupted);
/// # let listener = TcpListener::bind("127.0.0.1:0").unwrap();
/// match connect::accept(&listener, patience) {
///     Err(error) if error.kind() == ErrorKind::Cancelled => println!("interrupted"),
///     outcome => drop(outcome?),
/// }
/// # Ok::<(), rdma::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    timeout: Duration,
    ended: Option<&'a dyn Fn() -> bool>,
}

impl From<Duration> for Patience<'_> {
    fn from(timeout: Duration) -> Self {
        Patience { timeout, ended: None }
    }
}

impl<'a> Patience<'a> {
    /// Ends the waiting when `ended` says so, too: it is asked at once and then several times a second, and the call
    /// fails with [`Cancelled`](ErrorKind::Cancelled) when the answer is yes.
    pub fn unless(mut self, ended: &'a dyn Fn() -> bool) -> Self {
        self.ended = Some(ended);
        self
    }

    /// Begins to wait.
    pub(super) fn begin(self) -> Waiting<'a> {
        Waiting { deadline: Deadline::after(self.timeout), patience: self }
    }
}

impl fmt::Debug for Patience<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Patience { timeout, ended } = self;
        out.debug_struct("Patience").field("timeout", timeout).field("can_be_ended", &ended.is_some()).finish()
    }
}

/// Patience that is running out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting<'a> {
    patience: Patience<'a>,
    deadline: Deadline,
}

impl Waiting<'_> {
    /// How long the next call of the system may block: until the deadline, or, where the waiting may be ended, for a turn.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cancelled`], and what `timed_out` makes once the deadline has passed; it is given the timeout.
    pub(super) fn turn(&self, turn: Duration, timed_out: impl FnOnce(Duration) -> Error) -> Result<Duration> {
        if self.patience.ended.is_some_and(|ended| ended()) {
            return Err(Error::new(ErrorKind::Cancelled, "the program ended the waiting for its peer"));
        }
        match self.deadline.left() {
            Some(left) if self.patience.ended.is_some() => Ok(left.min(turn)),
            Some(left) => Ok(left),
            None => Err(timed_out(self.patience.timeout)),
        }
    }
}
