//! One end of the cable, with what the steps need of it.

use crate::channel::{Channel, Endpoint, Instead, Lost};
use crate::memory::{Kind, Memory};
use crate::observation::Observation;
use crate::raw::{Answer, Domain, Opened, Pair, Queue, Region, Shape};
use rdma::{Context, GidKind, Provider};
use rdma_sys::{self as sys, QpAttrMask as Mask, ibv_qp_state as state};
use std::fmt::Display;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for what should come, and for what should not.
pub(crate) const SOON: Duration = Duration::from_secs(3);
pub(crate) const LOOK: Duration = Duration::from_millis(200);

/// A frame, in bytes.
pub(crate) const FRAME: usize = 4096;

/// How much memory each end has registered from the start.
const MEMORY: usize = 1 << 20;

/// Local write, remote write and remote read.
pub(crate) const ALL: u32 = sys::IBV_ACCESS_LOCAL_WRITE | sys::IBV_ACCESS_REMOTE_WRITE | sys::IBV_ACCESS_REMOTE_READ;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Server,
    Client,
}

/// Why a step ends early.
#[derive(Debug)]
pub(crate) enum Broken {
    /// This end cannot go on with it.
    Here(String),
    /// The other end could not.
    There,
    /// Nothing more can be done at all.
    Lost(Lost),
}

impl From<Instead> for Broken {
    fn from(instead: Instead) -> Self {
        match instead {
            Instead::Ended => Broken::There,
            Instead::Lost(lost) => Broken::Lost(lost),
        }
    }
}

pub(crate) struct End {
    // Children first.
    pub(crate) region: Rc<Region>,
    /// The flags that memory is registered with: local write, or all three where that is refused.
    pub(crate) access: u32,
    pub(crate) domain: Rc<Domain>,
    pub(crate) opened: Rc<Opened>,
    pub(crate) channel: Channel,
    pub(crate) role: Role,
    pub(crate) seen: Vec<Observation>,
    /// A transition to RTR failed: no other is tried.
    pub(crate) unreachable: bool,
    lid: u16,
    mtu: u32,
    gid: (u8, [u8; 16]),
}

/// How to connect.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) shape: Shape,
    pub(crate) mtu: Option<sys::ibv_mtu>,
    pub(crate) access: u32,
    pub(crate) rq_psn: u32,
    pub(crate) sq_psn: u32,
    pub(crate) channel: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Wanted { shape: Shape::default(), mtu: None, access: 0, rq_psn: 7, sq_psn: 7, channel: false }
    }
}

/// A queue pair with a queue of its own, and the peer's endpoint.
pub(crate) struct Connection {
    pub(crate) pair: Pair,
    pub(crate) queue: Rc<Queue>,
    pub(crate) peer: Endpoint,
}

impl End {
    /// Opens what every step needs. Fails if the port is down, before anything is made.
    pub(crate) fn new(provider: &Provider, context: Context, channel: Channel, role: Role) -> Result<Self, String> {
        let port = context.port(1).map_err(|error| error.to_string())?;
        if !port.is_active() {
            return Err(format!(
                "{} is {}: both ends must have RDMA enabled, and the cable must be in",
                context.device_name(),
                port.state()
            ));
        }
        let entry = port.gid().map_err(|error| error.to_string())?;
        let (lid, mtu) = (port.lid(), port.attributes().active_mtu.0);
        let opened = Opened::new(provider, context);
        let gid = opened.gid(entry.index().into()).map_err(|answer| format!("ibv_query_gid: {answer}"))?;
        let domain = Domain::new(&opened).map_err(|answer| format!("ibv_alloc_pd: {answer}"))?;
        let memory = Rc::new(Memory::new(Kind::Private, MEMORY).ok_or("no memory")?);
        let register = |access| Region::new(&domain, &memory, (0, MEMORY), access, None).map(|region| (region, access));
        let registered = register(sys::IBV_ACCESS_LOCAL_WRITE).or_else(|_| register(ALL));
        let (region, access) = registered.map_err(|answer| format!("ibv_reg_mr: {answer}"))?;
        let gid = (entry.index(), gid);
        let (seen, unreachable) = (Vec::new(), false);
        Ok(End { region, access, domain, opened, channel, role, seen, unreachable, lid, mtu, gid })
    }

