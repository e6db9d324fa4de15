//! Things that are made and go, and what they leave behind.

use crate::duet::{Options, Stage, Stop};
use rdma::soft::Fabric;
use rdma::{Context, Provider, connect};
use std::time::{Duration, Instant};

fn open(fabric: &Fabric, host: usize) -> rdma::Result<Context> {
    Provider::soft(&fabric.host(host)?)?.first_active()?.open()
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

/// Regions of several lengths: to make one, to send its last bytes, to close it.
pub(crate) fn region_length(_: &Stage, options: &Options) -> Result<(), Stop> {
    const TIMEOUT: Duration = Duration::from_secs(30);
    println!("A region: to make it, to send 4 KiB from its end for the first time, to close it, in us");
    println!("       bytes |       made |       sent |     closed");
    let lengths: &[usize] = if options.quick { &[1 << 20] } else { &[1 << 20, 1 << 26, 1 << 30] };
    for &length in lengths {
        let fabric = Fabric::mesh(2)?;
        let (here, there) = (open(&fabric, 0)?, open(&fabric, 1)?);
        let (near, far) = (here.protection_domain()?, there.protection_domain()?);
        let begin = Instant::now();
        let region = near.allocate(length)?;
        let made = begin.elapsed();
        let target = far.allocate(4096)?;
        let (mut sent, mut received) = (here.completion_queue(16)?, there.completion_queue(16)?);
        let (near, far) = (near.queue_pair(&sent).build()?, far.queue_pair(&received).build()?);
        let (mut near, mut far) = connect::pair(near, far)?;
        far.post_recv(target.buffer(4096)?, 0)?;
        let (rest, end) = region.buffer(length)?.split_at(length - 4096);
        let begin = Instant::now();
        near.post_send(end, .., 0)?;
        received.wait(TIMEOUT)?.ok()?;
        let first = begin.elapsed();
        drop((sent.wait(TIMEOUT)?.ok()?, rest));
        let begin = Instant::now();
        region.close()?;
        let closed = begin.elapsed();
        println!("{length:>12} | {:>10.1} | {:>10.1} | {:>10.1}", micros(made), micros(first), micros(closed));
    }
    Ok(())
}

/// A thousand connections, one after another.
pub(crate) fn connections(_: &Stage, options: &Options) -> Result<(), Stop> {
    let each = if options.quick { 2 } else { 100 };
    println!("Connections made and closed one after another, both ends: us each, and memory of the process in KiB");
    println!("  connections |    us each |     memory");
    let fabric = Fabric::mesh(2)?;
    let (here, there) = (open(&fabric, 0)?, open(&fabric, 1)?);
    let (near, far) = (here.protection_domain()?, there.protection_domain()?);
    let (sent, received) = (here.completion_queue(64)?, there.completion_queue(64)?);
    for hundred in 0..10 {
        let begin = Instant::now();
        for _ in 0..each {
            let (near, far) = (near.queue_pair(&sent).build()?, far.queue_pair(&received).build()?);
            let (near, far) = connect::pair(near, far)?;
            near.close()?;
            far.close()?;
        }
        let time = micros(begin.elapsed()) / f64::from(each);
        let last = (hundred + 1) * each;
        let memory = resident().map_or_else(|| "-".to_owned(), |kib| kib.to_string());
        println!("{:>6} - {last:>4} | {time:>10.1} | {memory:>10}", last - each + 1);
    }
    Ok(())
}

/// The memory that the process has at this moment, in KiB, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
}
