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

/// Who is told of the results.
pub(crate) trait Audience {
    /// Both ends are there, and this is what they will measure.
    fn begin(&mut self, plan: &Plan) -> Result<(), Stop>;

    /// One size has been measured.
    fn add(&mut self, measured: Measured) -> Result<(), Stop>;
}

/// Keeps them.
impl Audience for Vec<Measured> {
    fn begin(&mut self, _: &Plan) -> Result<(), Stop> {
        Ok(())
    }

    fn add(&mut self, measured: Measured) -> Result<(), Stop> {
        self.push(measured);
        Ok(())
    }
}

/// The client's side of a run: measures each size of the plan that the two ends agreed on.
///
/// With a `line`, which the server must have too, the floor is measured in each batch of latencies.
pub(crate) fn call(
    end: &mut End,
    line: Option<&Line>,
    clock: &Clock,
    audience: &mut impl Audience,
) -> Result<(), Stop> {
    let plan = end.plan;
    let mut progress = Progress::default();
    audience.begin(&plan)?;
    for size in plan.sizes() {
        audience.add(match plan.mode {
            Mode::Latency => Measured::Latency(latency::ping(end, &plan, size, line, clock, &mut progress)?),
            Mode::Bandwidth => Measured::Bandwidth(bandwidth::stream(end, &plan, size, clock, &mut progress)?),
        })?;
    }
    end.tell(Message::Done)
}
