use core::fmt;

/// The sorts of failure, told apart by what a program can do about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no verbs library on this machine, or it lacks a call. Never retry.
    LibraryNotFound,
    /// The library is there, but it lists no device: RDMA is not enabled, or the hardware has none. Never retry.
    NoDevices,
    /// There is no device, port, host or cable of that name or number.
    UnknownDevice,
    /// The port is not ACTIVE: no cable, the other end is off, or RDMA is enabled on one end only.
    PortDown,
    /// The device cannot do that at all (another queue pair type, immediate data, …).
    Unsupported,
    /// A fixed limit of the device is used up. It looks transient (`EBUSY`), but retrying never helps.
    LimitReached,
    /// Memory, or the right to pin it, has run out.
    OutOfMemory,
    /// The queue holds all it can. Poll the completion queue, then try again.
    QueueFull,
    /// The port has no GID that a connection could use, or one was asked for that cannot be used.
    NoUsableGid,
    /// The GID is no longer in the table where it was: the address changed. Read the table and connect anew.
    StaleGid,
    /// The peer's GID is not at the other end of this cable.
    UnreachablePeer,
    /// An argument that can never be right; the text says which and why.
    InvalidArgument,
    /// The object is in a state in which this cannot be done.
    InvalidState,
    /// Something still depends on the object.
    Busy,
    /// The peer's process closed its connection.
    PeerGone,
    /// The peer sent something that is no part of the protocol.
    Protocol,
    /// The deadline passed.
    TimedOut,
    /// The program itself ended the waiting ([`Patience::unless`](crate::Patience::unless)).
    Cancelled,
    /// The queue pair broke a rule that the bookkeeping of buffers relies on, or the device broke one. Nothing can be
    /// posted any more and no buffer leaves until it is closed.
    Poisoned,
    /// A work request completed with an error status.
    Failed,
    /// The object belongs to the process that forked this one.
    WrongProcess,
    /// Anything else; the errno tells.
    Other,
}

impl ErrorKind {
    /// See [`Error::is_retryable`](super::Error::is_retryable).
    pub const fn is_retryable(self) -> bool {
        matches!(self, ErrorKind::QueueFull | ErrorKind::StaleGid | ErrorKind::TimedOut | ErrorKind::PortDown)
    }

    const fn text(self) -> &'static str {
        match self {
            ErrorKind::LibraryNotFound => "no verbs library",
            ErrorKind::NoDevices => "no RDMA devices",
            ErrorKind::UnknownDevice => "no such device",
            ErrorKind::PortDown => "the port is down",
            ErrorKind::Unsupported => "not supported by the device",
            ErrorKind::LimitReached => "a limit of the device is reached",
            ErrorKind::OutOfMemory => "out of memory",
            ErrorKind::QueueFull => "the queue is full",
            ErrorKind::NoUsableGid => "no usable GID",
            ErrorKind::StaleGid => "the GID has changed",
            ErrorKind::UnreachablePeer => "the peer is not reachable over this cable",
            ErrorKind::InvalidArgument => "invalid argument",
            ErrorKind::InvalidState => "not possible in this state",
            ErrorKind::Busy => "still in use",
            ErrorKind::PeerGone => "the peer is gone",
            ErrorKind::Protocol => "the peer does not speak the protocol",
            ErrorKind::TimedOut => "the deadline passed",
            ErrorKind::Cancelled => "the waiting was ended",
            ErrorKind::Poisoned => "the queue pair is poisoned",
            ErrorKind::Failed => "a work request failed",
            ErrorKind::WrongProcess => "made before a fork, by the parent process",
            ErrorKind::Other => "a call failed",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text())
    }
}
