//! A model of traffic: what two hosts, a cable and a few queue pairs must do, for any sequence of operations through the
//! safe API. It knows nothing of how the device works, only its rules: every send and every receive comes back exactly
//! once, in order, with the right status, bytes and memory, and no memory is lost.
//!
//! Used by the property tests beside it and by the fuzz target of the same name.
#![allow(dead_code, unreachable_pub)]

mod rules;

use rdma::soft::Fabric;
use rdma::{
    Completion, CompletionQueue, Context, Direction, Endpoint, ErrorKind, Memory, MemoryRegion, PreparedQueuePair,
    ProtectionDomain, Provider, QueuePair, Status,
};
use rules::{FRAME, Rules, contents, frames};
use std::collections::VecDeque;

/// How many queue pairs each host has room for.
pub const LINES: usize = 2;
/// How many requests each may have in flight in each direction.
pub const REQUESTS: usize = 4;
/// What is asked for as depth. What is granted the device says.
const DEPTH: u32 = 256;
/// Enough for what is in flight at once: in most cases short messages alone, which keeps a case cheap.
const MEMORY: [usize; 2] = [1 << 20, 12 << 20];

/// Lengths around what matters: payloads that travel with the completion, frames, a queue's depth.
pub const LENGTHS: [usize; 12] =
    [1, 3, 47, 48, 49, 4095, 4096, 4097, 2 * FRAME, 2 * FRAME + 1, 400 * FRAME - 5, 400 * FRAME];

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Plain,
    Frozen,
    Unsignaled,
}

/// One operation. Every sequence is allowed: what cannot be done now is skipped, or must be refused in the right way.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Makes a queue pair and publishes its endpoint.
    Build {
        line: usize,
        side: usize,
    },
    /// Connects it to the endpoint that the other side published last.
    Connect {
        line: usize,
        side: usize,
    },
    Receive {
        line: usize,
        side: usize,
        length: usize,
    },
    Send {
        line: usize,
        side: usize,
        length: usize,
        kind: Kind,
    },
    /// Posts several at once.
    Batch {
        line: usize,
        side: usize,
        lengths: [usize; 3],
        receives: bool,
    },
    Poll {
        side: usize,
        count: usize,
    },
    Close {
        line: usize,
        side: usize,
    },
    /// As a process does that dies: without a word.
    Drop {
        line: usize,
        side: usize,
    },
    Cable {
        plugged: bool,
    },
}

/// A request that is posted and has not come back.
struct Request {
    token: u64,
    length: usize,
    unsignaled: bool,
    /// What it must end with, once that is known: the status, and for a receive the bytes.
    outcome: Option<(Status, Option<Vec<u8>>)>,
}

enum Stage {
    None,
    Prepared(PreparedQueuePair, Endpoint),
    Connected(QueuePair),
}

/// One end of a line.
struct End {
    stage: Stage,
    /// The numbers of this queue pair and of the one it was connected to.
    number: u32,
    peer: u32,
    published: Option<Endpoint>,
    sends: VecDeque<Request>,
    receives: VecDeque<Request>,
}

struct Side {
    // In the order in which they may be dropped; any would do.
    ends: Vec<End>,
    completions: CompletionQueue,
    region: MemoryRegion,
    domain: ProtectionDomain,
    context: Context,
}

pub struct World {
    sides: [Side; 2],
    fabric: Fabric,
    plugged: bool,
    tokens: u64,
    rules: Rules,
}

impl World {
    fn new(fabric: Fabric, memory: usize) -> World {
        let side = |host| {
            let provider = Provider::soft(&fabric.host(host).unwrap()).unwrap();
            let context = provider.first_active().unwrap().open().unwrap();
            let domain = context.protection_domain().unwrap();
            let end = |_| End {
                stage: Stage::None,
                number: 0,
                peer: 0,
                published: None,
                sends: VecDeque::new(),
                receives: VecDeque::new(),
            };
            Side {
                ends: (0..LINES).map(end).collect(),
                completions: context.completion_queue((LINES * 2 * REQUESTS) as u32).unwrap(),
                region: domain.allocate(memory).unwrap(),
                domain,
                context,
            }
        };
        let sides = [side(0), side(1)];
        let rules = Rules::of(&sides[0].context);
        World { sides, fabric, plugged: true, tokens: 0, rules }
    }

