//! This library: its safe API on the software device, as a user gets it.

use crate::Result;
use crate::play::{End, touch};
use rdma::soft::{Fabric, Topology};
use rdma::{Buffer, CompletionQueue, Context, MemoryRegion, PreparedQueuePair, Provider, QueuePair, connect};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);
const SENT: u64 = 1;
const RECEIVED: u64 = 2;
/// Receives that are posted ahead.
const AHEAD: usize = 2;

pub(crate) struct VerbsEnd {
    queue_pair: QueuePair,
    completions: CompletionQueue,
    /// While it is not in flight.
    message: Option<Buffer>,
    /// Of the last receive, to be posted again.
    spent: Option<Buffer>,
    /// Holds the connection, over which the sides met.
    _link: Option<connect::Link>,
}

struct Parts {
    completions: CompletionQueue,
    region: MemoryRegion,
}

fn prepare(context: &Context, size: usize) -> Result<(PreparedQueuePair, Parts)> {
    let domain = context.protection_domain()?;
    let completions = context.completion_queue(2 * AHEAD as u32)?;
    let region = domain.allocate((AHEAD + 1) * size.next_multiple_of(128))?;
    let prepared = domain.queue_pair(&completions).requests(AHEAD as u32).build()?;
    Ok((prepared, Parts { completions, region }))
}

impl VerbsEnd {
    fn new(mut queue_pair: QueuePair, parts: Parts, size: usize, link: Option<connect::Link>) -> Result<Self> {
        let message = Some(parts.region.buffer(size)?);
        for buffer in parts.region.buffers(AHEAD, size)? {
            queue_pair.post_recv(buffer, RECEIVED)?;
        }
        Ok(VerbsEnd { queue_pair, completions: parts.completions, message, spent: None, _link: link })
    }

    /// Two hosts in this process.
    pub(crate) fn pair(size: usize) -> Result<[Self; 2]> {
        let fabric = Fabric::mesh(2)?;
        let open = |host| -> Result<_> { prepare(&Provider::soft(&fabric.host(host)?)?.first_active()?.open()?, size) };
        let (one, other) = (open(0)?, open(1)?);
        let (near, far) = connect::pair(one.0, other.0)?;
        Ok([Self::new(near, one.1, size, None)?, Self::new(far, other.1, size, None)?])
    }

    /// A host of a fabric that another process shares.
    pub(crate) fn join(fabric: &str, side: usize, size: usize, meeting: Meeting<'_>) -> Result<Self> {
        let host = Fabric::join(fabric, Topology::mesh(2)?, side)?;
        let (prepared, parts) = prepare(&Provider::soft(&host)?.first_active()?.open()?, size)?;
        let (queue_pair, link) = connect::establish(prepared, meeting.stream()?, TIMEOUT)?;
        Self::new(queue_pair, parts, size, Some(link))
    }

    /// The message, once its last sending is done.
    #[inline]
    fn message(&mut self) -> Result<Buffer> {
        loop {
            match self.message.take() {
                Some(message) => return Ok(message),
                None => self.step()?,
            };
        }
    }

    /// Takes the next completion. Returns whether it is a receive's.
    #[inline]
    fn step(&mut self) -> Result<bool> {
        let transfer = self.completions.wait(TIMEOUT)?.ok()?;
        if transfer.token() == RECEIVED {
            touch(transfer.bytes());
            self.spent = transfer.into_buffer();
            return Ok(true);
        }
        self.message = transfer.into_buffer();
        Ok(false)
    }
}

/// How the two processes find each other.
pub(crate) enum Meeting<'a> {
    Listen(&'a TcpListener),
    Dial(&'a str),
}

impl Meeting<'_> {
    fn stream(self) -> Result<TcpStream> {
        Ok(match self {
            Meeting::Listen(listener) => connect::accept(listener, TIMEOUT)?,
            Meeting::Dial(address) => connect::dial(address, TIMEOUT)?,
        })
    }
}

impl End for VerbsEnd {
    #[inline]
    fn rewrite(&mut self, value: u8) -> Result<()> {
        let mut message = self.message()?;
        message.fill(value);
        self.message = Some(message);
        Ok(())
    }

    #[inline]
    fn send(&mut self) -> Result<()> {
        let message = self.message()?;
        self.queue_pair.post_send(message, .., SENT)?;
        if let Some(spent) = self.spent.take() {
            self.queue_pair.post_recv(spent, RECEIVED)?;
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Result<()> {
        while !self.step()? {}
        Ok(())
    }
}
