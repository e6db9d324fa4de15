//! One end in this process, the other in another: over any provider.

use crate::measure::{Clock, Measured, Opened, Patience, Plan, Served, Stop, call, serve};
use rdma::{ErrorKind, connect};
use std::net::{TcpListener, TcpStream};
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
    let stream = patiently(patience, |slice| connect::accept(listener, slice))?;
    let mut end = opened.connect(stream, plan, patience)?;
    let served = serve(&mut end, plan, None)?;
    end.finish()?;
    Ok(served)
}

/// The client: dials a server and measures, and hands each result to `each`.
pub(crate) fn client(
    opened: Opened,
    address: &str,
    plan: &Plan,
    patience: &Patience,
    clock: &Clock,
    each: impl FnMut(Measured) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let stream = patiently(patience, |slice| connect::dial(address, slice))?;
    let mut end = opened.connect(stream, plan, patience)?;
    call(&mut end, plan, None, clock, each)?;
    end.finish()
}

/// Tries in short turns, so that SIGINT is noticed in between.
fn patiently(
    patience: &Patience,
    mut attempt: impl FnMut(Duration) -> rdma::Result<TcpStream>,
) -> Result<TcpStream, Stop> {
    const TURN: Duration = Duration::from_millis(200);
    let begin = Instant::now();
    loop {
        let left = patience.timeout.saturating_sub(begin.elapsed());
        match attempt(left.min(TURN)) {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() != ErrorKind::TimedOut || left <= TURN => return Err(error.into()),
            Err(_) if patience.interrupted() => return Err(Stop::Interrupted),
            Err(_) => {}
        }
    }
}
