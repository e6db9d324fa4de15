//! Profiles as text.

use super::profile::{Access, Lint, Matching, OverPosting, Profile, ReturnStyle};
use crate::{Error, Result};
use std::borrow::Cow;
use std::str::FromStr;

/// More than this of anything is a slip of the pen: tables are made for so many.
const MOST: u32 = 1 << 16;

/// A profile's name, and what is to be different: `thunderbolt`, `thunderbolt,link_layer=2,page=4096`.
///
/// The names are `thunderbolt`, `thunderbolt_27` and `classic`. What can differ:
///
/// | key | value |
/// |---|---|
/// | `page` | the device page, in bytes |
/// | `transport`, `link_layer` | the numbers that the device answers; a program that refuses 100 may take 1 (InfiniBand) or 2 (Ethernet) |
/// | `queue_pairs`, `completion_queues`, `domains`, `regions` | how many can be made |
/// | `reported_queue_pairs` | the attribute `max_qp` |
/// | `region_size` | the longest region in bytes, which is then enforced |
/// | `depths` | what a depth can be granted as, rising: `63/1023/4095` |
/// | `matching` | `frames`, `mispairing` (after a mismatch the messages pair wrongly), `packets` (each frame fills a receive), `messages` (as a network adapter) |
/// | `over_posting` | `refused`, or `lost`: accepted, and never heard of again |
/// | `post_errors` | how posting returns errors: `errno`, `negative`, `minus_one` (and `errno` set) |
/// | `bad_wr` | after a failed post: `set` or `unset` |
/// | `failure_fields` | what else a failed completion holds: `kept` or `garbage` |
/// | `loopback` | a connection to one's own port: `unanswered` (ETIMEDOUT) or `refused` (EINVAL) |
/// | `access` | of a registration: `any`, `local` (local write only), `all` (all three, or it is refused) |
/// | `receives_from` | the state from which receives can be posted: `init` or `rts` |
/// | `register_first` | whether memory registered after INIT is unknown to a queue pair: `yes` or `no` |
/// | `four_gib` | whether a region may not cross a multiple of 4 GiB: `yes` or `no` |
/// | `empty` | empty messages are `sent` or `lost` |
/// | `lint` | whether it is looked for what works here and not under every profile: `no`, `yes` (see [`with_lint`](Profile::with_lint)), or `print`, which says it on standard error |
/// | `gid0` | entry 0 of the GID table: `link_local` or `uuid` |
impl FromStr for Profile {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Profile::with_changes(text, None)
    }
}

impl Profile {
    /// The same, where a page that is not named is `page`.
    pub(crate) fn with_changes(text: &str, page: Option<usize>) -> Result<Self> {
        let mut words = text.split(',').map(str::trim);
        let name = words.next().unwrap_or("");
        let mut profile = Profile::named(name).ok_or_else(|| {
            Error::argument(format!("there is no profile {name:?}: there are thunderbolt, thunderbolt_27 and classic"))
        })?;
        if let Some(page) = page {
            profile = profile.with_page(page)?;
        }
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| unknown(word))?;
            profile.change(key, value).map_err(|wrong| match wrong {
                Wrong::Key => unknown(word),
                Wrong::Value(expected) => Error::argument(format!("{word}: it is {expected}")),
                Wrong::Other(error) => error,
            })?;
            profile.name = Cow::Owned(format!("{name} (changed)"));
        }
        Ok(profile)
    }

    fn change(&mut self, key: &str, value: &str) -> Result<(), Wrong> {
        match key {
            "page" => *self = self.clone().with_page(number(value)?).map_err(Wrong::Other)?,
            "transport" => self.transport = i32::from(number::<u8>(value)?),
            "link_layer" => self.link_layer = number(value)?,
            "queue_pairs" => self.queue_pairs = count(value)?,
            "reported_queue_pairs" => self.max_qp = count(value)?,
            "completion_queues" => self.max_cq = count(value)?,
            "domains" => self.max_pd = count(value)?,
            "regions" => self.max_mr = count(value)?,
            "region_size" => (self.max_mr_size, self.enforces_mr_size) = (number(value)?, true),
            "depths" => {
                let depths = value.split('/').map(count).collect::<Result<Vec<_>, _>>()?;
                if !depths.is_sorted() || depths.iter().any(|&depth| depth > DEEPEST) {
                    return Err(Wrong::Value(format!("numbers that rise, up to {DEEPEST}: 63/1023/4095")));
                }
                self.grants = Cow::Owned(depths);
            }
            "matching" => {
                self.matching = choice(
                    value,
                    &[
                        ("frames", Matching::Frames),
                        ("mispairing", Matching::Mispairing),
                        ("packets", Matching::Packets),
                        ("messages", Matching::Messages),
                    ],
                )?;
            }
            "over_posting" => {
                self.over_posting = choice(value, &[("refused", OverPosting::Refused), ("lost", OverPosting::Lost)])?;
            }
            "post_errors" => {
                self.post_errors = choice(
                    value,
                    &[
                        ("errno", ReturnStyle::Errno),
                        ("negative", ReturnStyle::NegativeErrno),
                        ("minus_one", ReturnStyle::MinusOne),
                    ],
                )?;
            }
            "bad_wr" => self.sets_bad_wr = choice(value, &[("set", true), ("unset", false)])?,
            "failure_fields" => self.garbles_failures = choice(value, &[("garbage", true), ("kept", false)])?,
            "loopback" => self.refuses_loopback = choice(value, &[("refused", true), ("unanswered", false)])?,
            "access" => {
                self.access =
                    choice(value, &[("any", Access::Any), ("local", Access::LocalOnly), ("all", Access::AllThree)])?;
            }
            "receives_from" => self.receives_need_rts = choice(value, &[("rts", true), ("init", false)])?,
            "register_first" => self.register_first = choice(value, &YES)?,
            "four_gib" => self.four_gib_rule = choice(value, &YES)?,
            "empty" => self.loses_empty = choice(value, &[("lost", true), ("sent", false)])?,
            "lint" => {
                self.lint = choice(value, &[("no", Lint::Off), ("yes", Lint::Recorded), ("print", Lint::Printed)])?;
            }
            "gid0" => self.uuid_gid = choice(value, &[("uuid", true), ("link_local", false)])?,
            _ => return Err(Wrong::Key),
        }
        Ok(())
    }
}

