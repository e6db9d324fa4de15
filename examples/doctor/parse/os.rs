//! `sw_vers`: which macOS.

use core::fmt;
use core::str::FromStr;

/// A version: major, minor, patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = [0; 3];
        for (at, part) in text.split('.').enumerate() {
            // Not a sign, which `parse` would take.
            let digits = part.bytes().all(|byte| byte.is_ascii_digit());
            let number = part.parse().ok().filter(|_| digits);
            match (parts.get_mut(at), number) {
                (Some(slot), Some(number)) => *slot = number,
                _ => return Err(format!("{text:?} is no version (such as 26.3 or 26.3.1)")),
            }
        }
        Ok(Version(parts[0], parts[1], parts[2]))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version(major, minor, patch) = self;
        write!(out, "{major}.{minor}")?;
        if *patch > 0 { write!(out, ".{patch}") } else { Ok(()) }
    }
}

/// A release: its version and, where it is known, its build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) version: Version,
    pub(crate) build: Option<String>,
}

impl FromStr for Release {
    type Err = String;

    /// `VERSION` or `VERSION/BUILD`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (version, build) = match text.split_once('/') {
            Some((version, build)) => (version, Some(build)),
            None => (text, None),
        };
        if let Some(build) = build.filter(|build| !is_build(build)) {
            return Err(format!("{build:?} is no build (such as 25D125)"));
        }
        Ok(Release { version: version.parse()?, build: build.map(str::to_owned) })
    }
}

impl fmt::Display for Release {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.build {
            Some(build) => write!(out, "{} ({build})", self.version),
            None => write!(out, "{}", self.version),
        }
    }
}

fn is_build(text: &str) -> bool {
    (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The release of macOS that `sw_vers` tells; `None` if it is another system's, or tells no version.
pub(crate) fn parse(text: &str) -> Option<Release> {
    let value = |name: &str| {
        text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name).map(|(_, v)| v.trim())
    };
    value("ProductName").filter(|name| *name == "macOS")?;
    let build = value("BuildVersion").filter(|build| is_build(build)).map(str::to_owned);
    Some(Release { version: value("ProductVersion")?.parse().ok()?, build })
}
