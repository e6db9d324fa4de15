//! The steps, in the order in which they are made: from asking to trying what is rarely tried.

mod device;
mod endings;
mod limits;
mod memory;
mod messages;
mod requests;
mod rules;

use crate::end::{Broken, End};

pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// What it does, for the person who lends the machine.
    pub(crate) does: &'static str,
    /// Reports differ about what it does to a Mac, or there are none: only if asked for.
    pub(crate) risky: bool,
    /// Needs a connection: left out once one could not be made.
    pub(crate) connects: bool,
    pub(crate) run: fn(&mut End) -> Result<(), Broken>,
}

pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "device",
        does: "asks for the attributes of the device and its port, and for the GID table",
        risky: false,
        connects: false,
        run: device::run,
    },
    Step {
        name: "limits",
        does: "makes queue pairs until one is refused, at most 16, and completion queues, at most 16; asks for other types and \
               depths; destroys all",
        risky: false,
        connects: false,
        run: limits::run,
    },
    Step {
        name: "memory",
        does: "registers memory of several kinds, lengths and flags, and 101 small regions; deregisters all",
        risky: false,
        connects: false,
        run: memory::run,
    },
    Step {
        name: "messages",
        does: "connects a queue pair, and sends messages of 1 byte to 64 KiB, one at a time, into receives of their length",
        risky: false,
        connects: true,
        run: messages::lengths,
    },
    Step {
        name: "waiting",
        does: "sends one message, then eight, before the receives are posted",
        risky: false,
        connects: true,
        run: messages::waiting,
    },
    Step {
        name: "requests",
        does: "posts chains of two requests, an unsignaled send, sends with the fence and solicited flags, and receives before \
               the queue pair is connected",
        risky: false,
        connects: true,
        run: requests::run,
    },
    Step {
        name: "values",
        does: "connects with the smallest usual path MTU, all access flags, and sequence numbers that differ; sends a message",
        risky: false,
        connects: true,
        run: requests::values,
    },
    Step {
        name: "late-memory",
        does: "registers memory after connecting, and posts it",
        risky: false,
        connects: true,
        run: requests::late_memory,
    },
    Step {
        name: "frames",
        does: "sends a message of two frames into a receive of one, and one of one into a receive of two, on a connection each",
        risky: false,
        connects: true,
        run: messages::frames,
    },
    Step {
        name: "depth",
        does: "fills a receive queue, and a send queue whose peer has posted nothing, by one request more than fit",
        risky: true,
        connects: true,
        run: rules::depth,
    },
    Step {
        name: "operations",
        does: "posts an empty send, immediate data, inline data, two scatter elements, and an RDMA write to nowhere",
        risky: true,
        connects: true,
        run: rules::operations,
    },
    Step {
        name: "early",
        does: "sends one message before the peer's queue pair is ready to receive",
        risky: true,
        connects: true,
        run: endings::early,
    },
    Step {
        name: "events",
        does: "makes a completion channel, and waits for an event for half a second",
        risky: true,
        connects: true,
        run: endings::events,
    },
    Step {
        name: "errors",
        does: "takes a queue pair with work in flight to the error state, and back over RESET into a connection",
        risky: true,
        connects: true,
        run: endings::errors,
    },
    Step {
        name: "domains",
        does: "makes protection domains until one is refused, at most 16; frees all",
        risky: true,
        connects: false,
        run: limits::domains,
    },
    Step {
        name: "refusals",
        does: "asks for three transitions to RTR that should be refused, each once and on a queue pair of its own",
        risky: true,
        connects: true,
        run: rules::refusals,
    },
];

#[cfg(test)]
mod tests {
    use super::STEPS;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_the_risky_ones_last() {
        let names: BTreeSet<_> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), STEPS.len());
        assert!(STEPS.is_sorted_by_key(|step| step.risky));
    }
}
