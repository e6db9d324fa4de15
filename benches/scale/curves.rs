//! Costs as functions of a number, on one thread.

use crate::duet::ends::memory;
use crate::duet::{Options, Sorted, Stage, Stop};
use rdma::soft::Fabric;
use rdma::{
    Buffer, CompletionQueue, Context, MemoryRegion, PreparedQueuePair, ProtectionDomain, Provider, QueuePair, connect,
};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(30);

/// How many times something is done in a batch.
const TURNS: u32 = 100;

/// Times what `work` does, by batches, and returns the 10th percentile and the median of one turn, in nanoseconds.
fn time(stage: &Stage, options: &Options, mut work: impl FnMut() -> Result<(), Stop>) -> Result<Sorted, Stop> {
    let (mut samples, begin) = (Vec::new(), Instant::now());
    while samples.len() < 3 || !options.quick && begin.elapsed() < options.time {
        let from = stage.clock.ticks();
        for _ in 0..TURNS {
            work()?;
        }
        samples.push(stage.clock.nanoseconds(from, stage.clock.ticks()) as f64 / f64::from(TURNS));
    }
    Ok(Sorted::new(samples))
}

/// A sample's percentile and median, in columns.
fn columns(times: &Sorted) -> String {
    format!("{:>9.1} {:>9.1}", times.per_mille(100), times.median())
}

/// An open device, with memory and a completion queue.
struct Device {
    domain: ProtectionDomain,
    completions: CompletionQueue,
    region: MemoryRegion,
}

impl Device {
    fn open(context: &Context, capacity: u32, bytes: usize) -> rdma::Result<Self> {
        let domain = context.protection_domain()?;
        let (completions, region) = (context.completion_queue(capacity)?, domain.allocate(bytes)?);
        Ok(Device { domain, completions, region })
    }

    fn prepare(&self, sends: u32, receives: u32) -> rdma::Result<PreparedQueuePair> {
        self.domain.queue_pair(&self.completions).send_requests(sends).receive_requests(receives).build()
    }
}

fn two_devices(capacity: u32, bytes: usize) -> rdma::Result<[Device; 2]> {
    let fabric = Fabric::mesh(2)?;
    let open = |host| Device::open(&first_device(&fabric, host)?, capacity, bytes);
    Ok([open(0)?, open(1)?])
}

fn first_device(fabric: &Fabric, host: usize) -> rdma::Result<Context> {
    Provider::soft(&fabric.host(host)?)?.first_active()?.open()
}

/// One message from here to there, with memory that is used again and again.
struct Message {
    source: Option<Buffer>,
    target: Option<Buffer>,
}

impl Message {
    fn new(from: &MemoryRegion, to: &MemoryRegion, size: usize) -> rdma::Result<Self> {
        Ok(Message { source: Some(from.buffer(size)?), target: Some(to.buffer(size)?) })
    }

    fn travel(
        &mut self,
        queue_pairs: (&mut QueuePair, &mut QueuePair),
        completions: [&mut CompletionQueue; 2],
    ) -> Result<(), Stop> {
        if let (Some(source), Some(target)) = (self.source.take(), self.target.take()) {
            queue_pairs.1.post_recv(target, 0)?;
            queue_pairs.0.post_send(source, .., 0)?;
        }
        let [sent, received] = completions;
        self.target = received.wait(TIMEOUT)?.ok()?.into_buffer();
        self.source = sent.wait(TIMEOUT)?.ok()?.into_buffer();
        Ok(())
    }
}

/// Queue pairs that do nothing, on the completion queue of one that does.
pub(crate) fn queue_pairs(stage: &Stage, options: &Options) -> Result<(), Stop> {
    println!("Queue pairs on one completion queue, of which one is used: ns (p10, median)");
    println!("queue pairs |        an empty poll |   a message of 64 B");
    for count in [1, 2, 4, 7, 10] {
        let [mut here, mut there] = two_devices(1024, memory(2, 64))?;
        let pairs = (0..count).map(|_| connect::pair(here.prepare(16, 16)?, there.prepare(16, 16)?));
        let mut pairs = pairs.collect::<rdma::Result<Vec<_>>>()?;
        let mut message = Message::new(&here.region, &there.region, 64)?;
        let (polls, messages) = stage.solo(|| {
            let polls = time(stage, options, || {
                here.completions.poll_one()?;
                Ok(())
            })?;
            let (near, far) = &mut pairs[0];
            let messages =
                time(stage, options, || message.travel((near, far), [&mut here.completions, &mut there.completions]))?;
            Ok((polls, messages))
        })?;
        println!("{count:>11} | {} | {}", columns(&polls), columns(&messages));
    }
    Ok(())
}

