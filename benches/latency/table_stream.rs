//! The function table, called by hand.
#![allow(unsafe_code)]

use crate::duet::ends::{Parts, memory, touch};
use crate::duet::{Hosts, Stop};
use crate::stream::{Row, Stream};
use rdma::Buffer;
use rdma_sys as sys;
use std::ptr::null_mut;
use std::time::Instant;

const TOGETHER: usize = 16;

pub(crate) struct TableStream {
    parts: Parts,
    row: Row,
    key: u32,
    buffers: Vec<Buffer>,
    /// The places of buffers that are not posted.
    idle: Vec<usize>,
    stage: [sys::ibv_wc; TOGETHER],
}

impl TableStream {
    pub(crate) fn connect(hosts: &Hosts, row: Row) -> Result<[Self; 2], Stop> {
        let end = |parts: Parts, posted: usize| -> Result<_, Stop> {
            // SAFETY: a live region; its key is read.
            let key = unsafe { (*parts.region.as_raw()).lkey };
            let buffers = parts.region.buffers(row.window, row.size)?;
            let stage = [sys::ibv_wc::default(); TOGETHER];
            let mut end = TableStream { parts, row, key, buffers, idle: (0..row.window).collect(), stage };
            end.post_receives(posted);
            Ok(end)
        };
        let [one, other] = hosts.connect(row.window as u32, memory(row.window, row.size))?;
        Ok([end(one, 0)?, end(other, row.window)?])
    }

    fn element(&self, place: usize) -> sys::ibv_sge {
        let buffer = &self.buffers[place];
        sys::ibv_sge { addr: buffer.as_ptr().addr() as u64, length: buffer.len() as u32, lkey: self.key }
    }

    /// Posts so many, as many at once as the row has together.
    fn post_receives(&mut self, mut count: usize) {
        let mut elements = [sys::ibv_sge { addr: 0, length: 0, lkey: 0 }; TOGETHER];
        let empty = sys::ibv_recv_wr { wr_id: 0, next: null_mut(), sg_list: null_mut(), num_sge: 1 };
        let mut requests = [empty; TOGETHER];
        while count > 0 {
            let now = count.min(self.row.together);
            for (index, place) in self.idle.split_off(self.idle.len() - now).into_iter().enumerate() {
                elements[index] = self.element(place);
                requests[index].wr_id = place as u64;
                requests[index].sg_list = &raw mut elements[index];
            }
            let first = requests.as_mut_ptr();
            for index in 1..now {
                // SAFETY: both lie in the array.
                unsafe { (*first.add(index - 1)).next = first.add(index) };
            }
            requests[now - 1].next = null_mut();
            // SAFETY: a live queue pair, whose safe handle posts nothing; a chain within the array, over registered memory
            // that is not touched before the completion.
            let returned =
                unsafe { sys::ibv_post_recv(self.parts.queue_pair.as_raw(), requests.as_mut_ptr(), &mut null_mut()) };
            assert_eq!(returned, 0, "ibv_post_recv");
            count -= now;
        }
    }

    fn post_sends(&mut self, count: usize) {
        let mut elements = [sys::ibv_sge { addr: 0, length: 0, lkey: 0 }; TOGETHER];
        let mut requests = [sys::ibv_send_wr {
            num_sge: 1,
            opcode: sys::ibv_wr_opcode::IBV_WR_SEND,
            send_flags: sys::IBV_SEND_SIGNALED,
            ..Default::default()
        }; TOGETHER];
        for index in 0..count {
            let place = self.idle.pop().expect("the caller counted");
            elements[index] = self.element(place);
            requests[index].wr_id = place as u64;
            requests[index].sg_list = &raw mut elements[index];
        }
        let first = requests.as_mut_ptr();
        for index in 1..count {
            // SAFETY: both lie in the array.
            unsafe { (*first.add(index - 1)).next = first.add(index) };
        }
        // SAFETY: as for receives.
        let returned =
            unsafe { sys::ibv_post_send(self.parts.queue_pair.as_raw(), requests.as_mut_ptr(), &mut null_mut()) };
        assert_eq!(returned, 0, "ibv_post_send");
    }

    /// Takes completions, one at least, waiting as the safe API does.
    fn take(&mut self, read: bool) -> Result<usize, Stop> {
        let (mut turns, mut since) = (0, None);
        loop {
            // SAFETY: a live queue, which its safe handle does not poll, and room for so many.
            let count =
                unsafe { sys::ibv_poll_cq(self.parts.completions.as_raw(), TOGETHER as i32, self.stage.as_mut_ptr()) };
            assert!(count >= 0, "ibv_poll_cq: {count}");
            if count == 0 {
                turns += 1;
                if turns <= 64 {
                    std::hint::spin_loop();
                    continue;
                }
                std::thread::yield_now();
                if since.get_or_insert_with(Instant::now).elapsed().as_secs() > 30 {
                    return Err(Stop::PeerGone);
                }
                continue;
            }
            for wc in &self.stage[..count as usize] {
                assert_eq!(wc.status, sys::ibv_wc_status::IBV_WC_SUCCESS);
                let place = wc.wr_id as usize;
                if read {
                    touch(&self.buffers[place][..wc.byte_len as usize]);
                }
                self.idle.push(place);
            }
            return Ok(count as usize);
        }
    }
}

impl Stream for TableStream {
    #[inline(never)]
    fn send(&mut self, messages: usize) -> Result<(), Stop> {
        let mut posted = 0;
        while posted < messages {
            let now = self.row.together.min(messages - posted);
            if self.idle.len() < now {
                self.take(false)?;
            } else {
                self.post_sends(now);
                posted += now;
            }
        }
        while self.idle.len() < self.row.window {
            self.take(false)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn receive(&mut self, messages: usize) -> Result<(), Stop> {
        let mut received = 0;
        while received < messages {
            received += self.take(self.row.reads)?;
            while self.idle.len() >= self.row.together {
                self.post_receives(self.row.together);
            }
        }
        self.post_receives(self.idle.len());
        Ok(())
    }
}
