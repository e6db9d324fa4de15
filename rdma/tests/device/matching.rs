//! Which receive a send meets, and what becomes of both (Apple TN3205; reports by adurham/exo, SQCU/mesh,
//! jonathan308/ThunderMLX, ggml-org/llama.cpp).

use crate::support::fabrics;
use crate::support::raw::{self, Host, Two, two, two_with};
use crate::support::{SHORT, pattern};
use rdma_sys::{self as sys, QpAttrMask as Mask, ibv_qp_state as state, ibv_wc_status as status};

const FRAME: usize = 4096;

/// Every length around a border, both when the receive is first and when it is late.
#[test]
fn messages_arrive_whole_whoever_is_first() {
    let lengths =
        [1, 2, 7, 31, 32, 33, 47, 48, 49, 63, 64, 65, 1023, 1024, 1025, 4095, 4096, 4097, 8191, 8192, 8193, 65536];
    let two = two_with(fabrics::mesh(2), 1023, 1 << 17);
    for (seed, &length) in lengths.iter().enumerate() {
        for receive_first in [true, false] {
            let bytes = pattern(seed as u64, length);
            two.mem_a.write(0, &bytes);
            two.mem_b.write(0, &vec![0; length + 1]);
            let receive = || assert_eq!(two.b.post_recv(two.qp_b, 11, two.mem_b.sge(0, length)), 0);
            let send = || assert_eq!(two.a.post_send(two.qp_a, 22, two.mem_a.sge(0, length)), 0);
            if receive_first {
                receive();
                send();
            } else {
                send();
                receive();
            }
            let (sent, received) = (two.a.wait(1)[0], two.b.wait(1)[0]);
            assert_eq!(
                (sent.wr_id, sent.status, sent.opcode),
                (22, status::IBV_WC_SUCCESS, sys::ibv_wc_opcode::IBV_WC_SEND)
            );
            assert_eq!((received.wr_id, received.status), (11, status::IBV_WC_SUCCESS));
            assert_eq!(received.opcode, sys::ibv_wc_opcode::IBV_WC_RECV);
            assert_eq!(received.byte_len as usize, length);
            assert_eq!(received.qp_num, raw::number(two.qp_b));
            assert!(two.mem_b.read(0, length) == bytes, "{length} {receive_first}");
            assert_eq!(two.mem_b.read(length, 1), [0], "nothing behind the message");
        }
    }
}

/// Byte-exact lengths within the last frame are kept (SQCU), so a shorter message of as many frames is fine.
#[test]
fn a_shorter_message_of_as_many_frames_fits() {
    let two = two();
    two.mem_a.write(0, &[9; 2 * FRAME]);
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 2 * FRAME)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, FRAME + 1)), 0);
    assert_eq!(two.b.wait(1)[0].byte_len as usize, FRAME + 1);
    assert_eq!(two.mem_b.read(FRAME, 2), [9, 0]);
}

/// A SEND without a receive waits: the opposite of classic UC.
#[test]
fn a_send_waits_for_its_receive() {
    let two = two();
    two.mem_a.write(0, b"first");
    assert_eq!(two.a.post_send(two.qp_a, 1, two.mem_a.sge(0, 5)), 0);
    std::thread::sleep(SHORT);
    assert!(two.a.poll().is_empty() && two.b.poll().is_empty());
    assert_eq!(two.b.post_recv(two.qp_b, 2, two.mem_b.sge(0, 64)), 0);
    assert_eq!(two.a.wait(1)[0].wr_id, 1);
    assert_eq!(two.b.wait(1)[0].byte_len, 5);
    assert_eq!(two.mem_b.read(0, 5), b"first");
}

/// However many wait, of whatever length: all arrive, in order.
#[test]
fn many_waiting_sends_arrive_in_order() {
    for length in [1_usize, 4095, 4096, 4097, 65536] {
        let frames = length.div_ceil(FRAME);
        for count in [1, 2, 5, 1023 / frames] {
            let two = two_with(fabrics::mesh(2), 1023, 1 << 16);
            for id in 0..count as u64 {
                assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, length)), 0);
            }
            for id in 0..count as u64 {
                assert_eq!(two.b.post_recv(two.qp_b, 1000 + id, two.mem_b.sge(0, length)), 0);
            }
            let ids = |completions: Vec<sys::ibv_wc>| completions.iter().map(|wc| wc.wr_id).collect::<Vec<_>>();
            assert_eq!(ids(two.a.wait(count)), (0..count as u64).collect::<Vec<_>>());
            assert_eq!(ids(two.b.wait(count)), (1000..1000 + count as u64).collect::<Vec<_>>());
        }
    }
}

