//! How long a program waits, and for what it does not.

use crate::error::{Error, ErrorKind, Result};
use crate::wait::{Backoff, Deadline};
use core::fmt;
use std::time::{Duration, Instant};

/// How long to wait, and what may end the waiting before that.
///
/// Whatever waits for a peer takes one, and a [`Duration`] is one. A peer that dies shows neither as a completion nor as an
/// event; so a program that waits for its messages adds a question:
///
/// ```
/// use rdma::{Completion, CompletionQueue, ErrorKind, Patience, connect::Link};
/// use std::time::Duration;
///
/// fn next(completions: &mut CompletionQueue, link: &Link) -> rdma::Result<Completion> {
///     let gone = || !link.is_alive();
///     let patience = Patience::from(Duration::from_secs(30)).unless(&gone);
///     completions.wait(patience).inspect_err(|error| match error.kind() {
///         ErrorKind::Cancelled => eprintln!("the peer is gone"),
///         _ => eprintln!("{error}"),
///     })
/// }
/// ```
///
/// And so does one that a person may interrupt:
///
/// ```
/// use rdma::{ErrorKind, Patience, connect};
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
    /// Ends the waiting when `ended` says so, too: it is asked as soon as there is something to wait for, and then several
    /// times a second; the call fails with [`Cancelled`](ErrorKind::Cancelled) when the answer is yes.
    pub fn unless(mut self, ended: &'a dyn Fn() -> bool) -> Self {
        self.ended = Some(ended);
        self
    }

    /// # Errors
    ///
    /// [`Cancelled`](ErrorKind::Cancelled), if the program wants to wait no longer.
    fn go_on(&self) -> Result<()> {
        match self.ended {
            Some(ended) if ended() => Err(Error::new(ErrorKind::Cancelled, "the program ended the waiting")),
            _ => Ok(()),
        }
    }

    /// Begins to wait.
    pub(crate) fn begin(self) -> Waiting<'a> {
        Waiting { deadline: Deadline::after(self.timeout), patience: self }
    }
}

impl fmt::Debug for Patience<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Patience { timeout, ended } = self;
        out.debug_struct("Patience").field("timeout", timeout).field("can_be_ended", &ended.is_some()).finish()
    }
}

/// Patience while a device is looked at again and again: busily at first.
#[derive(Debug)]
pub(crate) struct Countdown<'a> {
    patience: Patience<'a>,
    backoff: Backoff,
    /// The clock costs more than a look: it is not read before something has been waited for.
    begun: Option<Begun>,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    deadline: Deadline,
    /// When the program was asked whether it wants to go on.
    asked: Option<Instant>,
}

/// How often the program is asked.
const ASK: Duration = Duration::from_millis(50);

impl<'a> Countdown<'a> {
    #[inline]
    pub(crate) const fn new(patience: Patience<'a>) -> Self {
        Countdown { patience, backoff: Backoff::new(), begun: None }
    }

    /// Something has come; the next will be waited for in the time that is left, busily at first.
    pub(crate) fn again(&mut self) {
        self.begun.get_or_insert_with(|| Begun::now(self.patience.timeout));
        self.backoff = Backoff::new();
    }

    /// One turn of waiting.
    ///
    /// # Errors
    ///
    /// [`Cancelled`](ErrorKind::Cancelled), and what `timed_out` makes once the deadline has passed.
    #[inline]
    pub(crate) fn pause(&mut self, timed_out: impl FnOnce() -> Error) -> Result<()> {
        if self.backoff.pause() { self.look_at_the_clock(timed_out) } else { Ok(()) }
    }

    #[cold]
    fn look_at_the_clock(&mut self, timed_out: impl FnOnce() -> Error) -> Result<()> {
        let Countdown { patience, begun, .. } = self;
        let begun = begun.get_or_insert_with(|| Begun::now(patience.timeout));
        if patience.ended.is_some() && begun.asked.is_none_or(|asked| asked.elapsed() >= ASK) {
            patience.go_on()?;
            begun.asked = Some(Instant::now());
        }
        if begun.deadline.passed() { Err(timed_out()) } else { Ok(()) }
    }
}

impl Begun {
    fn now(timeout: Duration) -> Self {
        Begun { deadline: Deadline::after(timeout), asked: None }
    }
}

/// Patience that is running out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting<'a> {
    patience: Patience<'a>,
    deadline: Deadline,
}

impl Waiting<'_> {
    /// How long the next call of the system may block: until the deadline, or, where the waiting may be ended, for a turn.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cancelled`], and what `timed_out` makes once the deadline has passed; it is given the timeout.
    pub(crate) fn turn(&self, turn: Duration, timed_out: impl FnOnce(Duration) -> Error) -> Result<Duration> {
        self.patience.go_on()?;
        match self.deadline.left() {
            Some(left) if self.patience.ended.is_some() => Ok(left.min(turn)),
            Some(left) => Ok(left),
            None => Err(timed_out(self.patience.timeout)),
        }
    }
}
