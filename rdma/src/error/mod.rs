//! One error type for the whole crate.

mod errno;
mod hint;
mod kind;

pub use errno::Errno;
pub(crate) use hint::Chosen;
pub use kind::ErrorKind;

use crate::{Gid, Status};
use core::fmt;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

/// What most functions of this crate return.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why something did not happen: which call, on what, the errno by name, and what to do about it where that is known.
///
/// Match on [`kind`](Error::kind); show the whole (`{error}`) to a person.
#[derive(thiserror::Error)]
#[error("{0}")]
pub struct Error(Repr);

/// Errors that are part of ordinary operation are made without an allocation.
enum Repr {
    Ready(&'static Report),
    Made(Box<Report>),
}

/// What an [`Error`] knows.
#[derive(Clone, Debug, Default)]
struct Report {
    kind: Option<ErrorKind>,
    call: Option<&'static str>,
    errno: Option<Errno>,
    status: Option<Status>,
    subject: Subject,
    detail: Cow<'static, str>,
    hint: Cow<'static, str>,
}

/// What an error is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subject {
    /// The device's name.
    pub device: Option<Arc<str>>,
    /// The port's number.
    pub port: Option<u8>,
    /// The queue pair's number.
    pub queue_pair: Option<u32>,
    /// The GID that was refused.
    pub gid: Option<Gid>,
    /// The peer, by the address of its TCP connection ([`connect`](mod@crate::connect)).
    pub peer: Option<SocketAddr>,
}

impl Report {
    const fn ready(kind: ErrorKind, detail: &'static str, hint: &'static str) -> Self {
        let subject = Subject { device: None, port: None, queue_pair: None, gid: None, peer: None };
        Report {
            kind: Some(kind),
            call: None,
            errno: None,
            status: None,
            subject,
            detail: Cow::Borrowed(detail),
            hint: Cow::Borrowed(hint),
        }
    }
}

static SEND_QUEUE_FULL: Report = Report::ready(
    ErrorKind::QueueFull,
    "the send queue is full",
    "poll the completion queue, then post again; if it stays full, the peer posts no receives",
);
static RECEIVE_QUEUE_FULL: Report =
    Report::ready(ErrorKind::QueueFull, "the receive queue is full", "poll the completion queue, then post again");
static NO_COMPLETION: Report = Report::ready(
    ErrorKind::TimedOut,
    "no completion within the given time",
    "nothing was given up: a later wait may still return it; that a peer died no device reports, ask connect::Link::is_alive",
);

impl Error {
    pub(crate) const SEND_QUEUE_FULL: Error = Error(Repr::Ready(&SEND_QUEUE_FULL));
    pub(crate) const RECEIVE_QUEUE_FULL: Error = Error(Repr::Ready(&RECEIVE_QUEUE_FULL));
    pub(crate) const NO_COMPLETION: Error = Error(Repr::Ready(&NO_COMPLETION));

    fn made(report: Report) -> Self {
        Error(Repr::Made(Box::new(report)))
    }

    pub(crate) fn new(kind: ErrorKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::made(Report { kind: Some(kind), detail: detail.into(), ..Report::default() })
    }

    fn report(&self) -> &Report {
        match &self.0 {
            Repr::Ready(report) => report,
            Repr::Made(report) => report,
        }
    }

    fn edit(mut self, change: impl FnOnce(&mut Report)) -> Self {
        if let Repr::Ready(report) = self.0 {
            self = Error::made(report.clone());
        }
        if let Repr::Made(report) = &mut self.0 {
            change(report);
        }
        self
    }

