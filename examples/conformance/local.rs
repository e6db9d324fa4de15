//! Both ends in this process: two hosts of a software fabric, each on a thread of its own.

use crate::arguments::Arguments;
use crate::end::Role;
use crate::report::Report;
use crate::session::Session;
use crate::steps::Step;
use crate::watch::Watch;
use crate::{Stop, open};
use rdma::Provider;
use rdma::soft::{Fabric, Profile, Topology};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

/// What the client has to report: it has the server's observations, too.
pub(crate) fn run(
    arguments: &Arguments,
    steps: &[&'static Step],
    watch: &Watch,
    out: &mut dyn FnMut(&str),
) -> Result<Report, Stop> {
    match arguments.provider.as_deref() {
        None | Some("soft") => {}
        Some(name) => {
            return Err(Stop::Failed(format!(
                "with the provider `{name}` the two ends are two programs: start one with --server, the other with --client"
            )));
        }
    }
    let fabric = Fabric::new(Topology::mesh(2)?, profile()?);
    let (near, far) = streams().map_err(|error| format!("no TCP connection within this host: {error}"))?;
    let end = |host: usize, role, stream, file, out: &mut dyn FnMut(&str)| -> Result<Report, Stop> {
        let provider = Provider::soft(&fabric.host(host)?)?;
        let context = open(&provider, arguments.device.as_deref())?;
        let name = "soft";
        Ok(Session { provider: &provider, name, context, stream, role, steps, watch, file, out }.run()?)
    };
    thread::scope(|scope| {
        let server = scope.spawn(|| end(1, Role::Server, far, None, &mut |_| {}));
        let client = end(0, Role::Client, near, arguments.report.clone(), out);
        match (client, server.join()) {
            (_, Err(panic)) => std::panic::resume_unwind(panic),
            // That the other end is gone is only what followed.
            (Err(_), Ok(Err(cause))) => Err(cause),
            (client, _) => client,
        }
    })
}

/// The one that the environment names, as for other programs on the software fabric.
fn profile() -> rdma::Result<Profile> {
    match std::env::var("RDMA_SOFT_PROFILE") {
        Ok(text) if !text.is_empty() => text.parse(),
        _ => Ok(Profile::default()),
    }
}

/// The two ends of a TCP connection.
fn streams() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    Ok((near, listener.accept()?.0))
}
