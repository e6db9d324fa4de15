//! `pmset -g`: whether the Mac goes to sleep.

/// What is said about sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Power {
    /// Sleep is impossible (`SleepDisabled`).
    pub(crate) disabled: bool,
    /// Minutes until sleep; 0 is never.
    pub(crate) minutes: Option<u32>,
}

impl Power {
    /// `None`: not told.
    pub(crate) fn sleeps(self) -> Option<bool> {
        if self.disabled { Some(false) } else { self.minutes.map(|minutes| minutes != 0) }
    }
}

pub(crate) fn parse(text: &str) -> Power {
    let mut power = Power::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("SleepDisabled"), Some(value)) => power.disabled = value == "1",
            (Some("sleep"), Some(value)) => power.minutes = value.parse().ok().or(power.minutes),
            _ => {}
        }
    }
    power
}
