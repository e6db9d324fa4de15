use rdma::{ErrorKind, PostError};
use std::time::Duration;

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    /// What the library reports. Its text says what to do about it.
    #[error(transparent)]
    Rdma(rdma::Error),
    /// By a signal.
    #[error("interrupted")]
    Interrupted,
    /// The peer's program closed its connection.
    #[error(
        "the peer is gone: its program ended, was interrupted or was killed (see what it printed, then start both again)"
    )]
    PeerGone,
    /// Nothing came, although the peer's program lives.
    #[error(
        "no message from the peer within {0:?}, although its program is running (are the two devices joined by one cable, \
         or hosts of one fabric (between processes: the same RDMA_SOFT_FABRIC)? --timeout waits longer)"
    )]
    Silent(Duration),
    /// The two programs were started for different measurements.
    #[error(
        "the two ends disagree: this one was started with `{here}`, the peer with `{there}` (start both with the same)"
    )]
    Disagreement { here: String, there: String },
    /// The peer sent something that is no part of the protocol.
    #[error("the peer does not follow the protocol: {0} (both ends must be the same version of this program)")]
    Protocol(String),
    /// A byte that was not sent.
    #[error("message {message} of {size} bytes is corrupt: {what}")]
    Corrupt { message: u64, size: usize, what: String },
    /// The device cannot do what was asked for.
    #[error("{0}")]
    Impossible(String),
    /// Standard output, or the address to listen on.
    #[error("{what}: {error}{remedy}")]
    System { what: String, error: std::io::Error, remedy: &'static str },
}

impl From<rdma::Error> for Stop {
    fn from(error: rdma::Error) -> Self {
        // Nothing else ends a wait of the library's early.
        if error.kind() == ErrorKind::Cancelled { Stop::Interrupted } else { Stop::Rdma(error) }
    }
}

impl<M> From<PostError<M>> for Stop {
    fn from(error: PostError<M>) -> Self {
        Stop::Rdma(error.into())
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Stop::System { what: "cannot write the results".to_owned(), error, remedy: "" }
    }
}
