//! Sleep.

use super::mac::View;
use super::unreadable;
use crate::finding::Finding;
use crate::parse::power;

pub(super) fn sleep(mac: &View<'_>) -> Finding {
    const CHECK: &str = "sleep";
    let power = power::parse(mac.facts.power.text());
    match power.sleeps() {
        None => unreadable(CHECK, "whether this Mac goes to sleep", "pmset -g", &mac.facts.power),
        Some(false) => Finding::ok(CHECK, "this Mac does not go to sleep").source("Apple TN3205"),
        Some(true) => {
            let minutes = power.minutes.unwrap_or_default();
            let summary =
                format!("this Mac goes to sleep after {minutes} minutes, and no peer can wake it over Thunderbolt");
            Finding::warning(CHECK, summary, "`sudo pmset -a sleep 0`").evidence("`pmset -g`").source("Apple TN3205")
        }
    }
}
