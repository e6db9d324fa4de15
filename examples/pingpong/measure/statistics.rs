/// Samples in ascending order: exact, not sketched, as there are few enough of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorted(Vec<f64>);

impl Sorted {
    pub(crate) fn new(mut samples: Vec<f64>) -> Self {
        samples.sort_unstable_by(f64::total_cmp);
        Sorted(samples)
    }

    pub(crate) fn samples(&self) -> &[f64] {
        &self.0
    }

    pub(crate) fn least(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn greatest(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    /// The smallest sample that so many thousandths of all are not above (nearest rank).
    pub(crate) fn per_mille(&self, per_mille: usize) -> f64 {
        let rank = (self.0.len() * per_mille).div_ceil(1000).max(1);
        self.0.get(rank - 1).copied().unwrap_or(f64::NAN)
    }

    /// The middle one, or the mean of the two in the middle.
    pub(crate) fn median(&self) -> f64 {
        match self.0.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => self.0[odd / 2],
            even => (self.0[even / 2 - 1] + self.0[even / 2]) / 2.0,
        }
    }

    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The standard deviation, of the samples themselves.
    pub(crate) fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.0.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / self.0.len() as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::Sorted;

    #[test]
    fn of_one_to_a_thousand() {
        let sorted = Sorted::new((1..=1000).rev().map(f64::from).collect());
        assert_eq!((sorted.least(), sorted.greatest(), sorted.median(), sorted.mean()), (1.0, 1000.0, 500.5, 500.5));
        assert_eq!([500, 990, 999, 1000, 0].map(|share| sorted.per_mille(share)), [500.0, 990.0, 999.0, 1000.0, 1.0]);
        assert!((sorted.deviation() - 288.675).abs() < 0.001);
    }

    #[test]
    fn of_one_and_of_none() {
        let one = Sorted::new(vec![3.0]);
        assert_eq!((one.median(), one.per_mille(999), one.deviation()), (3.0, 3.0, 0.0));
        assert!(Sorted::new(Vec::new()).median().is_nan());
    }
}