    /// Notes what was seen of a fact.
    pub(crate) fn fact(&mut self, id: &str, what: &str, expected: impl Display, observed: impl Display, agrees: bool) {
        self.note(id, what, Some(expected.to_string()), observed.to_string(), Some(agrees));
    }

    /// Notes a fact whose both sides can be compared.
    pub(crate) fn equal<T: PartialEq + Display>(&mut self, id: &str, what: &str, expected: T, observed: T) {
        let agrees = expected == observed;
        self.fact(id, what, expected, observed, agrees);
    }

    /// Notes what answers a call: `None` is success, else an errno.
    pub(crate) fn answers(&mut self, id: &str, what: &str, expected: Option<i32>, answer: Answer) {
        let name = expected.map_or("success", |errno| rdma::Errno::from_raw(errno).name());
        self.fact(id, what, name, answer, answer.errno() == expected);
    }

    /// Notes what answers an open question.
    pub(crate) fn question(&mut self, id: &str, what: &str, observed: impl Display) {
        self.note(id, what, None, observed.to_string(), None);
    }

    fn note(&mut self, id: &str, what: &str, expected: Option<String>, observed: String, agrees: Option<bool>) {
        self.seen.push(Observation { id: id.to_owned(), what: what.to_owned(), expected, observed, agrees });
    }

    /// Waits until the other end has come here, too.
    pub(crate) fn meet(&mut self) -> Result<(), Broken> {
        self.channel.say(0)?;
        self.channel.hear()?;
        Ok(())
    }

    /// A queue pair in RESET, whose peer's endpoint is known.
    pub(crate) fn prepare(&mut self, wanted: &Wanted) -> Result<Connection, Broken> {
        if self.unreachable {
            return Err(Broken::Here("not tried: a transition to RTR has failed before".to_owned()));
        }
        let make = if wanted.channel { Queue::with_channel } else { Queue::new };
        let queue = make(&self.opened, 1024).map_err(|answer| Broken::Here(format!("ibv_create_cq: {answer}")))?;
        let made = Pair::new(&self.domain, &queue, wanted.shape);
        let (pair, _) = made.map_err(|answer| Broken::Here(format!("ibv_create_qp: {answer}")))?;
        let own = Endpoint { lid: self.lid, number: pair.number(), gid: self.gid.1, mtu: self.mtu };
        let peer = self.channel.exchange_endpoints(own)?;
        // What can be known to fail is not tried.
        if kind(peer.gid) != kind(self.gid.1) || peer.gid == [0; 16] {
            self.unreachable = true;
            return Err(Broken::Here("the two ends have addresses of different kinds".to_owned()));
        }
        Ok(Connection { pair, queue, peer })
    }

    pub(crate) fn to_init(&self, pair: &Pair, access: u32) -> Answer {
        let attributes = sys::ibv_qp_attr {
            qp_state: state::IBV_QPS_INIT,
            port_num: 1,
            qp_access_flags: access,
            ..Default::default()
        };
        pair.modify(attributes, Mask::STATE | Mask::PKEY_INDEX | Mask::PORT | Mask::ACCESS_FLAGS)
    }

    /// The attributes and the mask of the transition to RTR, as TN3205 has them.
    pub(crate) fn rtr(&self, peer: Endpoint, wanted: &Wanted) -> (sys::ibv_qp_attr, Mask) {
        let mut path = sys::ibv_ah_attr { dlid: peer.lid, is_global: 1, port_num: 1, ..Default::default() };
        path.grh.dgid = sys::ibv_gid { raw: peer.gid };
        path.grh.sgid_index = self.gid.0;
        path.grh.hop_limit = 1;
        let attributes = sys::ibv_qp_attr {
            qp_state: state::IBV_QPS_RTR,
            ah_attr: path,
            path_mtu: wanted.mtu.unwrap_or(sys::ibv_mtu(self.mtu.min(peer.mtu).clamp(1, 5))),
            dest_qp_num: peer.number,
            rq_psn: wanted.rq_psn,
            ..Default::default()
        };
        (attributes, Mask::STATE | Mask::AV | Mask::PATH_MTU | Mask::DEST_QPN | Mask::RQ_PSN)
    }

