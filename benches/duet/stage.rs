use super::{Clock, Cores, Patience, Stop};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Two threads, each on a core of its own, and what they need to measure.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) clock: Clock,
    pub(crate) patience: Patience,
    cores: Option<Cores>,
    /// Set when one side has ended with an error, so that the other does not wait for it.
    over: Arc<AtomicBool>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let patience = Patience { timeout: Duration::from_secs(30), interrupt: over.clone() };
        Stage { clock: Clock::new(), patience, cores: Cores::find(), over }
    }

    /// What is to be known of the machine before any figure.
    pub(crate) fn about(&self) -> String {
        let cores = match self.cores {
            Some(Cores([one, other])) => format!("threads bound to cores {one} and {other}"),
            None => "threads not bound to cores, so the figures scatter".to_owned(),
        };
        format!("{cores}; a reading of the clock costs {:.1} ns", self.clock.cost())
    }

    /// Keeps the calling thread on the core of one side, where threads can be bound. Returns whether it worked.
    pub(crate) fn pin(&self, side: usize) -> bool {
        self.cores.is_none_or(|cores| cores.pin(side))
    }

    /// Runs one closure on each of the two threads, and returns what the first returns.
    pub(crate) fn play<T: Send>(
        &self,
        client: impl FnOnce() -> Result<T, Stop> + Send,
        server: impl FnOnce() -> Result<(), Stop> + Send,
    ) -> Result<T, Stop> {
        thread::scope(|scope| {
            let server = scope.spawn(move || {
                self.pin(1);
                self.ending(server())
            });
            let client = scope.spawn(move || {
                self.pin(0);
                self.ending(client())
            });
            let joined = (client.join(), server.join());
            match joined {
                (Err(panic), _) | (_, Err(panic)) => std::panic::resume_unwind(panic),
                // That the other was interrupted is only what followed.
                (Ok(Err(Stop::Interrupted | Stop::PeerGone)), Ok(Err(cause))) | (Ok(Err(cause)), _) => Err(cause),
                (_, Ok(Err(cause))) => Err(cause),
                (Ok(Ok(outcome)), Ok(Ok(()))) => Ok(outcome),
            }
        })
    }

    /// Runs a closure on the first of the two cores.
    pub(crate) fn solo<T: Send>(&self, alone: impl FnOnce() -> Result<T, Stop> + Send) -> Result<T, Stop> {
        self.play(alone, || Ok(()))
    }

    fn ending<T>(&self, outcome: Result<T, Stop>) -> Result<T, Stop> {
        outcome.inspect_err(|_| self.over.store(true, Ordering::Relaxed))
    }

    /// An error when one side must not wait any longer for the other.
    #[cold]
    pub(crate) fn impatient(&self, since: Instant) -> Result<(), Stop> {
        if self.patience.interrupted() {
            return Err(Stop::Interrupted);
        }
        if since.elapsed() > self.patience.timeout { Err(Stop::Silent(self.patience.timeout)) } else { Ok(()) }
    }
}
