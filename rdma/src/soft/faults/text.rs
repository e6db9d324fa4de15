//! Plans as text.

use super::{CallFault, Choice, Damage, Event, Faults, MessageFault, Moment};
use crate::error::Errno;
use crate::soft::completion_queue::Side;
use crate::{Error, Gid, Result};
use core::ffi::c_int;
use core::time::Duration;
use std::path::Path;
use std::str::{FromStr, SplitWhitespace};

/// No plan that a person wrote is longer.
const LONGEST: u64 = 1 << 20;

/// The calls that can be made to fail.
const CALLS: [&str; 20] = [
    "ibv_open_device",
    "ibv_close_device",
    "ibv_query_device",
    "ibv_query_port",
    "ibv_query_gid",
    "ibv_query_pkey",
    "ibv_alloc_pd",
    "ibv_dealloc_pd",
    "ibv_reg_mr",
    "ibv_dereg_mr",
    "ibv_create_cq",
    "ibv_destroy_cq",
    "ibv_create_qp",
    "ibv_modify_qp",
    "ibv_query_qp",
    "ibv_destroy_qp",
    "ibv_post_send",
    "ibv_post_recv",
    "ibv_poll_cq",
    "ibv_get_device_list",
];

/// Statements, one a line or parted by `;`. What follows `#` is a comment. Numbers count from 1.
///
/// | statement | |
/// |---|---|
/// | `seed N` | for everything that is random |
/// | `lose`, `corrupt` or `duplicate`, then `frame N` or `share P` | the N-th frame that a device sends, or this share of all (`0.01`): its message is missing, has a byte changed, or comes twice |
/// | `delay` `frame N` or `share P` `looks K` | the message leaves after it was looked at K times in vain, by polling at either end. With `share 1`: a slow peer |
/// | … `host H`, `device NAME` | behind one of these: only what this host or device sends |
/// | `silence send N`, `silence receive N` | the N-th completion of a kind never comes |
/// | `stray N` | with the N-th completion comes one for an id that nobody posted |
/// | `fail CALL N ERRNO`, `… times K` | the N-th call fails, or K from the N-th on: `fail ibv_reg_mr 3 ENOMEM` |
/// | `half-rtr N ERRNO` | the N-th transition to RTR fails and leaves the queue pair half made: it is never ready |
/// | `at frame N` or `at call N`, then an event | with the first call after so many frames or calls of this process |
/// | event: `pull C`, `plug C` | the cable C |
/// | event: `off H`, `on H` | the host H |
/// | event: `gid HOST DEVICE INDEX GID` | an entry of a device's GID table, `::` for none; devices are numbered from 0 |
/// | `idle TIME` | a queue pair without traffic for so long is dead: `23m`, `90s`, `200ms`. See [`Fabric::pass_time`](crate::soft::Fabric::pass_time) |
/// | `leak` | in a shared fabric: what killed processes had stays taken until the fabric ends |
impl FromStr for Faults {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut plan = Faults::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("");
            for statement in line.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
                plan.add(statement).map_err(|wrong| {
                    Error::argument(format!("line {} of the plan of faults, {statement:?}: {wrong}", number + 1))
                })?;
            }
        }
        Ok(plan)
    }
}

