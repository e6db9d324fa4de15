//! Both ends in this process: two hosts of a software fabric, each on a thread of its own.

use crate::measure::{Audience, Choice, Clock, Cores, Line, Opened, Patience, Plan, Stop, call, serve};
use rdma::Provider;
use rdma::soft::Fabric;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

/// Measures between the first two hosts of a fabric.
pub(crate) fn run(
    fabric: &Fabric,
    plan: &Plan,
    patience: &Patience,
    cores: Option<Cores>,
    clock: &Clock,
    audience: &mut (impl Audience + Send),
) -> Result<(), Stop> {
    let open = |host| Opened::open(&Provider::soft(&fabric.host(host)?)?, &Choice::default(), plan);
    let (client, server) = (open(0)?, open(1)?);
    let (near, far) = streams()?;
    let line = Line::default();
    let pin = |side| cores.is_none_or(|cores| cores.pin(side));
    thread::scope(|scope| {
        let server = thread::Builder::new().name("server".to_owned()).spawn_scoped(scope, || {
            pin(1);
            let mut end = server.connect(far, patience)?;
            serve(&mut end, Some(&line))?;
            end.finish()
        });
        let client = thread::Builder::new().name("client".to_owned()).spawn_scoped(scope, || {
            pin(0);
            let mut end = client.connect(near, patience)?;
            call(&mut end, Some(&line), clock, audience)?;
            end.finish()
        });
        let outcomes = [client, server].map(|thread| match thread?.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        first_cause(outcomes)
    })
}

/// What went wrong first: that the other end is gone is only what followed.
fn first_cause(outcomes: [Result<(), Stop>; 2]) -> Result<(), Stop> {
    let [one, other] = outcomes;
    match (one, other) {
        (Err(Stop::PeerGone), Err(cause)) | (Err(cause), _) | (Ok(()), Err(cause)) => Err(cause),
        (Ok(()), Ok(())) => Ok(()),
    }
}

/// The two ends of a TCP connection.
fn streams() -> Result<(TcpStream, TcpStream), Stop> {
    let pair = || -> io::Result<_> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let near = TcpStream::connect(listener.local_addr()?)?;
        Ok((near, listener.accept()?.0))
    };
    let remedy = " (the ends exchange their addresses over TCP: is the loopback interface up?)";
    pair().map_err(|error| Stop::System { what: "no TCP connection within this host".to_owned(), error, remedy })
}
