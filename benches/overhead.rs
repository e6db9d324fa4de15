//! What the safe API costs over the function table: one thread, two hosts, a receive and a send posted and both completions
//! polled. The two do the same work with the same messages; the difference is the safe layer.
//!
//! ```text
//! cargo bench --bench overhead
//! ```
#![allow(unsafe_code)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rdma::soft::Fabric;
use rdma::{Buffer, CompletionQueue, MemoryRegion, ProtectionDomain, Provider, QueuePair, connect};
use rdma_sys as sys;
use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Duration;

/// One end of a connection.
struct End {
    queue_pair: QueuePair,
    completions: CompletionQueue,
    region: MemoryRegion,
}

/// Two hosts of a fabric with a connected queue pair each.
fn connected() -> rdma::Result<[End; 2]> {
    let fabric = Fabric::mesh(2)?;
    let open = |host| -> rdma::Result<_> {
        let context = Provider::soft(&fabric.host(host)?)?.first_active()?.open()?;
        let domain = context.protection_domain()?;
        let completions = context.completion_queue(4096)?;
        let region = domain.allocate(1 << 20)?;
        Ok((domain, completions, region))
    };
    let [one, other] = [open(0)?, open(1)?];
    let prepare = |(domain, completions, _): &(ProtectionDomain, CompletionQueue, MemoryRegion)| {
        domain.queue_pair(completions).depth(1023).requests(64).build()
    };
    let (here, there) = connect::pair(prepare(&one)?, prepare(&other)?)?;
    let end = |queue_pair, (_, completions, region)| End { queue_pair, completions, region };
    Ok([end(here, one), end(there, other)])
}

/// The safe API.
fn safe(ends: &mut [End; 2], send: &mut Option<Buffer>, receive: &mut Option<Buffer>) -> Option<u64> {
    let [a, b] = ends;
    b.queue_pair.post_recv(receive.take()?, 1).ok()?;
    a.queue_pair.post_send(send.take()?, .., 2).ok()?;
    let received = b.completions.poll_one().ok()??.into_result().ok()?;
    let token = received.token();
    *receive = received.into_buffer();
    *send = a.completions.poll_one().ok()??.into_result().ok()?.into_buffer();
    Some(token)
}

/// The same objects through the function table, with memory of the same kind.
struct Raw {
    qp: [*mut sys::ibv_qp; 2],
    cq: [*mut sys::ibv_cq; 2],
    sge: [sys::ibv_sge; 2],
}

impl Raw {
    fn post_recv(&mut self) -> i32 {
        let mut wr = sys::ibv_recv_wr { wr_id: 1, next: null_mut(), sg_list: &raw mut self.sge[1], num_sge: 1 };
        // SAFETY: live objects (the benchmark keeps the ends), and a request over registered memory.
        unsafe { sys::ibv_post_recv(self.qp[1], &mut wr, &mut null_mut()) }
    }

    fn post_send(&mut self) -> i32 {
        let mut wr = sys::ibv_send_wr {
            wr_id: 2,
            sg_list: &raw mut self.sge[0],
            num_sge: 1,
            opcode: sys::ibv_wr_opcode::IBV_WR_SEND,
            send_flags: sys::IBV_SEND_SIGNALED,
            ..Default::default()
        };
        // SAFETY: as above.
        unsafe { sys::ibv_post_send(self.qp[0], &mut wr, &mut null_mut()) }
    }

    fn poll(&self, end: usize) -> u64 {
        let mut wc = sys::ibv_wc::default();
        // SAFETY: a live queue and room for one.
        let count = unsafe { sys::ibv_poll_cq(self.cq[end], 1, &mut wc) };
        assert_eq!((count, wc.status), (1, sys::ibv_wc_status::IBV_WC_SUCCESS));
        wc.wr_id
    }

    fn exchange(&mut self) -> u64 {
        assert_eq!(self.post_recv(), 0);
        assert_eq!(self.post_send(), 0);
        self.poll(1) + self.poll(0)
    }
}

fn raw(ends: &[End; 2], send: &Buffer, receive: &Buffer) -> Raw {
    let sge = |end: &End, buffer: &Buffer| sys::ibv_sge {
        addr: buffer.as_ptr().addr() as u64,
        length: buffer.len() as u32,
        // SAFETY: a live region; its key is read.
        lkey: unsafe { (*end.region.as_raw()).lkey },
    };
    // SAFETY: live objects. Their safe handles are not used while these are.
    unsafe {
        Raw {
            qp: [ends[0].queue_pair.as_raw(), ends[1].queue_pair.as_raw()],
            cq: [ends[0].completions.as_raw(), ends[1].completions.as_raw()],
            sge: [sge(&ends[0], send), sge(&ends[1], receive)],
        }
    }
}

fn overhead(criterion: &mut Criterion) {
    for length in [8, 64, 4096] {
        let mut group = criterion.benchmark_group(format!("post and poll, {length} B"));
        group.throughput(Throughput::Elements(2));
        group.bench_function("raw", |bencher| {
            let ends = connected().expect("a fabric in memory");
            let buffers = [0, 1].map(|end: usize| ends[end].region.buffer(length).expect("a megabyte"));
            let mut raw = raw(&ends, &buffers[0], &buffers[1]);
            bencher.iter(|| black_box(raw.exchange()));
        });
        group.bench_function("safe", |bencher| {
            let mut ends = connected().expect("a fabric in memory");
            let mut send = ends[0].region.buffer(length).ok();
            let mut receive = ends[1].region.buffer(length).ok();
            bencher.iter(|| black_box(safe(&mut ends, &mut send, &mut receive)).expect("a message"));
        });
        group.finish();
    }
    let mut group = criterion.benchmark_group("an empty poll");
    group.bench_function("raw", |bencher| {
        let ends = connected().expect("a fabric in memory");
        // SAFETY: a live queue.
        let cq = unsafe { ends[0].completions.as_raw() };
        let mut wc = sys::ibv_wc::default();
        // SAFETY: a live queue and room for one.
        bencher.iter(|| black_box(unsafe { sys::ibv_poll_cq(cq, 1, &mut wc) }));
    });
    group.bench_function("safe", |bencher| {
        let mut ends = connected().expect("a fabric in memory");
        bencher.iter(|| black_box(ends[0].completions.poll_one()).is_ok());
    });
    group.finish();
}

criterion_group! {
    name = benches;
    // What is measured takes nanoseconds: a second has enough of it.
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = overhead
}
criterion_main!(benches);
