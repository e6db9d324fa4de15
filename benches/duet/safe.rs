//! The safe API.

use super::Stop;
use super::ends::{AHEAD, End, Hosts, Parts, memory, touch};
use rdma::{Buffer, Completion, ErrorKind};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);
const SENT: u64 = 1;
const RECEIVED: u64 = 2;

pub(crate) struct SafeEnd {
    parts: Parts,
    /// While it is not in flight.
    message: Option<Buffer>,
    /// Of the last receive, to be posted again.
    spent: Option<Buffer>,
}

impl SafeEnd {
    pub(crate) fn connect(hosts: &Hosts, size: usize) -> Result<[Self; 2], Stop> {
        let end = |mut parts: Parts| -> Result<_, Stop> {
            let message = Some(parts.region.buffer(size)?);
            for buffer in parts.region.buffers(AHEAD, size)? {
                parts.queue_pair.post_recv(buffer, RECEIVED)?;
            }
            Ok(SafeEnd { parts, message, spent: None })
        };
        let [one, other] = hosts.connect(AHEAD as u32, memory(AHEAD + 1, size))?;
        Ok([end(one)?, end(other)?])
    }

    /// As [`receive`](End::receive), but gives up after some time. Returns whether a message came.
    pub(crate) fn receive_within(&mut self, timeout: Duration) -> Result<bool, Stop> {
        loop {
            match self.parts.completions.wait(timeout) {
                Ok(completion) => {
                    if self.take(completion)? {
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes the next completion. Returns whether it is a receive's.
    #[inline]
    fn step(&mut self) -> Result<bool, Stop> {
        let completion = self.parts.completions.wait(TIMEOUT)?;
        self.take(completion)
    }

    #[inline]
    fn take(&mut self, completion: Completion) -> Result<bool, Stop> {
        let transfer = completion.ok()?;
        if transfer.token() == RECEIVED {
            touch(transfer.bytes());
            self.spent = transfer.into_buffer();
            return Ok(true);
        }
        self.message = transfer.into_buffer();
        Ok(false)
    }

    /// The message, once its last sending is done.
    #[inline]
    fn message(&mut self) -> Result<Buffer, Stop> {
        loop {
            match self.message.take() {
                Some(message) => return Ok(message),
                None => self.step()?,
            };
        }
    }
}

impl End for SafeEnd {
    #[inline]
    fn send(&mut self) -> Result<(), Stop> {
        let message = self.message()?;
        self.parts.queue_pair.post_send(message, .., SENT)?;
        self.repost()
    }

    #[inline]
    fn repost(&mut self) -> Result<(), Stop> {
        if let Some(spent) = self.spent.take() {
            self.parts.queue_pair.post_recv(spent, RECEIVED)?;
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Result<(), Stop> {
        while !self.step()? {}
        Ok(())
    }

    #[inline]
    fn rewrite(&mut self, value: u8) -> Result<(), Stop> {
        let mut message = self.message()?;
        message.fill(value);
        self.message = Some(message);
        Ok(())
    }
}