/// Counts of frames that differ: LOC_LEN_ERR at the receiver, success at the sender, both stay RTS, and the following
/// messages pair one to one.
#[test]
fn frame_counts_must_be_equal() {
    for (sent, posted) in [(4 * FRAME, FRAME), (4 * FRAME, 8 * FRAME), (1, FRAME + 1), (FRAME + 1, 1)] {
        for receive_first in [true, false] {
            let two = two();
            let receive = || assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, posted)), 0);
            if receive_first {
                receive();
            }
            two.mem_a.write(0, &[5; 4 * FRAME]);
            assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, sent)), 0);
            if !receive_first {
                receive();
            }
            assert_eq!(two.b.wait(1)[0].status, status::IBV_WC_LOC_LEN_ERR, "{sent} {posted}");
            assert_eq!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
            assert!(two.mem_b.read(0, posted).iter().all(|&byte| byte == 0), "nothing is written");
            assert_eq!((two.a.state(two.qp_a), two.b.state(two.qp_b)), (state::IBV_QPS_RTS, state::IBV_QPS_RTS));
            assert_eq!(two.b.post_recv(two.qp_b, 3, two.mem_b.sge(0, 64)), 0);
            assert_eq!(two.a.post_send(two.qp_a, 4, two.mem_a.sge(0, 64)), 0);
            assert_eq!(two.b.wait(1)[0].status, status::IBV_WC_SUCCESS);
            assert_eq!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
        }
    }
}

/// Of as many frames, but longer than the receive: nothing goes past the end of it. Inferred.
#[test]
fn a_message_longer_than_its_receive_is_a_length_error() {
    let two = two();
    two.mem_a.write(0, &[5; FRAME]);
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 100)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 101)), 0);
    assert_eq!(two.b.wait(1)[0].status, status::IBV_WC_LOC_LEN_ERR);
    assert!(two.mem_b.read(0, 200).iter().all(|&byte| byte == 0));
}

/// Two queue pairs that are built, not connected.
fn unconnected() -> Two {
    let fabric = fabrics::mesh(2);
    let (mut a, mut b) = (Host::open(&fabric, 0), Host::open(&fabric, 1));
    let (mem_a, mem_b) = (a.memory(1 << 16), b.memory(1 << 16));
    let (qp_a, qp_b) = (a.queue_pair(64), b.queue_pair(64));
    Two { fabric, a, b, qp_a, qp_b, mem_a, mem_b }
}

/// A peer that is not there, not in RTR or RTS, or connected elsewhere: the frames are lost, and the send completes with
/// success.
#[test]
fn frames_to_nobody_are_lost() {
    let lost = |two: &Two| {
        assert_eq!(two.a.post_send(two.qp_a, 5, two.mem_a.sge(0, 64)), 0);
        let wc = two.a.wait(1)[0];
        assert_eq!((wc.wr_id, wc.status), (5, status::IBV_WC_SUCCESS));
    };
    // In RESET.
    let two = unconnected();
    two.a.connect(two.qp_a, &two.b, two.qp_b);
    lost(&two);
    // In INIT, with a receive posted: it is not that message's.
    assert_eq!(two.b.to_init(two.qp_b), 0);
    assert_eq!(two.b.post_recv(two.qp_b, 6, two.mem_b.sge(0, 64)), 0);
    lost(&two);
    // From RTR on it gets what is sent from now on.
    assert_eq!(two.b.to_rtr(two.qp_b, &two.a, two.qp_a), 0);
    assert!(two.b.poll().is_empty());
    assert_eq!(two.a.post_send(two.qp_a, 7, two.mem_a.sge(0, 64)), 0);
    assert_eq!((two.a.wait(1)[0].wr_id, two.b.wait(1)[0].wr_id), (7, 6));
    // In ERR.
    let to_err = sys::ibv_qp_attr { qp_state: state::IBV_QPS_ERR, ..Default::default() };
    assert_eq!(two.b.modify(two.qp_b, to_err, Mask::STATE), 0);
    lost(&two);
    // Destroyed.
    let mut two = two;
    let qp_b = two.qp_b;
    two.b.destroy(qp_b);
    lost(&two);
}

#[test]
fn a_peer_that_is_connected_elsewhere_gets_nothing() {
    let mut two = unconnected();
    let other = two.a.queue_pair(64);
    two.a.connect(two.qp_a, &two.b, two.qp_b);
    two.b.connect(two.qp_b, &two.a, other);
    assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 64)), 0);
    assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 64)), 0);
    assert_eq!(two.a.wait(1)[0].status, status::IBV_WC_SUCCESS);
    std::thread::sleep(SHORT);
    assert!(two.b.poll().is_empty());
    two.a.connect(other, &two.b, two.qp_b);
    assert_eq!(two.a.post_send(other, 3, two.mem_a.sge(0, 64)), 0);
    assert_eq!(two.b.wait(1)[0].wr_id, 1);
}

/// Sends that wait when their peer goes are lost then, too.
#[test]
fn waiting_sends_are_lost_with_their_peer() {
    let mut two = two();
    for id in 0..3 {
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 8192)), 0);
    }
    assert!(two.a.poll().is_empty());
    let qp_b = two.qp_b;
    two.b.destroy(qp_b);
    let completions = two.a.wait(3);
    assert!(completions.iter().all(|wc| wc.status == status::IBV_WC_SUCCESS));
}

