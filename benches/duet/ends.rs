use super::Stop;
use rdma::soft::Fabric;
use rdma::{CompletionQueue, Context, MemoryRegion, ProtectionDomain, Provider, QueuePair, connect};
use std::hint::black_box;

/// One side of a contestant: it has a message to send, and receives posted ahead.
pub(crate) trait End {
    /// Sends the message, and then posts the last receive again, while the message is on its way.
    fn send(&mut self) -> Result<(), Stop>;

    /// Waits for the other side's message, and reads every cache line of it.
    fn receive(&mut self) -> Result<(), Stop>;

    /// Posts the last receive again, for an end that only receives.
    fn repost(&mut self) -> Result<(), Stop>;

    /// Writes the message anew, all of it.
    fn rewrite(&mut self, value: u8) -> Result<(), Stop>;
}

/// Reads every cache line.
#[inline]
pub(crate) fn touch(bytes: &[u8]) {
    let sum = bytes.iter().step_by(64).fold(0_u8, |sum, &byte| sum.wrapping_add(byte));
    black_box(sum);
}

/// Two open hosts of a software fabric.
#[derive(Debug)]
pub(crate) struct Hosts {
    contexts: [Context; 2],
    domains: [ProtectionDomain; 2],
}

/// A connected queue pair, and all that was made for it.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) queue_pair: QueuePair,
    pub(crate) completions: CompletionQueue,
    pub(crate) region: MemoryRegion,
}

impl Hosts {
    pub(crate) fn new() -> rdma::Result<Self> {
        let fabric = Fabric::mesh(2)?;
        let open = |host| Provider::soft(&fabric.host(host)?)?.first_active()?.open();
        let contexts = [open(0)?, open(1)?];
        let domains = [contexts[0].protection_domain()?, contexts[1].protection_domain()?];
        Ok(Hosts { contexts, domains })
    }

    /// A connection of its own for a contestant, with so many requests each way and so much memory at each end.
    pub(crate) fn connect(&self, requests: u32, memory: usize) -> rdma::Result<[Parts; 2]> {
        let prepare = |side: usize| -> rdma::Result<_> {
            let completions = self.contexts[side].completion_queue(2 * requests)?;
            let region = self.domains[side].allocate(memory)?;
            let prepared = self.domains[side].queue_pair(&completions).requests(requests).build()?;
            Ok((prepared, completions, region))
        };
        let (one, other) = (prepare(0)?, prepare(1)?);
        let (near, far) = connect::pair(one.0, other.0)?;
        let parts = |queue_pair, completions, region| Parts { queue_pair, completions, region };
        Ok([parts(near, one.1, one.2), parts(far, other.1, other.2)])
    }
}

/// Memory for so many buffers of one length, which begin at multiples of 128 bytes.
pub(crate) fn memory(buffers: usize, length: usize) -> usize {
    buffers * length.next_multiple_of(128)
}

/// Receives that each end of a ping-pong has posted ahead: with one it would wait for the other side's next post.
pub(crate) const AHEAD: usize = 2;
