use super::{Capacities, QueuePair, QueuePairType, capacities};
use crate::endpoint::Endpoint;
use crate::error::catalogue::states;
use crate::error::{Error, ErrorKind, Result};
use crate::gid::{Gid, GidEntry, GidKind};
use crate::port::{Mtu, Port};
use crate::verbs::queue_pair::RawQueuePair;
use core::fmt;
use rdma_sys::{self as sys, QpAttrMask as Mask, ibv_qp_state as state};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

/// A queue pair that is not connected yet: it publishes an [`Endpoint`], and takes the peer's.
///
/// ```
/// # use rdma::{Provider, soft::Fabric};
/// # let fabric = Fabric::mesh(2)?;
/// # let open = |host| Provider::soft(&fabric.host(host)?)?.first_active()?.open();
/// # let (one, other) = (open(0)?, open(1)?);
/// # let (one_domain, other_domain) = (one.protection_domain()?, other.protection_domain()?);
/// # let (one_queue, other_queue) = (one.completion_queue(64)?, other.completion_queue(64)?);
/// let mut here = one_domain.queue_pair(&one_queue).build()?;
/// let mut there = other_domain.queue_pair(&other_queue).build()?;
/// let endpoint = here.publish()?;
/// let peer = there.publish()?; // usually in another process: Endpoint has bytes and text
/// let connected = here.connect(&peer)?;
/// # drop(connected);
/// # Ok::<(), rdma::Error>(())
/// ```
///
/// The module [`connect`](mod@crate::connect) does the exchange: [over TCP](crate::connect::establish), or
/// [within one process](crate::connect::pair).
#[must_use = "dropping it destroys the queue pair"]
pub struct PreparedQueuePair {
    raw: RawQueuePair,
    local: Option<Local>,
}

/// What was published.
struct Local {
    port: Port,
    entry: GidEntry,
    endpoint: Endpoint,
}

/// TN3205 has 1: nothing is routed.
const HOP_LIMIT: u8 = 1;

/// What a reliable connection needs besides, as perftest has it: 67 ms (4.096 µs · 2^14) for an acknowledgement, seven
/// times; a receiver that has posted no receive is asked again after 0.64 ms (code 12), and for ever (7), so that a send
/// waits for its receive as it does on Thunderbolt.
const TIMEOUT: u8 = 14;
const RETRIES: u8 = 7;
const RNR_TIMER: u8 = 12;
const RNR_RETRIES: u8 = 7;

impl PreparedQueuePair {
    pub(crate) fn new(raw: RawQueuePair) -> Self {
        PreparedQueuePair { raw, local: None }
    }

    pub(crate) fn raw(&self) -> &RawQueuePair {
        &self.raw
    }

    /// Its number.
    #[doc(alias = "qp_num")]
    pub fn number(&self) -> u32 {
        self.raw.number()
    }

    /// What it was granted, which may be more or less than was asked for.
    pub fn capacities(&self) -> Capacities {
        capacities(&self.raw)
    }

    /// Its type, as the device has it.
    pub fn queue_pair_type(&self) -> QueuePairType {
        QueuePairType::from_raw(self.raw.kind())
    }

    /// What the peer needs to connect to this queue pair over port 1 (Thunderbolt devices have no other), under
    /// [its usual GID](Port::gid).
    ///
    /// If an endpoint was published before, with this or with [`endpoint`](Self::endpoint), it is that one: the peer may
    /// have it already.
    ///
    /// # Errors
    ///
    /// [`PortDown`](ErrorKind::PortDown), [`NoUsableGid`](ErrorKind::NoUsableGid); what `ibv_query_port` and
    /// `ibv_query_gid` report.
    pub fn publish(&mut self) -> Result<Endpoint> {
        if self.local.is_none() {
            let port = Port::query(&self.raw.domain.context, 1)?;
            self.endpoint(&port, port.gid()?)?;
        }
        self.published()
    }

