//! `sysctl -n machdep.cpu.brand_string`: which processor.

/// A Mac's processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chip {
    pub(crate) name: String,
    /// Apple's own, not Intel's.
    pub(crate) is_apple: bool,
    /// Whether Macs with it have Thunderbolt 5. `None`: not known here.
    pub(crate) thunderbolt_5: Option<bool>,
}

/// `None` if it names no processor that Macs had.
pub(crate) fn parse(text: &str) -> Option<Chip> {
    let name = text.lines().map(str::trim).find(|line| line.contains("Apple") || line.contains("Intel"))?;
    let thunderbolt_5 = name.strip_prefix("Apple ").and_then(thunderbolt_5);
    Some(Chip { name: name.to_owned(), is_apple: name.contains("Apple"), thunderbolt_5 })
}

/// Macs that came with Thunderbolt 5 so far: M4 Pro and Max, M3 Ultra, M5 Pro and Max (exo-explore/exo's README). A series
/// that is newer is not known here; the link speeds tell.
fn thunderbolt_5(model: &str) -> Option<bool> {
    let mut words = model.split(' ');
    let series = words.next()?.strip_prefix('M')?;
    match (series, words.next()) {
        ("1" | "2", _) => Some(false),
        ("3", tier) => Some(tier == Some("Ultra")),
        ("4" | "5", Some("Pro" | "Max" | "Ultra")) => Some(true),
        ("4" | "5", None) => Some(false),
        _ => None,
    }
}
