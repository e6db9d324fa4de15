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
//! let prepared = domain.queue_pair(&completions).build()?;
//! let (mut queue_pair, mut link) = connect::establish(prepared, stream, timeout)?;
//! let region = domain.allocate(4096)?;
//! # drop(region); let region = &domain.allocate(4096)?;
//! // … post receives …
//! link.ready(timeout)?;
//! # let _ = (&mut queue_pair, region); Ok(()) };
//! # std::thread::scope(|scope| {
//! #     let other = scope.spawn(|| end(1, connect::dial(address, timeout)?));
//! #     end(0, connect::accept(&listener, timeout)?)?;
//! #     other.join().unwrap()
//! # })
//! # }
//! ```
//!
//! Nothing that a peer sends can do more than fail the call: lengths are fixed, every wait has a deadline.

use crate::endpoint::Endpoint;
use crate::error::{Errno, Error, ErrorKind, Result};
use crate::queue_pair::{PreparedQueuePair, QueuePair};
use crate::wait::Deadline;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// What says "I have posted my receives" (any byte would do; ggml-org/llama.cpp sends one, too).
const READY: u8 = b'R';

/// The TCP connection that two queue pairs were connected over: their barrier, and the only sign of life of the peer.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
}

/// Exchanges endpoints with the peer and connects.
///
/// The endpoint is the one that was made with [`PreparedQueuePair::endpoint`]; if none was, that of port 1 and
/// [its usual GID](crate::Port::gid).
///
/// # Errors
///
/// [`PeerGone`](ErrorKind::PeerGone) if the peer closes the connection, [`TimedOut`](ErrorKind::TimedOut),
/// [`Protocol`](ErrorKind::Protocol) if it sends anything but an endpoint, and those of [`PreparedQueuePair::connect`].
/// The queue pair is destroyed then, and the peer sees this end gone.
pub fn establish(mut prepared: PreparedQueuePair, stream: TcpStream, timeout: Duration) -> Result<(QueuePair, Link)> {
    let deadline = Deadline::after(timeout);
    let local = prepared.endpoint_or_usual()?;
    let mut link = Link { stream };
    link.stream.set_nodelay(true).map_err(|error| system("setsockopt", &error))?;
    link.stream.set_nonblocking(false).map_err(|error| system("fcntl", &error))?;
    link.write(&local.to_bytes(), deadline)?;
    let mut bytes = [0; Endpoint::LENGTH];
    link.read(&mut bytes, deadline, "the peer's endpoint")?;
    let peer = Endpoint::from_bytes(&bytes)?;
    Ok((prepared.connect(&peer)?, link))
}

