//! Requests of other kinds than one signaled send or receive, and connections with other values than the usual ones.

use super::messages::{one, posted, succeeded};
use crate::end::{ALL, Broken, Connection, End, FRAME, LOOK, SOON, Wanted, statuses};
use crate::memory::{Kind, Memory, PAGE};
use crate::raw::{Region, Send, Shape};
use rdma_sys as sys;
use std::rc::Rc;

pub(crate) fn run(end: &mut End) -> Result<(), Broken> {
    let wanted = Wanted::default();
    let connection = end.prepare(&wanted)?;
    let mut accepted = 0;
    if end.is_server() {
        accepted = rise_posting(end, &connection, &wanted)?;
    } else {
        end.rise(&connection, &wanted)?;
    }
    end.meet()?;
    // Those that were taken get a message each, so that the queue is empty again.
    end.channel.say(accepted)?;
    let theirs = end.channel.hear()?;
    let count = usize::try_from(accepted.max(theirs).min(3)).unwrap_or(0);
    if !end.is_server() {
        for id in 0..count {
            posted(connection.pair.post_send(&end.region, id as u64, (0, 64)))?;
        }
    }
    let completions = connection.completions(count, SOON)?;
    let observed = statuses(&completions);
    end.fact(
        "F601",
        "messages for the receives that were taken early",
        "all",
        observed,
        succeeded(&completions, count),
    );
    end.meet()?;

    // Two receives and two sends, each posted as one chain.
    if end.is_server() {
        posted(connection.pair.post_recvs(&end.region, &[(1, (0, 64)), (2, (FRAME, 64))]))?;
    }
    end.meet()?;
    if !end.is_server() {
        posted(connection.pair.post_sends(&end.region, &[Send::new(1, (0, 64)), Send::new(2, (FRAME, 64))]))?;
    }
    let chain = connection.completions(2, SOON)?;
    let good = succeeded(&chain, 2) && (chain[0].wr_id, chain[1].wr_id) == (1, 2);
    end.fact("F603", "a chain of two", "2 × SUCCESS", statuses(&chain), good);
    end.meet()?;

    let flags = sys::IBV_SEND_SIGNALED | sys::IBV_SEND_FENCE | sys::IBV_SEND_SOLICITED;
    flagged(end, &connection, flags, "F511", "a send with fence and solicited")?;
    unsignaled(end, &connection)
}

/// Up to RTS, with a receive posted in each state but RESET. Returns how many were taken.
fn rise_posting(end: &mut End, connection: &Connection, wanted: &Wanted) -> Result<u64, Broken> {
    let pair = &connection.pair;
    let failed = |answer| Broken::Here(format!("ibv_modify_qp: {answer}"));
    let mut accepted = 0;
    let (attributes, mask) = end.rtr(connection.peer, wanted);
    for name in ["INIT", "RTR", "RTS"] {
        let answer = match name {
            "INIT" => end.to_init(pair, wanted.access),
            "RTR" => pair.modify(attributes, mask),
            _ => end.to_rts(pair, wanted.sq_psn),
        };
        if !answer.is_ok() {
            end.unreachable |= name == "RTR";
            return Err(failed(answer));
        }
        let answer = pair.post_recv(&end.region, accepted, (0, 64));
        accepted += u64::from(answer.is_ok());
        end.answers("F601", &format!("a receive that is posted in {name}"), None, answer);
    }
    Ok(accepted)
}

/// One send with these flags, that should complete.
fn flagged(end: &mut End, on: &Connection, flags: u32, id: &str, what: &str) -> Result<(), Broken> {
    if end.is_server() {
        posted(on.pair.post_recv(&end.region, 1, (0, 64)))?;
    }
    end.meet()?;
    if !end.is_server() {
        let answer = on.pair.post_sends(&end.region, &[Send { flags, ..Send::new(1, (0, 64)) }]);
        end.answers(id, &format!("posting {what}"), None, answer);
    }
    let completions = on.completions(1, SOON)?;
    end.fact(id, what, "SUCCESS", statuses(&completions), succeeded(&completions, 1));
    end.meet()
}

fn unsignaled(end: &mut End, on: &Connection) -> Result<(), Broken> {
    if end.is_server() {
        posted(on.pair.post_recvs(&end.region, &[(1, (0, 64)), (2, (0, 64))]))?;
    }
    end.meet()?;
    if end.is_server() {
        let received = on.completions(2, SOON)?;
        let good = succeeded(&received, 2);
        end.fact("F605", "an unsignaled and a signaled send arrive", "2 × SUCCESS", statuses(&received), good);
    } else {
        let quiet = on.pair.post_sends(&end.region, &[Send { flags: 0, ..Send::new(1, (0, 64)) }]);
        end.answers("F605", "posting an unsignaled send", None, quiet);
        posted(on.pair.post_send(&end.region, 2, (0, 64)))?;
        let mut completions = on.completions(1, SOON)?;
        completions.extend(on.completions(1, LOOK)?);
        let good = succeeded(&completions, 1) && completions[0].wr_id == 2;
        let observed = format!("{} ({})", completions.len(), statuses(&completions));
        end.fact("F605", "completions of an unsignaled and a signaled send", "1, of the second", observed, good);
    }
    end.meet()
}

pub(crate) fn values(end: &mut End) -> Result<(), Broken> {
    let shape = Shape { signal_all: true, ..Shape::default() };
    let mtu = Some(sys::ibv_mtu::IBV_MTU_1024);
    let connection = end.connect(&Wanted { shape, mtu, access: ALL, ..Wanted::default() })?;
    one(end, &connection, 1, 5000, 5000, "F224")?;
    flagged(end, &connection, 0, "F606", "an unsignaled send where all are signaled")?;
    drop(connection);
    // Each end expects another number than the other one sends.
    let connection = end.connect(&Wanted { rq_psn: 1000, sq_psn: 7, ..Wanted::default() })?;
    one(end, &connection, 2, 64, 64, "F226")
}

pub(crate) fn late_memory(end: &mut End) -> Result<(), Broken> {
    let connection = end.connect(&Wanted::default())?;
    let mut accepted = 0;
    if end.is_server() {
        let memory =
            Memory::new(Kind::Private, PAGE).map(Rc::new).ok_or_else(|| Broken::Here("no memory".to_owned()))?;
        let late = Region::new(&end.domain, &memory, (0, PAGE), end.access, None)
            .map_err(|answer| Broken::Here(format!("ibv_reg_mr: {answer}")))?;
        let answer = connection.pair.post_recv(&late, 1, (0, 64));
        end.answers("F409", "a receive into memory that was registered after INIT", Some(libc::EFAULT), answer);
        accepted = u64::from(answer.is_ok());
    }
    end.channel.say(accepted)?;
    let theirs = end.channel.hear()?;
    // If it was taken, it gets its message.
    if accepted.max(theirs) != 0 {
        if !end.is_server() {
            posted(connection.pair.post_send(&end.region, 1, (0, 64)))?;
        }
        let completions = connection.completions(1, SOON)?;
        end.question("Q07", "a message for memory that was registered after INIT", statuses(&completions));
    }
    end.meet()
}
