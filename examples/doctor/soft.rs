//! The software fabric: whether a message crosses it.

use crate::finding::Finding;
use rdma::soft::{Fabric, Host, Topology};
use rdma::{Provider, Result, connect};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);
const REMEDY: &str = "this should work everywhere: report it, with this output";

const CHANGED: &str = "a message over the software fabric arrived changed";

/// In this process, and as a file that processes share.
pub(crate) fn check() -> Vec<Finding> {
    let private = Fabric::mesh(2).and_then(|fabric| message(&fabric.host(0)?, &fabric.host(1)?));
    let private = match private {
        Ok(true) => Finding::ok("soft", "a message crosses a software fabric of two hosts"),
        Ok(false) => Finding::problem("soft", CHANGED, REMEDY),
        Err(error) => Finding::problem("soft", "the software fabric does not work", REMEDY).evidence(error.to_string()),
    };
    // A name that no other process has; the file goes with the last of its hosts.
    let name = format!("doctor-{}", std::process::id());
    let join = |host| Fabric::join(&name, Topology::mesh(2)?, host);
    let shared = match join(0).and_then(|here| message(&here, &join(1)?)) {
        Ok(false) => Finding::problem("soft-shared", CHANGED, REMEDY),
        Ok(true) => Finding::ok("soft-shared", "a fabric that processes share can be made, and a message crosses it"),
        Err(error) => {
            let remedy =
                "see the error; RDMA_SOFT_DIRECTORY names another folder for its file, which a container may lack";
            Finding::problem("soft-shared", "no fabric that processes share can be made", remedy)
                .evidence(error.to_string())
        }
    };
    vec![private, shared]
}

/// Sends a message of two frames from one host to the other, and tells whether it arrived as it was.
fn message(near: &Host, far: &Host) -> Result<bool> {
    const LENGTH: usize = 5000;
    let open = |host| Provider::soft(host)?.first_active()?.open();
    let (here, there) = (open(near)?, open(far)?);
    let (near, far) = (here.protection_domain()?, there.protection_domain()?);
    let (outgoing, incoming) = (near.allocate(8192)?, far.allocate(8192)?);
    let (mut sent, mut received) = (here.completion_queue(16)?, there.completion_queue(16)?);
    let (near, far) = (near.queue_pair(&sent).build()?, far.queue_pair(&received).build()?);
    let (mut near, mut far) = connect::pair(near, far)?;
    far.post_recv(incoming.buffer(8192)?, 1)?;
    let mut buffer = outgoing.buffer(LENGTH)?;
    let bytes = || (0..LENGTH).map(|at| (at % 251) as u8);
    buffer.iter_mut().zip(bytes()).for_each(|(byte, value)| *byte = value);
    near.post_send(buffer, .., 2)?;
    let received = received.wait(TIMEOUT)?.ok()?;
    sent.wait(TIMEOUT)?.ok()?;
    Ok(received.bytes().iter().copied().eq(bytes()))
}
