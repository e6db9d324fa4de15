use super::{PreparedQueuePair, QueuePairType};
use crate::completion_queue::CompletionQueue;
use crate::error::{Error, Result};
use crate::rules::DepthUnit;
use crate::verbs::domain::RawDomain;
use crate::verbs::queue_pair::{RawQueuePair, Request};
use crate::verbs::slots::MAX_REQUESTS;
use std::sync::Arc;

/// What a queue pair is to be. Begun by [`ProtectionDomain::queue_pair`](crate::ProtectionDomain::queue_pair).
///
/// Two things are asked for, and both are counted before the device is bothered:
///
/// * *Requests*: how many sends and receives may be in flight at once. They are reserved in the completion queue, so it
///   cannot overflow. Default: its capacity divided by twice the number of queue pairs that the device has (sixteen at
///   most), but 16 if there is room for that.
/// * *Depth*: room in the device's queues, in the device's [unit](DepthUnit). On Thunderbolt that is 4 KiB frames, and a
///   message takes as many as it has. Default: the greatest there is, there; elsewhere the number of requests.
#[derive(Clone, Debug)]
#[must_use = "it does nothing before `build`"]
pub struct QueuePairBuilder<'a> {
    domain: &'a Arc<RawDomain>,
    send_queue: &'a CompletionQueue,
    receive_queue: &'a CompletionQueue,
    kind: QueuePairType,
    requests: [Option<u32>; 2],
    depths: [Option<u32>; 2],
}

impl<'a> QueuePairBuilder<'a> {
    pub(crate) fn new(domain: &'a Arc<RawDomain>, completions: &'a CompletionQueue) -> Self {
        QueuePairBuilder {
            domain,
            send_queue: completions,
            receive_queue: completions,
            kind: QueuePairType::UC,
            requests: [None; 2],
            depths: [None; 2],
        }
    }

    /// Lets receives complete in another completion queue than sends.
    pub fn receive_completions(mut self, completions: &'a CompletionQueue) -> Self {
        self.receive_queue = completions;
        self
    }

    /// The type. Default: [UC](QueuePairType::UC), the only one of Apple's device.
    pub fn queue_pair_type(mut self, kind: QueuePairType) -> Self {
        self.kind = kind;
        self
    }

    /// How many requests may be in flight in each direction.
    pub fn requests(self, requests: u32) -> Self {
        self.send_requests(requests).receive_requests(requests)
    }

    /// How many sends may be in flight.
    pub fn send_requests(mut self, requests: u32) -> Self {
        self.requests[0] = Some(requests);
        self
    }

    /// How many receives may be in flight.
    pub fn receive_requests(mut self, requests: u32) -> Self {
        self.requests[1] = Some(requests);
        self
    }

    /// The depth of both queues.
    pub fn depth(self, depth: u32) -> Self {
        self.send_depth(depth).receive_depth(depth)
    }

    /// The depth of the send queue.
    #[doc(alias = "max_send_wr")]
    pub fn send_depth(mut self, depth: u32) -> Self {
        self.depths[0] = Some(depth);
        self
    }

    /// The depth of the receive queue.
    #[doc(alias = "max_recv_wr")]
    pub fn receive_depth(mut self, depth: u32) -> Self {
        self.depths[1] = Some(depth);
        self
    }

    /// Makes the queue pair. The builder can be used again.
    ///
    /// # Errors
    ///
    /// [`LimitReached`](crate::ErrorKind::LimitReached) if the device's queue pairs are used up (retrying cannot help) or
    /// the completion queue has no room for the requests; [`Unsupported`](crate::ErrorKind::Unsupported) for a type that
    /// the device does not have; [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for no requests at all, or a depth
    /// beyond the device's.
    #[doc(alias = "ibv_create_qp")]
    pub fn build(&self) -> Result<PreparedQueuePair> {
        let rules = &self.domain.rules;
        let on_device = |error: Error| error.on_device(self.domain.context.device());
        for queue in [self.send_queue, self.receive_queue] {
            if !Arc::ptr_eq(&queue.raw().context, &self.domain.context) {
                return Err(on_device(
                    Error::argument("the completion queue belongs to another device, or another open of it")
                        .with_hint("make both from one Context"),
                ));
            }
        }
        let requests = |side: usize, queue: &CompletionQueue| match self.requests[side] {
            Some(requests) if (1..=MAX_REQUESTS).contains(&requests) => Ok(requests),
            Some(requests) => {
                Err(on_device(Error::argument(format!("{requests} requests: 1 to {MAX_REQUESTS} are possible"))))
            }
            None => match queue.share() {
                0 => Err(on_device(
                    Error::new(
                        crate::ErrorKind::LimitReached,
                        "the completion queue has no room for another queue pair",
                    )
                    .with_hint("ask for fewer requests for each, or make the completion queue larger"),
                )),
                share => Ok(share.min(MAX_REQUESTS)),
            },
        };
        let (sends, receives) = (requests(0, self.send_queue)?, requests(1, self.receive_queue)?);
        let depth = |side: usize, requests: u32| match (self.depths[side], rules.depth_unit()) {
            (Some(depth), unit) if depth == 0 || depth > rules.max_depth() => Err(on_device(Error::argument(format!(
                "a depth of {depth}: 1 to {} {unit} are possible",
                rules.max_depth()
            )))),
            (Some(depth), _) => Ok(depth),
            (None, DepthUnit::Frames) => Ok(rules.max_depth()),
            (None, DepthUnit::Requests) => Ok(requests.min(rules.max_depth())),
        };
        let request = Request {
            kind: self.kind.raw(),
            send_depth: depth(0, sends)?,
            receive_depth: depth(1, receives)?,
            sends,
            receives,
        };
        let raw = RawQueuePair::create(self.domain, self.send_queue.raw(), self.receive_queue.raw(), request)?;
        Ok(PreparedQueuePair::new(raw))
    }
}
