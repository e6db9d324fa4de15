//! One end in this process, the other in another: over any provider.

use crate::measure::{Audience, Clock, Opened, Patience, Plan, Served, Stop, call, serve};
use rdma::{ErrorKind, connect};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Listens where a server was told to.
pub(crate) fn listen(address: &str) -> Result<TcpListener, Stop> {
    TcpListener::bind(address).map_err(|error| Stop::System {
        what: format!("cannot listen on {address}"),
        error,
        remedy: " (--server ADDR:PORT takes another address or port; both must be this host's)",
    })
}

/// The server: waits for a client, and does as it says.
pub(crate) fn server(opened: Opened, listener: &TcpListener, plan: &Plan, patience: &Patience) -> Result<Served, Stop> {
    let stream = patiently(patience, |turn| match connect::accept(listener, turn) {
        Err(error) if error.kind() == ErrorKind::TimedOut => Ok(Err("none connected".to_owned())),
        other => Ok(Ok(other?)),
    });
    let stream =
        stream?.map_err(|reason| Stop::Nobody { who: "client".to_owned(), timeout: patience.timeout, reason })?;
    let mut end = opened.connect(stream, plan, patience)?;
    let served = serve(&mut end, plan, None)?;
    end.finish()?;
    Ok(served)
}

/// The client: dials a server, and measures.
pub(crate) fn client(
    opened: Opened,
    address: &str,
    plan: &Plan,
    patience: &Patience,
    clock: &Clock,
    audience: &mut impl Audience,
) -> Result<(), Stop> {
    let addresses: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| Stop::System {
            what: format!("no such address as {address}"),
            error,
            remedy: " (--client takes HOST:PORT)",
        })?
        .collect();
    let stream = patiently(patience, |turn| Ok(dial(&addresses, turn)));
    let who = || format!("server at {address}");
    let stream = stream?.map_err(|reason| Stop::Nobody { who: who(), timeout: patience.timeout, reason })?;
    let mut end = opened.connect(stream, plan, patience)?;
    call(&mut end, plan, None, clock, audience)?;
    end.finish()
}

/// Tries each address once.
fn dial(addresses: &[SocketAddr], turn: Duration) -> Result<TcpStream, String> {
    let mut reason = "it has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(address, turn) {
            Ok(stream) => return Ok(stream),
            Err(error) => reason = format!("{address}: {error}"),
        }
    }
    // A refusal comes at once.
    std::thread::sleep(turn.min(Duration::from_millis(50)));
    Err(reason)
}

/// Tries in short turns, so that SIGINT is noticed in between, until something comes or patience ends. Then it returns
/// the last reason.
fn patiently<T>(
    patience: &Patience,
    mut attempt: impl FnMut(Duration) -> Result<Result<T, String>, Stop>,
) -> Result<Result<T, String>, Stop> {
    const TURN: Duration = Duration::from_millis(500);
    let begin = Instant::now();
    loop {
        let left = patience.timeout.saturating_sub(begin.elapsed()).max(Duration::from_millis(1));
        match attempt(left.min(TURN))? {
            Err(_) if patience.interrupted() => return Err(Stop::Interrupted),
            Err(_) if begin.elapsed() < patience.timeout => {}
            outcome => return Ok(outcome),
        }
    }
}