/// Two hosts of a mesh in which every two are connected.
pub(crate) fn hosts(stage: &Stage, options: &Options) -> Result<(), Stop> {
    println!("A message of 64 B between two hosts of a mesh whose devices are all connected: ns (p10, median)");
    println!("hosts | connections |           a message");
    for count in [2, 4, 6, 8] {
        let fabric = Fabric::mesh(count)?;
        let (mut devices, mut all) = (Vec::new(), Vec::new());
        for low in 0..count {
            for high in low + 1..count {
                let open = |host: usize, device: usize| {
                    let context = Provider::soft(&fabric.host(host)?)?.devices()?[device].open()?;
                    Device::open(&context, 64, memory(2, 64))
                };
                // The order of a mesh's devices is that of the peers' numbers.
                let (one, other) = (open(low, high - 1)?, open(high, low)?);
                all.push(connect::pair(one.prepare(16, 16)?, other.prepare(16, 16)?)?);
                devices.push([one, other]);
            }
        }
        let [here, there] = &mut devices[0];
        let mut message = Message::new(&here.region, &there.region, 64)?;
        let (near, far) = &mut all[0];
        let messages = stage.solo(|| {
            time(stage, options, || message.travel((near, far), [&mut here.completions, &mut there.completions]))
        })?;
        println!("{count:>5} | {:>11} | {}", all.len(), columns(&messages));
    }
    Ok(())
}

/// Sends that wait for their receives, up to all that the queue holds.
pub(crate) fn outstanding(stage: &Stage, options: &Options) -> Result<(), Stop> {
    println!("Sends of 1 B that all wait for their receives: ns a message (p10, median), posted, matched and polled");
    println!("  sends |           a message");
    for count in [1_u32, 16, 256, 1024, 4095] {
        let [mut here, mut there] = two_devices(4096, memory(4095, 1))?;
        let (mut near, mut far) = connect::pair(here.prepare(4095, 1)?, there.prepare(1, 4095)?)?;
        let mut sources = here.region.buffers(count as usize, 1)?;
        let mut targets = there.region.buffers(count as usize, 1)?;
        let times = stage.solo(|| {
            let (mut samples, begin) = (Vec::new(), Instant::now());
            while samples.len() < 3 || !options.quick && begin.elapsed() < options.time {
                let from = stage.clock.ticks();
                for source in sources.drain(..) {
                    near.post_send(source, .., 0)?;
                }
                for target in targets.drain(..) {
                    far.post_recv(target, 0)?;
                }
                while targets.len() < count as usize {
                    targets.extend(there.completions.wait(TIMEOUT)?.ok()?.into_buffer());
                }
                while sources.len() < count as usize {
                    sources.extend(here.completions.wait(TIMEOUT)?.ok()?.into_buffer());
                }
                samples.push(stage.clock.nanoseconds(from, stage.clock.ticks()) as f64 / f64::from(count));
            }
            Ok(Sorted::new(samples))
        })?;
        println!("{count:>7} | {}", columns(&times));
    }
    Ok(())
}

/// Regions besides the one that is used.
pub(crate) fn regions(stage: &Stage, options: &Options) -> Result<(), Stop> {
    println!("A message of 64 B on a device with so many regions: ns (p10, median)");
    println!("regions |           a message");
    for count in [1, 10, 50, 100] {
        let [mut here, mut there] = two_devices(64, memory(2, 64))?;
        let more = (1..count).map(|_| here.domain.allocate(4096)).collect::<rdma::Result<Vec<_>>>()?;
        let (mut near, mut far) = connect::pair(here.prepare(16, 16)?, there.prepare(16, 16)?)?;
        let from = more.last().unwrap_or(&here.region);
        let mut message = Message::new(from, &there.region, 64)?;
        let messages = stage.solo(|| {
            time(stage, options, || {
                message.travel((&mut near, &mut far), [&mut here.completions, &mut there.completions])
            })
        })?;
        println!("{count:>7} | {}", columns(&messages));
    }
    Ok(())
}
