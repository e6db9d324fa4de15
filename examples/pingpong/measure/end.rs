//! One end of a connection, with what both sides need of it.

use super::memory::{Memory, OWN_BUFFERS};
use super::message::{self, Message};
use super::plan::Plan;
use super::stop::Stop;
use rdma::{Buffer, Completion, CompletionQueue, ErrorKind, PreparedQueuePair, Provider, QueuePair, Transfer, connect};
use std::collections::VecDeque;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Which device, and which of its addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// The first that is ACTIVE, if nobody said.
    pub(crate) device: Option<String>,
    /// The best of the table, if nobody said.
    pub(crate) gid_index: Option<u8>,
}

/// How long to wait for the peer, and what ends all waiting.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    pub(crate) timeout: Duration,
    pub(crate) interrupt: Arc<AtomicBool>,
}

impl Patience {
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Waits for the peer by a call of the library's, which an interrupt ends.
    pub(crate) fn while_waiting<T>(
        &self,
        call: impl FnOnce(connect::Patience<'_>) -> rdma::Result<T>,
    ) -> Result<T, Stop> {
        Ok(call(connect::Patience::from(self.timeout).unless(&|| self.interrupted()))?)
    }
}

/// What work requests are, by their tokens.
pub(crate) mod token {
    /// One of our [messages](super::Message) was sent.
    pub(crate) const TOLD: u64 = 0;
    /// One came.
    pub(crate) const HEARD: u64 = 1;
    /// A measured message was sent.
    pub(crate) const SENT: u64 = 2;
    /// One came.
    pub(crate) const RECEIVED: u64 = 3;
}

/// How often to look whether the peer lives while nothing comes.
const SLICE: Duration = Duration::from_millis(50);

/// A device, with memory and a queue pair, that is not connected yet.
#[derive(Debug)]
pub(crate) struct Opened {
    prepared: PreparedQueuePair,
    completions: CompletionQueue,
    memory: Memory,
    about: String,
    plan: Plan,
}

impl Opened {
    /// Takes what the plan needs of a device. Of all sizes, those that the device has.
    pub(crate) fn open(provider: &Provider, choice: &Choice, plan: &Plan) -> Result<Self, Stop> {
        let device = match &choice.device {
            Some(name) => provider.device(name)?,
            None => provider.first_active()?,
        };
        let context = device.open()?;
        let longest = context.rules().max_message();
        let plan = &plan.within(longest);
        if plan.longest() as u64 > longest {
            let (device, size) = (device.name(), plan.longest());
            return Err(Stop::Impossible(format!("{device} has messages of at most {longest} bytes, not {size}")));
        }
        let domain = context.protection_domain()?;
        let memory = Memory::register(&domain, &context, plan)?;
        let most = plan.sizes().into_iter().map(|size| plan.messages(size).max(plan.window(size))).max().unwrap_or(1);
        let requests = (most + OWN_BUFFERS) as u32;
        let completions = context.completion_queue(2 * requests)?;
        let mut prepared = domain.queue_pair(&completions).requests(requests).build()?;
        let port = context.port(1)?;
        let gid = match choice.gid_index {
            Some(index) => port.gid_at(index)?,
            None => port.gid()?,
        };
        prepared.endpoint(&port, gid)?;
        let about = format!("{} over {}, {gid}", device.name(), device.transport());
        Ok(Opened { prepared, completions, memory, about, plan: *plan })
    }

    /// Which device it is, and under which address.
    pub(crate) fn about(&self) -> &str {
        &self.about
    }

