use std::fmt;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// Messages that go to and fro, one at a time.
    Latency,
    /// Messages that go one way, many at a time.
    Bandwidth,
}

/// The lengths of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    One(usize),
    /// The powers of two from 2 bytes to so many, and to 8 MiB at most.
    UpTo(usize),
}

impl Sizes {
    pub(crate) const ALL: Sizes = Sizes::UpTo(8 << 20);
}

/// What both ends must agree on before they measure anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    pub(crate) sizes: Sizes,
    /// How many messages are measured of each size; [`Plan::iterations`] says how many if nobody did.
    pub(crate) iterations: Option<u64>,
    /// How many go before them; a tenth as many, if nobody said.
    pub(crate) warmup: Option<u64>,
}

/// The most bytes that the messages of a batch have together, so that they stay in the cache nearest to the core.
const LATENCY_BATCH: usize = 256 << 10;
/// A stream may have more in flight: what all the caches hold.
const BANDWIDTH_BATCH: usize = 4 << 20;
/// The most bytes that are on their way at once.
const WINDOW: usize = 1 << 20;

impl Plan {
    pub(crate) fn sizes(&self) -> Vec<usize> {
        match self.sizes {
            Sizes::One(size) => vec![size],
            Sizes::UpTo(longest) => (1..=23).map(|power| 1 << power).filter(|&size| size <= longest).collect(),
        }
    }

    /// The same on a device whose messages have so many bytes at most: of all sizes those that it has.
    pub(crate) fn within(self, most: u64) -> Plan {
        match self.sizes {
            Sizes::One(_) => self,
            Sizes::UpTo(longest) => {
                Plan { sizes: Sizes::UpTo(usize::try_from(most).map_or(longest, |most| longest.min(most))), ..self }
            }
        }
    }

    /// What both ends can measure, if they were started for the same: of all sizes those that both devices have.
    pub(crate) fn agreed(self, peer: Plan) -> Option<Plan> {
        let agreed = match peer.sizes {
            Sizes::UpTo(longest) => self.within(longest as u64),
            Sizes::One(_) => self,
        };
        let peer = match self.sizes {
            Sizes::UpTo(longest) => peer.within(longest as u64),
            Sizes::One(_) => peer,
        };
        (agreed == peer).then_some(agreed)
    }

    pub(crate) fn longest(&self) -> usize {
        self.sizes().into_iter().max().unwrap_or(0)
    }

    /// How many messages of a size are measured.
    pub(crate) fn iterations(&self, size: usize) -> u64 {
        self.iterations.unwrap_or(match size {
            0..=4096 => 20_000,
            4097..=262_144 => 2_000,
            _ => 200,
        })
    }

    /// How many are sent before that.
    pub(crate) fn warmup(&self, size: usize) -> u64 {
        self.warmup.unwrap_or(self.iterations(size).div_ceil(10))
    }

    /// How many measured messages a batch has at most. Few, so that most batches see no interruption, and so that their
    /// buffers stay in a cache.
    pub(crate) fn batch(&self, size: usize) -> usize {
        match self.mode {
            Mode::Latency => (LATENCY_BATCH / size).clamp(1, 128),
            Mode::Bandwidth => (BANDWIDTH_BATCH / size).clamp(4, 1024),
        }
    }

    /// So many messages of a size, in batches.
    pub(crate) fn batches(&self, size: usize, messages: u64) -> impl Iterator<Item = usize> + use<> {
        let batch = self.batch(size);
        let mut left = messages;
        std::iter::from_fn(move || {
            let next = usize::try_from(left).unwrap_or(usize::MAX).min(batch);
            left -= next as u64;
            (next > 0).then_some(next)
        })
    }

    /// How many messages of a size may be on their way.
    pub(crate) fn window(&self, size: usize) -> usize {
        match self.mode {
            Mode::Latency => 1,
            Mode::Bandwidth => (WINDOW / size).clamp(2, 128),
        }
    }

    /// How many messages a batch has at most, with those that are not measured.
    pub(crate) fn messages(&self, size: usize) -> usize {
        match self.mode {
            Mode::Latency => self.batch(size) + 1,
            Mode::Bandwidth => self.batch(size),
        }
    }
}

/// The options that make it.
impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sizes {
            Sizes::One(size) => write!(out, "--size {size}")?,
            Sizes::UpTo(_) => out.write_str("--all")?,
        }
        if let Some(iterations) = self.iterations {
            write!(out, " --iters {iterations}")?;
        }
        if let Some(warmup) = self.warmup {
            write!(out, " --warmup {warmup}")?;
        }
        match self.mode {
            Mode::Latency => Ok(()),
            Mode::Bandwidth => out.write_str(" --bandwidth"),
        }
    }
}
