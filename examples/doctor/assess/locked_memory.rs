//! How much memory may be registered on Linux.

use super::unreadable;
use crate::facts::Linux;
use crate::finding::Finding;
use crate::parse::library::{self, Library};
use crate::parse::limits::{self, Limit};

/// Less than this is less than programs for Thunderbolt register: one message of the longest kind, and a few.
const LITTLE: u64 = 64 << 20;

pub(super) fn limit(facts: &Linux) -> Finding {
    const CHECK: &str = "locked-memory";
    let Some(limit) = limits::locked_memory(facts.limits.text()) else {
        return unreadable(CHECK, "how much memory may be locked", "ulimit -l", &facts.limits);
    };
    let bytes = match limit {
        Limit::Unlimited => return Finding::ok(CHECK, "any amount of memory may be registered"),
        Limit::Bytes(_) if limits::may_lock_all(facts.status.text()) => {
            return Finding::ok(CHECK, "any amount of memory may be registered, because of CAP_IPC_LOCK");
        }
        Limit::Bytes(bytes) => bytes,
    };
    let summary = format!("{bytes} bytes of memory may be registered with RDMA hardware");
    let has_devices =
        matches!(library::parse(facts.library.text()), Some(Library::Devices(devices)) if !devices.is_empty());
    let finding = match bytes {
        LITTLE.. => Finding::ok(CHECK, summary),
        _ if !has_devices => {
            Finding::ok(CHECK, format!("{summary}, of which there is none; the software fabric locks none"))
        }
        _ => Finding::warning(
            CHECK,
            format!("{summary}: ibv_reg_mr fails with ENOMEM beyond"),
            "raise it: `ulimit -l unlimited` as root, `* - memlock unlimited` in /etc/security/limits.conf, LimitMEMLOCK= of \
             a systemd service",
        ),
    };
    finding.evidence("`ulimit -l`").source("ibv_reg_mr(3), getrlimit(2)")
}