    /// Connects over a stream to the peer, and sees that both ends were started for the same.
    pub(crate) fn connect(self, stream: TcpStream, patience: &Patience) -> Result<End, Stop> {
        let Opened { prepared, completions, memory, plan, .. } = self;
        let (queue_pair, link) = patience.while_waiting(|patience| connect::establish(prepared, stream, patience))?;
        let own = memory.buffers(OWN_BUFFERS, message::LENGTH)?;
        let mut end = End {
            queue_pair,
            completions,
            link,
            patience: patience.clone(),
            plan,
            memory,
            own,
            own_send: None,
            due: VecDeque::new(),
            early: VecDeque::new(),
            stage: [const { None }; 32],
        };
        end.own_send = end.own.pop();
        end.expect_message()?;
        end.barrier()?;
        end.tell(Message::Hello(plan))?;
        let peer = end.hear()?;
        end.flush()?;
        // From now on each end has a receive posted for the next of the other's messages. The second barrier also sees to
        // it that neither leaves before the other has its hello.
        end.expect_message()?;
        end.barrier()?;
        match peer {
            Message::Hello(peer) => match plan.agreed(peer) {
                Some(agreed) => Ok(End { plan: agreed, ..end }),
                None => Err(Stop::Disagreement { here: plan.to_string(), there: peer.to_string() }),
            },
            other => Err(Stop::Protocol(format!("{other:?} instead of its plan"))),
        }
    }
}

/// A connected queue pair, and all that was made for it.
#[derive(Debug)]
pub(crate) struct End {
    queue_pair: QueuePair,
    completions: CompletionQueue,
    link: connect::Link,
    pub(crate) patience: Patience,
    /// What both ends were started for.
    pub(crate) plan: Plan,
    pub(crate) memory: Memory,
    /// Buffers for messages of our own that come, and for one that goes.
    own: Vec<Buffer>,
    own_send: Option<Buffer>,
    /// Receives that do not fit in the queue yet.
    due: VecDeque<(Buffer, u64)>,
    /// Completions that came while another was waited for.
    early: VecDeque<Transfer>,
    /// Room for completions that are taken at once.
    stage: [Option<Completion>; 32],
}

impl End {
    /// Waits until the peer has come here, too.
    fn barrier(&mut self) -> Result<(), Stop> {
        let End { patience, link, .. } = self;
        patience.while_waiting(|patience| link.ready(patience))
    }

    /// Posts a receive, or, where the queue is full, leaves it for [`post_due`](Self::post_due). Over Thunderbolt a queue
    /// holds 4095 frames of 4 KiB, so not every batch fits at once.
    pub(crate) fn expect(&mut self, buffer: Buffer, token: u64) -> Result<(), Stop> {
        self.due.push_back((buffer, token));
        self.post_due()
    }

