//! The TCP connection between the two ends: messages with a length before them, in JSON. Whatever comes is bounded, in
//! length and in time.

use crate::observation::{Observation, tame};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The longest message that is taken.
const LONGEST: usize = 1 << 20;

/// What one end tells the other.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// First of all.
    Hello(Hello),
    /// Ready to begin the next step; and whether to end instead, or to leave out what connects.
    Begin { stop: bool, unreachable: bool },
    /// Where a queue pair is.
    Endpoint(Endpoint),
    /// Some number that the step's other end waits for.
    Number(u64),
    /// The step is over for this end.
    End(Vec<Observation>),
}

/// What both ends must have in common, and what they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: String,
    pub(crate) steps: Vec<String>,
    pub(crate) system: String,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) lid: u16,
    pub(crate) number: u32,
    pub(crate) gid: [u8; 16],
    pub(crate) mtu: u32,
}

/// Why there is no message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    #[error("{gone}: see what it printed ({0})", gone = Lost::GONE)]
    Gone(io::Error),
    #[error("the other end said nothing for {0:?}, though it runs: see what it waits for")]
    Silent(Duration),
    #[error("the other end does not follow the protocol: both must be the same version of this program ({0})")]
    Protocol(String),
}

impl Lost {
    /// The words of an end that lost the other one.
    pub(crate) const GONE: &str = "the other end is gone";
}

/// What a step waits for may not come: its other end has ended it.
#[derive(Debug)]
pub(crate) enum Instead {
    Ended,
    Lost(Lost),
}

pub(crate) struct Channel {
    stream: TcpStream,
    patience: Duration,
    /// Messages that came while something else was waited for.
    ended: VecDeque<Vec<Observation>>,
}

impl Channel {
    pub(crate) fn new(stream: TcpStream, patience: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(Duration::from_millis(100)))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Channel { stream, patience, ended: VecDeque::new() })
    }

    pub(crate) fn send(&mut self, message: &Message) -> Result<(), Lost> {
        let body = serde_json::to_vec(message).map_err(|error| Lost::Protocol(error.to_string()))?;
        let length = u32::try_from(body.len()).map_err(|_| Lost::Protocol("too much to say".to_owned()))?;
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(body);
        self.stream.write_all(&bytes).map_err(Lost::Gone)
    }

    pub(crate) fn receive(&mut self) -> Result<Message, Lost> {
        let end = Instant::now() + self.patience;
        let mut length = [0; 4];
        self.fill(&mut length, end)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(Lost::Protocol(format!("a message of {length} bytes")));
        }
        let mut body = vec![0; length];
        self.fill(&mut body, end)?;
        serde_json::from_slice(&body).map_err(|error| Lost::Protocol(error.to_string()))
    }

    fn fill(&mut self, bytes: &mut [u8], end: Instant) -> Result<(), Lost> {
        let mut got = 0;
        while got < bytes.len() {
            if Instant::now() >= end {
                return Err(Lost::Silent(self.patience));
            }
            match self.stream.read(&mut bytes[got..]) {
                Ok(0) => return Err(Lost::Gone(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => got += count,
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {}
                    _ => return Err(Lost::Gone(error)),
                },
            }
        }
        Ok(())
    }

    /// The other end's next message within a step.
    fn within(&mut self) -> Result<Message, Instead> {
        if !self.ended.is_empty() {
            return Err(Instead::Ended);
        }
        match self.receive().map_err(Instead::Lost)? {
            Message::End(observations) => {
                self.ended.push_back(observations);
                Err(Instead::Ended)
            }
            message => Ok(message),
        }
    }

    pub(crate) fn exchange_endpoints(&mut self, own: Endpoint) -> Result<Endpoint, Instead> {
        self.send(&Message::Endpoint(own)).map_err(Instead::Lost)?;
        match self.within()? {
            Message::Endpoint(endpoint) => Ok(endpoint),
            other => Err(Instead::Lost(Lost::Protocol(format!("{other:?} instead of an endpoint")))),
        }
    }

    pub(crate) fn say(&mut self, number: u64) -> Result<(), Instead> {
        self.send(&Message::Number(number)).map_err(Instead::Lost)
    }

    pub(crate) fn hear(&mut self) -> Result<u64, Instead> {
        match self.within()? {
            Message::Number(number) => Ok(number),
            other => Err(Instead::Lost(Lost::Protocol(format!("{other:?} instead of a number")))),
        }
    }

    /// Ends a step: tells what was seen, and waits for what the other end saw.
    pub(crate) fn end_step(&mut self, own: Vec<Observation>) -> Result<Vec<Observation>, Lost> {
        self.send(&Message::End(own))?;
        if let Some(theirs) = self.ended.pop_front() {
            return Ok(tame(theirs));
        }
        // Numbers and endpoints that this end did not come to take are passed over; there are few in a step.
        for _ in 0..64 {
            match self.receive()? {
                Message::End(observations) => return Ok(tame(observations)),
                Message::Endpoint(_) | Message::Number(_) => {}
                other => return Err(Lost::Protocol(format!("{other:?} within a step"))),
            }
        }
        Err(Lost::Protocol("a step without an end".to_owned()))
    }
}
