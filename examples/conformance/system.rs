//! Which system this is.

use std::fs;

/// The product and its build, as the system's own files say; no names of machines or people.
pub(crate) fn describe() -> String {
    let text = mac().or_else(linux).unwrap_or_else(|| std::env::consts::OS.to_owned());
    format!("{} {}", text.chars().filter(|c| !c.is_control()).take(100).collect::<String>(), std::env::consts::ARCH)
}

fn mac() -> Option<String> {
    let list = fs::read_to_string("/System/Library/CoreServices/SystemVersion.plist").ok()?;
    Some(format!("macOS {} ({})", value(&list, "ProductVersion")?, value(&list, "ProductBuildVersion")?))
}

/// The string that follows a key in a property list.
fn value<'a>(list: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = list.split_once(&format!("<key>{key}</key>"))?;
    let (_, rest) = rest.split_once("<string>")?;
    rest.split_once("</string>").map(|(text, _)| text)
}

fn linux() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn values_of_a_property_list() {
        let list = "<dict><key>ProductBuildVersion</key>\n<string>25C56</string><key>ProductVersion</key><string>26.2</string>";
        assert_eq!((value(list, "ProductVersion"), value(list, "ProductBuildVersion")), (Some("26.2"), Some("25C56")));
        assert_eq!((value(list, "Other"), value("<key>Other</key>", "Other")), (None, None));
    }
}
