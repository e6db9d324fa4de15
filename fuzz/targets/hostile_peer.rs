//! A shared fabric in whose file somebody writes what no peer that keeps to the protocol writes, between the calls of two
//! ends that post, poll, close and connect. Whatever stands there: no call fails but with an error, each request comes back
//! at most once, a receive is as long as it was, no other memory is written, and all buffers come back in the end.
#![no_main]
#![allow(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use rdma::soft::{Fabric, Profile, Topology};
use rdma::{Buffer, CompletionQueue, Context, MemoryRegion, ProtectionDomain, Provider, QueuePair, connect};
use rdma_fuzz::Choices;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

const LENGTHS: [usize; 8] = [1, 8, 48, 49, 4096, 4097, 20_000, 70_000];

struct End {
    queue_pair: Option<QueuePair>,
    completions: CompletionQueue,
    region: MemoryRegion,
    /// Beside the posted ones, and never posted.
    canary: Buffer,
    domain: ProtectionDomain,
    _context: Context,
    /// The tokens of what is in flight, and the lengths of receives.
    posted: HashMap<u64, Option<usize>>,
    next: u64,
}

impl End {
    fn open(fabric: &Fabric, host: usize) -> Self {
        let device = Provider::soft(&fabric.host(host).unwrap()).unwrap().first_active().unwrap();
        let context = device.open().unwrap();
        let domain = context.protection_domain().unwrap();
        let completions = context.completion_queue(256).unwrap();
        let region = domain.allocate(2 << 20).unwrap();
        let mut canary = region.buffer(4096).unwrap();
        canary.fill(0xca);
        End {
            queue_pair: None,
            completions,
            region,
            canary,
            domain,
            _context: context,
            posted: HashMap::new(),
            next: 0,
        }
    }

    fn token(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn post(&mut self, length: usize, receive: bool, byte: u8) {
        let token = self.token();
        let (Some(queue_pair), Ok(mut buffer)) = (&mut self.queue_pair, self.region.buffer(length)) else { return };
        buffer.fill(byte);
        let posted = match receive {
            true => queue_pair.post_recv(buffer, token).is_ok(),
            false => queue_pair.post_send(buffer, .., token).is_ok(),
        };
        if posted {
            self.posted.insert(token, receive.then_some(length));
        }
    }

    fn poll(&mut self, count: usize) {
        for _ in 0..count {
            let Some(completion) = self.completions.poll_one().unwrap() else { return };
            let receive =
                self.posted.remove(&completion.token()).expect("a completion that is nobody's, or a second one");
            if let (Ok(transfer), Some(length)) = (completion.into_result(), receive) {
                assert!(transfer.len() <= length);
                assert_eq!(transfer.bytes().len(), transfer.len());
            }
        }
    }

    fn close(&mut self) {
        if let Some(queue_pair) = self.queue_pair.take() {
            for unfinished in &queue_pair.close().unwrap() {
                self.posted.remove(&unfinished.token).expect("returned and not posted");
            }
        }
    }

    fn prepare(&self) -> Option<rdma::PreparedQueuePair> {
        self.domain.queue_pair(&self.completions).depth(100).requests(100).build().ok()
    }
}

/// The words that a fabric's file has, apart from the header.
struct Words {
    file: File,
    /// In bytes: where something has been written.
    extents: Vec<(u64, u64)>,
}

impl Words {
    fn find(&mut self) {
        self.extents.clear();
        let mut end = 0;
        loop {
            // SAFETY: plain calls on an open file.
            let start = unsafe { libc::lseek(self.file.as_raw_fd(), end, libc::SEEK_DATA) };
            if start < 0 {
                return;
            }
            // SAFETY: as above.
            end = unsafe { libc::lseek(self.file.as_raw_fd(), start, libc::SEEK_HOLE) };
            // What is in front is for those who join.
            self.extents.push(((start as u64).max(4096), end as u64));
        }
    }

