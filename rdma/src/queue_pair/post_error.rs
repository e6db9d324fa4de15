use crate::error::{Error, ErrorKind};
use crate::verbs::post::Rejected;
use core::fmt;

/// A post that did not happen. It holds the memory, so nothing is lost.
///
/// `?` in a function that returns [`Error`] takes the error and drops the memory, which returns to its region.
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
