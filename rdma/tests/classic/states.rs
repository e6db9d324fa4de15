//! The states of a queue pair, and what can be done in each.

use super::end::{End, Shape, connected, two};
use rdma_sys::{ibv_qp_state as state, ibv_wc_status as status};

#[test]
fn receives_are_posted_from_init_on() {
    let two = two(Shape::default());
    let (a, b) = (&two.a, &two.b);
    assert_eq!(a.post_recv(0, 0, 64), libc::EINVAL);
    assert_eq!(a.to_init(), 0);
    assert_eq!(a.post_recv(1, 0, 64), 0);
    assert_eq!(a.to_rtr(b, b.number()), 0);
    assert_eq!(a.post_recv(2, 64, 64), 0);
    assert_eq!(a.to_rts(), 0);
    assert_eq!(a.post_recv(3, 128, 64), 0);
    // All of them receive.
    for step in [b.to_init(), b.to_rtr(a, a.number()), b.to_rts()] {
        assert_eq!(step, 0);
    }
    for token in 1..=3 {
        assert_eq!(b.post_send(token, 0, 64), 0);
        a.has_received(token, 64);
        b.has_sent(token);
    }
}

#[test]
fn sends_are_posted_from_rts_on() {
    let two = two(Shape::default());
    let (a, b) = (&two.a, &two.b);
    assert_eq!(a.post_send(0, 0, 64), libc::EINVAL);
    assert_eq!(a.to_init(), 0);
    assert_eq!(a.post_send(1, 0, 64), libc::EINVAL);
    assert_eq!(a.to_rtr(b, b.number()), 0);
    assert_eq!(a.post_send(2, 0, 64), libc::EINVAL);
}

#[test]
fn no_state_is_left_out() {
    let two = two(Shape::default());
    let (a, b) = (&two.a, &two.b);
    assert_eq!(a.to_rtr(b, b.number()), libc::EINVAL);
    assert_eq!(a.state(), state::IBV_QPS_RESET);
    assert_eq!(a.to_init(), 0);
    assert_eq!(a.to_rts(), libc::EINVAL);
    assert_eq!(a.state(), state::IBV_QPS_INIT);
}

/// What was posted comes back in order.
#[test]
fn the_error_state_flushes() {
    let two = connected(Shape::default());
    let a = &two.a;
    for token in 0..3 {
        assert_eq!(a.post_recv(token, 0, 64), 0);
    }
    assert_eq!(a.to(state::IBV_QPS_ERR), 0);
    for token in 0..3 {
        let wc = a.received();
        assert_eq!((wc.wr_id, wc.status), (token, status::IBV_WC_WR_FLUSH_ERR));
    }
    assert_eq!(a.post_send(9, 0, 64), 0);
    let wc = a.sent();
    assert_eq!((wc.wr_id, wc.status), (9, status::IBV_WC_WR_FLUSH_ERR));
}

/// A receive that is posted in ERR is refused, flushed, or kept: it never succeeds.
#[test]
fn a_receive_in_the_error_state() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    assert_eq!(a.to(state::IBV_QPS_ERR), 0);
    let refused = a.post_recv(1, 0, 64);
    assert!(refused == 0 || refused == libc::EINVAL, "{refused}");
    assert_eq!(b.post_send(2, 0, 64), 0);
    b.has_sent(2);
    super::end::settle();
    assert!(End::poll(a.recv_cq).iter().all(|wc| wc.status == status::IBV_WC_WR_FLUSH_ERR));
}

/// Back to RESET, and connected once more.
#[test]
fn after_an_error_comes_reset() {
    let two = connected(Shape::default());
    let (a, b) = (&two.a, &two.b);
    for end in [a, b] {
        assert_eq!(end.to(state::IBV_QPS_ERR), 0);
        assert_eq!(end.to(state::IBV_QPS_RESET), 0);
        assert_eq!(end.state(), state::IBV_QPS_RESET);
    }
    two.connect();
    a.fill(0, b"again");
    assert_eq!(b.post_recv(1, 0, 64), 0);
    assert_eq!(a.post_send(2, 0, 5), 0);
    b.has_received(1, 5);
    a.has_sent(2);
    assert_eq!(b.bytes(0, 5), b"again");
}