    /// Writes to a word, mostly at the beginning of a page, where more is at stake.
    fn write(&mut self, choices: &mut Choices<'_>) {
        self.find();
        let (start, end) = self.extents[choices.below(self.extents.len())];
        let pages = ((end - start) / 4096).max(1);
        let page = start + choices.word() % pages * 4096;
        let offset = page + 8 * choices.below(512) as u64;
        let mut old = [0; 8];
        if offset + 8 > end || self.file.read_exact_at(&mut old, offset).is_err() {
            return;
        }
        let old = u64::from_le_bytes(old);
        let new = match choices.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => old.wrapping_add(1),
            3 => old.wrapping_sub(1),
            4 => old ^ 1 << choices.below(64),
            5 => old & 0xffff_ffff | u64::from(choices.byte()) << 32,
            6 => old & !0xffff_ffff | u64::from(choices.byte()),
            _ => choices.word(),
        };
        self.file.write_all_at(&new.to_le_bytes(), offset).unwrap();
    }

    /// Writes a descriptor as a sender does, of any message.
    fn announce(&mut self, choices: &mut Choices<'_>) {
        self.find();
        // An area begins at a multiple of 16 KiB, behind the control part; its header is 128 bytes long.
        let starts: Vec<u64> =
            self.extents.iter().skip(1).map(|extent| extent.0).filter(|start| start % 16384 == 0).collect();
        if starts.is_empty() {
            return;
        }
        let place = starts[choices.below(starts.len())] + 128 + 64 * choices.below(64) as u64;
        let flags = choices.of(&[0_u64, 1 << 48, u64::MAX << 48]);
        let mark = u64::from(choices.byte() % 8) << 32 | u64::from(choices.byte() % 64);
        let length = choices.of(&[0_u32, 1, 8, 48, 49, 4096, 4097, 70_000, 16_773_120, u32::MAX]);
        let what = flags | u64::from(length) | u64::from(choices.of(&[0_u16, 1, 63, 1022, 2045, 2046, u16::MAX])) << 32;
        let bytes = [what, mark].map(u64::to_le_bytes);
        self.file.write_all_at(&bytes[0], place + 8).unwrap();
        self.file.write_all_at(&bytes[1], place).unwrap();
    }
}

fn join_ends(ends: &mut [End; 2]) {
    ends.iter_mut().for_each(End::close);
    let [one, other] = ends;
    if let (Some(here), Some(there)) = (one.prepare(), other.prepare())
        && let Ok((here, there)) = connect::pair(here, there)
    {
        (one.queue_pair, other.queue_pair) = (Some(here), Some(there));
    }
}

fuzz_target!(|bytes: &[u8]| {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("fuzz-{}-{count}", std::process::id());
    let mut choices = Choices::new(bytes);
    let profile = if choices.flag() { Profile::classic() } else { Profile::thunderbolt() };
    let fabric = Fabric::join_with(&name, Topology::mesh(2).unwrap(), profile, 0).unwrap().fabric();
    // SAFETY: no preconditions.
    let path = format!("/dev/shm/rdma-soft-{}-{name}", unsafe { libc::geteuid() });
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let mut words = Words { file, extents: Vec::new() };
    let mut ends = [0, 1].map(|host| End::open(&fabric, host));
    join_ends(&mut ends);
    for _ in 0..200 {
        if choices.is_over() {
            break;
        }
        let kind = choices.below(16);
        let end = &mut ends[choices.below(2)];
        match kind {
            0..=2 => {
                let length = choices.of(&LENGTHS);
                end.post(length, true, 0);
            }
            3..=5 => {
                let length = choices.of(&LENGTHS);
                end.post(length, false, 0x5e);
            }
            6..=8 => end.poll(8),
            9..=11 => words.write(&mut choices),
            12 | 13 => words.announce(&mut choices),
            14 => end.close(),
            _ => join_ends(&mut ends),
        }
    }
    for end in &mut ends {
        end.poll(300);
        end.close();
        assert!(end.completions.wait(Duration::ZERO).is_err());
        assert!(end.canary.iter().all(|&byte| byte == 0xca), "memory beside the receives was written");
        assert_eq!(end.region.available(), end.region.len() - end.canary.len());
    }
    drop((ends, fabric));
    // The ruined file may look as if others were in it.
    let _ = std::fs::remove_file(path);
});
