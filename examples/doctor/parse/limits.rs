//! `/proc/self/limits` and `/proc/self/status` of Linux: how much memory a process may lock.

/// A limit in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Unlimited,
    Bytes(u64),
}

/// The soft limit of locked memory.
pub(crate) fn locked_memory(limits: &str) -> Option<Limit> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(Limit::Unlimited),
        number => number.parse().ok().map(Limit::Bytes),
    }
}

/// The number of CAP_IPC_LOCK in capabilities(7), which lifts that limit.
const IPC_LOCK: u32 = 14;

/// Whether the process may lock any amount.
pub(crate) fn may_lock_all(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:")).map(str::trim);
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask >> IPC_LOCK & 1 == 1)
}
