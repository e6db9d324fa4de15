//! Noticing that a queue pair has been idle for too long.

use crate::queue_pair::QueuePair;
use std::time::{Duration, Instant};

/// Says when a queue pair should send something, just so that it does not go stale.
///
/// On Macs, queue pairs without traffic were seen to become unreliable after about 23 minutes, and traffic on the same
/// queue pair to prevent it (tmc/gojaccl; exo-explore/exo issues 1847 and 1973). The message must be one that the peer has
/// a receive for and knows to ignore; only the program can send it, so this is a hook, not a thread.
///
/// It looks at the queue pair's own count of sends and at the clock when it is asked, so it costs the data path nothing.
///
/// ```
/// # use rdma::{KeepAlive, QueuePair, Buffer};
/// # fn example(queue_pair: &mut QueuePair, mut ping: impl FnMut() -> Buffer) -> rdma::Result<()> {
/// let mut keep_alive = KeepAlive::default();
/// // … wherever the program idles:
/// if keep_alive.is_due(queue_pair) {
///     queue_pair.post_send(ping(), .., 0)?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct KeepAlive {
    interval: Duration,
    last: Option<(u32, Instant)>,
}

impl KeepAlive {
    /// Due when the queue pair has sent nothing for `interval`, counted from when it was first asked about.
    pub const fn new(interval: Duration) -> Self {
        KeepAlive { interval, last: None }
    }

    /// Whether it is time to send something.
    pub fn is_due(&mut self, queue_pair: &QueuePair) -> bool {
        let (sends, now) = (queue_pair.sends(), Instant::now());
        match self.last {
            Some((known, since)) if known == sends => now.duration_since(since) >= self.interval,
            _ => {
                self.last = Some((sends, now));
                self.interval.is_zero()
            }
        }
    }
}

impl Default for KeepAlive {
    /// Five minutes: well below the 23 after which trouble was seen.
    fn default() -> Self {
        KeepAlive::new(Duration::from_secs(300))
    }
}
