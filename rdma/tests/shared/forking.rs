//! A process that forks: the child has nothing of the parent's, and takes nothing from it.
#![allow(unsafe_code)]

use super::process::{Two, two};
use crate::support::raw::{Two as Raw, errno, init, rtr, two_on};
use crate::support::{LONG, fabrics};
use rdma::Provider;
use rdma::soft::{Fabric, Topology};
use rdma_sys as sys;
use std::ptr::null_mut;
use std::time::Duration;

/// What a child that is not done in time ends with.
const ALARM: u32 = 10;

/// Forks, and lets the child do something. Says whether it said yes. A child that hangs is ended, and has said no.
#[track_caller]
fn in_child(work: impl FnOnce() -> bool) -> bool {
    in_child_that_ends(libc_exit, work)
}

fn libc_exit(code: i32) -> ! {
    // SAFETY: ends the process without running anything.
    unsafe { libc::_exit(code) }
}

#[track_caller]
fn in_child_that_ends(end: fn(i32) -> !, work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls functions of this library and of the allocator, which is made for that.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: no preconditions.
        unsafe { libc::alarm(ALARM) };
        let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
        end(i32::from(!good));
    }
    let mut status = 0;
    // SAFETY: a child of ours, and a number to fill.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

/// The regular end, with all that is to be done at exit.
fn regular(code: i32) -> ! {
    std::process::exit(code)
}

#[test]
fn every_call_of_the_child_is_refused() {
    for fabric in [fabrics::shared(), Fabric::mesh(2).unwrap()] {
        let Raw { a, b, qp_a, qp_b, mem_a, mem_b, .. } = &two_on(fabric, 1023);
        // SAFETY: an open context.
        let device = unsafe { (*a.context).device };
        let path = rtr(b, *qp_b);
        let good = in_child(|| {
            let verbs = &a.verbs;
            let mut wc = sys::ibv_wc::default();
            // SAFETY: calls as the ABI has them.
            let refused = unsafe {
                let null = |pointer: bool| pointer && errno() == libc::EPERM;
                [
                    null((verbs.get_device_list)(null_mut()).is_null()),
                    null((verbs.open_device)(device).is_null()),
                    (verbs.query_device)(a.context, &mut Default::default()) == libc::EPERM,
                    (verbs.query_port)(a.context, 1, &mut Default::default()) == libc::EPERM,
                    (verbs.query_gid)(a.context, 1, 0, &mut Default::default()) == -1 && errno() == libc::EPERM,
                    null((verbs.alloc_pd)(a.context).is_null()),
                    null((verbs.reg_mr)(a.pd, mem_a.base.cast(), 4096, 1).is_null()),
                    null((verbs.create_cq)(a.context, 1, null_mut(), null_mut(), 0).is_null()),
                    null((verbs.create_qp)(a.pd, &mut a.init_attr(1)).is_null()),
                    a.modify(*qp_a, init().0, init().1) == libc::EPERM,
                    a.modify(*qp_a, path.0, path.1) == libc::EPERM,
                    (verbs.query_qp)(*qp_a, &mut Default::default(), 0, &mut Default::default()) == libc::EPERM,
                    a.post_send(*qp_a, 1, mem_a.sge(0, 64)).abs() == libc::EPERM,
                    a.post_recv(*qp_a, 1, mem_a.sge(0, 64)).abs() == libc::EPERM,
                    sys::ibv_poll_cq(a.cq, 1, &mut wc) == -libc::EPERM,
                    (verbs.destroy_qp)(*qp_a) == libc::EPERM,
                    (verbs.destroy_cq)(a.cq) == libc::EPERM,
                    (verbs.dereg_mr)(mem_a.mr) == libc::EPERM,
                    (verbs.dealloc_pd)(a.pd) == libc::EPERM,
                    (verbs.close_device)(a.context) == libc::EPERM,
                ]
            };
            refused.iter().all(|&refused| refused)
        });
        assert!(good);
        assert_eq!(b.post_recv(*qp_b, 1, mem_b.sge(0, 64)), 0);
        assert_eq!(a.post_send(*qp_a, 1, mem_a.sge(0, 64)), 0);
        assert_eq!((a.wait(1).len(), b.wait(1).len()), (1, 1));
    }
}

/// Children that drop what they have of the parent's, join themselves, and end in either way. The parent stays a member,
/// which another process asks the kernel about again and again, and all of its things stay its own.
#[test]
fn children_come_and_go() {
    let Two { name, mut end, mut other, host } = two();
    let join = |number| Fabric::join(&name, Topology::mesh(2).unwrap(), number).unwrap();
    // Waits for a receive, unless its process takes us for dead.
    assert_eq!(other.ask("send 5000 7"), "ok");
    for round in 0..6 {
        let ending = if round % 2 == 0 { libc_exit } else { regular };
        let good = in_child_that_ends(ending, || {
            let context = Provider::soft(&join(round % 2)).unwrap().first_active().unwrap().open().unwrap();
            let domain = context.protection_domain().unwrap();
            let completions = context.completion_queue(10).unwrap();
            let fresh = domain.queue_pair(&completions).build().unwrap();
            // SAFETY: the child's own copy, which the parent's `end` does not know of; the closure is the last to use it.
            drop(unsafe { std::ptr::read(&end) });
            // SAFETY: as above.
            drop(unsafe { std::ptr::read(&host) });
            drop(fresh);
            true
        });
        assert!(good, "round {round}");
        for _ in 0..3000 {
            assert_eq!(other.ask("poll 0"), "none");
        }
    }
    end.recv(5000, 1);
    assert_eq!(end.next(LONG, 7), "received 1 5000 good");
    assert_eq!(other.ask("wait 0"), "sent 7");
    assert!(super::hostile::file(&name).exists());
}

/// A fork while other threads make providers.
#[test]
fn a_child_of_a_process_that_makes_providers_gets_on() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let busy = AtomicBool::new(true);
    let host = Fabric::mesh(2).unwrap().host(0).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while busy.load(Ordering::Relaxed) {
                    drop(Provider::soft(&host).unwrap());
                }
            });
        }
        let good = (0..300).all(|_| {
            in_child(|| {
                let own = Fabric::mesh(2).unwrap().host(0).unwrap();
                Provider::soft(&own).unwrap().devices().unwrap().len() == 1
            })
        });
        busy.store(false, Ordering::Relaxed);
        assert!(good, "a child hangs");
    });
}

/// A fork while other threads are in the middle of anything.
#[test]
fn a_child_of_a_busy_process_gets_on() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let busy = AtomicBool::new(true);
    let name = fabrics::name();
    let work = |name: &str| {
        let host = Fabric::join(name, Topology::mesh(2).unwrap(), 0).unwrap();
        let provider = Provider::soft(&host).unwrap();
        let context = provider.first_active().unwrap().open().unwrap();
        context.protection_domain().unwrap().allocate(16384).unwrap();
    };
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (busy, name) = (&busy, format!("{name}-{number}"));
            scope.spawn(move || {
                while busy.load(Ordering::Relaxed) {
                    work(&name);
                }
            });
        }
        let name = format!("{name}-child");
        let good = (0..100).all(|_| {
            std::thread::sleep(Duration::from_micros(100));
            in_child(|| {
                work(&name);
                true
            })
        });
        busy.store(false, Ordering::Relaxed);
        assert!(good, "a child hangs");
    });
}