/// Receives may be posted from INIT on (hellas-ai/thunderbolt-ibverbs and Aileuxe/MCDMA do so on Macs).
#[test]
fn receives_are_taken_from_init_on() {
    let two = unconnected();
    let post = |id| two.b.post_recv(two.qp_b, id, two.mem_b.sge(0, 64));
    assert_eq!(post(0), -libc::EINVAL, "RESET");
    assert_eq!(two.b.to_init(two.qp_b), 0);
    assert_eq!(post(1), 0, "INIT");
    assert_eq!(two.b.to_rtr(two.qp_b, &two.a, two.qp_a), 0);
    assert_eq!(post(2), 0, "RTR");
    assert_eq!(two.b.to_rts(two.qp_b), 0);
    assert_eq!(post(3), 0, "RTS");
    two.a.connect(two.qp_a, &two.b, two.qp_b);
    for id in 0..3 {
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 64)), 0);
    }
    assert_eq!(two.b.wait(3).iter().map(|wc| wc.wr_id).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn sends_are_taken_in_rts_only() {
    let two = unconnected();
    let post = || two.a.post_send(two.qp_a, 1, two.mem_a.sge(0, 64));
    assert_eq!(post(), -libc::EINVAL, "RESET");
    assert_eq!(two.a.to_init(two.qp_a), 0);
    assert_eq!(post(), -libc::EINVAL, "INIT");
    assert_eq!(two.a.to_rtr(two.qp_a, &two.b, two.qp_b), 0);
    assert_eq!(post(), -libc::EINVAL, "RTR");
    assert_eq!(two.a.to_rts(two.qp_a), 0);
    assert_eq!(post(), 0, "RTS");
}

/// Both directions at once, and a queue pair that goes through RESET begins anew.
#[test]
fn a_reconnected_pair_sees_nothing_old() {
    let two = two();
    for round in 0..5 {
        for id in 0..3 {
            assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 64)), 0);
            assert_eq!(two.a.post_recv(two.qp_a, 10 + id, two.mem_a.sge(4096, 64)), 0);
            assert_eq!(two.b.post_recv(two.qp_b, 20 + id, two.mem_b.sge(0, 8192)), 0);
        }
        let to_reset = sys::ibv_qp_attr { qp_state: state::IBV_QPS_RESET, ..Default::default() };
        for (host, qp) in [(&two.a, two.qp_a), (&two.b, two.qp_b)] {
            assert_eq!(host.modify(qp, to_reset, Mask::STATE), 0);
        }
        two.a.poll();
        two.b.poll();
        two.a.connect(two.qp_a, &two.b, two.qp_b);
        two.b.connect(two.qp_b, &two.a, two.qp_a);
        assert!(two.a.poll().is_empty() && two.b.poll().is_empty());
        two.mem_a.write(0, &[round; 4]);
        assert_eq!(two.b.post_recv(two.qp_b, 1, two.mem_b.sge(0, 64)), 0);
        assert_eq!(two.a.post_send(two.qp_a, 2, two.mem_a.sge(0, 4)), 0);
        assert_eq!((two.a.wait(1)[0].wr_id, two.b.wait(1)[0].wr_id), (2, 1));
        assert_eq!(two.mem_b.read(0, 4), [round; 4]);
    }
}

/// In ERR everything flushes, in order; what is posted later, too. As on classic verbs; inferred for Thunderbolt.
#[test]
fn err_flushes_in_order() {
    let two = two();
    for id in 0..4 {
        assert_eq!(two.a.post_recv(two.qp_a, id, two.mem_a.sge(0, 64)), 0);
    }
    for id in 10..12 {
        assert_eq!(two.a.post_send(two.qp_a, id, two.mem_a.sge(0, 64)), 0);
    }
    let to_err = sys::ibv_qp_attr { qp_state: state::IBV_QPS_ERR, ..Default::default() };
    assert_eq!(two.a.modify(two.qp_a, to_err, Mask::STATE), 0);
    assert_eq!(two.a.post_send(two.qp_a, 12, two.mem_a.sge(0, 64)), 0);
    assert_eq!(two.a.post_recv(two.qp_a, 4, two.mem_a.sge(0, 64)), 0);
    assert_eq!(two.a.post_send_flags(two.qp_a, 13, two.mem_a.sge(0, 64), 0), 0, "unsignaled, but an error");
    assert_eq!(two.a.modify(two.qp_a, to_err, Mask::STATE), 0, "idempotent");
    let completions = two.a.wait(9);
    assert!(completions.iter().all(|wc| wc.status == status::IBV_WC_WR_FLUSH_ERR), "{completions:?}");
    let of = |low: bool| completions.iter().map(|wc| wc.wr_id).filter(|&id| (id < 10) == low).collect::<Vec<_>>();
    assert_eq!(of(true), [0, 1, 2, 3, 4]);
    assert_eq!(of(false), [10, 11, 12, 13]);
}