    /// What the peer needs to connect to this queue pair over `port`, under the address `gid`: for a program that chooses
    /// them. [`publish`](Self::publish) takes the usual ones.
    ///
    /// Index and address of the entry are kept together: [`connect`](Self::connect) uses both. Published again, an
    /// endpoint replaces the one before.
    ///
    /// # Errors
    ///
    /// [`PortDown`](ErrorKind::PortDown), or [`InvalidArgument`](ErrorKind::InvalidArgument) if the port is another
    /// device's.
    pub fn endpoint(&mut self, port: &Port, gid: GidEntry) -> Result<Endpoint> {
        if !Arc::ptr_eq(port.context(), &self.raw.domain.context) {
            return Err(self
                .raw
                .about(Error::argument("the port belongs to another device, or another open of it"))
                .with_hint("take it from the Context that the protection domain was made from"));
        }
        if !port.is_active() {
            return Err(Error::known(&states::PORT_DOWN, format!("the port is {}", port.state()))
                .on_device(self.raw.domain.context.device())
                .on_port(port.number())
                .with_hint("Port::wait_active waits for it; check the cable, and that RDMA is enabled on both ends"));
        }
        let mtu = port.active_mtu().unwrap_or(Mtu::B1024);
        let endpoint = Endpoint::new(port.lid(), self.raw.number(), random_psn(), gid.gid(), mtu);
        self.local = Some(Local { port: port.clone(), entry: gid, endpoint });
        Ok(endpoint)
    }

    /// The endpoint that was published.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](ErrorKind::InvalidState) if none was.
    pub fn published(&self) -> Result<Endpoint> {
        self.local.as_ref().map(|local| local.endpoint).ok_or_else(|| self.unpublished())
    }

    fn unpublished(&self) -> Error {
        let error = Error::new(ErrorKind::InvalidState, "no endpoint was published");
        self.raw.about(error).with_hint("call PreparedQueuePair::publish first")
    }

    /// Connects to the peer: INIT, ready to receive, ready to send, in one call. The peer does the same with this end's
    /// endpoint, in any order.
    ///
    /// Afterwards post receives, and then let the peer know that it may send: what reaches a Thunderbolt queue pair before
    /// it is connected is lost. [`connect::establish`](crate::connect::establish) does the exchange and the barrier.
    ///
    /// # Errors
    ///
    /// A queue pair whose transition failed is destroyed: build a new one (retrying on the same was seen to wedge a Mac's
    /// port). [`StaleGid`](ErrorKind::StaleGid): the address changed since the endpoint was published, so begin again.
    /// [`NoUsableGid`](ErrorKind::NoUsableGid): the peer's is empty, or of another kind than this end's.
    /// [`UnreachablePeer`](ErrorKind::UnreachablePeer): it is not at the other end of this cable.
    /// [`InvalidState`](ErrorKind::InvalidState): no endpoint was [published](Self::publish), so the peer cannot know this end.
    #[doc(alias = "ibv_modify_qp")]
    pub fn connect(mut self, peer: &Endpoint) -> Result<QueuePair> {
        let Some(local) = self.local.take() else { return Err(self.unpublished()) };
        self.check(&local, peer)?;
        let port = local.port.number();
        self.raw.note_registrations();
        let mut attributes = sys::ibv_qp_attr { qp_state: state::IBV_QPS_INIT, port_num: port, ..Default::default() };
        let to_init = Mask::STATE | Mask::PKEY_INDEX | Mask::PORT | Mask::ACCESS_FLAGS;
        self.transition(&mut attributes, to_init, "RESET to INIT", &local, peer)?;

        let mut path = sys::ibv_ah_attr { dlid: peer.lid(), is_global: 1, port_num: port, ..Default::default() };
        path.grh.dgid = sys::ibv_gid { raw: peer.gid().to_bytes() };
        path.grh.sgid_index = local.entry.index();
        path.grh.hop_limit = HOP_LIMIT;
        let mut attributes = sys::ibv_qp_attr {
            qp_state: state::IBV_QPS_RTR,
            ah_attr: path,
            // Both ends use the smaller one, whichever they can do.
            path_mtu: local.endpoint.mtu().min(peer.mtu()).raw(),
            dest_qp_num: peer.number(),
            rq_psn: peer.psn(),
            ..Default::default()
        };
        let mut to_rtr = Mask::STATE | Mask::AV | Mask::PATH_MTU | Mask::DEST_QPN | Mask::RQ_PSN;
        let reliable = self.queue_pair_type() == QueuePairType::RC;
        if reliable {
            attributes.min_rnr_timer = RNR_TIMER;
            to_rtr |= Mask::MAX_DEST_RD_ATOMIC | Mask::MIN_RNR_TIMER;
        }
        self.transition(&mut attributes, to_rtr, "INIT to RTR", &local, peer)?;

        let mut attributes =
            sys::ibv_qp_attr { qp_state: state::IBV_QPS_RTS, sq_psn: local.endpoint.psn(), ..Default::default() };
        let mut to_rts = Mask::STATE | Mask::SQ_PSN;
        if reliable {
            (attributes.timeout, attributes.retry_cnt, attributes.rnr_retry) = (TIMEOUT, RETRIES, RNR_RETRIES);
            to_rts |= Mask::TIMEOUT | Mask::RETRY_CNT | Mask::RNR_RETRY | Mask::MAX_QP_RD_ATOMIC;
        }
        self.transition(&mut attributes, to_rts, "RTR to RTS", &local, peer)?;
        Ok(QueuePair::new(self.raw, *peer))
    }