impl Faults {
    /// Reads a plan from a file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the file cannot be read, is longer than 1 MiB,
    /// or has a statement that means nothing (the message says which).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = crate::soft::text_file::read(path, LONGEST).map_err(|reason| {
            Error::argument(format!("the plan of faults {} cannot be used: {reason}", path.display()))
        })?;
        text.parse()
    }

    fn add(&mut self, statement: &str) -> Result<(), String> {
        let mut words = statement.split_whitespace();
        let verb = words.next().unwrap_or("");
        match verb {
            "seed" => self.seed = number(&mut words)?,
            "lose" => self.damage(Damage::Lose, &mut words)?,
            "corrupt" => self.damage(Damage::Corrupt, &mut words)?,
            "duplicate" => self.damage(Damage::Duplicate, &mut words)?,
            "delay" => self.damage(Damage::Delay(0), &mut words)?,
            "silence" => {
                let side = match words.next() {
                    Some("send") => Side::Send,
                    Some("receive") => Side::Receive,
                    _ => return Err("send or receive".to_owned()),
                };
                self.silences.push((side, counted(&mut words)?));
            }
            "stray" => self.strays.push(counted(&mut words)?),
            "fail" => {
                let call = words.next().unwrap_or("");
                if !CALLS.contains(&call) {
                    return Err(format!("no call {call:?} can be made to fail, but {}", CALLS.join(", ")));
                }
                let (first, errno) = (counted(&mut words)?, errno(&mut words)?);
                let times = match words.next() {
                    None => 1,
                    Some("times") => counted(&mut words)?,
                    Some(word) => return Err(format!("{word:?}: `times K` may follow")),
                };
                self.calls.push(CallFault { call: call.to_owned(), first, times, errno });
            }
            "half-rtr" => self.halves.push((counted(&mut words)?, errno(&mut words)?)),
            "at" => {
                let moment = match words.next() {
                    Some("frame") => Moment::Frame(counted(&mut words)?),
                    Some("call") => Moment::Call(counted(&mut words)?),
                    _ => return Err("`frame N` or `call N` follows `at`".to_owned()),
                };
                self.events.push((moment, event(&mut words)?));
            }
            "idle" => self.idle = Some(duration(words.next().unwrap_or(""))?),
            "leak" => self.leak = true,
            _ => {
                return Err("a statement begins with seed, lose, corrupt, duplicate, delay, silence, stray, fail, half-rtr, at, \
                            idle or leak"
                    .to_owned());
            }
        }
        match words.next() {
            None => Ok(()),
            Some(word) => Err(format!("{word:?} is too much")),
        }
    }

    fn damage(&mut self, mut what: Damage, words: &mut SplitWhitespace<'_>) -> Result<(), String> {
        let (mut when, mut host, mut device) = (None, None, None);
        while let Some(word) = words.next() {
            match word {
                "frame" | "share" if when.is_some() => return Err("`frame N` or `share P`, once".to_owned()),
                "frame" => when = Some(Choice::Frame(counted(words)?)),
                "share" => {
                    let share: f64 = number(words)?;
                    if !(0.0..=1.0).contains(&share) {
                        return Err("a share is from 0 to 1".to_owned());
                    }
                    when = Some(Choice::Share(share));
                }
                "looks" if matches!(what, Damage::Delay(_)) => what = Damage::Delay(number(words)?),
                "host" => host = Some(number(words)?),
                "device" => device = Some(words.next().ok_or("the name of a device")?.to_owned()),
                _ => {
                    return Err(format!(
                        "{word:?}: it is `frame N` or `share P`, and `host H`, `device NAME`, `looks K`"
                    ));
                }
            }
        }
        if what == Damage::Delay(0) {
            return Err("`looks K` is missing: how long".to_owned());
        }
        let when = when.ok_or("`frame N` or `share P` is missing: which")?;
        self.messages.push(MessageFault { what, when, host, device });
        Ok(())
    }
}

fn number<T: FromStr>(words: &mut SplitWhitespace<'_>) -> Result<T, String> {
    let word = words.next().ok_or("a number is missing")?;
    word.parse().map_err(|_| format!("{word:?} is no such number"))
}

/// A number that counts from 1.
fn counted(words: &mut SplitWhitespace<'_>) -> Result<u64, String> {
    match number(words)? {
        0 => Err("it is counted from 1".to_owned()),
        count => Ok(count),
    }
}

fn errno(words: &mut SplitWhitespace<'_>) -> Result<c_int, String> {
    let word = words.next().ok_or("the name of an errno is missing")?;
    Errno::from_name(word).map(Errno::raw).ok_or_else(|| format!("{word:?} is no errno's name"))
}

