//! Destroying that fails: nothing that it would have protected is freed, and the error says so.
#![allow(unsafe_code)]

use super::provider::{Turn, plan, turn};
use crate::support::pair::{End, connect_devices};
use rdma::{ErrorKind, QueuePairBuilder};
use rdma_sys::ibv_qp_state as state;

fn shape(builder: QueuePairBuilder<'_>) -> QueuePairBuilder<'_> {
    builder.requests(8)
}

fn ends(turn: &Turn) -> [End; 2] {
    let devices = [turn.hostile.devices().unwrap().remove(0), turn.other.devices().unwrap().remove(0)];
    connect_devices([&devices[0], &devices[1]], 1 << 17, shape)
}

/// The device may still write: buffers, region, domain, context stay as they are.
#[test]
fn a_queue_pair_that_cannot_be_destroyed_keeps_its_memory() {
    for explicit in [true, false] {
        let turn = turn();
        let [mut a, mut b] = ends(&turn);
        a.post_recv(64, 1);
        plan().destroy_qp = Some(libc::EIO);
        let End { queue_pair, completions, region, domain, context } = a;
        if explicit {
            let error = queue_pair.close().unwrap_err();
            assert_eq!(error.failed_call(), Some("ibv_destroy_qp"));
            assert!(error.to_string().contains("leaked"), "{error}");
        } else {
            drop(queue_pair);
        }
        assert_eq!(region.available(), region.len() - 64, "the buffer stays in its slot");
        drop((completions, region, domain, context));
        let calls = plan().calls;
        assert_eq!((calls.dereg_mr, calls.dealloc_pd, calls.close), (0, 0, 0), "parents are leaked");
        // It is still there, indeed, and takes the message.
        b.post_send(b"late", 2);
        assert_eq!(b.success().token(), 2);
    }
}

#[test]
fn a_region_that_cannot_be_deregistered_keeps_its_memory() {
    for explicit in [true, false] {
        let turn = turn();
        let context = turn.hostile.devices().unwrap()[0].open().unwrap();
        let domain = context.protection_domain().unwrap();
        let region = domain.allocate(4096).unwrap();
        let address = region.buffer(4096).unwrap().as_ptr();
        plan().dereg_mr = Some(-libc::EBUSY);
        if explicit {
            let error = region.close().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Busy);
            assert!(error.to_string().contains("leaked"), "{error}");
        } else {
            drop(region);
        }
        // SAFETY: leaked, so still mapped.
        assert_eq!(unsafe { address.read_volatile() }, 0);
        drop((domain, context));
        let calls = plan().calls;
        assert_eq!((calls.dereg_mr, calls.dealloc_pd, calls.close), (1, 0, 0));
    }
}

#[test]
fn parents_of_what_cannot_be_destroyed_are_leaked() {
    let turn = turn();
    let device = turn.hostile.devices().unwrap().remove(0);
    let context = device.open().unwrap();
    let queue = context.completion_queue(8).unwrap();
    plan().destroy_cq = Some(libc::EINVAL);
    assert_eq!(queue.close().unwrap_err().failed_call(), Some("ibv_destroy_cq"));
    drop(context);
    assert_eq!(plan().calls.close, 0);

    let context = device.open().unwrap();
    let domain = context.protection_domain().unwrap();
    plan().dealloc_pd = Some(libc::EINVAL);
    assert_eq!(domain.close().unwrap_err().failed_call(), Some("ibv_dealloc_pd"));
    drop(context);
    assert_eq!(plan().calls.close, 0);

    let context = device.open().unwrap();
    plan().close_device = Some(-1);
    assert_eq!(context.close().unwrap_err().failed_call(), Some("ibv_close_device"));
}

/// Exactly one call for each object, in whatever order the handles go (jonhoo/rust-ibverbs pull request 64 freed twice).
#[test]
fn each_object_is_freed_once() {
    let turn = turn();
    for order in 0..6 {
        plan().calls = Default::default();
        let [a, b] = ends(&turn);
        let End { queue_pair, completions, region, domain, context } = a;
        let (second_domain, third_domain, second_region) = (domain.clone(), domain.clone(), region.clone());
        match order {
            0 => drop((queue_pair, completions, region, domain, context, second_domain, third_domain, second_region)),
            1 => drop((context, domain, second_domain, region, third_domain, second_region, completions, queue_pair)),
            2 => drop((second_region, region, queue_pair, second_domain, context, domain, completions, third_domain)),
            3 => drop((completions, context, third_domain, queue_pair, domain, second_region, second_domain, region)),
            4 => drop((domain, second_domain, third_domain, region, second_region, completions, context, queue_pair)),
            _ => drop((region, completions, queue_pair, context, second_region, domain, third_domain, second_domain)),
        }
        let calls = plan().calls;
        assert_eq!(
            (calls.open, calls.close, calls.alloc_pd, calls.dealloc_pd, calls.reg_mr, calls.dereg_mr),
            (1, 1, 1, 1, 1, 1)
        );
        drop(b);
    }
}

/// A queue pair whose transition failed is destroyed, not tried again; its place is free for a new one.
#[test]
fn a_failed_transition_costs_no_queue_pair() {
    for failing in [state::IBV_QPS_INIT, state::IBV_QPS_RTR, state::IBV_QPS_RTS] {
        for errno in [libc::EINVAL, -libc::ETIMEDOUT, libc::EBUSY, libc::EFAULT, 96] {
            let turn = turn();
            let [a, b] = ends(&turn);
            let peer = *a.queue_pair.peer();
            plan().modify_qp = Some((failing, errno));
            for _ in 0..12 {
                let mut prepared = a.domain.queue_pair(&a.completions).requests(4).build().unwrap();
                let port = a.context.port(1).unwrap();
                prepared.endpoint(&port, port.gid().unwrap()).unwrap();
                let error = prepared.connect(&peer).unwrap_err();
                assert_eq!(error.errno().unwrap().raw(), errno.abs());
                assert_eq!(error.failed_call(), Some("ibv_modify_qp"));
            }
            assert_eq!(a.completions.unreserved(), 4096 - 16);
            drop(b);
        }
    }
}
