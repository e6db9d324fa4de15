//! The function table, called by hand. The names of the steps are symbols, by which callgrind finds them.
#![allow(unsafe_code)]

use crate::COUNT;
use crate::duet::Stop;
use crate::duet::ends::Parts;
use rdma::Buffer;
use rdma_sys as sys;
use std::ptr::null_mut;

/// Completions that are taken at once, as many as the safe API takes.
const STAGE: usize = 16;

type Elements = [sys::ibv_sge; COUNT];

pub(crate) struct Ends {
    here: Parts,
    there: Parts,
    messages: Elements,
    spaces: Elements,
    /// The memory that the elements name.
    _buffers: [Vec<Buffer>; 2],
}

impl Ends {
    pub(crate) fn new([here, there]: [Parts; 2], size: usize) -> Result<Self, Stop> {
        let buffers = [here.region.buffers(COUNT, size)?, there.region.buffers(COUNT, size)?];
        let elements = |parts: &Parts, buffers: &[Buffer]| {
            // SAFETY: a live region; its key is read.
            let lkey = unsafe { (*parts.region.as_raw()).lkey };
            std::array::from_fn(|place| sys::ibv_sge {
                addr: buffers[place].as_ptr().addr() as u64,
                length: buffers[place].len() as u32,
                lkey,
            })
        };
        let (messages, spaces) = (elements(&here, &buffers[0]), elements(&there, &buffers[1]));
        Ok(Ends { here, there, messages, spaces, _buffers: buffers })
    }

    /// One round of steps. Returns how many messages arrived.
    pub(crate) fn round(&mut self) -> usize {
        let Ends { here, there, messages, spaces, .. } = self;
        // SAFETY: live objects, whose safe handles post and poll nothing.
        let (qps, cqs) = unsafe {
            (
                [here.queue_pair.as_raw(), there.queue_pair.as_raw()],
                [here.completions.as_raw(), there.completions.as_raw()],
            )
        };
        // SAFETY: live objects, and registered memory that is not touched before the completion.
        unsafe {
            table_post_recv(qps[1], spaces);
            table_post_send(qps[0], messages);
            let arrived = table_poll(cqs[1]);
            assert_eq!(table_poll(cqs[0]), COUNT, "sends");
            assert_eq!(table_poll_empty(cqs[1]), 0, "a completion too many");
            arrived
        }
    }
}

/// # Safety
///
/// A live queue pair, and elements of registered memory.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe fn table_post_recv(qp: *mut sys::ibv_qp, elements: &mut Elements) {
    for (id, element) in elements.iter_mut().enumerate() {
        let mut wr = sys::ibv_recv_wr { wr_id: id as u64, next: null_mut(), sg_list: element, num_sge: 1 };
        // SAFETY: the caller's.
        assert_eq!(unsafe { sys::ibv_post_recv(qp, &mut wr, &mut null_mut()) }, 0);
    }
}

/// # Safety
///
/// A live queue pair, and elements of registered memory.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe fn table_post_send(qp: *mut sys::ibv_qp, elements: &mut Elements) {
    for (id, element) in elements.iter_mut().enumerate() {
        let mut wr = sys::ibv_send_wr {
            wr_id: id as u64,
            sg_list: element,
            num_sge: 1,
            opcode: sys::ibv_wr_opcode::IBV_WR_SEND,
            send_flags: sys::IBV_SEND_SIGNALED,
            ..Default::default()
        };
        // SAFETY: the caller's.
        assert_eq!(unsafe { sys::ibv_post_send(qp, &mut wr, &mut null_mut()) }, 0);
    }
}

/// # Safety
///
/// A live completion queue.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe fn table_poll(cq: *mut sys::ibv_cq) -> usize {
    let mut wcs = [sys::ibv_wc::default(); STAGE];
    let mut taken = 0;
    for _ in 0..COUNT / STAGE {
        // SAFETY: the caller's, and room for so many.
        let count = unsafe { sys::ibv_poll_cq(cq, STAGE as i32, wcs.as_mut_ptr()) };
        for wc in wcs.iter().take(count as usize) {
            assert_eq!(wc.status, sys::ibv_wc_status::IBV_WC_SUCCESS);
            taken += 1;
        }
    }
    taken
}

/// Polls a queue that has nothing.
///
/// # Safety
///
/// A live completion queue.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe fn table_poll_empty(cq: *mut sys::ibv_cq) -> i32 {
    let mut wcs = [sys::ibv_wc::default(); STAGE];
    // SAFETY: the caller's, and room for so many.
    (0..COUNT).map(|_| unsafe { sys::ibv_poll_cq(cq, STAGE as i32, wcs.as_mut_ptr()) }).sum()
}
