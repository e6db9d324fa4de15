//! Two connected ends, through the safe API.

use super::LONG;
use super::fabrics;
use rdma::soft::{Fabric, Profile, Topology};
use rdma::{
    Buffer, Completion, CompletionQueue, Context, Device, MemoryRegion, ProtectionDomain, Provider, QueuePair,
    QueuePairBuilder, Transfer,
};

/// One end: everything from the open device to the queue pair.
pub struct End {
    pub queue_pair: QueuePair,
    pub completions: CompletionQueue,
    pub region: MemoryRegion,
    pub domain: ProtectionDomain,
    pub context: Context,
}

/// How much memory an end has registered.
pub const MEMORY: usize = 4 << 20;

/// Two hosts with a cable, of the device's default rules.
pub fn fabric() -> Fabric {
    fabrics::mesh(2)
}

/// The same with a profile.
pub fn fabric_with(profile: Profile) -> Fabric {
    fabrics::new(Topology::mesh(2).unwrap(), profile)
}

/// The first device of a host.
pub fn device(fabric: &Fabric, host: usize) -> Device {
    Provider::soft(&fabric.host(host).unwrap()).unwrap().devices().unwrap().remove(0)
}

/// An end that is not connected yet.
pub struct Unconnected {
    pub completions: CompletionQueue,
    pub region: MemoryRegion,
    pub domain: ProtectionDomain,
    pub context: Context,
}

impl Unconnected {
    pub fn open(device: &Device, memory: usize) -> Self {
        let context = device.open().unwrap();
        let domain = context.protection_domain().unwrap();
        let completions = context.completion_queue(context.attributes().max_completions().min(4096)).unwrap();
        let region = domain.allocate(memory).unwrap();
        Unconnected { completions, region, domain, context }
    }
}

/// Connects the first devices of hosts 0 and 1, with queue pairs as `shape` has them.
pub fn connect(fabric: &Fabric, shape: impl for<'a> Fn(QueuePairBuilder<'a>) -> QueuePairBuilder<'a>) -> [End; 2] {
    connect_devices([&device(fabric, 0), &device(fabric, 1)], MEMORY, shape)
}

pub fn connect_devices(
    devices: [&Device; 2],
    memory: usize,
    shape: impl for<'a> Fn(QueuePairBuilder<'a>) -> QueuePairBuilder<'a>,
) -> [End; 2] {
    let ends = devices.map(|device| Unconnected::open(device, memory));
    let [one, other] = ends.each_ref().map(|end| shape(end.domain.queue_pair(&end.completions)).build().unwrap());
    let mut queue_pairs = <[_; 2]>::from(rdma::connect::pair(one, other).unwrap()).into_iter();
    ends.map(|Unconnected { completions, region, domain, context }| End {
        queue_pair: queue_pairs.next().unwrap(),
        completions,
        region,
        domain,
        context,
    })
}

/// Two connected ends with the defaults.
pub fn pair() -> [End; 2] {
    connect(&fabric(), |builder| builder)
}

impl End {
    /// A buffer with these contents.
    pub fn filled(&self, bytes: &[u8]) -> Buffer {
        let mut buffer = self.region.buffer(bytes.len()).unwrap();
        buffer.copy_from_slice(bytes);
        buffer
    }

    pub fn post_recv(&mut self, length: usize, token: u64) {
        let buffer = self.region.buffer(length).unwrap();
        self.queue_pair.post_recv(buffer, token).unwrap();
    }

    pub fn post_send(&mut self, bytes: &[u8], token: u64) {
        let buffer = self.filled(bytes);
        self.queue_pair.post_send(buffer, .., token).unwrap();
    }

    /// The next completion, which must come.
    #[track_caller]
    pub fn next(&mut self) -> Completion {
        self.completions.wait(LONG).unwrap()
    }

    /// The next completion, which must come and be a success.
    #[track_caller]
    pub fn success(&mut self) -> Transfer {
        self.next().into_result().unwrap()
    }

    /// Whether a poll finds nothing.
    #[track_caller]
    pub fn is_idle(&mut self) -> bool {
        self.completions.poll_one().unwrap().is_none()
    }
}
