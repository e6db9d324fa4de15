//! A core for each side.

use crate::Result;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cores(pub(crate) [usize; 2]);

impl Cores {
    /// Two processors that this process may use and that are not threads of one core, as far as the system says.
    pub(crate) fn find() -> Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let mut all = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        let one = all.next().ok_or("no processor")?;
        let file = format!("/sys/devices/system/cpu/cpu{one}/topology/thread_siblings_list");
        let siblings = std::fs::read_to_string(file).unwrap_or_default();
        let other = all.find(|&cpu| !listed(&siblings, cpu)).ok_or("two sides need two cores")?;
        Ok(Cores([one, other]))
    }

    /// Keeps the calling thread on the core of one side.
    pub(crate) fn pin(self, side: usize) -> Result<()> {
        let mut set = CpuSet::new();
        set.set(self.0[side]);
        Ok(sched_setaffinity(None, &set)?)
    }
}

/// Whether a list like `0-3,8` has a number.
fn listed(list: &str, cpu: usize) -> bool {
    list.trim().split(',').any(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        matches!((from.parse::<usize>(), to.parse::<usize>()), (Ok(from), Ok(to)) if (from..=to).contains(&cpu))
    })
}

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parse = |word: &str| word.parse().ok().filter(|&cpu| cpu < CpuSet::MAX_CPU);
        let pair = text.split_once(',').and_then(|(one, other)| Some([parse(one)?, parse(other)?]));
        pair.filter(|[one, other]| one != other)
            .map(Cores)
            .ok_or_else(|| "two numbers of processors, like 0,1".to_owned())
    }
}

impl std::fmt::Display for Cores {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{},{}", self.0[0], self.0[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        assert!(listed("0-3,8\n", 2) && listed("0-3,8\n", 8) && listed("0\n", 0));
        assert!(!listed("0-3,8\n", 4) && !listed("", 0));
    }

    #[test]
    fn pairs_of_processors() {
        assert_eq!("0,3".parse(), Ok(Cores([0, 3])));
        for wrong in ["", "1", "1,1", "0,x", "0,999999999"] {
            assert!(wrong.parse::<Cores>().is_err(), "{wrong}");
        }
    }
}
