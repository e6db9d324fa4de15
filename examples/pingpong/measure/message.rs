//! What the two ends tell each other besides the messages that are measured: 64 bytes, whatever it is.
//!
//! They travel over the queue pair itself. One is a single frame, so both ends always post the same number of frames.

use super::plan::{Mode, Plan, Sizes};
use super::stop::Stop;

/// The length of all of them.
pub(crate) const LENGTH: usize = 64;

/// Some messages of one length, all posted for before the first is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Counts batches.
    pub(crate) number: u64,
    /// The number of the first message.
    pub(crate) first: u64,
    pub(crate) messages: usize,
    pub(crate) size: usize,
}

/// How far a client has come, over all sizes.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    batches: u64,
    messages: u64,
}

impl Progress {
    /// The next batch.
    pub(crate) fn batch(&mut self, messages: usize, size: usize) -> Batch {
        let batch = Batch { number: self.batches, first: self.messages, messages, size };
        self.batches += 1;
        self.messages += messages as u64;
        batch
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// From both, first of all.
    Hello(Plan),
    /// From the client.
    Batch(Batch),
    /// From the server: all receives of the batch are posted, or as many as fit.
    Ready,
    /// From the server: all messages of a one-way batch are there.
    Arrived,
    /// From the client: there is nothing more.
    Done,
}

impl Message {
    /// An error, if it is not the expected one.
    pub(crate) fn must_be(self, expected: Message) -> Result<(), Stop> {
        if self == expected { Ok(()) } else { Err(Stop::Protocol(format!("{self:?} instead of {expected:?}"))) }
    }
}

const MAGIC: u64 = u64::from_le_bytes(*b"pingpong");
const VERSION: u64 = 2;

impl Message {
    /// Eight numbers, in little-endian order: magic, version, kind, and up to five more.
    pub(crate) fn to_bytes(self) -> [u8; LENGTH] {
        let fields = match self {
            Message::Hello(plan) => {
                let (size, up_to) = match plan.sizes {
                    Sizes::One(size) => (size as u64, 0),
                    Sizes::UpTo(longest) => (0, longest as u64),
                };
                let mode = if plan.mode == Mode::Bandwidth { 1 } else { 0 };
                // One more than the number, because 0 says that there is none.
                let option = |number: Option<u64>| number.map_or(0, |number| number.saturating_add(1));
                [1, mode, size, option(plan.iterations), option(plan.warmup), up_to]
            }
            Message::Batch(batch) => [2, batch.number, batch.first, batch.messages as u64, batch.size as u64, 0],
            Message::Ready => [3, 0, 0, 0, 0, 0],
            Message::Arrived => [4, 0, 0, 0, 0, 0],
            Message::Done => [5, 0, 0, 0, 0, 0],
        };
        let mut bytes = [0; LENGTH];
        for (place, number) in bytes.chunks_exact_mut(8).zip([MAGIC, VERSION].into_iter().chain(fields)) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Reads what a peer sent, which may be anything.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Stop> {
        let wrong = |what: &str| Stop::Protocol(format!("{what} where one of its own messages belongs"));
        let bytes: &[u8; LENGTH] = bytes.try_into().map_err(|_| wrong(&format!("{} bytes", bytes.len())))?;
        let mut fields = [0; LENGTH / 8];
        for (field, place) in fields.iter_mut().zip(bytes.chunks_exact(8)) {
            *field = place.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        }
        let [magic, version, kind, a, b, c, d, e] = fields;
        if magic != MAGIC || version != VERSION {
            return Err(wrong("something else"));
        }
        let length = |number: u64| usize::try_from(number).map_err(|_| wrong("an immense number"));
        Ok(match kind {
            1 => Message::Hello(Plan {
                mode: if a == 1 { Mode::Bandwidth } else { Mode::Latency },
                sizes: if b == 0 { Sizes::UpTo(length(e)?) } else { Sizes::One(length(b)?) },
                iterations: c.checked_sub(1),
                warmup: d.checked_sub(1),
            }),
            2 => Message::Batch(Batch { number: a, first: b, messages: length(c)?, size: length(d)? }),
            3 => Message::Ready,
            4 => Message::Arrived,
            5 => Message::Done,
            _ => return Err(wrong("a message of another version")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_can_be_read_back() {
        let plan = Plan { mode: Mode::Bandwidth, sizes: Sizes::One(70_000), iterations: Some(5), warmup: Some(0) };
        let other = Plan { mode: Mode::Latency, sizes: Sizes::ALL, iterations: None, warmup: None };
        let batch = Batch { number: 1, first: 2, messages: 3, size: 4 };
        for message in [
            Message::Hello(plan),
            Message::Hello(other),
            Message::Batch(batch),
            Message::Ready,
            Message::Arrived,
            Message::Done,
        ] {
            assert_eq!(Message::from_bytes(&message.to_bytes()).unwrap(), message);
        }
    }

    #[test]
    fn anything_else_is_an_error() {
        let good = Message::Ready.to_bytes();
        assert!(Message::from_bytes(&[]).is_err());
        assert!(Message::from_bytes(&good[1..]).is_err());
        for position in [0, 8, 16] {
            let mut bytes = good;
            bytes[position] = 0xff;
            assert!(Message::from_bytes(&bytes).is_err(), "{position}");
        }
    }
}