impl Link {
    /// Tells the peer that this end has posted its receives, and waits until the peer has. Can be called again: each call
    /// is a barrier of the two.
    ///
    /// # Errors
    ///
    /// [`PeerGone`](ErrorKind::PeerGone), [`TimedOut`](ErrorKind::TimedOut), [`Protocol`](ErrorKind::Protocol).
    pub fn ready(&mut self, timeout: Duration) -> Result<()> {
        let deadline = Deadline::after(timeout);
        self.write(&[READY], deadline)?;
        let mut byte = [0];
        self.read(&mut byte, deadline, "the peer to be ready")?;
        if byte == [READY] {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Protocol, format!("the peer sent {:#04x} instead of being ready", byte[0])))
        }
    }

    /// Whether the peer still holds its end. Never waits.
    ///
    /// `true` says that the peer's process has not closed the connection; a host that was switched off or unplugged shows
    /// only when TCP gives up on it. `false` is final.
    pub fn is_alive(&self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return false;
        }
        let alive = match self.stream.peek(&mut [0]) {
            Ok(count) => count != 0,
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        };
        alive && self.stream.set_nonblocking(false).is_ok()
    }

    /// The peer's address.
    ///
    /// # Errors
    ///
    /// What `getpeername` reports.
    pub fn peer_address(&self) -> Result<SocketAddr> {
        self.stream.peer_addr().map_err(|error| system("getpeername", &error))
    }

    fn write(&mut self, bytes: &[u8], deadline: Deadline) -> Result<()> {
        let left = deadline.left().ok_or_else(|| timed_out("to send to the peer"))?;
        self.stream.set_write_timeout(Some(left)).map_err(|error| system("setsockopt", &error))?;
        self.stream.write_all(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => timed_out("to send to the peer"),
            _ => gone_or("send", &error),
        })
    }

    /// Fills `bytes`, however small the pieces in which they come.
    fn read(&mut self, bytes: &mut [u8], deadline: Deadline, what: &str) -> Result<()> {
        let mut got = 0;
        while got < bytes.len() {
            let left = deadline.left().ok_or_else(|| timed_out(what))?;
            self.stream.set_read_timeout(Some(left)).map_err(|error| system("setsockopt", &error))?;
            match self.stream.read(&mut bytes[got..]) {
                // The end of the stream is no error of the system: errno says nothing about it.
                Ok(0) => {
                    let detail = format!("the peer closed the connection after {got} of {} bytes", bytes.len());
                    return Err(Error::new(ErrorKind::PeerGone, detail).with_hint("see why the peer's program ended"));
                }
                Ok(count) => got += count,
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => return Err(timed_out(what)),
                    _ => return Err(gone_or("recv", &error)),
                },
            }
        }
        Ok(())
    }
}

/// Connects to a peer that listens, trying again until it does.
///
/// # Errors
///
/// [`TimedOut`](ErrorKind::TimedOut) with the last reason; [`InvalidArgument`](ErrorKind::InvalidArgument) for an address
/// that cannot be one.
pub fn dial(address: impl ToSocketAddrs, timeout: Duration) -> Result<TcpStream> {
    let deadline = Deadline::after(timeout);
    let addresses: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| Error::argument(format!("no such address: {error}")).with_hint("it is HOST:PORT"))?
        .collect();
    let mut last = None;
    loop {
        for address in &addresses {
            let Some(left) = deadline.left() else { break };
            match TcpStream::connect_timeout(address, left) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some((*address, error)),
            }
        }
        let Some(left) = deadline.left() else {
            let reason = last.map_or("no address".to_owned(), |(address, error)| format!("{address}: {error}"));
            return Err(Error::new(ErrorKind::TimedOut, format!("no connection within {timeout:?}: {reason}"))
                .with_hint("start the listening side, and check address and firewall"));
        };
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

/// Waits for a peer to connect.
///
/// # Errors
///
/// [`TimedOut`](ErrorKind::TimedOut); what `accept` reports.
pub fn accept(listener: &TcpListener, timeout: Duration) -> Result<TcpStream> {
    let deadline = Deadline::after(timeout);
    listener.set_nonblocking(true).map_err(|error| system("fcntl", &error))?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                // On macOS an accepted socket inherits the listener's mode.
                stream.set_nonblocking(false).map_err(|error| system("fcntl", &error))?;
                return Ok(stream);
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => {}
                io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => continue,
                _ => return Err(system("accept", &error)),
            },
        }
        let left = deadline.left().ok_or_else(|| timed_out("a peer to connect"))?;
        std::thread::sleep(left.min(Duration::from_millis(2)));
    }
}

fn timed_out(what: &str) -> Error {
    Error::new(ErrorKind::TimedOut, format!("the deadline passed while waiting for {what}"))
}

fn gone_or(call: &'static str, error: &io::Error) -> Error {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    let made = system(call, error);
    match error.kind() {
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected => made.with_kind(ErrorKind::PeerGone),
        _ => made,
    }
}

/// An error of a system call, with the errno that came with it.
fn system(call: &'static str, error: &io::Error) -> Error {
    match error.raw_os_error() {
        Some(number) => Error::call(call, Errno::from_raw(number)),
        None => Error::new(ErrorKind::Other, format!("{call}: {error}")),
    }
}