    /// What can be known to fail before the device is asked.
    fn check(&self, local: &Local, peer: &Endpoint) -> Result<()> {
        let about = |error: Error| self.raw.about(error).on_port(local.port.number());
        let (ours, theirs) = (local.entry.gid(), peer.gid());
        if theirs.is_zero() {
            return Err(about(Error::known(&states::EMPTY_PEER_GID, "the peer's endpoint has an empty GID")));
        }
        if family(ours) != family(theirs) {
            return Err(about(Error::known(
                &states::TWO_KINDS_OF_GID,
                format!("this end's GID {ours} is {}, the peer's {theirs} is {}", ours.kind(), theirs.kind()),
            )));
        }
        if self.raw.domain.rules.refuses_loopback() && ours == theirs {
            return Err(about(Error::known(&states::OWN_GID, "the peer's GID is this port's own").on_gid(theirs)));
        }
        let now = self.raw.domain.context.query_gid(local.port.number(), local.entry.index()).map(Gid::from_bytes);
        if now.as_ref().ok() != Some(&ours) {
            let now = now.map_or_else(|error| error.to_string(), |gid| gid.to_string());
            return Err(about(Error::known(
                &states::STALE_GID,
                format!("GID[{}] was {ours} when the endpoint was published and is {now} now", local.entry.index()),
            )));
        }
        Ok(())
    }

    fn transition(
        &mut self,
        attributes: &mut sys::ibv_qp_attr,
        mask: Mask,
        what: &'static str,
        local: &Local,
        peer: &Endpoint,
    ) -> Result<()> {
        self.raw.modify(attributes, mask).map_err(|error| {
            let detail = format!("{what}, from {} to peer {:#08x}", local.entry, peer.number());
            error.on_port(local.port.number()).on_gid(peer.gid()).with_detail(detail)
        })
    }

    /// Destroys the queue pair and says whether that worked.
    ///
    /// # Errors
    ///
    /// What `ibv_destroy_qp` reports.
    pub fn close(self) -> Result<()> {
        self.raw.close().map(drop)
    }
}

/// Addresses of one family can reach each other.
fn family(gid: Gid) -> bool {
    gid.kind() == GidKind::Ipv4Mapped
}

/// A packet sequence number to start with: any 24-bit value will do (ggml-org/llama.cpp uses 0).
fn random_psn() -> u32 {
    (RandomState::new().build_hasher().finish() as u32) & 0xff_ffff
}

impl fmt::Debug for PreparedQueuePair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PreparedQueuePair")
            .field("number", &format_args!("{:#08x}", self.number()))
            .field("capacities", &self.capacities())
            .field("endpoint", &self.local.as_ref().map(|local| local.endpoint))
            .finish_non_exhaustive()
    }
}
