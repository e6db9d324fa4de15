//! One message at a time, to and fro.

use super::clock::Clock;
use super::end::{End, token};
use super::floor::Line;
use super::message::{Batch, Message, Progress};
use super::pattern::{Pattern, Sender, number};
use super::plan::Plan;
use super::statistics::Sorted;
use super::stop::Stop;
use rdma::{Buffer, Transfer};

/// The latencies of one size.
#[derive(Debug)]
pub(crate) struct Latency {
    pub(crate) size: usize,
    /// Half of each round trip, in nanoseconds.
    pub(crate) samples: Sorted,
    /// For each batch: a hop of a cache line at that moment, in nanoseconds.
    pub(crate) floors: Sorted,
    /// For each batch: its median, in floors.
    pub(crate) ratios: Sorted,
}

/// The client's side, for one size.
///
/// The clock is read once a message, right after the message has been posted: while it is on its way this end has
/// nothing to do, so the reading costs no time of a round trip. A sample is the time between two such readings. The
/// first message of a batch has none before it: it is not measured, and makes sure that both ends are awake.
pub(crate) fn ping(
    end: &mut End,
    plan: &Plan,
    size: usize,
    line: Option<&Line>,
    clock: &Clock,
    progress: &mut Progress,
) -> Result<Latency, Stop> {
    let mut pinger = Pinger {
        receives: end.memory.buffers(plan.messages(size), size)?,
        send: Some(end.memory.buffer(size)?),
        arrived: Vec::with_capacity(plan.messages(size)),
        readings: Vec::with_capacity(plan.messages(size)),
        line,
        clock,
    };
    for messages in plan.batches(size, plan.warmup(size)) {
        pinger.batch(end, progress.batch(messages + 1, size))?;
    }
    let (mut samples, mut floors, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for messages in plan.batches(size, plan.iterations(size)) {
        let floor = pinger.batch(end, progress.batch(messages + 1, size))?;
        let first = samples.len();
        samples.extend(pinger.readings.windows(2).map(|pair| clock.nanoseconds(pair[0], pair[1]) as f64 / 2.0));
        if let Some(floor) = floor {
            floors.push(floor);
            ratios.push(Sorted::new(samples[first..].to_vec()).median() / floor);
        }
    }
    let [samples, floors, ratios] = [samples, floors, ratios].map(Sorted::new);
    Ok(Latency { size, samples, floors, ratios })
}

struct Pinger<'a> {
    /// One for each message of a batch, so that none has to be looked at before the batch is over.
    receives: Vec<Buffer>,
    send: Option<Buffer>,
    arrived: Vec<Transfer>,
    readings: Vec<u64>,
    line: Option<&'a Line>,
    clock: &'a Clock,
}

impl Pinger<'_> {
    /// One batch. Returns the floor, if there is one.
    fn batch(&mut self, end: &mut End, batch: Batch) -> Result<Option<f64>, Stop> {
        if end.patience.interrupted() {
            return Err(Stop::Interrupted);
        }
        let Some(mut send) = self.send.take() else { return Err(lost()) };
        Pattern::new(Sender::Client, batch.number).fill(&mut send);
        self.readings.clear();
        for receive in self.receives.drain(..batch.messages) {
            end.expect(receive, token::RECEIVED)?;
        }
        end.expect_message()?;
        end.tell(Message::Batch(batch))?;
        end.hear_that(Message::Ready)?;
        // Nor is there room for a message that fills the whole queue before the own one has left it.
        end.flush()?;
        let floor = match self.line {
            Some(line) => Some(line.measure(self.clock, &end.patience)?),
            None => None,
        };

        for message in batch.first..batch.first + batch.messages as u64 {
            number(&mut send, message);
            end.send(send)?;
            self.readings.push(self.clock.ticks());
            send = exchange(end, &mut self.arrived)?;
        }

        self.send = Some(send);
        let pattern = Pattern::new(Sender::Server, batch.number);
        for (message, transfer) in (batch.first..).zip(self.arrived.drain(..)) {
            pattern.check(transfer.bytes(), batch.size, message)?;
            self.receives.extend(transfer.into_buffer());
        }
        Ok(floor)
    }
}

/// Waits until the message that was sent has left and one has come, in whatever order. Returns the buffer of the first.
#[inline]
fn exchange(end: &mut End, arrived: &mut Vec<Transfer>) -> Result<Buffer, Stop> {
    let (mut sent, mut received) = (None, false);
    loop {
        let transfer = end.next()?;
        match transfer.token() {
            token::SENT => sent = transfer.into_buffer(),
            token::RECEIVED => {
                arrived.push(transfer);
                received = true;
                end.post_due()?;
            }
            _ => return Err(Stop::Protocol("one of its own messages within a batch".to_owned())),
        }
        if received && let Some(buffer) = sent {
            return Ok(buffer);
        }
    }
}

/// The server's side of a batch: answers each message as soon as it comes, and looks at all of them afterwards.
pub(crate) fn pong(
    end: &mut End,
    batch: Batch,
    receives: &mut Vec<Buffer>,
    replies: &mut Vec<Buffer>,
    floor: impl FnOnce(&End) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut arrived = Vec::with_capacity(batch.messages);
    for receive in receives.drain(..batch.messages) {
        end.expect(receive, token::RECEIVED)?;
    }
    end.expect_message()?;
    let mut reply = replies.pop();
    if let Some(reply) = &mut reply {
        Pattern::new(Sender::Server, batch.number).fill(reply);
    }
    end.tell(Message::Ready)?;
    floor(end)?;
    end.flush()?;

    let mut answered = 0;
    while answered < batch.messages as u64 {
        // The last reply's buffer is back long before the next message comes; where not, it has to be waited for.
        while arrived.len() as u64 == answered || reply.is_none() {
            let transfer = end.next()?;
            match transfer.token() {
                token::SENT => reply = transfer.into_buffer(),
                token::RECEIVED => {
                    arrived.push(transfer);
                    end.post_due()?;
                }
                _ => return Err(Stop::Protocol("one of its own messages within a batch".to_owned())),
            }
        }
        let Some(mut buffer) = reply.take() else { return Err(lost()) };
        number(&mut buffer, batch.first + answered);
        end.send(buffer)?;
        answered += 1;
    }
    while reply.is_none() {
        let transfer = end.next()?;
        match transfer.token() {
            token::SENT => reply = transfer.into_buffer(),
            _ => return Err(Stop::Protocol("a message too many".to_owned())),
        }
    }
    replies.extend(reply);

    let pattern = Pattern::new(Sender::Client, batch.number);
    for (message, transfer) in (batch.first..).zip(arrived) {
        pattern.check(transfer.bytes(), batch.size, message)?;
        receives.extend(transfer.into_buffer());
    }
    Ok(())
}

fn lost() -> Stop {
    Stop::Protocol("a completion without its buffer".to_owned())
}
