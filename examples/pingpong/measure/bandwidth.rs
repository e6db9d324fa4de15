//! Many messages at a time, one way.

use super::clock::Clock;
use super::end::{End, token};
use super::message::{Batch, Message, Progress};
use super::pattern::{Pattern, Sender, number};
use super::plan::Plan;
use super::stop::Stop;
use rdma::Buffer;

/// What went through, for one size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bandwidth {
    pub(crate) size: usize,
    pub(crate) messages: u64,
    /// The time of all batches, from the first post until the receiver says that it has all, in nanoseconds.
    pub(crate) nanoseconds: u64,
    /// The rate of the best batch, in bytes a second.
    pub(crate) peak: f64,
}

/// The client's side, for one size: fills the window, and keeps it full.
///
/// A send's completion says that the bytes left the host, not that they arrived, so the clock runs until the server has
/// received the whole batch and said so.
pub(crate) fn stream(
    end: &mut End,
    plan: &Plan,
    size: usize,
    clock: &Clock,
    progress: &mut Progress,
) -> Result<Bandwidth, Stop> {
    let mut window = end.memory.buffers(plan.window(size), size)?;
    for messages in plan.batches(size, plan.warmup(size)) {
        one_batch(end, progress.batch(messages, size), &mut window, clock)?;
    }
    let mut total = Bandwidth { size, messages: 0, nanoseconds: 0, peak: 0.0 };
    for messages in plan.batches(size, plan.iterations(size)) {
        let nanoseconds = one_batch(end, progress.batch(messages, size), &mut window, clock)?;
        total.messages += messages as u64;
        total.nanoseconds += nanoseconds;
        total.peak = total.peak.max((messages * size) as f64 * 1e9 / nanoseconds.max(1) as f64);
    }
    Ok(total)
}

fn one_batch(end: &mut End, batch: Batch, window: &mut Vec<Buffer>, clock: &Clock) -> Result<u64, Stop> {
    if end.patience.interrupted() {
        return Err(Stop::Interrupted);
    }
    let pattern = Pattern::new(Sender::Client, batch.number);
    for buffer in &mut *window {
        pattern.fill(buffer);
    }
    // Besides Ready, Arrived comes.
    end.expect_message()?;
    end.expect_message()?;
    end.tell(Message::Batch(batch))?;
    end.hear_that(Message::Ready)?;

    let from = clock.ticks();
    let (mut posted, mut sent, mut arrived) = (0, 0, false);
    while sent < batch.messages || !arrived {
        while posted < batch.messages
            && let Some(mut buffer) = window.pop()
        {
            number(&mut buffer, batch.first + posted as u64);
            if let Some(buffer) = end.try_send(buffer)? {
                window.push(buffer);
                break;
            }
            posted += 1;
        }
        let transfer = end.next_of_many()?;
        match transfer.token() {
            token::SENT => {
                window.extend(transfer.into_buffer());
                sent += 1;
            }
            token::HEARD => {
                end.read(transfer)?.must_be(Message::Arrived)?;
                arrived = true;
            }
            _ => return Err(Stop::Protocol("a measured message the wrong way".to_owned())),
        }
    }
    Ok(clock.nanoseconds(from, clock.ticks()))
}

/// The server's side of a batch: receives it, says so, and then looks at every byte.
pub(crate) fn drain(end: &mut End, batch: Batch, receives: &mut Vec<Buffer>) -> Result<(), Stop> {
    let mut arrived = Vec::with_capacity(batch.messages);
    for receive in receives.drain(..batch.messages) {
        end.expect(receive, token::RECEIVED)?;
    }
    end.expect_message()?;
    end.tell(Message::Ready)?;
    while arrived.len() < batch.messages {
        let transfer = end.next_of_many()?;
        match transfer.token() {
            token::RECEIVED => {
                arrived.push(transfer);
                end.post_due()?;
            }
            _ => return Err(Stop::Protocol("one of its own messages within a batch".to_owned())),
        }
    }
    end.tell(Message::Arrived)?;
    let pattern = Pattern::new(Sender::Client, batch.number);
    for (message, transfer) in (batch.first..).zip(arrived) {
        pattern.check(transfer.bytes(), batch.size, message)?;
        receives.extend(transfer.into_buffer());
    }
    Ok(())
}
