//! Which ranges of a region are free. No `unsafe` in here, but the exclusiveness of every buffer rests on it.

/// Buffers start at a multiple of this (if their region does): a cache line of the machines there are.
const ALIGNMENT: usize = 128;

/// The free ranges of `0..length`, in order, disjoint and not adjacent.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// (start, end)
    free: Vec<(usize, usize)>,
    /// No buffer fits into the ranges before this one: what is left between buffers of lengths that are no multiple of the
    /// alignment. There may be thousands of them.
    first: usize,
}

/// Where a buffer would start in a range, if there is room for one of this length.
fn fits((start, end): (usize, usize), length: usize) -> Option<usize> {
    let start = start.next_multiple_of(ALIGNMENT);
    start.checked_add(length).filter(|&stop| stop <= end).map(|_| start)
}

impl Ranges {
    pub(crate) fn new(length: usize) -> Self {
        Ranges { free: vec![(0, length)], first: 0 }
    }

    /// Takes a free range of this length, the first that fits. A length of 0 has none.
    pub(crate) fn take(&mut self, length: usize) -> Option<usize> {
        if length == 0 {
            return None;
        }
        while self.free.get(self.first).is_some_and(|&range| fits(range, 1).is_none()) {
            self.first += 1;
        }
        let mut ranges = self.free.iter().enumerate().skip(self.first);
        let (index, start) = ranges.find_map(|(index, &range)| Some((index, fits(range, length)?)))?;
        let (first, last) = self.free[index];
        let stop = start + length;
        match (first < start, stop < last) {
            (false, false) => {
                self.free.remove(index);
            }
            (true, false) => self.free[index] = (first, start),
            (false, true) => self.free[index] = (stop, last),
            (true, true) => {
                self.free[index] = (first, start);
                self.free.insert(index + 1, (stop, last));
            }
        }
        Some(start)
    }

    /// Gives a range back that was taken (or a part of one).
    pub(crate) fn give_back(&mut self, start: usize, length: usize) {
        if length == 0 {
            return;
        }
        let end = start + length;
        let index = self.free.partition_point(|&(first, _)| first < start);
        debug_assert!(index == 0 || self.free[index - 1].1 <= start, "given back twice");
        debug_assert!(self.free.get(index).is_none_or(|&(first, _)| end <= first), "given back twice");
        self.first = self.first.min(index.saturating_sub(1));
        let before = index > 0 && self.free[index - 1].1 == start;
        let after = self.free.get(index).is_some_and(|&(first, _)| first == end);
        match (before, after) {
            (true, true) => {
                self.free[index - 1].1 = self.free[index].1;
                self.free.remove(index);
            }
            (true, false) => self.free[index - 1].1 = end,
            (false, true) => self.free[index].0 = start,
            (false, false) => self.free.insert(index, (start, end)),
        }
    }

    /// How many bytes are free, and the longest free range.
    pub(crate) fn available(&self) -> (usize, usize) {
        let lengths = self.free.iter().map(|&(start, end)| end - start);
        (lengths.clone().sum(), lengths.max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_disjoint_and_come_back_whole() {
        let mut ranges = Ranges::new(1 << 16);
        let mut taken: Vec<(usize, usize)> = Vec::new();
        let mut seed = 1_u64;
        for _ in 0..10_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let random = (seed >> 33) as usize;
            if !random.is_multiple_of(3) {
                let length = random % 1000 + 1;
                if let Some(start) = ranges.take(length) {
                    assert_eq!(start % ALIGNMENT, 0);
                    assert!(taken.iter().all(|&(other, size)| start + length <= other || other + size <= start));
                    taken.push((start, length));
                }
            } else if !taken.is_empty() {
                let (start, length) = taken.swap_remove(random % taken.len());
                ranges.give_back(start, length);
            }
        }
        for (start, length) in taken {
            ranges.give_back(start, length);
        }
        assert_eq!(ranges.free, [(0, 1 << 16)]);
    }

    /// It takes no longer for what others have left between.
    #[test]
    fn remains_are_not_looked_at_again() {
        let mut ranges = Ranges::new(1 << 16);
        let taken: Vec<usize> = (0..400).map(|_| ranges.take(64).unwrap()).collect();
        assert!(ranges.free.len() >= 400 && ranges.first >= 398, "{} of {}", ranges.first, ranges.free.len());
        // What comes back is found.
        ranges.give_back(taken[7], 64);
        assert_eq!(ranges.take(64), Some(taken[7]));
        assert_eq!(ranges.take(100), Some(400 * ALIGNMENT));
        ranges.give_back(taken[0], 64);
        assert_eq!(ranges.take(1), Some(0));
    }

    #[test]
    fn the_whole_can_be_taken_and_nothing_cannot() {
        let mut ranges = Ranges::new(100);
        assert_eq!(ranges.take(0), None);
        assert_eq!(ranges.take(101), None);
        assert_eq!(ranges.take(usize::MAX), None);
        assert_eq!(ranges.take(100), Some(0));
        assert_eq!(ranges.take(1), None);
        assert_eq!(ranges.available(), (0, 0));
    }
}