    /// Runs all of them on a new fabric of two hosts.
    pub fn run(fabric: Fabric, ops: &[Op]) {
        let long = |op: &Op| match op {
            Op::Receive { length, .. } | Op::Send { length, .. } => *length > 16 * FRAME,
            Op::Batch { lengths, .. } => lengths.iter().any(|&length| length > 16 * FRAME),
            _ => false,
        };
        let mut world = World::new(fabric, MEMORY[usize::from(ops.iter().any(long))]);
        for &op in ops {
            world.apply(op);
        }
        world.finish();
    }

    fn token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    /// Whether messages of this end arrive: both ends are connected, and mean each other.
    fn joined(&self, line: usize) -> bool {
        let [one, other] = [0, 1].map(|side| &self.sides[side].ends[line]);
        matches!((&one.stage, &other.stage), (Stage::Connected(_), Stage::Connected(_)))
            && one.peer == other.number
            && other.peer == one.number
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Build { line, side } => self.build(line, side),
            Op::Connect { line, side } => self.connect(line, side),
            Op::Receive { line, side, length } => self.receive(line, side, length),
            Op::Send { line, side, length, kind } => self.send(line, side, length, kind),
            Op::Batch { line, side, lengths, receives } => self.batch(line, side, lengths, receives),
            Op::Poll { side, count } => {
                self.poll(side, count);
            }
            Op::Close { line, side } => self.end(line, side, true),
            Op::Drop { line, side } => self.end(line, side, false),
            Op::Cable { plugged } => {
                // What has come about and nobody has looked at may be told now or later.
                for side in [0, 1] {
                    while self.poll(side, 3) != 0 {}
                }
                self.fabric.set_cable(0, plugged).unwrap();
                self.plugged = plugged;
                (0..LINES).for_each(|line| self.settle(line));
            }
        }
    }

    fn build(&mut self, line: usize, side: usize) {
        let Side { ends, completions, domain, context, .. } = &mut self.sides[side];
        let end = &mut ends[line];
        if !matches!(end.stage, Stage::None) {
            return;
        }
        let mut prepared =
            domain.queue_pair(completions).requests(REQUESTS as u32).depth(DEPTH).build().expect("there is room");
        assert_eq!(prepared.capacities().send_depth as usize, self.rules.granted);
        let port = context.port(1).unwrap();
        let gid = port.gid().unwrap();
        match prepared.endpoint(&port, gid) {
            Ok(endpoint) => {
                assert!(self.plugged);
                end.number = prepared.number();
                end.published = Some(endpoint);
                end.stage = Stage::Prepared(prepared, endpoint);
            }
            Err(error) => {
                assert!(!self.plugged && error.kind() == ErrorKind::PortDown, "{error}");
                prepared.close().unwrap();
            }
        }
    }

    fn connect(&mut self, line: usize, side: usize) {
        let Some(peer) = self.sides[1 - side].ends[line].published else { return };
        let end = &mut self.sides[side].ends[line];
        match std::mem::replace(&mut end.stage, Stage::None) {
            Stage::Prepared(prepared, _) => match prepared.connect(&peer) {
                Ok(queue_pair) => {
                    assert!(self.plugged, "connected without a cable");
                    assert_eq!(queue_pair.number(), end.number);
                    end.peer = peer.number();
                    end.stage = Stage::Connected(queue_pair);
                }
                // Refused, and with it the queue pair is gone.
                Err(error) => assert!(!self.plugged, "{error}"),
            },
            other => end.stage = other,
        }
    }

    /// Whether a queue takes another request, and how many frames it has left.
    fn room(rules: Rules, queue: &VecDeque<Request>) -> (bool, usize) {
        let used: usize = queue.iter().map(|request| rules.places(request.length)).sum();
        (queue.len() < REQUESTS, rules.granted - used)
    }

    fn receive(&mut self, line: usize, side: usize, length: usize) {
        let rules = self.rules;
        let length = rules.length(length, true);
        let token = self.token();
        let Side { ends, region, .. } = &mut self.sides[side];
        let end = &mut ends[line];
        let Stage::Connected(queue_pair) = &mut end.stage else { return };
        let Ok(mut buffer) = region.buffer(length) else { return };
        buffer.fill(0xee);
        let (slot, depth) = World::room(rules, &end.receives);
        match queue_pair.post_recv(buffer, token) {
            Ok(()) => {
                assert!(slot && rules.places(length) <= depth, "a full queue took a receive");
                end.receives.push_back(Request { token, length, unsignaled: false, outcome: None });
            }
            Err(error) => {
                assert!(!slot || rules.places(length) > depth, "{error}");
                assert_eq!(error.kind(), ErrorKind::QueueFull);
                let buffer = error.into_memory().expect("a refused post returns its memory");
                assert!(buffer.len() == length && buffer.iter().all(|&byte| byte == 0xee));
            }
        }
        self.settle(line);
    }

    fn send(&mut self, line: usize, side: usize, length: usize, kind: Kind) {
        let rules = self.rules;
        let length = rules.length(length, false);
        let token = self.token();
        let Side { ends, region, .. } = &mut self.sides[side];
        let end = &mut ends[line];
        let Stage::Connected(queue_pair) = &mut end.stage else { return };
        let Ok(mut buffer) = region.buffer(length) else { return };
        buffer.copy_from_slice(&contents(token, length));
        let (slot, depth) = World::room(rules, &end.sends);
        let refused = match kind {
            Kind::Plain => queue_pair.post_send(buffer, .., token).map_err(|e| (e.kind(), e.into_memory().is_some())),
            Kind::Frozen => {
                queue_pair.post_send(buffer.freeze(), .., token).map_err(|e| (e.kind(), e.into_memory().is_some()))
            }
            Kind::Unsignaled => {
                queue_pair.post_send_unsignaled(buffer, .., token).map_err(|e| (e.kind(), e.into_memory().is_some()))
            }
        };
        let unsignaled = matches!(kind, Kind::Unsignaled);
        match refused {
            Ok(()) => {
                assert!(slot && rules.places(length) <= depth, "a full queue took a send");
                end.sends.push_back(Request { token, length, unsignaled, outcome: None });
            }
            Err((ErrorKind::QueueFull, true)) => {
                // The last free place is not for an unsignaled request: nothing would ever free the queue again.
                assert!(unsignaled || !slot || rules.places(length) > depth, "refused with room");
            }
            Err(other) => panic!("{other:?}"),
        }
        self.settle(line);
    }

    fn batch(&mut self, line: usize, side: usize, lengths: [usize; 3], receives: bool) {
        let rules = self.rules;
        let lengths = lengths.map(|length| rules.length(length, receives));
        let tokens = [self.token(), self.token(), self.token()];
        let Side { ends, region, .. } = &mut self.sides[side];
        let end = &mut ends[line];
        let Stage::Connected(queue_pair) = &mut end.stage else { return };
        let queue = if receives { &mut end.receives } else { &mut end.sends };
        let mut accepted = Vec::new();
        macro_rules! fill {
            ($batch:expr, $push:expr) => {{
                let mut batch = $batch;
                for (token, length) in tokens.into_iter().zip(lengths) {
                    let Ok(mut buffer) = region.buffer(length) else { continue };
                    buffer.copy_from_slice(&contents(token, length));
                    match $push(&mut batch, buffer, token) {
                        Ok(()) => accepted.push((token, length)),
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::QueueFull);
                            assert!(error.into_memory().is_some());
                        }
                    }
                }
                batch.submit().unwrap();
            }};
        }
        if receives {
            fill!(queue_pair.receive_batch::<3>(), |batch: &mut rdma::ReceiveBatch<'_, 3>, buffer, token| batch
                .push(buffer, token));
        } else {
            fill!(queue_pair.send_batch::<3>(), |batch: &mut rdma::SendBatch<'_, 3>, buffer, token| batch.push(
                buffer,
                ..,
                token
            ));
        }
        for (token, length) in accepted {
            let (slot, depth) = World::room(rules, queue);
            assert!(slot && rules.places(length) <= depth, "a full queue took a batch");
            queue.push_back(Request { token, length, unsignaled: false, outcome: None });
        }
        self.settle(line);
    }

    /// Decides what can be decided of a line's requests. Each send is paired with the oldest receive, or lost.
    fn settle(&mut self, line: usize) {
        let joined = self.joined(line);
        if joined && !self.plugged {
            // Silence.
            return;
        }
        for from in [0, 1] {
            let (one, other) = self.sides.split_at_mut(1);
            let (sender, receiver) =
                if from == 0 { (&mut one[0], &mut other[0]) } else { (&mut other[0], &mut one[0]) };
            let (sender, receiver) = (&mut sender.ends[line], &mut receiver.ends[line]);
            if !matches!(sender.stage, Stage::Connected(_)) {
                continue;
            }
            let mut receives = receiver.receives.iter_mut().filter(|receive| receive.outcome.is_none());
            for send in sender.sends.iter_mut().filter(|send| send.outcome.is_none()) {
                let receive = if joined { receives.next() } else { None };
                if joined && receive.is_none() && self.rules.frames {
                    break;
                }
                if let Some(receive) = receive {
                    let fits = !self.rules.frames
                        || frames(send.length) == frames(receive.length) && send.length <= receive.length;
                    receive.outcome = Some(if fits {
                        (Status::SUCCESS, Some(contents(send.token, send.length)))
                    } else {
                        (Status::LOC_LEN_ERR, None)
                    });
                }
                send.outcome = Some((Status::SUCCESS, None));
            }
        }
    }

    /// Takes up to `count` completions of a side and checks each. Returns how many there were.
    fn poll(&mut self, side: usize, count: usize) -> usize {
        let mut array: Vec<Option<Completion>> = (0..count).map(|_| None).collect();
        let taken = self.sides[side].completions.poll(&mut array).unwrap();
        for completion in array.iter_mut().take(taken) {
            self.check(side, completion.take().unwrap());
        }
        assert!(array.iter().all(Option::is_none));
        taken
    }

    fn check(&mut self, side: usize, completion: Completion) {
        let ends = &mut self.sides[side].ends;
        let end = ends
            .iter_mut()
            .find(|end| matches!(&end.stage, Stage::Connected(qp) if qp.number() == completion.queue_pair()))
            .expect("the completion of a queue pair that there is");
        let direction = completion.direction();
        let queue = if direction == Direction::Send { &mut end.sends } else { &mut end.receives };
        let request = queue.pop_front().expect("a completion for a request that was posted");
        assert_eq!(completion.token(), request.token, "not the oldest request of its queue");
        let (status, bytes) = request.outcome.expect("completed before it could be");
        assert_eq!(completion.status(), status);
        match completion.into_result() {
            Ok(transfer) => {
                match (direction, bytes) {
                    (Direction::Receive, Some(bytes)) => assert_eq!(transfer.bytes(), bytes, "other bytes"),
                    _ => assert_eq!(transfer.bytes(), contents(request.token, request.length), "a send was changed"),
                }
                returned(transfer.into_memory(), request.length);
            }
            Err(failure) => returned(failure.into_memory(), request.length),
        }
    }

    fn end(&mut self, line: usize, side: usize, close: bool) {
        let end = &mut self.sides[side].ends[line];
        match std::mem::replace(&mut end.stage, Stage::None) {
            Stage::None => {}
            Stage::Prepared(prepared, _) if close => prepared.close().unwrap(),
            Stage::Prepared(prepared, _) => drop(prepared),
            Stage::Connected(queue_pair) if close => {
                // All that has not been polled comes back, in order, sends first.
                let mut unfinished = queue_pair.close().unwrap().into_iter();
                for (queue, direction) in [(&end.sends, Direction::Send), (&end.receives, Direction::Receive)] {
                    for request in queue {
                        let item = unfinished.next().expect("a posted buffer was lost");
                        assert_eq!((item.token, item.direction), (request.token, direction));
                        returned(item.memory, request.length);
                    }
                }
                assert!(unfinished.next().is_none());
            }
            Stage::Connected(queue_pair) => drop(queue_pair),
        }
        end.sends.clear();
        end.receives.clear();
        self.settle(line);
    }

    /// Polls everything, ends everything, and looks whether all memory is back.
    fn finish(mut self) {
        for side in [0, 1] {
            while self.poll(side, 3) != 0 {}
            for end in &self.sides[side].ends {
                // An unsignaled send waits for a signaled one behind it; all else that is decided has been polled.
                let last = end.sends.iter().rposition(|send| send.outcome.is_some() && !send.unsignaled);
                assert_eq!(last, None, "a send did not complete");
                assert!(end.receives.iter().all(|receive| receive.outcome.is_none()), "a receive did not complete");
            }
        }
        for side in [0, 1] {
            for line in 0..LINES {
                self.end(line, side, true);
            }
        }
        for Side { ends, completions, region, domain, context } in self.sides {
            drop(ends);
            assert_eq!(region.available(), region.len(), "memory was lost");
            assert_eq!(completions.unreserved(), completions.capacity(), "room in the completion queue was lost");
            // Each says whether anything still depends on it.
            region.close().unwrap();
            completions.close().unwrap();
            domain.close().unwrap();
            context.close().unwrap();
        }
    }
}

fn returned(memory: Memory, length: usize) {
    match memory {
        Memory::Buffer(buffer) => assert_eq!(buffer.len(), length),
        Memory::Frozen(frozen) => assert_eq!(frozen.thaw().expect("the only clone").len(), length),
        other => panic!("{other:?}"),
    }
}
