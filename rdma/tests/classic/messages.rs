//! Which message meets which receive, and what becomes of the others.

use super::end::{End, MEMORY, Shape, connected, settle, two};
use crate::support::pattern;
use rdma_sys::{self as sys, ibv_qp_state as state, ibv_wc_opcode as opcode, ibv_wc_status as status};

/// It succeeds, and is gone. The next one goes to the next receive.
#[test]
fn no_receive() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    a.fill(0, b"onetwo");
    assert_eq!(a.post_send(1, 0, 3), 0);
    a.has_sent(1);
    settle();
    assert_eq!(b.post_recv(10, 0, 64), 0);
    assert_eq!(a.post_send(2, 3, 3), 0);
    a.has_sent(2);
    b.has_received(10, 3);
    assert_eq!(b.bytes(0, 3), b"two");
    for end in [a, b] {
        assert_eq!(end.state(), state::IBV_QPS_RTS);
    }
}

/// The receiver fails with all its receives; the sender knows nothing of it, and what it sends succeeds.
#[test]
fn longer_than_the_receive() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    b.fill(0, &[7; 256]);
    for token in 0..3 {
        assert_eq!(b.post_recv(token, 0, 100), 0);
    }
    assert_eq!(a.post_send(1, 0, 101), 0);
    a.has_sent(1);
    let wc = b.received();
    assert_eq!(wc.wr_id, 0);
    assert!(![status::IBV_WC_SUCCESS, status::IBV_WC_WR_FLUSH_ERR].contains(&wc.status), "{:?}", wc.status);
    for token in 1..3 {
        let wc = b.received();
        assert_eq!((wc.wr_id, wc.status), (token, status::IBV_WC_WR_FLUSH_ERR));
    }
    b.fails();
    assert_eq!(b.bytes(100, 156), [7; 156], "written past the receive");
    assert_eq!(a.state(), state::IBV_QPS_RTS);
    assert_eq!(a.post_send(2, 0, 8), 0);
    a.has_sent(2);
}

#[test]
fn shorter_than_the_receive() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    a.fill(0, b"short");
    b.fill(0, &[7; 64]);
    assert_eq!(b.post_recv(1, 0, 64), 0);
    assert_eq!(a.post_send(2, 0, 5), 0);
    b.has_received(1, 5);
    a.has_sent(2);
    assert_eq!(b.bytes(0, 5), b"short");
    assert_eq!(b.bytes(5, 59), [7; 59]);
}

#[test]
fn empty() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    b.fill(0, &[7; 64]);
    assert_eq!(b.post_recv(1, 0, 64), 0);
    assert_eq!(a.post_send(2, 0, 0), 0);
    b.has_received(1, 0);
    a.has_sent(2);
    assert_eq!(b.bytes(0, 64), [7; 64]);
}

/// In network order, with the flag that says so.
#[test]
fn immediate_data() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    assert_eq!(b.post_recv(1, 0, 64), 0);
    let posted = a.post_send_with(2, a.sge(0, 8), |wr| {
        wr.opcode = sys::ibv_wr_opcode::IBV_WR_SEND_WITH_IMM;
        wr.imm_data = 0xdead_beef_u32.to_be();
    });
    assert_eq!(posted, 0);
    let wc = b.has_received(1, 8);
    assert_eq!(wc.opcode, opcode::IBV_WC_RECV);
    assert_ne!(wc.wc_flags & sys::IBV_WC_WITH_IMM, 0);
    assert_eq!(wc.imm_data, 0xdead_beef_u32.to_be());
    a.has_sent(2);
    // Without it the flag is not there.
    assert_eq!(b.post_recv(3, 0, 64), 0);
    assert_eq!(a.post_send(4, 0, 8), 0);
    assert_eq!(b.has_received(3, 8).wc_flags & sys::IBV_WC_WITH_IMM, 0);
    a.has_sent(4);
}

/// Messages of several packets, of 1024 bytes each.
#[test]
fn longer_than_a_packet() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    for (token, length) in [1024, 1025, 5000, MEMORY].into_iter().enumerate() {
        let token = token as u64;
        let bytes = pattern(token, length);
        a.fill(0, &bytes);
        assert_eq!(b.post_recv(token, 0, length), 0);
        assert_eq!(a.post_send(token, 0, length), 0);
        b.has_received(token, length);
        a.has_sent(token);
        assert!(b.bytes(0, length) == bytes, "{length}");
    }
}

/// Up to what was granted, with no need of a key, and with bytes that may change at once.
#[test]
fn inline() {
    let two = connected(Shape { inline: 32, ..Shape::default() });
    let (a, b) = (&two.a, &two.b);
    let granted = a.granted().max_inline_data as usize;
    assert!(granted >= 32);
    let flags = sys::IBV_SEND_SIGNALED | sys::IBV_SEND_INLINE;
    let bytes = pattern(3, granted);
    a.fill(0, &bytes);
    assert_eq!(b.post_recv(1, 0, granted), 0);
    let keyless = sys::ibv_sge { lkey: 0xdead, ..a.sge(0, granted) };
    assert_eq!(a.post_send_with(2, keyless, |wr| wr.send_flags = flags), 0);
    a.fill(0, &vec![0; granted]);
    b.has_received(1, granted);
    a.has_sent(2);
    assert_eq!(b.bytes(0, granted), bytes);
    for length in [granted + 1, 4096] {
        let refused = a.post_send_with(3, a.sge(0, length), |wr| wr.send_flags = flags);
        assert_eq!(refused, libc::EINVAL, "{length}");
    }
}

#[test]
fn only_what_is_signaled_completes() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    for token in 0..4 {
        assert_eq!(b.post_recv(token, 0, 64), 0);
    }
    for token in 0..3 {
        assert_eq!(a.post_send_with(token, a.sge(0, 8), |wr| wr.send_flags = 0), 0);
    }
    assert_eq!(a.post_send(3, 0, 8), 0);
    a.has_sent(3);
    for token in 0..4 {
        b.has_received(token, 8);
    }
    assert!(End::poll(a.send_cq).is_empty());
}

/// Sent into nothing, with success.
#[test]
fn a_peer_that_is_not_ready() {
    let two = two(Shape::default());
    let (a, b) = (&two.a, &two.b);
    for step in [a.to_init(), a.to_rtr(b, b.number()), a.to_rts()] {
        assert_eq!(step, 0);
    }
    assert_eq!(a.post_send(1, 0, 8), 0);
    a.has_sent(1);
    assert_eq!(a.state(), state::IBV_QPS_RTS);
    assert_eq!(b.state(), state::IBV_QPS_RESET);
}

/// A number that no queue pair has.
#[test]
fn a_peer_that_does_not_exist() {
    let two = two(Shape::default());
    let (a, b) = (&two.a, &two.b);
    for step in [a.to_init(), a.to_rtr(b, 0x00ab_cdef), a.to_rts()] {
        assert_eq!(step, 0);
    }
    assert_eq!(a.post_send(1, 0, 8), 0);
    a.has_sent(1);
    assert_eq!(a.state(), state::IBV_QPS_RTS);
}
