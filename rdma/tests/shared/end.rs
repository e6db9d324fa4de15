//! One end of a connection, driven by words, so that a process can be told what to do.

use crate::support::{LONG, pattern};
use rdma::soft::Host;
use rdma::{CompletionQueue, Direction, Endpoint, MemoryRegion, PreparedQueuePair, Provider, QueuePair};
use std::time::Duration;

/// Everything from the provider to the queue pair.
pub(super) struct End {
    prepared: Option<PreparedQueuePair>,
    pub queue_pair: Option<QueuePair>,
    pub completions: CompletionQueue,
    pub region: MemoryRegion,
    pub domain: rdma::ProtectionDomain,
    pub context: rdma::Context,
}

impl End {
    pub(super) fn open(host: &Host, device: usize) -> End {
        let device = Provider::soft(host).unwrap().devices().unwrap().remove(device);
        let context = device.open().unwrap();
        let domain = context.protection_domain().unwrap();
        let completions = context.completion_queue(4096).unwrap();
        let region = domain.allocate(24 << 20).unwrap();
        End { prepared: None, queue_pair: None, completions, region, domain, context }
    }

    pub(super) fn prepare(&mut self) -> Endpoint {
        // One queue pair at a time.
        self.queue_pair = None;
        let mut prepared = self.domain.queue_pair(&self.completions).depth(1023).requests(1000).build().unwrap();
        let port = self.context.port(1).unwrap();
        let endpoint = prepared.endpoint(&port, port.gid().unwrap()).unwrap();
        self.prepared = Some(prepared);
        endpoint
    }

    /// Receives that are posted before the connection is made.
    pub(super) fn connect(&mut self, peer: &Endpoint) {
        self.try_connect(peer).unwrap();
    }

    pub(super) fn try_connect(&mut self, peer: &Endpoint) -> rdma::Result<()> {
        let prepared = self.prepared.take().unwrap();
        self.queue_pair = Some(prepared.connect(peer)?);
        Ok(())
    }

    pub(super) fn recv(&mut self, length: usize, token: u64) {
        let buffer = self.region.buffer(length).unwrap();
        self.queue_pair.as_mut().unwrap().post_recv(buffer, token).unwrap();
    }

    /// Sends the bytes of the pattern `seed`. Returns whether there was room.
    pub(super) fn send(&mut self, length: usize, seed: u64) -> bool {
        let mut buffer = self.region.buffer(length).unwrap();
        buffer.copy_from_slice(&pattern(seed, length));
        self.queue_pair.as_mut().unwrap().post_send(buffer, .., seed).is_ok()
    }

    /// The next completion in words, or `none`: `sent TOKEN`, `received TOKEN LENGTH good` or `failed TOKEN STATUS`. A
    /// received message is good if it is the pattern of the number `seed` of its sender.
    pub(super) fn next(&mut self, timeout: Duration, seed: u64) -> String {
        let completion = match self.completions.wait(timeout) {
            Ok(completion) => completion,
            Err(error) => {
                assert_eq!(error.kind(), rdma::ErrorKind::TimedOut, "{error}");
                return "none".to_owned();
            }
        };
        let (token, direction) = (completion.token(), completion.direction());
        match completion.into_result() {
            Ok(_) if direction == Direction::Send => format!("sent {token}"),
            Ok(transfer) => {
                let good = transfer.bytes() == pattern(seed, transfer.len());
                format!("received {token} {} {}", transfer.len(), if good { "good" } else { "bad" })
            }
            Err(failure) => format!("failed {token} {}", failure.status()),
        }
    }

    /// Does what a line says; the answer is a line.
    pub(super) fn obey(&mut self, line: &str) -> String {
        let mut words = line.split_whitespace();
        let command = words.next().unwrap_or("");
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap();
        match command {
            "prepare" => self.prepare().to_string(),
            "connect" => {
                self.connect(&words.next().unwrap().parse().unwrap());
                "ok".to_owned()
            }
            "recv" => {
                self.recv(number() as usize, number());
                "ok".to_owned()
            }
            "send" => {
                let length = number() as usize;
                if self.send(length, number()) { "ok".to_owned() } else { "full".to_owned() }
            }
            "wait" => self.next(LONG, number()),
            "poll" => self.next(Duration::ZERO, number()),
            "close" => {
                self.queue_pair = None;
                "ok".to_owned()
            }
            // How many descriptors and mappings the process has.
            "count" => {
                let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).map_or(0, Iterator::count);
                format!("{} {}", count("fd"), count("map_files"))
            }
            // Receives and answers messages as fast as it can, for ever.
            "echo" => {
                let length = number() as usize;
                println!("@ok");
                self.echo(length)
            }
            other => panic!("what is {other:?}?"),
        }
    }

    fn echo(&mut self, length: usize) -> ! {
        let queue_pair = self.queue_pair.as_mut().unwrap();
        let mut answer = None;
        loop {
            let Ok(completion) = self.completions.wait(LONG) else { continue };
            let direction = completion.direction();
            let Ok(transfer) = completion.into_result() else { continue };
            let token = transfer.token();
            if direction == Direction::Send {
                answer = transfer.into_buffer();
                continue;
            }
            let buffer = transfer.into_buffer().unwrap();
            let mut out = answer.take().or_else(|| self.region.buffer(length).ok()).unwrap();
            out.copy_from_slice(&buffer[..length]);
            let _ = queue_pair.post_send(out, .., token);
            queue_pair.post_recv(buffer, token).unwrap();
        }
    }
}
