//! Both ends in this process: two hosts of a software fabric, each on a thread of its own.

use crate::arguments::Arguments;
use crate::channel::Lost;
use crate::end::Role;
use crate::place::Place;
use crate::report::Report;
use crate::session::Session;
use crate::steps::Step;
use crate::watch::Watch;
use crate::{Stop, open, profile};
use rdma::soft::{Fabric, Topology};
use rdma::{Context, Provider};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

/// One of the two ends, before anything is asked of its device.
pub(crate) struct End {
    provider: Provider,
    context: Context,
    stream: TcpStream,
}

/// Both ends: the client's, and the server's.
pub(crate) fn open_ends(arguments: &Arguments) -> Result<[End; 2], Stop> {
    match arguments.provider.as_deref() {
        None | Some("soft") => {}
        // Nobody has another name.
        Some(name) if name != "system" && !name.starts_with("library:") => {
            Provider::named(name)?;
        }
        Some(name) => {
            return Err(Stop::Failed(format!(
                "with the provider `{name}` the two ends are two programs: start one with --server, the other with --client"
            )));
        }
    }
    let fabric = Fabric::new(Topology::mesh(2)?, profile::profile()?);
    let (near, far) = streams().map_err(|error| format!("no TCP connection within this host: {error}"))?;
    let end = |host: usize, stream| -> Result<End, Stop> {
        let provider = Provider::soft(&fabric.host(host)?)?;
        let context = open(&provider, arguments.device.as_deref())?;
        Ok(End { provider, context, stream })
    };
    Ok([end(0, near)?, end(1, far)?])
}

/// What the client has to report: it has the server's observations, too.
pub(crate) fn run(
    [client, server]: [End; 2],
    place: Option<&Place>,
    steps: &[&'static Step],
    watch: &Watch,
    out: &mut dyn FnMut(&str),
) -> Result<Report, Stop> {
    let end = |End { provider, context, stream }, role, place, out: &mut dyn FnMut(&str)| -> Result<Report, Stop> {
        let name = "soft";
        Ok(Session { provider: &provider, name, context, stream, role, steps, watch, place, out }.run()?)
    };
    thread::scope(|scope| {
        let server = scope.spawn(|| end(server, Role::Server, None, &mut |_| {}));
        let client = end(client, Role::Client, place, out);
        match (client, server.join()) {
            (_, Err(panic)) => std::panic::resume_unwind(panic),
            // That the other end is gone is only what followed.
            (Err(Stop::Failed(what)), Ok(Err(cause))) if what.starts_with(Lost::GONE) => Err(cause),
            (client, _) => client,
        }
    })
}

/// The two ends of a TCP connection.
fn streams() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    Ok((near, listener.accept()?.0))
}
