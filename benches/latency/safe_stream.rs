//! The safe API.

use crate::duet::ends::{Parts, memory, touch};
use crate::duet::{Hosts, Stop};
use crate::stream::{Row, Stream};
use rdma::{Buffer, Completion};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);
const TOGETHER: usize = 16;

pub(crate) struct SafeStream {
    parts: Parts,
    row: Row,
    /// Buffers that are not posted.
    idle: Vec<Buffer>,
    stage: [Option<Completion>; TOGETHER],
}

impl SafeStream {
    pub(crate) fn connect(hosts: &Hosts, row: Row) -> Result<[Self; 2], Stop> {
        let end = |parts: Parts, posted: usize| -> Result<_, Stop> {
            let idle = parts.region.buffers(row.window, row.size)?;
            let mut end = SafeStream { parts, row, idle, stage: [const { None }; TOGETHER] };
            end.post_receives(posted)?;
            Ok(end)
        };
        let [one, other] = hosts.connect(row.window as u32, memory(row.window, row.size))?;
        Ok([end(one, 0)?, end(other, row.window)?])
    }

    /// Posts so many, as many at once as the row has together.
    fn post_receives(&mut self, mut count: usize) -> Result<(), Stop> {
        let queue_pair = &mut self.parts.queue_pair;
        if self.row.together == 1 {
            for buffer in self.idle.drain(self.idle.len() - count..) {
                queue_pair.post_recv(buffer, 0)?;
            }
            return Ok(());
        }
        while count > 0 {
            let now = count.min(TOGETHER);
            let mut batch = queue_pair.receive_batch::<TOGETHER>();
            for buffer in self.idle.drain(self.idle.len() - now..) {
                batch.push(buffer, 0)?;
            }
            batch.submit().map_err(rdma::Error::from)?;
            count -= now;
        }
        Ok(())
    }

    fn post_sends(&mut self, count: usize) -> Result<(), Stop> {
        let queue_pair = &mut self.parts.queue_pair;
        let buffers = self.idle.drain(self.idle.len() - count..);
        if self.row.together == 1 {
            for buffer in buffers {
                queue_pair.post_send(buffer, .., 0)?;
            }
            return Ok(());
        }
        let mut batch = queue_pair.send_batch::<TOGETHER>();
        for buffer in buffers {
            batch.push(buffer, .., 0)?;
        }
        batch.submit().map_err(rdma::Error::from)?;
        Ok(())
    }

    /// Takes completions, one at least.
    fn take(&mut self, read: bool) -> Result<usize, Stop> {
        let count = self.parts.completions.wait_many(&mut self.stage, TIMEOUT)?;
        for completion in self.stage[..count].iter_mut().filter_map(Option::take) {
            let transfer = completion.ok()?;
            if read {
                touch(transfer.bytes());
            }
            self.idle.extend(transfer.into_buffer());
        }
        Ok(count)
    }
}

impl Stream for SafeStream {
    #[inline(never)]
    fn send(&mut self, messages: usize) -> Result<(), Stop> {
        let mut posted = 0;
        while posted < messages {
            let now = self.row.together.min(messages - posted);
            if self.idle.len() < now {
                self.take(false)?;
            } else {
                self.post_sends(now)?;
                posted += now;
            }
        }
        while self.idle.len() < self.row.window {
            self.take(false)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn receive(&mut self, messages: usize) -> Result<(), Stop> {
        let mut received = 0;
        while received < messages {
            received += self.take(self.row.reads)?;
            while self.idle.len() >= self.row.together {
                self.post_receives(self.row.together)?;
            }
        }
        self.post_receives(self.idle.len())
    }
}
