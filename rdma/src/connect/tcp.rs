//! Getting the TCP connection.

use super::{Patience, system};
use crate::error::{Error, ErrorKind, Result};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long to wait before trying again to reach a peer that does not listen yet.
const AGAIN: Duration = Duration::from_millis(50);

/// How often to look whether a peer has come.
const LOOK: Duration = Duration::from_millis(2);

/// How long an attempt to reach a peer may take, where the waiting may be ended: a cut attempt has to begin anew.
const ATTEMPT: Duration = Duration::from_millis(500);

/// Connects to a peer that listens, trying again until it does.
///
/// A name is resolved first, which takes as long as the system's resolver does.
///
/// # Errors
///
/// [`TimedOut`](ErrorKind::TimedOut) with the last reason, [`Cancelled`](ErrorKind::Cancelled);
/// [`InvalidArgument`](ErrorKind::InvalidArgument) for an address that cannot be one.
pub fn dial<'a>(address: impl ToSocketAddrs, patience: impl Into<Patience<'a>>) -> Result<TcpStream> {
    let waiting = patience.into().begin();
    let addresses: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| Error::argument(format!("no such address: {error}")).with_hint("it is HOST:PORT"))?
        .collect();
    let reason = if addresses.is_empty() { "its name has no address" } else { "there was no time to try" };
    let mut reason = reason.to_owned();
    loop {
        for address in &addresses {
            let turn = waiting.turn(ATTEMPT, |timeout| unreachable(timeout, &reason))?;
            match TcpStream::connect_timeout(address, turn) {
                Ok(stream) => return Ok(stream),
                Err(error) => reason = format!("{address}: {error}"),
            }
        }
        // A refusal comes at once.
        std::thread::sleep(waiting.turn(AGAIN, |timeout| unreachable(timeout, &reason))?.min(AGAIN));
    }
}

fn unreachable(timeout: Duration, reason: &str) -> Error {
    Error::new(ErrorKind::TimedOut, format!("no connection to the peer within {timeout:?}: {reason}"))
        .with_hint("start the listening side, and check address and firewall")
}

/// Waits for a peer to connect.
///
/// # Errors
///
/// [`TimedOut`](ErrorKind::TimedOut), [`Cancelled`](ErrorKind::Cancelled); what `accept` reports.
pub fn accept<'a>(listener: &TcpListener, patience: impl Into<Patience<'a>>) -> Result<TcpStream> {
    let waiting = patience.into().begin();
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
        std::thread::sleep(waiting.turn(LOOK, |timeout| nobody(listener, timeout))?.min(LOOK));
    }
}

fn nobody(listener: &TcpListener, timeout: Duration) -> Error {
    let place = listener.local_addr().map_or_else(|_| "the listener".to_owned(), |address| address.to_string());
    Error::new(ErrorKind::TimedOut, format!("no peer connected to {place} within {timeout:?}"))
        .with_hint("start the dialling side, and check that it dials an address of this host that no firewall closes")
}
