/// A clock that is cheap enough to be read once a message.
///
/// `std::time::Instant` goes through `clock_gettime`, which takes about 27 ns on the machines that this was written on;
/// the processor's time stamp counter takes about 11. `quanta` reads that where it ticks evenly, whatever the
/// processor does, and the system's clock elsewhere; it finds the counter's rate when the first clock is made, which
/// takes some milliseconds. (Some processors' counters advance in steps; on an AMD EPYC these were of 10 ns. A sample is
/// then a multiple of 5 ns, and only the mean is finer.)
#[derive(Clone, Debug)]
pub(crate) struct Clock(quanta::Clock);

impl Clock {
    pub(crate) fn new() -> Self {
        Clock(quanta::Clock::new())
    }

    /// The time, in ticks.
    #[inline]
    pub(crate) fn ticks(&self) -> u64 {
        self.0.raw()
    }

    /// The time between two readings, in nanoseconds.
    pub(crate) fn nanoseconds(&self, from: u64, to: u64) -> u64 {
        self.0.delta_as_nanos(from, to)
    }

    /// What one reading costs, in nanoseconds: the least of some series.
    pub(crate) fn cost(&self) -> f64 {
        const READINGS: u32 = 100;
        let series = || {
            let from = self.ticks();
            for _ in 0..READINGS {
                std::hint::black_box(self.ticks());
            }
            self.nanoseconds(from, self.ticks())
        };
        (0..20).map(|_| series()).min().unwrap_or(0) as f64 / f64::from(READINGS)
    }
}
