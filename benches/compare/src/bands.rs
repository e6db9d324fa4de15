//! Batches that can be compared: those with about the same floor.

use crate::batch::{Batch, Source};
use std::collections::BTreeMap;

/// How far floors may be apart from the middle of a band.
const WIDTH: f64 = 1.25;
/// Fewer batches are not shown: there would be no percentile of them.
pub(crate) const LEAST: usize = 3;
/// A second band is told if it has at least this part of the first one's cells.
const WORTH: f64 = 0.6;

/// The batches of a contestant, a length and a source.
pub(crate) type Cells<'a> = BTreeMap<(&'a str, usize, Source), Vec<&'a Batch>>;

#[derive(Debug)]
pub(crate) struct Band<'a> {
    /// The median floor, in nanoseconds.
    pub(crate) floor: f64,
    pub(crate) cells: Cells<'a>,
}

impl<'a> Band<'a> {
    fn around(floor: f64, batches: &[&'a Batch]) -> Self {
        let mut cells = Cells::new();
        for batch in batches.iter().filter(|batch| inside(floor, batch.floor)) {
            cells.entry((&*batch.contestant, batch.size, batch.source)).or_default().push(batch);
        }
        cells.retain(|_, batches| batches.len() >= LEAST);
        let floor = quantile(cells.values().flatten().map(|batch| batch.floor), 0.5).unwrap_or(floor);
        Band { floor, cells }
    }

    fn batches(&self) -> usize {
        self.cells.values().map(Vec::len).sum()
    }
}

fn inside(middle: f64, floor: f64) -> bool {
    floor <= middle * WIDTH && floor >= middle / WIDTH
}

/// The band with the most cells filled, and another where the machine was in a second state for as long.
pub(crate) fn bands(batches: &[Batch]) -> Vec<Band<'_>> {
    let mut rest: Vec<&Batch> = batches.iter().collect();
    let mut bands: Vec<Band<'_>> = Vec::new();
    while bands.len() < 2 {
        // From 5 ns to 2 µs.
        let middles = (0..120).map(|step| 5.0 * 1.05_f64.powi(step));
        let best = middles
            .map(|middle| (middle, Band::around(middle, &rest)))
            .max_by_key(|(_, band)| (band.cells.len(), band.batches()));
        let Some((middle, band)) = best else { break };
        let least = bands.first().map_or(1.0, |first| first.cells.len() as f64 * WORTH);
        if (band.cells.len() as f64) < least {
            break;
        }
        // What is near the band is a mixture of two states.
        rest.retain(|batch| !inside(middle, batch.floor / WIDTH) && !inside(middle, batch.floor * WIDTH));
        bands.push(band);
    }
    bands
}

/// By nearest rank.
pub(crate) fn quantile(values: impl Iterator<Item = f64>, part: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * part).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(contestant: &str, floors: &[f64]) -> Vec<Batch> {
        let batch = |&floor| Batch {
            contestant: contestant.to_owned(),
            size: 8,
            source: Source::Warm,
            floor,
            time: 2.0 * floor,
        };
        floors.iter().map(batch).collect()
    }

    #[test]
    fn quantiles_are_of_the_values() {
        let values = || [4.0, 1.0, 3.0, 2.0].into_iter();
        assert_eq!(quantile(values(), 0.1), Some(1.0));
        assert_eq!(quantile(values(), 0.5), Some(2.0));
        assert_eq!(quantile(values(), 1.0), Some(4.0));
        assert_eq!(quantile([].into_iter(), 0.5), None);
    }

    #[test]
    fn two_states_of_the_machine_are_two_bands() {
        let mut all = batches("a", &[40.0, 41.0, 42.0, 160.0, 161.0, 162.0, 163.0]);
        all.extend(batches("b", &[40.0, 41.0, 42.0, 160.0, 161.0, 162.0, 163.0]));
        let bands = bands(&all);
        assert_eq!(bands.iter().map(|band| band.floor).collect::<Vec<_>>(), [161.0, 41.0]);
        assert_eq!(bands[1].cells[&("a", 8, Source::Warm)].len(), 3);
    }

    #[test]
    fn a_state_that_some_did_not_see_is_none() {
        let mut all = batches("a", &[40.0, 41.0, 42.0, 160.0, 161.0, 162.0, 163.0]);
        all.extend(batches("b", &[40.0, 41.0, 42.0, 160.0]));
        assert_eq!(bands(&all).len(), 1);
        assert_eq!(bands(&all)[0].floor, 41.0);
        assert!(bands(&[]).is_empty());
    }
}
