//! Connections that begin or end otherwise, and events.

use super::messages::{one, posted, succeeded};
use crate::end::{Broken, End, LOOK, SOON, Wanted, pattern, statuses};
use crate::raw::Queue;
use rdma_sys::{self as sys, QpAttrMask as Mask, ibv_qp_state as state};
use std::time::Duration;

/// The client sends while the server's queue pair is in RESET.
pub(crate) fn early(end: &mut End) -> Result<(), Broken> {
    let wanted = Wanted::default();
    let connection = end.prepare(&wanted)?;
    if !end.is_server() {
        end.rise(&connection, &wanted)?;
        end.write(0, &pattern(1, 64));
        posted(connection.pair.post_send(&end.region, 1, (0, 64)))?;
        let completions = connection.completions(1, SOON)?;
        end.fact(
            "F508",
            "a send to a peer that is not ready",
            "SUCCESS",
            statuses(&completions),
            succeeded(&completions, 1),
        );
    }
    end.meet()?;
    if end.is_server() {
        end.rise(&connection, &wanted)?;
        posted(connection.pair.post_recv(&end.region, 1, (0, 64)))?;
        let arrived = connection.completions(1, LOOK)?;
        end.fact("F508", "what was sent too early", "no completion", statuses(&arrived), arrived.is_empty());
    }
    end.meet()?;
    if !end.is_server() {
        end.write(0, &pattern(2, 64));
        posted(connection.pair.post_send(&end.region, 2, (0, 64)))?;
    }
    let completions = connection.completions(1, SOON)?;
    if end.is_server() {
        let good = succeeded(&completions, 1) && end.read(0, 64) == pattern(2, 64);
        let observed = if good { "the second message".to_owned() } else { statuses(&completions) };
        end.fact("F508", "what the receive gets", "the second message", observed, good);
    }
    end.meet()
}

pub(crate) fn errors(end: &mut End) -> Result<(), Broken> {
    let wanted = Wanted::default();
    let connection = end.connect(&wanted)?;
    let pair = &connection.pair;
    let to = |next| pair.modify(sys::ibv_qp_attr { qp_state: next, ..Default::default() }, Mask::STATE);
    if !end.is_server() {
        for id in [1, 2] {
            posted(pair.post_recv(&end.region, id, (0, 64)))?;
        }
        posted(pair.post_send(&end.region, 3, (0, 64)))?;
        let answer = to(state::IBV_QPS_ERR);
        end.answers("F228", "from RTS to ERR", None, answer);
        let flushed = connection.completions(3, SOON)?;
        let all = flushed.len() == 3 && flushed.iter().all(|wc| wc.status == sys::ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
        let what = "two receives and a send that waits, in ERR";
        end.fact("F611", what, "3 × WR_FLUSH_ERR", statuses(&flushed), all);
    }
    end.meet()?;
    let answer = to(state::IBV_QPS_RESET);
    end.answers("F228", "to RESET", None, answer);
    end.meet()?;
    end.rise(&connection, &wanted)?;
    end.meet()?;
    one(end, &connection, 3, 64, 64, "F228")
}

pub(crate) fn events(end: &mut End) -> Result<(), Broken> {
    match Queue::with_channel(&end.opened, 64) {
        Ok(_) => end.question("Q01", "making a completion channel, and a queue with it", "success"),
        Err(answer) => {
            end.question("Q01", "making a completion channel, and a queue with it", answer);
            return Ok(());
        }
    }
    let connection = end.connect(&Wanted { channel: true, ..Wanted::default() })?;
    let answer = connection.queue.request_notification();
    end.question("Q01", "ibv_req_notify_cq", answer);
    if end.is_server() {
        posted(connection.pair.post_recv(&end.region, 1, (0, 64)))?;
    }
    end.meet()?;
    if !end.is_server() {
        posted(connection.pair.post_send(&end.region, 1, (0, 64)))?;
    }
    let observed = match connection.queue.event(Duration::from_millis(500)) {
        Ok(true) => "an event".to_owned(),
        Ok(false) => "no event within half a second".to_owned(),
        Err(text) => text,
    };
    end.question("Q01", "an event for a completion", observed);
    let completions = connection.completions(1, SOON)?;
    end.question("Q01", "the completion itself", statuses(&completions));
    end.meet()
}