    /// A bad argument, in words.
    pub(crate) fn argument(detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::InvalidArgument, detail)
    }

    /// A verbs call that failed. Kind and hint follow from call and errno.
    pub(crate) fn call(call: &'static str, errno: Errno) -> Self {
        let (kind, hint) = hint::explain(call, errno);
        Error::made(Report {
            kind: Some(kind),
            call: Some(call),
            errno: Some(errno),
            hint: Cow::Borrowed(hint),
            ..Report::default()
        })
    }

    pub(crate) fn with_kind(self, kind: ErrorKind) -> Self {
        self.edit(|report| report.kind = Some(kind))
    }

    pub(crate) fn with_hint(self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.edit(|report| report.hint = hint.into())
    }

    pub(crate) fn with_detail(self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.edit(|report| report.detail = detail.into())
    }

    /// Says what was asked for, unless there are better words already.
    pub(crate) fn or_detail(self, detail: impl FnOnce() -> String) -> Self {
        if self.report().detail.is_empty() { self.with_detail(detail()) } else { self }
    }

    pub(crate) fn with_status(self, status: Status) -> Self {
        self.edit(|report| report.status = Some(status))
    }

    /// Adds what is known about the failure from elsewhere: kind, words and remedy.
    pub(crate) fn explained_by(self, known: Error) -> Self {
        let known = known.report().clone();
        self.edit(|report| {
            report.kind = known.kind;
            report.detail = known.detail;
            report.hint = known.hint;
        })
    }

    pub(crate) fn on_device(self, device: &Arc<str>) -> Self {
        self.edit(|report| report.subject.device = Some(device.clone()))
    }

    pub(crate) fn on_port(self, port: u8) -> Self {
        self.edit(|report| report.subject.port = Some(port))
    }

    pub(crate) fn on_queue_pair(self, number: u32) -> Self {
        self.edit(|report| report.subject.queue_pair = Some(number))
    }

    pub(crate) fn on_gid(self, gid: Gid) -> Self {
        self.edit(|report| report.subject.gid = Some(gid))
    }

    pub(crate) fn on_peer(self, address: SocketAddr) -> Self {
        self.edit(|report| report.subject.peer = Some(address))
    }

    /// The sort of failure, to decide what to do.
    pub fn kind(&self) -> ErrorKind {
        self.report().kind.unwrap_or(ErrorKind::Other)
    }

    /// The verbs call that failed, by its C name (or the system's, where it was one of those).
    pub fn failed_call(&self) -> Option<&'static str> {
        self.report().call
    }

    /// The errno, normalised: positive, whatever the style of the call.
    pub fn errno(&self) -> Option<Errno> {
        self.report().errno
    }

    /// The status of the work request that [failed](ErrorKind::Failed), if it is about one.
    #[doc(alias = "ibv_wc_status")]
    pub fn status(&self) -> Option<Status> {
        self.report().status
    }

    /// What the error is about.
    pub fn subject(&self) -> &Subject {
        &self.report().subject
    }

    /// What to do about it, where the cause is known.
    pub fn hint(&self) -> Option<&str> {
        (!self.report().hint.is_empty()).then_some(&*self.report().hint)
    }

    /// Whether the same request may succeed later without anything else being changed: after polling
    /// ([`QueueFull`](ErrorKind::QueueFull)), after reading the GID table again ([`StaleGid`](ErrorKind::StaleGid)),
    /// or with more time ([`TimedOut`](ErrorKind::TimedOut), [`PortDown`](ErrorKind::PortDown)).
    pub fn is_retryable(&self) -> bool {
        self.kind().is_retryable()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Subject { device, port, queue_pair, gid, peer } = &self.subject;
        let parts = [
            self.call.map(str::to_owned),
            device.as_deref().map(|name| if self.call.is_some() { format!("on {name}") } else { name.to_owned() }),
            port.map(|port| format!("port {port}")),
            queue_pair.map(|number| format!("queue pair {number:#08x}")),
            gid.map(|gid| format!("gid {gid}")),
            peer.map(|address| format!("peer {address}")),
        ];
        let lead = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let separator = if lead.is_empty() { "" } else { ": " };
        out.write_str(&lead)?;
        match (&self.errno, &*self.detail) {
            (Some(errno), "") => write!(out, "{separator}{errno}")?,
            (Some(errno), detail) => write!(out, "{separator}{errno}: {detail}")?,
            (None, "") => write!(out, "{separator}{}", self.kind.unwrap_or(ErrorKind::Other))?,
            (None, detail) => write!(out, "{separator}{detail}")?,
        }
        if !self.hint.is_empty() {
            write!(out, " ({})", self.hint)?;
        }
        Ok(())
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repr::Ready(report) => report.fmt(out),
            Repr::Made(report) => report.fmt(out),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Error({:?}: {})", self.kind(), self.report())
    }
}

impl Error {
    pub(crate) fn no_library(error: &rdma_sys::LoadError, chosen: Chosen) -> Self {
        Error::new(ErrorKind::LibraryNotFound, error.to_string()).with_hint(hint::library(error, chosen))
    }
}

impl From<rdma_sys::LoadError> for Error {
    fn from(error: rdma_sys::LoadError) -> Self {
        Error::no_library(&error, Chosen::Platform)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_call_subject_errno_and_remedy() {
        let error = Error::call("ibv_modify_qp", Errno::from_raw(libc::ETIMEDOUT))
            .with_detail("INIT to RTR")
            .on_device(&Arc::from("rdma_en3"))
            .on_port(1)
            .on_gid("fe80::1".parse().unwrap());
        let text = error.to_string();
        let number = libc::ETIMEDOUT;
        let start = format!("ibv_modify_qp on rdma_en3 port 1 gid fe80::1: ETIMEDOUT ({number}): INIT to RTR (");
        assert!(text.starts_with(&start), "{text}");
        assert_eq!(error.kind(), ErrorKind::UnreachablePeer);
        assert!(error.hint().is_some());
    }

    #[test]
    fn an_error_without_words_still_says_something() {
        assert_eq!(Error::new(ErrorKind::QueueFull, "").to_string(), ErrorKind::QueueFull.to_string());
    }

    #[test]
    fn an_error_is_small() {
        assert!(size_of::<Error>() <= 2 * size_of::<usize>());
    }
}
