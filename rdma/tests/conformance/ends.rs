//! Two connected ends on the provider that is tested.
#![allow(unsafe_code)]

use crate::support::{LONG, fabrics};
use rdma::soft::{Fabric, Topology};
use rdma::{
    Buffer, Completion, CompletionQueue, Context, Device, MemoryRegion, PreparedQueuePair, ProtectionDomain, Provider,
    QueuePair, QueuePairBuilder, QueuePairType, Transfer, connect,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The two devices, and the right to use them: a device has few queue pairs, so tests take turns.
pub(super) struct Link {
    pub(super) devices: [Device; 2],
    _turn: MutexGuard<'static, ()>,
}

fn named(provider: &Provider, names: &str) -> [Device; 2] {
    let mut names = names.split(',');
    let first = names.next().unwrap();
    [first, names.next().unwrap_or(first)].map(|name| provider.device(name).unwrap())
}

impl Link {
    pub(super) fn open() -> Link {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let provider = std::env::var("RDMA_TEST_PROVIDER").unwrap_or_default();
        let devices = match provider.split_once(':') {
            Some(("library", path)) => {
                // SAFETY: the file is this repository's verbs library, as the variable's owner promises.
                let provider = unsafe { Provider::library(path) }.unwrap();
                ["0", "1"].map(|host| {
                    // SAFETY: the other threads of this program wait for their turn; none reads the environment.
                    unsafe { std::env::set_var("RDMA_SOFT_HOST", host) };
                    provider.first_active().unwrap()
                })
            }
            _ if provider == "system" => {
                let names = std::env::var("RDMA_TEST_DEVICES").expect("RDMA_TEST_DEVICES names the devices");
                named(&Provider::system().unwrap(), &names)
            }
            _ => {
                let profile = std::env::var("RDMA_TEST_PROFILE").unwrap_or_else(|_| "thunderbolt".to_owned());
                let (topology, profile) = (Topology::mesh(2).unwrap(), profile.parse().unwrap());
                let fabric = match provider.as_str() {
                    "shared" => Fabric::join_with(&fabrics::name(), topology, profile, 0).unwrap().fabric(),
                    _ => Fabric::new(topology, profile),
                };
                [0, 1].map(|host| Provider::soft(&fabric.host(host).unwrap()).unwrap().first_active().unwrap())
            }
        };
        Link { devices, _turn: turn }
    }

    pub(super) fn ends(&self) -> [Unconnected; 2] {
        self.devices.each_ref().map(Unconnected::open)
    }

    /// Two connected ends, with queue pairs as `shape` has them.
    pub(super) fn connect(&self, shape: impl for<'a> Fn(QueuePairBuilder<'a>) -> QueuePairBuilder<'a>) -> [End; 2] {
        let ends = self.ends();
        let [one, other] = ends.each_ref().map(|end| end.prepare(&shape));
        let (one, other) = connect::pair(one, other).unwrap();
        let mut queue_pairs = [one, other].into_iter();
        ends.map(|end| End {
            queue_pair: queue_pairs.next().unwrap(),
            completions: end.completions,
            region: end.region,
            _domain: end.domain,
            context: end.context,
        })
    }
}

/// An end without a queue pair.
pub(super) struct Unconnected {
    pub(super) completions: CompletionQueue,
    pub(super) region: MemoryRegion,
    pub(super) domain: ProtectionDomain,
    pub(super) context: Context,
}

/// The type of queue pair that is tested.
pub(super) fn queue_pair_type() -> QueuePairType {
    match std::env::var("RDMA_TEST_TYPE").as_deref() {
        Ok("rc") => QueuePairType::RC,
        _ => QueuePairType::UC,
    }
}

impl Unconnected {
    fn open(device: &Device) -> Self {
        let context = device.open().unwrap();
        let domain = context.protection_domain().unwrap();
        let completions = context.completion_queue(256).unwrap();
        let region = domain.allocate(4 << 20).unwrap();
        Unconnected { completions, region, domain, context }
    }

    pub(super) fn prepare(
        &self,
        shape: impl for<'a> Fn(QueuePairBuilder<'a>) -> QueuePairBuilder<'a>,
    ) -> PreparedQueuePair {
        let builder = self.domain.queue_pair(&self.completions).queue_pair_type(queue_pair_type()).requests(64);
        shape(builder).build().unwrap()
    }
}

/// A connected end. The queue pair goes first.
pub(super) struct End {
    pub(super) queue_pair: QueuePair,
    pub(super) completions: CompletionQueue,
    pub(super) region: MemoryRegion,
    _domain: ProtectionDomain,
    pub(super) context: Context,
}

impl End {
    pub(super) fn filled(&self, bytes: &[u8]) -> Buffer {
        let mut buffer = self.region.buffer(bytes.len()).unwrap();
        buffer.copy_from_slice(bytes);
        buffer
    }

    pub(super) fn post_recv(&mut self, length: usize, token: u64) {
        let buffer = self.region.buffer(length).unwrap();
        self.queue_pair.post_recv(buffer, token).unwrap();
    }

    pub(super) fn post_send(&mut self, bytes: &[u8], token: u64) {
        let buffer = self.filled(bytes);
        self.queue_pair.post_send(buffer, .., token).unwrap();
    }

    #[track_caller]
    pub(super) fn next(&mut self) -> Completion {
        self.completions.wait(LONG).unwrap()
    }

    #[track_caller]
    pub(super) fn success(&mut self) -> Transfer {
        self.next().into_result().unwrap()
    }
}
