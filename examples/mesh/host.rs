use rdma::soft::{End, Fabric};
use rdma::{
    CompletionQueue, Context, Endpoint, MemoryRegion, PreparedQueuePair, ProtectionDomain, Provider, QueuePair,
};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);

/// What went wrong on a host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Rdma(#[from] rdma::Error),
    #[error("host {0} says nothing")]
    Silent(usize),
    #[error("byte {place} from host {peer} is not what was sent")]
    Corrupt { peer: usize, place: usize },
    #[error("{device} has messages of at most {most} bytes, not {size}")]
    TooLong { device: String, most: u64, size: usize },
    #[error("{0}")]
    Environment(String),
    #[error("cannot write the results: {0}")]
    Output(#[from] std::io::Error),
}

/// For `?` after a post. The message's memory returns to its region.
impl<M> From<rdma::PostError<M>> for Error {
    fn from(error: rdma::PostError<M>) -> Self {
        Error::Rdma(error.into())
    }
}

/// A message that came.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) peer: usize,
    pub(crate) device: String,
    pub(crate) bytes: usize,
    /// How it begins.
    pub(crate) words: String,
}

/// What hosts tell each other outside of the fabric.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// Where the queue pair is.
    Endpoint(Endpoint),
    /// A receive is posted: it may be sent to.
    Ready,
}

/// One host: its number, its machine, and its channels to and from each host.
#[derive(Debug)]
pub(crate) struct Host<'a> {
    pub(crate) number: usize,
    pub(crate) fabric: &'a Fabric,
    pub(crate) to: Vec<Sender<Note>>,
    pub(crate) from: Vec<Receiver<Note>>,
}

/// The cable to one peer, on this side. Each has a device of its own, so nothing is shared between two.
struct Cable<Q> {
    peer: usize,
    device: String,
    queue_pair: Q,
    completions: CompletionQueue,
    region: MemoryRegion,
}

/// The words that a message begins with.
fn words(from: usize, to: usize) -> String {
    format!("from {from} to {to}")
}

/// All bytes of a message: its words, and then a pattern of the two.
fn bytes(from: usize, to: usize, size: usize) -> impl Iterator<Item = u8> {
    let words = words(from, to).into_bytes();
    let pattern = (words.len()..).map(move |place| (place * 31 + from * 7 + to * 13) as u8);
    words.into_iter().chain(pattern).take(size)
}

impl Host<'_> {
    /// Sends a message to each peer and gets one from each.
    pub(crate) fn exchange(self, size: usize) -> Result<Vec<Received>, Error> {
        let provider = Provider::soft(&self.fabric.host(self.number)?)?;

        // 1. On each cable: a queue pair, and memory for one message each way. Tell the peer where it is.
        let mut prepared = Vec::new();
        for (index, device) in provider.devices()?.into_iter().enumerate() {
            let here = End { host: self.number, device: index };
            let Some(End { host: peer, .. }) = self.fabric.topology().far_end(here) else { continue };
            let mut cable = prepare(&device.open()?, peer, size)?;
            self.tell(peer, Note::Endpoint(cable.queue_pair.publish()?));
            prepared.push(cable);
        }

        // 2. Connect, post the receive, and say so: what is sent to a queue pair that is not connected is lost.
        let mut cables = Vec::new();
        for cable in prepared {
            let Note::Endpoint(endpoint) = self.hear(cable.peer)? else { return Err(Error::Silent(cable.peer)) };
            let mut cable = cable.connect(&endpoint)?;
            let space = cable.region.buffer(size)?;
            cable.queue_pair.post_recv(space, 0)?;
            self.tell(cable.peer, Note::Ready);
            cables.push(cable);
        }

        // 3. Send to each peer as soon as it is ready.
        for cable in &mut cables {
            let Note::Ready = self.hear(cable.peer)? else { return Err(Error::Silent(cable.peer)) };
            let mut message = cable.region.buffer(size)?;
            message.iter_mut().zip(bytes(self.number, cable.peer, size)).for_each(|(place, byte)| *place = byte);
            cable.queue_pair.post_send(message, .., 1)?;
        }

        // 4. On each cable, one send and one receive complete.
        cables.iter_mut().map(|cable| cable.finish(self.number, size)).collect()
    }

    fn tell(&self, peer: usize, note: Note) {
        // A peer that is gone shows when it is listened to.
        let _ = self.to[peer].send(note);
    }

    fn hear(&self, peer: usize) -> Result<Note, Error> {
        self.from[peer].recv_timeout(TIMEOUT).map_err(|_| Error::Silent(peer))
    }
}

fn prepare(context: &Context, peer: usize, size: usize) -> Result<Cable<PreparedQueuePair>, Error> {
    let domain: ProtectionDomain = context.protection_domain()?;
    let completions = context.completion_queue(2)?;
    // Buffers begin at multiples of 128 bytes.
    let region = domain.allocate(2 * size.next_multiple_of(128))?;
    let queue_pair = domain.queue_pair(&completions).requests(1).build()?;
    Ok(Cable { peer, device: context.device_name().to_owned(), queue_pair, completions, region })
}

impl Cable<PreparedQueuePair> {
    fn connect(self, endpoint: &Endpoint) -> Result<Cable<QueuePair>, Error> {
        let Cable { peer, device, queue_pair, completions, region } = self;
        Ok(Cable { peer, device, queue_pair: queue_pair.connect(endpoint)?, completions, region })
    }
}

impl Cable<QueuePair> {
    /// Waits for both completions, and looks at every byte that came.
    fn finish(&mut self, number: usize, size: usize) -> Result<Received, Error> {
        let peer = self.peer;
        let mut received = None;
        for _ in 0..2 {
            let transfer = self.completions.wait(TIMEOUT)?.ok()?;
            if transfer.direction() == rdma::Direction::Receive {
                received = Some(transfer);
            }
        }
        let received = received.ok_or(Error::Silent(peer))?;
        if let Some(place) = received.bytes().iter().copied().zip(bytes(peer, number, size)).position(|(a, b)| a != b) {
            return Err(Error::Corrupt { peer, place });
        }
        if received.len() != size {
            return Err(Error::Corrupt { peer, place: received.len().min(size) });
        }
        let words = words(peer, number);
        let words = String::from_utf8_lossy(&received.bytes()[..words.len().min(size)]).into_owned();
        Ok(Received { peer, device: self.device.clone(), bytes: received.len(), words })
    }
}
