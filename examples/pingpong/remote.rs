//! One end in this process, the other in another: over any provider.

use crate::measure::{Audience, Clock, Opened, Patience, Served, Stop, call, serve};
use rdma::connect;
use std::net::TcpListener;

/// Listens where a server was told to.
pub(crate) fn listen(address: &str) -> Result<TcpListener, Stop> {
    TcpListener::bind(address).map_err(|error| Stop::System {
        what: format!("cannot listen on {address}"),
        error,
        remedy: " (--server ADDR:PORT takes another address or port; both must be this host's)",
    })
}

/// The server: waits for a client, and does as it says.
pub(crate) fn server(opened: Opened, listener: &TcpListener, patience: &Patience) -> Result<Served, Stop> {
    let stream = patience.while_waiting(|patience| connect::accept(listener, patience))?;
    let mut end = opened.connect(stream, patience)?;
    let served = serve(&mut end, None)?;
    end.finish()?;
    Ok(served)
}

/// The client: dials a server, and measures.
pub(crate) fn client(
    opened: Opened,
    address: &str,
    patience: &Patience,
    clock: &Clock,
    audience: &mut impl Audience,
) -> Result<(), Stop> {
    let stream = patience.while_waiting(|patience| connect::dial(address, patience))?;
    let mut end = opened.connect(stream, patience)?;
    call(&mut end, None, clock, audience)?;
    end.finish()
}
