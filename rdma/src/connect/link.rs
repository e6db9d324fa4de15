use super::{Patience, system};
use crate::error::{Error, ErrorKind, Result};
use crate::patience::Waiting;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What says "I have posted my receives" (any byte would do; ggml-org/llama.cpp sends one, too).
const READY: u8 = b'R';

/// How often to ask whether the waiting is to end: often enough for a person.
const TURN: Duration = Duration::from_millis(100);

/// The TCP connection that two queue pairs were connected over: their barrier, and the only sign of life of the peer.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    /// What the peer has sent ahead of our reading, one byte of it: it stood in front of the end of the stream, which is what
    /// [`is_alive`](Self::is_alive) looks for.
    early: Mutex<Option<u8>>,
    /// For errors, as the system no longer tells once the peer is gone.
    peer: Option<SocketAddr>,
}

/// What is waited for, and what to say if it does not come.
pub(super) struct Awaited {
    pub(super) what: &'static str,
    pub(super) remedy: &'static str,
}

const ROOM: Awaited =
    Awaited { what: "the peer to take what is sent", remedy: "its program runs, but does not read: see what keeps it" };
const PEER_READY: Awaited = Awaited {
    what: "the peer to be ready",
    remedy: "its program runs, but has not come to its own Link::ready: see what keeps it",
};

impl Link {
    pub(super) fn new(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true).map_err(|error| system("setsockopt", &error))?;
        stream.set_nonblocking(false).map_err(|error| system("fcntl", &error))?;
        let peer = stream.peer_addr().ok();
        Ok(Link { stream, early: Mutex::new(None), peer })
    }

    /// Tells the peer that this end has posted its receives, and waits until the peer has. Can be called again: each call
    /// is a barrier of the two. After an error the two no longer agree on how many there were, so give the link up.
    ///
    /// # Errors
    ///
    /// [`PeerGone`](ErrorKind::PeerGone), [`TimedOut`](ErrorKind::TimedOut), [`Cancelled`](ErrorKind::Cancelled),
    /// [`Protocol`](ErrorKind::Protocol).
    pub fn ready<'a>(&mut self, patience: impl Into<Patience<'a>>) -> Result<()> {
        let waiting = patience.into().begin();
        self.write(&[READY], &waiting)?;
        let mut byte = [0];
        self.read(&mut byte, &waiting, &PEER_READY)?;
        if byte == [READY] {
            Ok(())
        } else {
            let detail = format!("the peer sent {:#04x} instead of being ready", byte[0]);
            Err(self.about(Error::new(ErrorKind::Protocol, detail)).with_hint(super::SAME_LIBRARY))
        }
    }

    /// Whether the peer still holds its end. Never waits.
    ///
    /// `true` says that the peer's process has not closed the connection; a host that was switched off or unplugged shows
    /// only when TCP gives up on it. `false` is final.
    pub fn is_alive(&self) -> bool {
        // Held to the end: of two threads that ask at once, the second would find the stream blocking.
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        if self.stream.set_nonblocking(true).is_err() {
            return false;
        }
        let alive = self.is_open(&mut early);
        alive && self.stream.set_nonblocking(false).is_ok()
    }

    /// Whether the stream has not ended. A peer that keeps to the protocol is one byte ahead at most.
    fn is_open(&self, early: &mut Option<u8>) -> bool {
        let is_open = |outcome: io::Result<usize>| match outcome {
            Ok(count) => count != 0,
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        };
        let mut byte = [0];
        if early.is_none() {
            match (&self.stream).read(&mut byte) {
                Ok(1) => *early = Some(byte[0]),
                outcome => return is_open(outcome),
            }
        }
        is_open(self.stream.peek(&mut byte))
    }

    /// The peer's address.
    ///
    /// # Errors
    ///
    /// What `getpeername` reports.
    pub fn peer_address(&self) -> Result<SocketAddr> {
        self.stream.peer_addr().map_err(|error| system("getpeername", &error))
    }

    /// Names the peer, of which there may be several.
    pub(super) fn about(&self, error: Error) -> Error {
        match self.peer {
            Some(address) => error.on_peer(address),
            None => error,
        }
    }

    fn in_vain(&self, timeout: Duration, awaited: &Awaited) -> Error {
        let detail = format!("waited {timeout:?} in vain for {}", awaited.what);
        let remedy = if timeout.is_zero() { "no time was given: it takes some" } else { awaited.remedy };
        self.about(Error::new(ErrorKind::TimedOut, detail)).with_hint(remedy)
    }

    /// Sends all of `bytes`.
    pub(super) fn write(&mut self, mut bytes: &[u8], waiting: &Waiting<'_>) -> Result<()> {
        while !bytes.is_empty() {
            let turn = waiting.turn(TURN, |timeout| self.in_vain(timeout, &ROOM))?;
            self.stream.set_write_timeout(Some(turn)).map_err(|error| system("setsockopt", &error))?;
            match self.stream.write(bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) => self.unless_it_is_early("send", &error)?,
            }
        }
        Ok(())
    }

    /// Fills `bytes`, however small the pieces in which they come.
    pub(super) fn read(&mut self, bytes: &mut [u8], waiting: &Waiting<'_>, awaited: &Awaited) -> Result<()> {
        let mut got = 0;
        let early = self.early.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Some(first), Some(byte)) = (bytes.first_mut(), early.take()) {
            *first = byte;
            got = 1;
        }
        while got < bytes.len() {
            let turn = waiting.turn(TURN, |timeout| self.in_vain(timeout, awaited))?;
            self.stream.set_read_timeout(Some(turn)).map_err(|error| system("setsockopt", &error))?;
            match self.stream.read(&mut bytes[got..]) {
                // The end of the stream is no error of the system: errno says nothing about it.
                Ok(0) => {
                    let detail = format!("the peer closed the connection after {got} of {} bytes", bytes.len());
                    return Err(self.about(Error::new(ErrorKind::PeerGone, detail)).with_hint(GONE));
                }
                Ok(count) => got += count,
                Err(error) => self.unless_it_is_early("recv", &error)?,
            }
        }
        Ok(())
    }

    /// A call that ended before anything came can be made again.
    fn unless_it_is_early(&self, call: &'static str, error: &io::Error) -> Result<()> {
        use io::ErrorKind::{
            BrokenPipe, ConnectionAborted, ConnectionReset, Interrupted, NotConnected, TimedOut, WouldBlock,
        };
        match error.kind() {
            Interrupted | TimedOut | WouldBlock => Ok(()),
            BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected => {
                Err(self.about(system(call, error)).with_kind(ErrorKind::PeerGone).with_hint(GONE))
            }
            _ => Err(self.about(system(call, error))),
        }
    }
}

const GONE: &str = "the peer's program ended, or gave up: see what it printed";
