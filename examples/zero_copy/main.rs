//! Sending memory that the program has already: a mapping of its own, without a copy into the library's.
//!
//! ```text
//! cargo run --example zero_copy
//! ```
//!
//! `ProtectionDomain::allocate` is the easy way to memory that a device can use. Where the bytes are somewhere already (in
//! a mapping, say, or in an arena of another library), the owner of that memory can be registered instead. What Rust cannot
//! check, the owner has to promise: see `StableMemory`.
//!
//! A mapped *file* is no `StableMemory`: another process may write the file at any time. It can be registered as
//! `SharedMemory`, whose buffers can be sent too, but not be seen as slices.

// For the promise of `StableMemory`, the only one.
#![allow(unsafe_code)]

use memmap2::{MmapMut, MmapRaw};
use rdma::soft::Fabric;
use rdma::{Buffer, Context, DeviceRules, ProtectionDomain, Provider, StableMemory, connect};
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::ptr::NonNull;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);
const LENGTH: usize = 1 << 20;

/// An anonymous mapping, and the part of it that begins where a device wants it to.
struct Mapping {
    map: MmapRaw,
    start: usize,
    length: usize,
}

impl Mapping {
    /// Maps memory and lets `fill` write it.
    fn new(length: usize, rules: &DeviceRules, fill: impl FnOnce(&mut [u8])) -> io::Result<Self> {
        // The system aligns mappings to its own pages, of 4 KiB on most machines; Apple's device wants 16 KiB.
        let mut map = MmapMut::map_anon(length + rules.alignment())?;
        let start = map.as_ptr().align_offset(rules.alignment());
        fill(&mut map[start..start + length]);
        // From here on there are no references into it, only an address.
        Ok(Mapping { map: MmapRaw::from(map), start, length })
    }

    fn address(&self) -> *mut u8 {
        self.map.as_mut_ptr().wrapping_add(self.start)
    }
}

// SAFETY: The mapping is private to this process, readable, writable and zeroed by the system. It stays where it is until
// `map` is dropped with the `Mapping`, wherever that is moved, and `start + length` lies within it. Nobody else reaches
// it: `map` is private to `Mapping`, whose methods read and write nothing once it is made, and it cannot be cloned.
unsafe impl StableMemory for Mapping {
    fn bytes(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(NonNull::new(self.address()).expect("a mapping is not at 0"), self.length)
    }
}

fn main() -> ExitCode {
    if std::env::args_os().len() > 1 {
        // If standard error is gone, there is nobody to tell.
        let _ = writeln!(
            io::stderr(),
            "zero_copy takes no arguments, and no variable of the environment changes what it does"
        );
        return ExitCode::from(2);
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "zero_copy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let fabric = Fabric::mesh(2)?;
    let open = |host| Provider::soft(&fabric.host(host)?)?.first_active()?.open();
    let (here, there) = (open(0)?, open(1)?);
    let (near, far) = (here.protection_domain()?, there.protection_domain()?);

    // The sender's mapping is registered as it is, with what is in it; so is the receiver's, which is empty.
    let numbers = |bytes: &mut [u8]| bytes.iter_mut().enumerate().for_each(|(place, byte)| *byte = place as u8);
    let (message, sent_from) = register(&near, Mapping::new(LENGTH, near.rules(), numbers)?)?;
    let (space, received_at) = register(&far, Mapping::new(LENGTH, far.rules(), |_| {})?)?;

    let (sent, received) = exchange([&here, &there], [&near, &far], message, space)?;
    let (from, at) = (sent.as_ptr(), received.as_ptr());
    let mut out = io::stdout().lock();
    writeln!(out, "sent     {LENGTH} bytes from {from:?}; the sender's mapping is at {sent_from:?}")
        .and_then(|()| {
            writeln!(out, "received {LENGTH} bytes at   {at:?}; the receiver's mapping is at {received_at:?}")
        })
        .map_err(|error| format!("cannot write the results: {error}"))?;
    assert!(from == sent_from && at == received_at, "something was copied");
    assert!(received[..] == sent[..], "the message is not what was sent");
    Ok(())
}

/// Registers a mapping. Returns the whole of it as one buffer, and where it lies.
fn register(domain: &ProtectionDomain, mapping: Mapping) -> rdma::Result<(Buffer, *const u8)> {
    let address = mapping.address().cast_const();
    // The region owns the mapping now, the buffer keeps the region, and dropping the buffer unmaps the memory in the end.
    Ok((domain.register(mapping)?.buffer(LENGTH)?, address))
}

/// Connects the two hosts, and sends `message` into `space`. Returns both.
fn exchange(
    contexts: [&Context; 2],
    domains: [&ProtectionDomain; 2],
    message: Buffer,
    space: Buffer,
) -> Result<(Buffer, Buffer), Box<dyn Error>> {
    let [here, there] = contexts;
    let (mut sent, mut received) = (here.completion_queue(16)?, there.completion_queue(16)?);
    let (near, far) = (domains[0].queue_pair(&sent).build()?, domains[1].queue_pair(&received).build()?);
    let (mut near, mut far) = connect::pair(near, far)?;

    far.post_recv(space, 1)?;
    near.post_send(message, .., 2)?;
    let sent = sent.wait(TIMEOUT)?.ok()?;
    let received = received.wait(TIMEOUT)?.ok()?;
    assert_eq!(received.len(), LENGTH);
    Ok((sent.into_buffer().ok_or("no buffer")?, received.into_buffer().ok_or("no buffer")?))
}