fn event(words: &mut SplitWhitespace<'_>) -> Result<Event, String> {
    Ok(match words.next() {
        Some("pull") => Event::Cable { cable: number(words)?, plugged: false },
        Some("plug") => Event::Cable { cable: number(words)?, plugged: true },
        Some("off") => Event::Host { host: number(words)?, on: false },
        Some("on") => Event::Host { host: number(words)?, on: true },
        Some("gid") => {
            let (host, device, index) = (number(words)?, number(words)?, number(words)?);
            // Numbers, from 0: devices have the same names on several hosts.
            if index >= crate::soft::address::TABLE_LENGTH {
                return Err(format!("a GID table has {} entries", crate::soft::address::TABLE_LENGTH));
            }
            Event::Gid { host, device, index, gid: gid(words)? }
        }
        _ => return Err("the event is pull, plug, off, on or gid".to_owned()),
    })
}

fn gid(words: &mut SplitWhitespace<'_>) -> Result<Gid, String> {
    let word = words.next().ok_or("a GID is missing; `::` is none")?;
    word.parse().map_err(|_| format!("{word:?} is no GID: fe80::1, ::ffff:10.0.0.1, or `::` for none"))
}

fn duration(word: &str) -> Result<Duration, String> {
    let unit = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let count: u64 =
        word[..word.len() - unit.len()].parse().map_err(|_| format!("{word:?} is no time: 23m, 90s, 200ms"))?;
    match unit {
        "ms" => Ok(Duration::from_millis(count)),
        "s" => Ok(Duration::from_secs(count)),
        "m" if count <= u64::MAX / 60 => Ok(Duration::from_secs(count * 60)),
        _ => Err(format!("{word:?} is no time: 23m, 90s, 200ms")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read() {
        let plan: Faults =
            "seed 7; lose share 0.25 host 1 # a comment\n\n corrupt frame 3 device rdma_en2; delay frame 1 looks 9\n\
            fail ibv_reg_mr 3 ENOMEM times 2; half-rtr 1 EBUSY; silence receive 4; stray 2; idle 23m; leak\n\
            at frame 9 pull 0; at call 50 plug 0; at call 1 gid 0 1 2 ::ffff:10.0.0.1; at call 4 off 1"
                .parse()
                .unwrap();
        assert_eq!((plan.seed, plan.messages.len(), plan.events.len()), (7, 3, 4));
        assert_eq!(plan.calls[0], CallFault { call: "ibv_reg_mr".to_owned(), first: 3, times: 2, errno: libc::ENOMEM });
        assert_eq!((plan.halves[0], plan.silences[0]), ((1, libc::EBUSY), (Side::Receive, 4)));
        assert_eq!((plan.idle, plan.leak, plan.strays[0]), (Some(Duration::from_secs(23 * 60)), true, 2));
        assert!(!plan.is_empty() && "seed 3".parse::<Faults>().unwrap().is_empty());
    }

    #[test]
    fn slips_are_errors_that_say_where() {
        for slip in [
            "loose frame 1",
            "lose",
            "lose frame 0",
            "lose frame 1 looks 4",
            "lose frame 1 frame 2",
            "lose share 0.5 frame 2",
            "at call 3 gid 0 0 1 xyz",
            "lose share 2",
            "lose share NaN",
            "lose share -1",
            "delay frame 1",
            "fail ibv_frob 1 EIO",
            "fail ibv_reg_mr 1 ESOMETHING",
            "fail ibv_reg_mr 1 EIO twice",
            "silence both 1",
            "at noon pull 0",
            "at call 3 kick 0",
            "at call 3 gid 0 0 16 ::",
            "idle 3h",
            "idle m",
            "idle 99999999999999999999s",
            "leak now",
            "seed",
        ] {
            let error = format!("seed 1\n{slip}").parse::<Faults>().unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(slip), "{error}");
        }
    }
}