/// What is wrong with a change.
enum Wrong {
    Key,
    /// What it should be.
    Value(String),
    Other(Error),
}

const YES: [(&str, bool); 2] = [("yes", true), ("no", false)];

/// What the memory of a queue between processes is made for.
const DEEPEST: u32 = 16_383;

fn number<T: FromStr>(value: &str) -> Result<T, Wrong> {
    value.parse().map_err(|_| Wrong::Value("a number".to_owned()))
}

fn count(value: &str) -> Result<u32, Wrong> {
    number(value)
        .ok()
        .filter(|value| (1..=MOST).contains(value))
        .ok_or_else(|| Wrong::Value(format!("a number from 1 to {MOST}")))
}

fn choice<T: Copy>(value: &str, choices: &[(&str, T)]) -> Result<T, Wrong> {
    let found = choices.iter().find(|(word, _)| *word == value);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        Wrong::Value(words.join(" or "))
    })
}

fn unknown(word: &str) -> Error {
    Error::argument(format!("{word:?} changes nothing in a profile")).with_hint(
        "it is NAME[,KEY=VALUE]…, where KEY is page, transport, link_layer, queue_pairs, reported_queue_pairs, \
         completion_queues, domains, regions, region_size, depths, matching, over_posting, post_errors, bad_wr, \
         failure_fields, loopback, access, receives_from, register_first, four_gib, empty, lint or gid0",
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
        assert_eq!("classic".parse::<Profile>().unwrap().page, 4096);
        let custom: Profile =
            "thunderbolt_27,depths=3/9,matching=mispairing,post_errors=minus_one,access=all".parse().unwrap();
        assert_eq!((custom.grant(4), custom.matching), (Some(9), Matching::Mispairing));
        assert_eq!((custom.post_errors, custom.access), (ReturnStyle::MinusOne, Access::AllThree));
    }

    #[test]
    fn slips_are_errors() {
        for text in
            ["", "infiniband", "thunderbolt,", "thunderbolt,page", "thunderbolt,page=x", "thunderbolt,page=5000"]
        {
            assert!(text.parse::<Profile>().is_err(), "{text:?}");
        }
        for change in [
            "link_layer=256",
            "regions=0",
            "regions=4000000000",
            "color=3",
            "queue_pairs=-1",
            "depths=",
            "depths=9/3",
            "depths=20000",
            "matching=some",
            "bad_wr=yes",
        ] {
            assert!(format!("thunderbolt,{change}").parse::<Profile>().is_err(), "{change}");
        }
    }
}