    /// The kind of this end's own address.
    pub(crate) fn rtr_source(&self) -> GidKind {
        rdma::Gid::from_bytes(self.gid.1).kind()
    }

    pub(crate) fn to_rts(&self, pair: &Pair, sq_psn: u32) -> Answer {
        let attributes = sys::ibv_qp_attr { qp_state: state::IBV_QPS_RTS, sq_psn, ..Default::default() };
        pair.modify(attributes, Mask::STATE | Mask::SQ_PSN)
    }

    /// From RESET to RTS. A failure of the transition to RTR is the last one that is tried.
    pub(crate) fn rise(&mut self, connection: &Connection, wanted: &Wanted) -> Result<(), Broken> {
        let failed = |step: &str, answer: Answer| Err(Broken::Here(format!("ibv_modify_qp to {step}: {answer}")));
        let pair = &connection.pair;
        let answer = self.to_init(pair, wanted.access);
        if !answer.is_ok() {
            return failed("INIT", answer);
        }
        let (attributes, mask) = self.rtr(connection.peer, wanted);
        let answer = pair.modify(attributes, mask);
        if !answer.is_ok() {
            self.unreachable = true;
            return failed("RTR", answer);
        }
        let answer = self.to_rts(pair, wanted.sq_psn);
        if answer.is_ok() { Ok(()) } else { failed("RTS", answer) }
    }

    /// A connected queue pair, once both ends are connected.
    pub(crate) fn connect(&mut self, wanted: &Wanted) -> Result<Connection, Broken> {
        let connection = self.prepare(wanted)?;
        self.rise(&connection, wanted)?;
        self.meet()?;
        Ok(connection)
    }

    /// This end's memory from an offset on.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        self.region.memory.write(offset, bytes);
    }

    pub(crate) fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        self.region.memory.read(offset, length)
    }

    pub(crate) fn is_server(&self) -> bool {
        self.role == Role::Server
    }
}

impl Connection {
    /// Waits for so many completions; fewer if they do not come in time.
    pub(crate) fn completions(&self, count: usize, timeout: Duration) -> Result<Vec<sys::ibv_wc>, Broken> {
        let end = Instant::now() + timeout;
        let mut all = Vec::new();
        loop {
            all.extend(self.queue.poll().map_err(|answer| Broken::Here(format!("ibv_poll_cq: {answer}")))?);
            if all.len() >= count || Instant::now() >= end {
                return Ok(all);
            }
            thread::sleep(Duration::from_micros(50));
        }
    }
}

fn kind(gid: [u8; 16]) -> bool {
    rdma::Gid::from_bytes(gid).kind() == GidKind::Ipv4Mapped
}

/// The statuses of completions, for people: `SUCCESS`, `3 × SUCCESS, LOC_LEN_ERR`.
pub(crate) fn statuses(completions: &[sys::ibv_wc]) -> String {
    if completions.is_empty() {
        return "no completion".to_owned();
    }
    let runs = completions.chunk_by(|one, next| one.status == next.status).map(|run| match run.len() {
        1 => name(run[0].status),
        count => format!("{count} × {}", name(run[0].status)),
    });
    runs.collect::<Vec<_>>().join(", ")
}

pub(crate) fn name(status: sys::ibv_wc_status) -> String {
    match rdma::Status::from_raw(status.0).name() {
        "unknown" => format!("status {}", status.0),
        name => name.to_owned(),
    }
}

/// Bytes that tell which message they are of.
pub(crate) fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|index| ((index * 7 + index / 251 + seed * 31 + 1) % 256) as u8).collect()
}
