//! Profiles as text.

use super::profile::Profile;
use crate::{Error, Result};
use std::borrow::Cow;
use std::str::FromStr;

/// More than this of anything is a slip of the pen: tables are made for so many.
const MOST: u32 = 1 << 16;

/// A profile's name, and what is to be different: `thunderbolt`, `thunderbolt,link_layer=2,page=4096`.
///
/// What can differ: `page` (bytes), `link_layer` and `transport` (the numbers that the device answers; a program that
/// refuses 100 may take 1, InfiniBand, or 2, Ethernet), `queue_pairs`, `completion_queues`, `domains`, `regions` (how many
/// of them can be made).
impl FromStr for Profile {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Profile::with_changes(text, Profile::default().page)
    }
}

impl Profile {
    /// The same, where a page that is not named is `page`.
    pub(crate) fn with_changes(text: &str, page: usize) -> Result<Self> {
        let mut words = text.split(',').map(str::trim);
        let mut profile = match words.next() {
            Some("thunderbolt") => Profile::thunderbolt().with_page(page)?,
            other => {
                let name = other.unwrap_or("");
                return Err(Error::argument(format!("there is no profile {name:?}: there is thunderbolt")));
            }
        };
        let name = profile.name.clone();
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| unknown(word))?;
            let value: u32 =
                value.parse().map_err(|_| Error::argument(format!("{value:?} in {word:?} is no number")))?;
            let count = (1..=MOST).contains(&value).then_some(value);
            let count = || count.ok_or_else(|| Error::argument(format!("{word}: it is 1 to {MOST}")));
            match key {
                "page" => profile = profile.with_page(value as usize)?,
                "link_layer" => profile.link_layer = value.try_into().map_err(|_| unknown(word))?,
                "transport" => profile.transport = value.try_into().map_err(|_| unknown(word))?,
                "queue_pairs" => profile.queue_pairs = count()?,
                "completion_queues" => profile.max_cq = count()?,
                "domains" => profile.max_pd = count()?,
                "regions" => profile.max_mr = count()?,
                _ => return Err(unknown(word)),
            }
            profile.name = Cow::Owned(format!("{name} (changed)"));
        }
        Ok(profile)
    }
}

fn unknown(word: &str) -> Error {
    Error::argument(format!("{word:?} changes nothing in a profile")).with_hint(
        "it is NAME[,KEY=NUMBER]…, where KEY is page, link_layer, transport, queue_pairs, completion_queues, domains or regions",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_changes() {
        let plain: Profile = "thunderbolt".parse().unwrap();
        assert_eq!((plain.name(), plain.page, plain.link_layer), ("thunderbolt", 16384, 100));
        let changed: Profile = "thunderbolt, link_layer=2,page=4096,regions=7".parse().unwrap();
        assert_eq!((changed.page, changed.link_layer, changed.max_mr), (4096, 2, 7));
        assert_ne!(changed.name(), plain.name());
    }

    #[test]
    fn slips_are_errors() {
        for text in
            ["", "infiniband", "thunderbolt,", "thunderbolt,page", "thunderbolt,page=x", "thunderbolt,page=5000"]
        {
            assert!(text.parse::<Profile>().is_err(), "{text:?}");
        }
        for change in ["link_layer=256", "regions=0", "regions=4000000000", "color=3", "queue_pairs=-1"] {
            assert!(format!("thunderbolt,{change}").parse::<Profile>().is_err(), "{change}");
        }
    }
}
