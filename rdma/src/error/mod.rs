//! One error type for the whole crate.

pub(crate) mod catalogue;
mod errno;
mod kind;

pub(crate) use catalogue::states::Chosen;
pub use errno::Errno;
pub use kind::ErrorKind;

use crate::verbs::library::RawDevice;
use catalogue::{Entry, Hardware, states};

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
    Again(Arc<Report>),
}

/// What an [`Error`] knows.
#[derive(Clone, Debug, Default)]
struct Report {
    /// What the catalogue has about it.
    entry: Option<&'static Entry>,
    /// Instead of the entry's.
    kind: Option<ErrorKind>,
    call: Option<&'static str>,
    errno: Option<Errno>,
    status: Option<Status>,
    subject: Subject,
    detail: Cow<'static, str>,
    /// Instead of the entry's remedy; if it is empty: none.
    hint: Option<Cow<'static, str>>,
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
    const fn ready(entry: &'static Entry, detail: &'static str) -> Self {
        Report {
            entry: Some(entry),
            kind: None,
            call: None,
            errno: None,
            status: None,
            subject: Subject { device: None, port: None, queue_pair: None, gid: None, peer: None },
            detail: Cow::Borrowed(detail),
            hint: None,
        }
    }

    fn kind(&self) -> ErrorKind {
        let known = self.kind.or(self.entry.map(|entry| entry.kind));
        known.or(self.errno.map(catalogue::kind_of)).unwrap_or(ErrorKind::Other)
    }

    fn hint(&self) -> &str {
        match (&self.hint, self.entry) {
            (Some(hint), _) => hint,
            (None, Some(entry)) => entry.remedy,
            (None, None) => "",
        }
    }
}

static SEND_QUEUE_FULL: Report = Report::ready(&states::SEND_QUEUE_FULL, "the send queue is full");
static RECEIVE_QUEUE_FULL: Report = Report::ready(&states::RECEIVE_QUEUE_FULL, "the receive queue is full");
static NO_COMPLETION: Report = Report::ready(&states::NO_COMPLETION, "no completion within the given time");

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
            Repr::Again(report) => report,
        }
    }

    /// One that [`again`](Self::again) makes again without an allocation.
    pub(crate) fn kept(self) -> Self {
        Error(Repr::Again(Arc::new(self.report().clone())))
    }

    /// The same error.
    pub(crate) fn again(&self) -> Self {
        match &self.0 {
            Repr::Ready(report) => Error(Repr::Ready(report)),
            Repr::Made(report) => Error::made((**report).clone()),
            Repr::Again(report) => Error(Repr::Again(report.clone())),
        }
    }

    fn edit(mut self, change: impl FnOnce(&mut Report)) -> Self {
        if !matches!(self.0, Repr::Made(_)) {
            self = Error::made(self.report().clone());
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

    /// A failure that the catalogue knows, in words.
    pub(crate) fn known(entry: &'static Entry, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::made(Report { entry: Some(entry), detail: detail.into(), ..Report::default() })
    }

    /// A verbs call that failed. Kind and hint follow from call and errno, and from the device, once that is
    /// [told](Self::on_device).
    pub(crate) fn call(call: &'static str, errno: Errno) -> Self {
        let entry = catalogue::of_call(call, errno, None);
        Error::made(Report { entry, call: Some(call), errno: Some(errno), ..Report::default() })
    }

    pub(crate) fn with_kind(self, kind: ErrorKind) -> Self {
        self.edit(|report| report.kind = Some(kind))
    }

    pub(crate) fn with_hint(self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.edit(|report| report.hint = Some(hint.into()))
    }

    pub(crate) fn with_detail(self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.edit(|report| report.detail = detail.into())
    }

    /// Puts words in front of what it says.
    pub(crate) fn in_front(self, words: &str) -> Self {
        let detail = format!("{words}: {}", self.report().detail);
        self.with_detail(detail)
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
            report.entry = known.entry;
            report.kind = Some(known.kind());
            report.hint = Some(Cow::Owned(known.hint().to_owned()));
            report.detail = known.detail;
        })
    }

    pub(crate) fn on_device(self, device: &RawDevice) -> Self {
        self.on(&device.name, Hardware::of(device.kind().0))
    }

    /// A device of this name and sort.
    fn on(self, name: &Arc<str>, hardware: Hardware) -> Self {
        self.edit(|report| {
            report.subject.device = Some(name.clone());
            if let (Some(call), Some(errno), None) = (report.call, report.errno, &report.hint) {
                report.entry = catalogue::of_call(call, errno, Some(hardware));
            }
        })
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
        self.report().kind()
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

    /// What to do about it, where the cause is known: from a catalogue that knows calls, errnos, devices and systems
    /// (docs/errors.md in the repository lists it).
    pub fn hint(&self) -> Option<&str> {
        Some(self.report().hint()).filter(|hint| !hint.is_empty())
    }

    /// Why it failed, as far as is known: documented, or seen by others with this call, errno and device.
    pub fn cause(&self) -> Option<&'static str> {
        self.report().entry.map(|entry| entry.cause)
    }

    /// When the same may be tried again, in words. `None`: never, or nothing is known.
    pub fn retry_when(&self) -> Option<&'static str> {
        self.report().entry.and_then(|entry| entry.again)
    }

    /// Who says so: the documents and reports that [`cause`](Self::cause) and [`hint`](Self::hint) are from.
    pub fn reference(&self) -> Option<&'static str> {
        self.report().entry.map(|entry| entry.source)
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
            (None, "") => write!(out, "{separator}{}", self.kind())?,
            (None, detail) => write!(out, "{separator}{detail}")?,
        }
        match self.hint() {
            "" => Ok(()),
            hint => write!(out, " ({hint})"),
        }
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repr::Ready(report) => report.fmt(out),
            Repr::Made(report) => report.fmt(out),
            Repr::Again(report) => report.fmt(out),
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
        Error::known(states::no_library(error, chosen), error.to_string())
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
            .on(&Arc::from("rdma_en3"), Hardware::Thunderbolt)
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
