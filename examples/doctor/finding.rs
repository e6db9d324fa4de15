//! What the program has to say about one thing.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// It works, or may work, but somebody should know.
    Warning,
    /// Something does not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// What was looked at, by a name that stays.
    pub(crate) check: &'static str,
    /// Which of several: a device, an interface, a receptacle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
    pub(crate) level: Level,
    /// The finding, in a sentence.
    pub(crate) summary: String,
    /// What was seen.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) evidence: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
    /// Who says so.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) source: &'static str,
}

impl Finding {
    fn new(level: Level, check: &'static str, summary: impl AsRef<str>) -> Self {
        let summary = clean(summary.as_ref());
        Finding { check, subject: None, level, summary, evidence: String::new(), remedy: None, source: "" }
    }

    pub(crate) fn ok(check: &'static str, summary: impl AsRef<str>) -> Self {
        Finding::new(Level::Ok, check, summary)
    }

    pub(crate) fn warning(check: &'static str, summary: impl AsRef<str>, remedy: impl AsRef<str>) -> Self {
        Finding { remedy: Some(clean(remedy.as_ref())), ..Finding::new(Level::Warning, check, summary) }
    }

    pub(crate) fn problem(check: &'static str, summary: impl AsRef<str>, remedy: impl AsRef<str>) -> Self {
        Finding { remedy: Some(clean(remedy.as_ref())), ..Finding::new(Level::Problem, check, summary) }
    }

    pub(crate) fn on(self, subject: impl AsRef<str>) -> Self {
        Finding { subject: Some(clean(subject.as_ref())), ..self }
    }

    pub(crate) fn evidence(self, evidence: impl AsRef<str>) -> Self {
        Finding { evidence: clean(evidence.as_ref()), ..self }
    }

    pub(crate) fn source(self, source: &'static str) -> Self {
        Finding { source, ..self }
    }
}

/// The longest text of a finding, in characters.
const LONGEST: usize = 600;

/// What a tool wrote may hold anything, and goes to a terminal: one line, without control characters, of bounded length.
fn clean(text: &str) -> String {
    let mut line = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
            count += 1;
        }
        for character in word.chars() {
            if count >= LONGEST {
                line.push('…');
                return line;
            }
            line.push(if is_plain(character) { character } else { '?' });
            count += 1;
        }
    }
    line
}

/// No control character, and none that turns the direction of the text or hides.
fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
