//! The four calls that no library exports: they go through the table in the context of their object, and say so where
//! that table has no entry.

use rdma_sys::*;
use std::cell::{Cell, RefCell};
use std::mem::zeroed;
use std::ptr::{from_mut, null_mut};

/// A device of our own making: its context, and one queue of each kind.
struct Device {
    context: ibv_context,
    qp: ibv_qp,
    cq: ibv_cq,
}

impl Device {
    fn new(fill: impl FnOnce(&mut ibv_context_ops)) -> Device {
        // SAFETY: pointers, options of function pointers and integers: all zero is a value of each.
        let mut device = unsafe { Device { context: zeroed(), qp: zeroed(), cq: zeroed() } };
        fill(&mut device.context.ops);
        device
    }

    /// The queues, pointing to the context where it lies now. They are good until the device is moved or borrowed.
    fn queues(&mut self) -> (*mut ibv_qp, *mut ibv_cq) {
        let context = &raw mut self.context;
        self.qp.context = context;
        self.cq.context = context;
        (&raw mut self.qp, &raw mut self.cq)
    }

    /// What each of the four calls returns, in the order send, receive, poll, notify.
    fn call_all(&mut self) -> [i32; 4] {
        let (qp, cq) = self.queues();
        // SAFETY: both queues point to a live context, whose functions are those of this file: they look at no argument.
        unsafe {
            [
                ibv_post_send(qp, null_mut(), null_mut()),
                ibv_post_recv(qp, null_mut(), null_mut()),
                ibv_poll_cq(cq, 1, null_mut()),
                ibv_req_notify_cq(cq, 0),
            ]
        }
    }
}

thread_local! {
    /// What the functions below were called with, as numbers. Of the thread, so that tests do not mix.
    static CALLS: RefCell<Vec<[usize; 4]>> = const { RefCell::new(Vec::new()) };
    static ANSWER: Cell<i32> = const { Cell::new(0) };
}

fn called(name: u8, a: usize, b: usize, c: usize) -> i32 {
    CALLS.with_borrow_mut(|calls| calls.push([name.into(), a, b, c]));
    ANSWER.get()
}

unsafe extern "C" fn send(qp: *mut ibv_qp, wr: *mut ibv_send_wr, bad: *mut *mut ibv_send_wr) -> i32 {
    called(b's', qp.addr(), wr.addr(), bad.addr())
}

unsafe extern "C" fn recv(qp: *mut ibv_qp, wr: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr) -> i32 {
    called(b'r', qp.addr(), wr.addr(), bad.addr())
}

unsafe extern "C" fn poll(cq: *mut ibv_cq, count: i32, wc: *mut ibv_wc) -> i32 {
    called(b'p', cq.addr(), count as usize, wc.addr())
}

unsafe extern "C" fn notify(cq: *mut ibv_cq, solicited_only: i32) -> i32 {
    called(b'n', cq.addr(), solicited_only as usize, 0)
}

fn all(ops: &mut ibv_context_ops) {
    ops.post_send = Some(send);
    ops.post_recv = Some(recv);
    ops.poll_cq = Some(poll);
    ops.req_notify_cq = Some(notify);
}

#[test]
fn arguments_and_answers_pass_through_unchanged() {
    let mut device = Device::new(all);
    let (qp, cq) = device.queues();
    let (mut send_wr, mut recv_wr, mut wc) = (ibv_send_wr::default(), ibv_recv_wr::default(), ibv_wc::default());
    let (mut bad_send, mut bad_recv) = (null_mut(), null_mut());
    let (send_wr, recv_wr, wc) = (from_mut(&mut send_wr), from_mut(&mut recv_wr), from_mut(&mut wc));
    let (bad_send, bad_recv) = (from_mut(&mut bad_send), from_mut(&mut bad_recv));
    // A success or a count, and the two styles of an error.
    for answer in [0, 7, libc::ENOMEM, -libc::ENOMEM] {
        ANSWER.set(answer);
        // SAFETY: both queues point to a live context, whose functions look at no argument's target.
        let answers = unsafe {
            [
                ibv_post_send(qp, send_wr, bad_send),
                ibv_post_recv(qp, recv_wr, bad_recv),
                ibv_poll_cq(cq, 16, wc),
                ibv_req_notify_cq(cq, 1),
            ]
        };
        assert_eq!(answers, [answer; 4]);
        let expected = [
            [b's'.into(), qp.addr(), send_wr.addr(), bad_send.addr()],
            [b'r'.into(), qp.addr(), recv_wr.addr(), bad_recv.addr()],
            [b'p'.into(), cq.addr(), 16, wc.addr()],
            [b'n'.into(), cq.addr(), 1, 0],
        ];
        assert_eq!(CALLS.take(), expected);
    }
}

#[test]
fn a_device_without_an_operation_does_not_support_it() {
    let unsupported = libc::EOPNOTSUPP;
    let answers = Device::new(|_| {}).call_all();
    // A count of completions is never negative, so that is where poll's error goes.
    assert_eq!(answers, [unsupported, unsupported, -unsupported, unsupported]);
    assert!(answers.iter().all(|answer| errno_of(*answer, || panic!("no -1 here")) == Some(unsupported)));
}

/// Each call asks for its own entry: with one missing, the other three work.
#[test]
fn each_call_has_an_entry_of_its_own() {
    let takes: [fn(&mut ibv_context_ops); 4] = [
        |ops| ops.post_send = None,
        |ops| ops.post_recv = None,
        |ops| ops.poll_cq = None,
        |ops| ops.req_notify_cq = None,
    ];
    for (index, take) in takes.into_iter().enumerate() {
        let mut device = Device::new(|ops| {
            all(ops);
            take(ops);
        });
        let mut expected = [0; 4];
        expected[index] = if index == 2 { -libc::EOPNOTSUPP } else { libc::EOPNOTSUPP };
        assert_eq!(device.call_all(), expected);
        assert_eq!(CALLS.take().len(), 3);
    }
}
