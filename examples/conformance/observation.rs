use serde::{Deserialize, Serialize};

/// What was seen of a fact (`F…`), or what answers a question (`Q…`); both are listed in docs/device.md.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Observation {
    pub(crate) id: String,
    pub(crate) what: String,
    /// Nothing is expected of an open question.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) expected: Option<String>,
    pub(crate) observed: String,
    /// `None`: there is nothing to agree with, or it could not be seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) agrees: Option<bool>,
}

/// The longest text that is taken from a peer, in characters, and how many observations of one step.
const LONGEST: usize = 400;
const MOST: usize = 200;

/// What a peer says, without what could garble a terminal or fill a disk.
pub(crate) fn tame(mut observations: Vec<Observation>) -> Vec<Observation> {
    let plain = |text: &mut String| {
        *text = text.chars().take(LONGEST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    };
    observations.truncate(MOST);
    for observation in &mut observations {
        plain(&mut observation.id);
        plain(&mut observation.what);
        plain(&mut observation.observed);
        observation.expected.iter_mut().for_each(plain);
    }
    observations
}
