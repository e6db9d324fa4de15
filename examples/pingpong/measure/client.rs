use super::bandwidth::{self, Bandwidth};
use super::clock::Clock;
use super::end::End;
use super::floor::Line;
use super::latency::{self, Latency};
use super::message::{Message, Progress};
use super::plan::{Mode, Plan};
use super::stop::Stop;

/// The result for one size.
#[derive(Debug)]
pub(crate) enum Measured {
    Latency(Latency),
    Bandwidth(Bandwidth),
}

/// The client's side of a run: measures each size of the plan, and hands each result to `each`.
///
/// With a `line`, which the server must have too, the floor is measured in each batch of latencies.
pub(crate) fn call(
    end: &mut End,
    plan: &Plan,
    line: Option<&Line>,
    clock: &Clock,
    mut each: impl FnMut(Measured) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut progress = Progress::default();
    for size in plan.sizes() {
        each(match plan.mode {
            Mode::Latency => Measured::Latency(latency::ping(end, plan, size, line, clock, &mut progress)?),
            Mode::Bandwidth => Measured::Bandwidth(bandwidth::stream(end, plan, size, clock, &mut progress)?),
        })?;
    }
    end.tell(Message::Done)
}
