//! What is written: to people while it goes on, and to the file after each step, so that nothing is lost if the machine does
//! not come back.

use crate::observation::Observation;
use crate::place::Place;
use serde::Serialize;
use std::io;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The same for people.
    pub(crate) readable: Vec<String>,
    pub(crate) program: String,
    pub(crate) role: String,
    pub(crate) provider: String,
    pub(crate) device: String,
    pub(crate) system: String,
    pub(crate) peer_system: String,
    /// The step that was begun and not ended.
    pub(crate) unfinished: Option<String>,
    pub(crate) interrupted: bool,
    pub(crate) steps: Vec<Record>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Record {
    pub(crate) step: String,
    /// Why this end could not go on with it.
    pub(crate) incomplete: Option<String>,
    pub(crate) here: Vec<Observation>,
    pub(crate) there: Vec<Observation>,
}

/// How many facts agree, differ, and how many steps were not completed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) agree: usize,
    pub(crate) differ: usize,
    pub(crate) incomplete: usize,
}

impl Report {
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for record in &self.steps {
            tally.incomplete += usize::from(record.incomplete.is_some());
            for observation in record.here.iter().chain(&record.there) {
                tally.agree += usize::from(observation.agrees == Some(true));
                tally.differ += usize::from(observation.agrees == Some(false));
            }
        }
        tally
    }

    /// The lines of the facts that differ.
    pub(crate) fn differences(&self) -> impl Iterator<Item = &str> {
        self.readable.iter().map(String::as_str).filter(|line| line.starts_with("  DIFFERS"))
    }

    /// Adds what a step gave. Returns the lines that say so.
    pub(crate) fn add(&mut self, record: Record, ends: [&str; 2]) -> &[String] {
        let first = self.readable.len();
        self.readable.push(format!("{}:", record.step));
        for (end, observations) in ends.into_iter().zip([&record.here, &record.there]) {
            self.readable.extend(observations.iter().map(|observation| line(end, observation)));
        }
        if let Some(reason) = &record.incomplete {
            self.readable.push(format!("  not completed: {reason}"));
        }
        self.steps.push(record);
        &self.readable[first..]
    }

    /// Writes all of it anew.
    pub(crate) fn write(&self, place: &Place) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        place.write(&text)
    }
}

fn line(end: &str, observation: &Observation) -> String {
    let Observation { id, what, expected, observed, agrees } = observation;
    let verdict = match agrees {
        Some(true) => "agrees",
        Some(false) => "DIFFERS",
        None => "answer",
    };
    let expected = match expected {
        Some(expected) if !observed.starts_with(expected.as_str()) => format!(" (expected: {expected})"),
        _ => String::new(),
    };
    format!("  {verdict:8}{id:5}{end:7} {what}: {observed}{expected}")
}
