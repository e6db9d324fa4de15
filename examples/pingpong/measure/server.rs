use super::end::End;
use super::floor::Line;
use super::message::{Batch, Message};
use super::plan::{Mode, Plan};
use super::stop::Stop;
use super::{bandwidth, latency};
use rdma::Buffer;

/// What a server did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Messages that came and were found to be right, byte by byte.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// The server's side of a run: does as the client says, until it says that there is nothing more.
pub(crate) fn serve(end: &mut End, line: Option<&Line>) -> Result<Served, Stop> {
    let plan = end.plan;
    let mut served = Served::default();
    let mut batches = 0;
    let (mut size, mut receives, mut replies): (_, Vec<Buffer>, Vec<Buffer>) = (0, Vec::new(), Vec::new());
    loop {
        let batch = match end.hear()? {
            Message::Batch(batch) => batch,
            Message::Done => return Ok(served),
            other => return Err(Stop::Protocol(format!("{other:?} instead of a batch"))),
        };
        if end.patience.interrupted() {
            return Err(Stop::Interrupted);
        }
        check(&batch, &plan)?;
        if batch.size != size {
            // The old ones first give their memory back.
            receives.clear();
            replies.clear();
            size = batch.size;
            receives = end.memory.buffers(plan.messages(size), size)?;
            if plan.mode == Mode::Latency {
                replies = end.memory.buffers(1, size)?;
            }
        }
        match plan.mode {
            Mode::Latency => {
                let floor = |end: &End| line.map_or(Ok(()), |line| line.answer(batches, &end.patience));
                latency::pong(end, batch, &mut receives, &mut replies, floor)?;
            }
            Mode::Bandwidth => bandwidth::drain(end, batch, &mut receives)?,
        }
        batches += 1;
        served.messages += batch.messages as u64;
        served.bytes += (batch.messages * batch.size) as u64;
    }
}

/// Whether a batch is one of the plan's: a peer may say anything.
fn check(batch: &Batch, plan: &Plan) -> Result<(), Stop> {
    let known = plan.sizes().contains(&batch.size);
    if known && (1..=plan.messages(batch.size)).contains(&batch.messages) && batch.first.checked_add(1 << 32).is_some()
    {
        return Ok(());
    }
    Err(Stop::Protocol(format!("a batch of {} messages of {} bytes", batch.messages, batch.size)))
}
