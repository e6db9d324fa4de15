//! What is against the rules, once each.

use super::messages::{posted, succeeded};
use crate::end::{Broken, End, FRAME, LOOK, SOON, Wanted, statuses};
use crate::raw::Send;
use rdma::{Errno, Gid, GidKind};
use rdma_sys::{self as sys, QpAttrMask as Mask, ibv_wr_opcode as opcode};

/// The length of the messages that fill a send queue.
const LONG: usize = 1 << 16;

pub(crate) fn depth(end: &mut End) -> Result<(), Broken> {
    let connection = end.connect(&Wanted::default())?;
    let query = connection.pair.query().map_err(|answer| Broken::Here(format!("ibv_query_qp: {answer}")))?;
    let granted = query.0.cap.max_recv_wr.min(8192) as usize;
    if end.is_server() {
        let fill = |id: usize| connection.pair.post_recv(&end.region, id as u64, (0, 64));
        let (count, answer) = until_refused(granted + 1, fill);
        end.equal("F313", "receives of one frame that are taken", granted, count);
        end.answers("F314", "the one after", Some(libc::ENOMEM), answer);
    }
    end.meet()?;
    drop(connection);

    let connection = end.connect(&Wanted::default())?;
    let fits = granted / (LONG / FRAME);
    let mut count = 0;
    if !end.is_server() {
        let fill = |id: usize| connection.pair.post_send(&end.region, id as u64, (0, LONG));
        let (taken, answer) = until_refused(fits + 1, fill);
        end.equal("F313", "sends of 64 KiB that are taken", fits, taken);
        end.answers("F314", "the one after", Some(libc::ENOMEM), answer);
        count = taken;
    }
    // The peer takes them.
    end.channel.say(count as u64)?;
    let theirs = end.channel.hear()?;
    let count = count.max(usize::try_from(theirs).unwrap_or(0)).min(fits + 1);
    if end.is_server() {
        for id in 0..count.min(fits) {
            posted(connection.pair.post_recv(&end.region, id as u64, (0, LONG)))?;
        }
    }
    let completions = connection.completions(count.min(fits), SOON)?;
    let good = succeeded(&completions, count.min(fits));
    let observed = if good { "all with SUCCESS".to_owned() } else { statuses(&completions) };
    end.fact("F313", "the completions of a full queue", "all with SUCCESS", observed, good);
    end.meet()
}

/// Posts until one is refused, at most so many. Returns how many were taken, and the last answer.
fn until_refused(most: usize, post: impl Fn(usize) -> crate::raw::Answer) -> (usize, crate::raw::Answer) {
    let mut taken = 0;
    loop {
        let answer = post(taken);
        taken += usize::from(answer.is_ok());
        if !answer.is_ok() || taken == most {
            return (taken, answer);
        }
    }
}

pub(crate) fn operations(end: &mut End) -> Result<(), Broken> {
    let connection = end.connect(&Wanted::default())?;
    if end.is_server() {
        for id in 0..8 {
            posted(connection.pair.post_recv(&end.region, id, (0, 64)))?;
        }
    }
    end.meet()?;
    let empty = Send { parts: Vec::new(), ..Send::new(1, (0, 0)) };
    if !end.is_server() {
        let answer = connection.pair.post_sends(&end.region, &[empty]);
        end.answers("F509", "posting an empty message", None, answer);
    }
    let completions = connection.completions(1, SOON)?;
    end.fact("F509", "an empty message", "SUCCESS", statuses(&completions), succeeded(&completions, 1));
    end.meet()?;

    let plain = Send::new(2, (0, 8));
    for (id, what, expected, send) in [
        ("F510", "immediate data", libc::EOPNOTSUPP, Send { opcode: opcode::IBV_WR_SEND_WITH_IMM, ..plain.clone() }),
        (
            "F510",
            "an RDMA write to nowhere",
            libc::EOPNOTSUPP,
            Send { opcode: opcode::IBV_WR_RDMA_WRITE, ..plain.clone() },
        ),
        (
            "F303",
            "inline data",
            libc::EINVAL,
            Send { flags: sys::IBV_SEND_SIGNALED | sys::IBV_SEND_INLINE, ..plain.clone() },
        ),
        ("F303", "two scatter elements", libc::EINVAL, Send { parts: vec![(0, 8), (8, 8)], ..plain.clone() }),
    ] {
        let mut arrived = 0;
        if !end.is_server() {
            let answer = connection.pair.post_sends(&end.region, &[send]);
            end.answers(id, what, Some(expected), answer);
            arrived = u64::from(answer.is_ok());
        }
        end.channel.say(arrived)?;
        let theirs = end.channel.hear()?;
        if arrived.max(theirs) != 0 {
            let completions = connection.completions(2, LOOK)?;
            let lengths: Vec<_> = completions.iter().map(|wc| wc.byte_len.to_string()).collect();
            let observed = format!("{}; lengths {}", statuses(&completions), lengths.join(", "));
            end.question("Q05", &format!("what came of {what}"), observed);
        }
    }
    end.meet()
}

/// Transitions to RTR that the client asks for and should not get. Nothing is tried twice.
pub(crate) fn refusals(end: &mut End) -> Result<(), Broken> {
    let wanted = Wanted::default();
    let own = end.rtr_source();
    let length = end.opened.port(1).map_or(0, |(port, _)| port.gid_tbl_len.clamp(0, 64));
    let find = |end: &End, right: &dyn Fn(GidKind) -> bool| {
        (0..length).find(|&index| end.opened.gid(index).is_ok_and(|gid| right(Gid::from_bytes(gid).kind())))
    };
    let empty = find(end, &|kind| kind == GidKind::Zero);
    let other = find(end, &|kind| kind != own && matches!(kind, GidKind::Ipv4Mapped | GidKind::LinkLocal));
    let cases = [
        ("F207", "from an index that holds no GID", libc::EINVAL, empty, Mask::empty()),
        (
            "F222",
            "with the timers of RC in the mask",
            libc::EINVAL,
            Some(-1),
            Mask::MIN_RNR_TIMER | Mask::MAX_DEST_RD_ATOMIC,
        ),
        ("F205", "from a GID of another kind than the peer's", libc::ETIMEDOUT, other, Mask::empty()),
    ];
    for (id, what, expected, index, more) in cases {
        let connection = end.prepare(&wanted)?;
        let init = end.to_init(&connection.pair, 0);
        if !init.is_ok() {
            return Err(Broken::Here(format!("ibv_modify_qp to INIT: {init}")));
        }
        if !end.is_server() {
            let (mut attributes, mask) = end.rtr(connection.peer, &wanted);
            match index {
                Some(index) => {
                    if let Ok(index) = u8::try_from(index) {
                        attributes.ah_attr.grh.sgid_index = index;
                    }
                    attributes.min_rnr_timer = 12;
                    let answer = connection.pair.modify(attributes, mask | more);
                    end.answers(id, &format!("to RTR {what}"), Some(expected), answer);
                }
                None => end.question("Q03", &format!("to RTR {what}"), {
                    format!("not tried ({} is expected): there is no such entry", Errno::from_raw(expected).name())
                }),
            }
        }
        end.meet()?;
    }
    Ok(())
}
