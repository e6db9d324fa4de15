use crate::error::{Error, ErrorKind};
use crate::verbs::post::Rejected;
use core::fmt;

/// A post that did not happen. It holds the memory, so nothing is lost.
///
/// `?` in a function that returns [`Error`] takes the error, and the memory returns to its region; so it does in one that
/// returns `Box<dyn std::error::Error>`, as soon as that is dropped. For an error type of your own, three lines teach `?`
/// the same (a derived `#[from] rdma::Error` covers the calls that return that, but not this type):
///
/// ```
/// # use rdma::{Buffer, QueuePair};
/// #[derive(Debug)]
/// enum MyError {
///     Rdma(rdma::Error),
///     // …
/// }
///
/// impl<M> From<rdma::PostError<M>> for MyError {
///     fn from(error: rdma::PostError<M>) -> Self {
///         MyError::Rdma(error.into())
///     }
/// }
///
/// fn send(queue_pair: &mut QueuePair, buffer: Buffer) -> Result<(), MyError> {
///     queue_pair.post_send(buffer, .., 1)?;
///     Ok(())
/// }
/// ```
///
/// Where the memory is wanted back, most of all when the queue is [full](ErrorKind::QueueFull), ask for it:
/// [`into_parts`](Self::into_parts).
pub struct PostError<M> {
    error: Error,
    memory: Option<M>,
}

impl<M> PostError<M> {
    pub(crate) fn new(error: Error, memory: M) -> Self {
        PostError { error, memory: Some(memory) }
    }

    /// Why.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// The sort of failure.
    pub fn kind(&self) -> ErrorKind {
        self.error.kind()
    }

    /// The memory. `None` only if the device reported the failed post as completed as well: then the queue pair is
    /// poisoned and the memory came, or will come, with that completion.
    pub fn into_memory(self) -> Option<M> {
        self.memory
    }

    /// Both parts.
    pub fn into_parts(self) -> (Error, Option<M>) {
        (self.error, self.memory)
    }
}

impl<M> From<Rejected<M>> for PostError<M> {
    fn from(rejected: Rejected<M>) -> Self {
        PostError { error: rejected.error, memory: rejected.memory }
    }
}

impl<M> From<PostError<M>> for Error {
    fn from(error: PostError<M>) -> Self {
        error.error
    }
}

impl<M> fmt::Display for PostError<M> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(out)
    }
}

impl<M> fmt::Debug for PostError<M> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, out)
    }
}

impl<M> core::error::Error for PostError<M> {}
