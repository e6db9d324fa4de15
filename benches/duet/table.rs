//! The function table, called by hand: what the safe API stands on, without what it keeps account of.
#![allow(unsafe_code)]

use super::Stop;
use super::ends::{AHEAD, End, Hosts, Parts, memory, touch};
use rdma::Buffer;
use rdma_sys as sys;
use std::ptr::null_mut;
use std::time::Instant;

/// Completions that are taken at once, as many as the safe API takes.
const STAGE: usize = 16;
/// The id of the send. Receives have their places.
const SENT: u64 = u64::MAX;

pub(crate) struct TableEnd {
    parts: Parts,
    key: u32,
    message: Buffer,
    in_flight: bool,
    spaces: Vec<Buffer>,
    spent: Option<usize>,
    stage: [sys::ibv_wc; STAGE],
    first: usize,
    end: usize,
}

impl TableEnd {
    pub(crate) fn connect(hosts: &Hosts, size: usize) -> Result<[Self; 2], Stop> {
        let end = |parts: Parts| -> Result<_, Stop> {
            // SAFETY: a live region; its key is read.
            let key = unsafe { (*parts.region.as_raw()).lkey };
            let (message, spaces) = (parts.region.buffer(size)?, parts.region.buffers(AHEAD, size)?);
            let stage = [sys::ibv_wc::default(); STAGE];
            let mut end =
                TableEnd { parts, key, message, in_flight: false, spaces, spent: None, stage, first: 0, end: 0 };
            for place in 0..AHEAD {
                end.post_recv(place);
            }
            Ok(end)
        };
        let [one, other] = hosts.connect(AHEAD as u32, memory(AHEAD + 1, size))?;
        Ok([end(one)?, end(other)?])
    }

    #[inline]
    fn post_recv(&mut self, place: usize) {
        let mut sge = element(&self.spaces[place], self.key);
        let mut wr = sys::ibv_recv_wr { wr_id: place as u64, next: null_mut(), sg_list: &raw mut sge, num_sge: 1 };
        // SAFETY: a live queue pair, whose safe handle posts nothing; registered memory that is not touched before the
        // completion.
        let returned = unsafe { sys::ibv_post_recv(self.parts.queue_pair.as_raw(), &mut wr, &mut null_mut()) };
        assert_eq!(returned, 0, "ibv_post_recv");
    }

    /// Takes the next completion. Returns whether it is a receive's.
    #[inline]
    fn step(&mut self) -> Result<bool, Stop> {
        if self.first == self.end {
            self.poll()?;
        }
        let wc = &self.stage[self.first];
        self.first += 1;
        assert_eq!(wc.status, sys::ibv_wc_status::IBV_WC_SUCCESS);
        if wc.wr_id == SENT {
            self.in_flight = false;
            return Ok(false);
        }
        let place = wc.wr_id as usize;
        touch(&self.spaces[place][..wc.byte_len as usize]);
        self.spent = Some(place);
        Ok(true)
    }

    /// Waits as the safe API does: sixty-four pauses, then giving the processor away.
    #[inline]
    fn poll(&mut self) -> Result<(), Stop> {
        let (mut turns, mut since) = (0, None);
        loop {
            // SAFETY: a live queue, which its safe handle does not poll, and room for so many.
            let count =
                unsafe { sys::ibv_poll_cq(self.parts.completions.as_raw(), STAGE as i32, self.stage.as_mut_ptr()) };
            match count {
                0 if turns < 64 => {
                    turns += 1;
                    std::hint::spin_loop();
                }
                0 => {
                    std::thread::yield_now();
                    if since.get_or_insert_with(Instant::now).elapsed().as_secs() > 30 {
                        return Err(Stop::PeerGone);
                    }
                }
                count => {
                    assert!(count > 0, "ibv_poll_cq: {count}");
                    (self.first, self.end) = (0, count as usize);
                    return Ok(());
                }
            }
        }
    }
}

#[inline]
fn element(buffer: &Buffer, key: u32) -> sys::ibv_sge {
    sys::ibv_sge { addr: buffer.as_ptr().addr() as u64, length: buffer.len() as u32, lkey: key }
}

impl End for TableEnd {
    #[inline]
    fn send(&mut self) -> Result<(), Stop> {
        while self.in_flight {
            self.step()?;
        }
        let mut sge = element(&self.message, self.key);
        let mut wr = sys::ibv_send_wr {
            wr_id: SENT,
            sg_list: &raw mut sge,
            num_sge: 1,
            opcode: sys::ibv_wr_opcode::IBV_WR_SEND,
            send_flags: sys::IBV_SEND_SIGNALED,
            ..Default::default()
        };
        // SAFETY: as for receives.
        let returned = unsafe { sys::ibv_post_send(self.parts.queue_pair.as_raw(), &mut wr, &mut null_mut()) };
        assert_eq!(returned, 0, "ibv_post_send");
        self.in_flight = true;
        self.repost()
    }

    #[inline]
    fn repost(&mut self) -> Result<(), Stop> {
        if let Some(place) = self.spent.take() {
            self.post_recv(place);
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Result<(), Stop> {
        while !self.step()? {}
        Ok(())
    }

    #[inline]
    fn rewrite(&mut self, value: u8) -> Result<(), Stop> {
        while self.in_flight {
            self.step()?;
        }
        self.message.fill(value);
        Ok(())
    }
}
