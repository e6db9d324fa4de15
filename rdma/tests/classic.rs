//! What an ordinary adapter does with an unreliable connection, case by case, through the function table: the rules of the
//! software device's profile `classic`, held against a real provider.
//!
//! | `RDMA_TEST_PROVIDER` | |
//! |---|---|
//! | not set, `soft` | two hosts of a software fabric with the profile `classic` |
//! | `system` | the installed library; `RDMA_TEST_DEVICES=A,B` names the devices at the two ends of a link |
//!
//! `ci/rxe` runs it over libibverbs and software RDMA of the Linux kernel (rxe). Where providers may differ, a case says what
//! all of them do, and why they differ:
//!
//! * Statuses of failures. The InfiniBand specification has one for each reason; rxe says LOC_QP_OP_ERR for most. A case
//!   asks for *an error status, and the state ERR*.
//! * Capacities: what is granted is at least what was asked for; rxe rounds up. A case fills what was granted.
//! * A receive that is posted in the state ERR: the specification flushes it; rxe takes it and never completes it.
//! * One-sided requests: the software device has none and refuses them when they are posted; rxe carries them out, or fails.
//! * Sends before RTS: rxe answers EINVAL, but has queued the request (Linux 6.1). A case goes no further with such a queue
//!   pair.

mod classic {
    mod end;
    mod memory;
    mod messages;
    mod ports;
    mod queues;
    mod states;
}
#[allow(unused_imports)]
mod support;
