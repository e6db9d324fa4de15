//! Messages and their receives. The client sends to the server.

use crate::end::{Broken, Connection, End, FRAME, LOOK, SOON, Wanted, name, pattern, statuses};
use crate::raw::Answer;
use rdma_sys as sys;

const SUCCESS: sys::ibv_wc_status = sys::ibv_wc_status::IBV_WC_SUCCESS;

/// A post that the step cannot do without.
pub(super) fn posted(answer: Answer) -> Result<(), Broken> {
    if answer.is_ok() { Ok(()) } else { Err(Broken::Here(format!("a post was refused: {answer}"))) }
}

pub(super) fn succeeded(completions: &[sys::ibv_wc], count: usize) -> bool {
    completions.len() == count && completions.iter().all(|wc| wc.status == SUCCESS)
}

/// A completion that did not come may come later, for something else: the connection is of no use any more.
fn come(completions: &[sys::ibv_wc]) -> Result<(), Broken> {
    if completions.is_empty() {
        return Err(Broken::Here(format!("no completion within {SOON:?}: the rest is left out")));
    }
    Ok(())
}

/// One message of `length` bytes into a receive of `room`, whose receive is posted before. Notes what both ends saw.
pub(super) fn one(
    end: &mut End,
    on: &Connection,
    seed: usize,
    length: usize,
    room: usize,
    id: &str,
) -> Result<(), Broken> {
    let bytes = pattern(seed, length);
    if end.is_server() {
        end.write(0, &vec![0; room + 1]);
        posted(on.pair.post_recv(&end.region, 1, (0, room)))?;
    }
    end.meet()?;
    if end.is_server() {
        let received = on.completions(1, SOON)?;
        let whole = end.read(0, length) == bytes && end.read(length, room - length + 1).iter().all(|&byte| byte == 0);
        let observed = match &received[..] {
            [wc] if wc.status == SUCCESS => {
                format!(
                    "{} bytes, {}",
                    wc.byte_len,
                    if whole { "as they were sent" } else { "and not as they were sent" }
                )
            }
            _ => statuses(&received),
        };
        let expected = format!("{length} bytes, as they were sent");
        end.equal(id, &format!("a message of {length} bytes into a receive of {room}"), expected, observed);
        come(&received)?;
    } else {
        end.write(0, &bytes);
        posted(on.pair.post_send(&end.region, 2, (0, length)))?;
        let sent = on.completions(1, SOON)?;
        let observed = statuses(&sent);
        end.fact(id, &format!("sending {length} bytes"), "SUCCESS", observed, succeeded(&sent, 1));
        come(&sent)?;
    }
    end.meet()
}

pub(crate) fn lengths(end: &mut End) -> Result<(), Broken> {
    let connection = end.connect(&Wanted::default())?;
    for (seed, length) in [1, 2, 64, 4095, 4096, 4097, 8192, 12_289, 65_536].into_iter().enumerate() {
        one(end, &connection, seed, length, length, "F507")?;
    }
    one(end, &connection, 20, 100, FRAME, "F503")?;
    one(end, &connection, 21, FRAME + 1, 2 * FRAME, "F503")?;
    fields(end, &connection)?;
    match connection.pair.data_in_order() {
        Some(answer) => end.equal("F512", "ibv_query_qp_data_in_order", 0, answer),
        None => end.question("Q02", "ibv_query_qp_data_in_order", "the library does not have it"),
    }
    Ok(())
}

/// What else than the id, the status and the length is filled in.
fn fields(end: &mut End, on: &Connection) -> Result<(), Broken> {
    if end.is_server() {
        posted(on.pair.post_recv(&end.region, 0x1234_5678_9abc_def0, (0, 64)))?;
    }
    end.meet()?;
    if !end.is_server() {
        posted(on.pair.post_send(&end.region, 0x0fed_cba9_8765_4321, (0, 64)))?;
    }
    let completions = on.completions(1, SOON)?;
    let (id, opcode) = if end.is_server() {
        (0x1234_5678_9abc_def0_u64, sys::ibv_wc_opcode::IBV_WC_RECV)
    } else {
        (0x0fed_cba9_8765_4321, sys::ibv_wc_opcode::IBV_WC_SEND)
    };
    if let [wc] = completions[..] {
        end.equal("F608", "the id of a completion", format!("{id:#x}"), format!("{:#x}", wc.wr_id));
        end.equal("F608", "its opcode", opcode.0, wc.opcode.0);
        end.equal("F608", "its queue pair", on.pair.number(), wc.qp_num);
        end.question("Q06", "byte_len, vendor_err, src_qp, wc_flags, pkey_index, slid, sl of a success", {
            format!(
                "{}, {:#x}, {:#x}, {:#x}, {}, {}, {}",
                wc.byte_len, wc.vendor_err, wc.src_qp, wc.wc_flags, wc.pkey_index, wc.slid, wc.sl
            )
        });
    } else {
        end.fact("F608", "the id of a completion", "a completion", statuses(&completions), false);
    }
    end.meet()
}

