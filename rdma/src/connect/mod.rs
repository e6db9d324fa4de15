//! Connecting two queue pairs with the help of a TCP connection between their programs.
//!
//! Verbs connect two ends that already know each other's [`Endpoint`]; how they come to know is left to the program. This
//! module does it the way that everybody who runs on Macs ended up with, in two steps, because the program has to post its
//! receives in between:
//!
//! 1. [`establish`] exchanges the endpoints and connects;
//! 2. the program posts its first receives;
//! 3. [`Link::ready`] waits until the peer has done so, too. From then on both may send. (What is sent before the peer is
//!    connected is lost; before it has posted receives, it waits or is lost, as the device has it.)
//!
//! Keep the [`Link`]: a peer that dies shows neither as a completion nor as an event, only [there](Link::is_alive).
//!
//! ```
//! # use rdma::{Provider, connect, soft::Fabric};
//! # use std::net::{TcpListener, TcpStream};
//! # use std::time::Duration;
//! # fn main() -> rdma::Result<()> {
//! # let fabric = Fabric::mesh(2)?;
//! # let listener = TcpListener::bind("127.0.0.1:0").unwrap();
//! # let address = listener.local_addr().unwrap();
//! # let timeout = Duration::from_secs(10);
//! # let end = |host: usize, stream: TcpStream| -> rdma::Result<()> {
//! # let context = Provider::soft(&fabric.host(host)?)?.first_active()?.open()?;
//! # let domain = context.protection_domain()?;
//! # let completions = context.completion_queue(16)?;
//! let region = domain.allocate(4096)?;
//! let prepared = domain.queue_pair(&completions).build()?;
//! let (mut queue_pair, mut link) = connect::establish(prepared, stream, timeout)?;
//! queue_pair.post_recv(region.buffer(4096)?, 0)?;
//! link.ready(timeout)?;
//! # Ok(()) };
//! # std::thread::scope(|scope| {
//! #     let other = scope.spawn(|| end(1, connect::dial(address, timeout)?));
//! #     end(0, connect::accept(&listener, timeout)?)?;
//! #     other.join().unwrap()
//! # })
//! # }
//! ```
//!
//! Both [`establish`] and [`Link::ready`] wait for the peer's call of the same name. So ranks in a ring that all begin with their
//! neighbour on the right wait for each other until the time is over: have a thread for each neighbour (two scoped ones will
//! do), or let ranks of even number begin on the right and those of odd number on the left, with one exception where their
//! number is odd.
//!
//! Nothing that a peer sends can do more than fail the call: lengths are fixed, every wait has a deadline, and a program
//! that wants to leave before it says so with a [`Patience`].
//!
//! Two queue pairs of one process need none of this: [`pair`].

mod link;
mod tcp;

pub use crate::patience::Patience;
pub use link::Link;
pub use tcp::{accept, dial};

use crate::endpoint::Endpoint;
use crate::error::{Errno, Error, ErrorKind, Result};
use crate::queue_pair::{PreparedQueuePair, QueuePair};
use link::Awaited;
use std::io;
use std::net::TcpStream;

const ENDPOINT: Awaited = Awaited {
    what: "the peer's endpoint",
    remedy: "something took the connection, but does not answer as a peer does: check the address, and see what keeps its \
             program from connect::establish",
};

/// The remedy where a peer speaks something else.
const SAME_LIBRARY: &str = "check the address, and that both ends use this library in the same order of calls";

/// Exchanges endpoints with the peer and connects.
///
/// The endpoint is the one that was made with [`PreparedQueuePair::endpoint`]; if none was, that of port 1 and
/// [its usual GID](crate::Port::gid), as [`PreparedQueuePair::publish`] makes it.
///
/// # Errors
///
/// [`PeerGone`](ErrorKind::PeerGone) if the peer closes the connection, [`TimedOut`](ErrorKind::TimedOut),
/// [`Cancelled`](ErrorKind::Cancelled), [`Protocol`](ErrorKind::Protocol) if it sends anything but an endpoint, and those
/// of [`PreparedQueuePair::publish`] and [`PreparedQueuePair::connect`]. The queue pair is destroyed then, and the peer sees
/// this end gone.
pub fn establish<'a>(
    mut prepared: PreparedQueuePair,
    stream: TcpStream,
    patience: impl Into<Patience<'a>>,
) -> Result<(QueuePair, Link)> {
    let waiting = patience.into().begin();
    let local = prepared.publish()?;
    let mut link = Link::new(stream)?;
    link.write(&local.to_bytes(), &waiting)?;
    let mut bytes = [0; Endpoint::LENGTH];
    link.read(&mut bytes, &waiting, &ENDPOINT)?;
    let peer = Endpoint::from_bytes(&bytes).map_err(|error| link.about(error).with_hint(SAME_LIBRARY))?;
    Ok((prepared.connect(&peer)?, link))
}

/// Connects two queue pairs of this process with each other: of two hosts of a software fabric, or of two devices of this
/// machine that a cable joins. Endpoints that have not been published yet are those of [`PreparedQueuePair::publish`].
///
/// ```
/// # use rdma::{Provider, connect, soft::Fabric};
/// # let fabric = Fabric::mesh(2)?;
/// # let open = |host| Provider::soft(&fabric.host(host)?)?.first_active()?.open();
/// # let (here, there) = (open(0)?, open(1)?);
/// # let (near, far) = (here.protection_domain()?, there.protection_domain()?);
/// # let (sent, received) = (here.completion_queue(16)?, there.completion_queue(16)?);
/// let (near, far) = (near.queue_pair(&sent).build()?, far.queue_pair(&received).build()?);
/// let (mut near, mut far) = connect::pair(near, far)?;
/// # let _ = (&mut near, &mut far);
/// # Ok::<(), rdma::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`PreparedQueuePair::publish`] and [`PreparedQueuePair::connect`]; then both queue pairs are destroyed.
pub fn pair(mut one: PreparedQueuePair, mut other: PreparedQueuePair) -> Result<(QueuePair, QueuePair)> {
    let (here, there) = (one.publish()?, other.publish()?);
    Ok((one.connect(&there)?, other.connect(&here)?))
}

/// An error of a system call, with the errno that came with it.
fn system(call: &'static str, error: &io::Error) -> Error {
    match error.raw_os_error() {
        Some(number) => Error::call(call, Errno::from_raw(number)),
        None => Error::new(ErrorKind::Other, format!("{call}: {error}")),
    }
}
