//! Registering memory. Everything is deregistered before the step ends.

use crate::end::{ALL, Broken, End};
use crate::memory::{Kind, Memory, PAGE};
use crate::raw::{Answer, Region};
use rdma_sys as sys;
use std::rc::Rc;

const LOCAL_WRITE: u32 = sys::IBV_ACCESS_LOCAL_WRITE;

/// One more than there are; more than 101 at a time crashed macOS 26.2 (ml-explore/mlx issue 3162).
const REGIONS: usize = 101;

pub(crate) fn run(end: &mut End) -> Result<(), Broken> {
    let access = end.access;
    let new = |kind, length| Memory::new(kind, length).map(Rc::new).ok_or_else(|| Broken::Here("no memory".to_owned()));
    let small = new(Kind::Private, 4 * PAGE)?;
    alignment(end, &small);
    for kind in [Kind::Heap, Kind::Private, Kind::Shared] {
        let memory = new(kind, 4 * PAGE)?;
        register(end, "F403", &format!("memory of the kind {kind:?}"), None, &memory, (0, 4 * PAGE), access);
    }
    keys(end, &small);
    flags(end, &small);
    let large = new(Kind::Private, 16_384_000 + PAGE)?;
    register(end, "F404", "16,384,001 bytes", None, &large, (0, 16_384_001), access);
    drop(large);
    address(end, &small);
    count(end, &small);
    Ok(())
}

/// Registers, notes the answer and deregisters.
fn register(
    end: &mut End,
    id: &str,
    what: &str,
    expected: Option<i32>,
    memory: &Rc<Memory>,
    part: (usize, usize),
    access: u32,
) {
    let answer = try_register(end, memory, part, access);
    end.answers(id, what, expected, answer);
}

fn try_register(end: &End, memory: &Rc<Memory>, part: (usize, usize), access: u32) -> Answer {
    Region::new(&end.domain, memory, part, access, None).err().unwrap_or(Answer::Number(0, 0))
}

fn alignment(end: &mut End, memory: &Rc<Memory>) {
    let access = end.access;
    register(end, "F401", "a length of 1", None, memory, (0, 1), access);
    for offset in [64, 4096] {
        let what = format!("memory that starts {offset} bytes into a page");
        register(end, "F401", &what, Some(libc::EINVAL), memory, (offset, PAGE), access);
    }
}

fn keys(end: &mut End, memory: &Rc<Memory>) {
    let regions: Vec<_> = (0..3).filter_map(|_| Region::new(&end.domain, memory, (0, PAGE), ALL, None).ok()).collect();
    let keys: Vec<_> = regions.iter().map(|region| region.keys()).collect();
    let local: Vec<_> = keys.iter().map(|(local, _)| format!("{local:#x}")).collect();
    end.question("Q04", "the keys of one memory that is registered three times", local.join(", "));
    let small = !keys.is_empty() && keys.iter().all(|&(local, _)| local < 1 << 24);
    end.fact("F407", "local keys", "small numbers", if small { "small numbers" } else { "others" }, small);
    let remote = keys.iter().map(|(_, remote)| remote).max().copied();
    end.fact(
        "F407",
        "the greatest remote key",
        0,
        remote.map_or("none".to_owned(), |key| key.to_string()),
        remote == Some(0),
    );
    end.equal("F403", "registrations of the same memory, of three", 3, keys.len());
}

fn flags(end: &mut End, memory: &Rc<Memory>) {
    register(end, "F408", "local write", None, memory, (0, PAGE), LOCAL_WRITE);
    register(end, "F408", "local write, remote write, remote read", None, memory, (0, PAGE), ALL);
    register(end, "F408", "no access", None, memory, (0, PAGE), 0);
    let remote = sys::IBV_ACCESS_REMOTE_WRITE;
    register(end, "F408", "remote write without local write", Some(libc::EINVAL), memory, (0, PAGE), remote);
}

/// The device address. Not zero itself, but a page below where the memory is.
fn address(end: &mut End, memory: &Rc<Memory>) {
    let own = memory.part(0, 1).addr() as u64;
    for (what, iova, expected) in
        [("its own address", own, None), ("another address", own - PAGE as u64, Some(libc::EOPNOTSUPP))]
    {
        let made = Region::new(&end.domain, memory, (0, PAGE), end.access, Some(iova));
        let answer = made.err().unwrap_or(Answer::Number(0, 0));
        end.answers("F406", &format!("ibv_reg_mr_iova2 with {what}"), expected, answer);
    }
}

fn count(end: &mut End, memory: &Rc<Memory>) {
    // One has been there from the start.
    let mut regions = Vec::new();
    let mut refusal = None;
    while regions.len() + 1 < REGIONS && refusal.is_none() {
        match Region::new(&end.domain, memory, (0, PAGE), end.access, None) {
            Ok(region) => regions.push(region),
            Err(answer) => refusal = Some(answer),
        }
    }
    end.equal("F304", "regions at a time, of 101 that were asked for", 100, regions.len() + 1);
    match refusal {
        Some(answer) => end.answers("F304", "one more region", Some(libc::ENOMEM), answer),
        None => end.fact("F304", "one more region", "ENOMEM", "success", false),
    }
    let held = regions.len();
    regions.pop();
    if refusal.is_some() && held > 0 {
        let answer = try_register(end, memory, (0, PAGE), end.access);
        end.answers("F304", "a region once one was deregistered", None, answer);
    }
}