pub(crate) fn waiting(end: &mut End) -> Result<(), Broken> {
    let connection = end.connect(&Wanted::default())?;
    for count in [1, 8] {
        let id = if count == 1 { "F505" } else { "F506" };
        let part = |index: usize| (index * FRAME, 100);
        if !end.is_server() {
            for index in 0..count {
                end.write(index * FRAME, &pattern(index, 100));
                posted(connection.pair.post_send(&end.region, index as u64, part(index)))?;
            }
            let early = connection.completions(1, LOOK)?;
            end.fact(
                "F505",
                &format!("{count} sent, before a receive is posted"),
                "no completion",
                statuses(&early),
                early.is_empty(),
            );
        }
        end.meet()?;
        if end.is_server() {
            end.write(0, &vec![0; count * FRAME]);
            for index in 0..count {
                posted(connection.pair.post_recv(&end.region, index as u64, part(index)))?;
            }
        }
        let completions = connection.completions(count, SOON)?;
        let in_order = completions.iter().enumerate().all(|(index, wc)| wc.wr_id == index as u64);
        let whole = !end.is_server() || (0..count).all(|index| end.read(index * FRAME, 100) == pattern(index, 100));
        let good = succeeded(&completions, count) && in_order && whole;
        let observed = if good { "all, in order".to_owned() } else { statuses(&completions) };
        let what = if end.is_server() { "received" } else { "completed" };
        end.fact(id, &format!("of {count} that waited, {what}"), "all, in order", observed, good);
        end.meet()?;
    }
    Ok(())
}

pub(crate) fn frames(end: &mut End) -> Result<(), Broken> {
    for (sent, room) in [(2 * FRAME, FRAME), (FRAME, 2 * FRAME)] {
        let connection = end.connect(&Wanted::default())?;
        let what = format!("{} frames into a receive of {}", sent / FRAME, room / FRAME);
        if end.is_server() {
            posted(connection.pair.post_recv(&end.region, 1, (0, room)))?;
        }
        end.meet()?;
        if !end.is_server() {
            posted(connection.pair.post_send(&end.region, 2, (0, sent)))?;
        }
        let completions = connection.completions(1, SOON)?;
        let (side, expected) = if end.is_server() {
            ("the receive", sys::ibv_wc_status::IBV_WC_LOC_LEN_ERR)
        } else {
            ("the send", SUCCESS)
        };
        let agrees = completions.len() == 1 && completions[0].status == expected;
        end.fact("F501", &format!("{what}: {side}"), name(expected), statuses(&completions), agrees);
        if let (true, [wc]) = (end.is_server(), &completions[..]) {
            end.question("Q06", "byte_len, vendor_err, opcode, qp_num of a failure", {
                format!("{}, {:#x}, {}, {:#x}", wc.byte_len, wc.vendor_err, wc.opcode.0, wc.qp_num)
            });
        }
        // Somewhere else in the memory, so that what comes late cannot be taken for it.
        let part = (16 * FRAME, 64);
        if end.is_server() {
            end.write(part.0, &[0; 64]);
            posted(connection.pair.post_recv(&end.region, 3, part))?;
        }
        end.meet()?;
        if !end.is_server() {
            end.write(part.0, &pattern(9, 64));
            posted(connection.pair.post_send(&end.region, 4, part))?;
        }
        let next = connection.completions(1, SOON)?;
        let id = if end.is_server() { 3 } else { 4 };
        let whole = !end.is_server() || end.read(part.0, 64) == pattern(9, 64);
        let good = succeeded(&next, 1) && next[0].wr_id == id && whole;
        let observed = if good { "SUCCESS, paired with its own".to_owned() } else { statuses(&next) };
        end.fact("F502", &format!("the message after {what}"), "SUCCESS, paired with its own", observed, good);
        end.meet()?;
    }
    Ok(())
}
