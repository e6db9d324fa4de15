//! One message from one host to another: everything that it takes, in order.
//!
//! ```text
//! cargo run --example send_recv
//! ```
//!
//! Both hosts are software, and in this process. In real life each is a program of its own on a machine of its own, with
//! `Provider::system()`, and the endpoints travel over TCP (`connect::establish`; the README's program does that).

use rdma::{Provider, connect, soft::Fabric};
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    if std::env::args_os().len() > 1 {
        // If standard error is gone, there is nobody to tell.
        let _ = writeln!(
            io::stderr(),
            "send_recv takes no arguments, and no variable of the environment changes what it does"
        );
        return ExitCode::from(2);
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "send_recv: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    // Two Macs and a cable. Each has a device for each of its Thunderbolt ports; take the one with the cable, and open it.
    let fabric = Fabric::mesh(2)?;
    let open = |host| Provider::soft(&fabric.host(host)?)?.first_active()?.open();
    let (here, there) = (open(0)?, open(1)?);

    // Memory that the device may use: registered in a protection domain, and before the queue pair is connected.
    let (near, far) = (here.protection_domain()?, there.protection_domain()?);
    let (outgoing, incoming) = (near.allocate(4096)?, far.allocate(4096)?);

    // A queue pair on each side, and where its work completes.
    let (mut sent, mut received) = (here.completion_queue(16)?, there.completion_queue(16)?);
    let (near, far) = (near.queue_pair(&sent).build()?, far.queue_pair(&received).build()?);

    // Each publishes where it is, and connects to where the other is. Both are here, so one call does it.
    let (mut near, mut far) = connect::pair(near, far)?;

    // The receiver says where a message may go. Its length need not be known, but over Thunderbolt its number of 4 KiB frames.
    far.post_recv(incoming.buffer(4096)?, 1)?;

    // The sender writes, and gives the buffer away until the device is done with it.
    let mut buffer = outgoing.buffer(5)?;
    buffer.copy_from_slice(b"hello");
    near.post_send(buffer, .., 2)?;

    // Each buffer comes back with its completion, whose `ok` tells work that failed.
    let (sent, received) = (sent.wait(TIMEOUT)?.ok()?, received.wait(TIMEOUT)?.ok()?);
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    writeln!(io::stdout(), "sent {:?}, received {:?}", text(sent.bytes()), text(received.bytes()))
        .map_err(|error| format!("cannot write the results: {error}"))?;
    assert_eq!(received.bytes(), b"hello");
    Ok(())
}
