use std::fmt;

/// Where the two threads' cores were during a batch, by what handing a cache line over cost.
///
/// Measured on AMD EPYC 7003 and 9004 under a hypervisor: 14 to 16 ns, 30 to 57 ns, 145 to 195 ns, and nothing in between,
/// each for seconds to minutes. Presumably they are two threads of one core, two cores that share a cache, and two that
/// do not; what the machine says of itself does not change with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Same,
    Near,
    Far,
    /// The batch was interrupted, or the machine is another kind.
    Slow,
}

impl Place {
    pub(crate) const ALL: [Place; 4] = [Place::Same, Place::Near, Place::Far, Place::Slow];

    /// Of a floor in nanoseconds.
    pub(crate) fn of(floor: f64) -> Self {
        match floor {
            ..22.0 => Place::Same,
            ..90.0 => Place::Near,
            ..260.0 => Place::Far,
            _ => Place::Slow,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Place::Same => "same",
            Place::Near => "near",
            Place::Far => "far",
            Place::Slow => "slow",
        })
    }
}