    /// Posts the receives that are due, in their order, as far as the queue has room.
    #[inline]
    pub(crate) fn post_due(&mut self) -> Result<(), Stop> {
        while let Some((buffer, token)) = self.due.pop_front() {
            if let Err(error) = self.queue_pair.post_recv(buffer, token) {
                match error.into_parts() {
                    (error, Some(buffer)) if error.kind() == ErrorKind::QueueFull => {
                        self.due.push_front((buffer, token));
                        break;
                    }
                    (error, _) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Posts a receive for one of our own messages.
    pub(crate) fn expect_message(&mut self) -> Result<(), Stop> {
        let buffer = self.own.pop().ok_or_else(|| Stop::Protocol("too many messages at once".to_owned()))?;
        self.expect(buffer, token::HEARD)
    }

    /// Sends one of our own messages.
    pub(crate) fn tell(&mut self, message: Message) -> Result<(), Stop> {
        self.flush()?;
        if let Some(mut buffer) = self.own_send.take() {
            buffer.copy_from_slice(&message.to_bytes());
            self.queue_pair.post_send(buffer, .., token::TOLD)?;
        }
        Ok(())
    }

    /// Waits until the last of our own messages is sent.
    pub(crate) fn flush(&mut self) -> Result<(), Stop> {
        while self.own_send.is_none() {
            let transfer = self.wait()?;
            match transfer.token() {
                token::TOLD => self.own_send = transfer.into_buffer(),
                _ => self.early.push_back(transfer),
            }
        }
        Ok(())
    }

    /// Waits for one of our own messages, where nothing else can come.
    pub(crate) fn hear(&mut self) -> Result<Message, Stop> {
        let transfer = self.next()?;
        match transfer.token() {
            token::HEARD => self.read(transfer),
            _ => Err(Stop::Protocol("a measured message outside of a batch".to_owned())),
        }
    }

    /// Waits for a certain one.
    pub(crate) fn hear_that(&mut self, expected: Message) -> Result<(), Stop> {
        self.hear()?.must_be(expected)
    }

    /// Reads one of our own messages. A measured message that fills the whole queue has room only now.
    pub(crate) fn read(&mut self, transfer: Transfer) -> Result<Message, Stop> {
        let message = Message::from_bytes(transfer.bytes());
        self.own.extend(transfer.into_buffer());
        self.post_due()?;
        message
    }

    /// Posts a send of a measured message.
    #[inline]
    pub(crate) fn send(&mut self, buffer: Buffer) -> Result<(), Stop> {
        Ok(self.queue_pair.post_send(buffer, .., token::SENT)?)
    }

    /// Posts a send of a measured message, or returns its buffer if the queue is full.
    #[inline]
    pub(crate) fn try_send(&mut self, buffer: Buffer) -> Result<Option<Buffer>, Stop> {
        let Err(error) = self.queue_pair.post_send(buffer, .., token::SENT) else { return Ok(None) };
        match error.into_parts() {
            (error, Some(buffer)) if error.kind() == ErrorKind::QueueFull => Ok(Some(buffer)),
            (error, _) => Err(error.into()),
        }
    }

    /// The next completion, but for those of our own messages' sends.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Transfer, Stop> {
        if let Some(transfer) = self.early.pop_front() {
            return Ok(transfer);
        }
        loop {
            let transfer = self.wait()?;
            if transfer.token() != token::TOLD {
                return Ok(transfer);
            }
            self.own_send = transfer.into_buffer();
        }
    }

    /// As [`next`](Self::next), but takes many completions from the device at once, which is faster where many come.
    #[inline]
    pub(crate) fn next_of_many(&mut self) -> Result<Transfer, Stop> {
        loop {
            if let Some(transfer) = self.early.pop_front() {
                return Ok(transfer);
            }
            let count = self.completions.poll(&mut self.stage)?;
            if count == 0 {
                return self.next();
            }
            for completion in self.stage.iter_mut().filter_map(Option::take) {
                let transfer = completion.ok()?;
                match transfer.token() {
                    token::TOLD => self.own_send = transfer.into_buffer(),
                    _ => self.early.push_back(transfer),
                }
            }
        }
    }

    #[inline]
    fn wait(&mut self) -> Result<Transfer, Stop> {
        match self.completions.wait(SLICE) {
            Ok(completion) => Ok(completion.ok()?),
            Err(error) => self.wait_long(error),
        }
    }

    /// Waits on, and looks at the peer now and then: a device never says that it died.
    #[cold]
    fn wait_long(&mut self, mut error: rdma::Error) -> Result<Transfer, Stop> {
        let begin = Instant::now();
        loop {
            if error.kind() != ErrorKind::TimedOut {
                return Err(error.into());
            }
            if self.patience.interrupted() {
                return Err(Stop::Interrupted);
            }
            if !self.link.is_alive() {
                return Err(Stop::PeerGone);
            }
            if begin.elapsed() >= self.patience.timeout {
                return Err(Stop::Silent(self.patience.timeout));
            }
            match self.completions.wait(SLICE) {
                Ok(completion) => return Ok(completion.ok()?),
                Err(again) => error = again,
            }
        }
    }

    /// Ends the connection: when both ends have come here, the queue pair is destroyed.
    pub(crate) fn finish(mut self) -> Result<(), Stop> {
        self.flush()?;
        self.barrier()?;
        self.queue_pair.close()?;
        Ok(())
    }
}
