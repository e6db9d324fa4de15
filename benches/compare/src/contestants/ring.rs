//! rtrb: a ring of bytes each way. A message is copied in, and read where it is.

use crate::Result;
use crate::play::{End, touch, wait};
use rtrb::{Consumer, Producer, RingBuffer};

pub(crate) struct RingEnd {
    out: Producer<u8>,
    into: Consumer<u8>,
    message: Vec<u8>,
}

impl RingEnd {
    pub(crate) fn pair(size: usize) -> [Self; 2] {
        // Room for two: one that is read, and one that is written.
        let [(out, far_in), (far_out, into)] = [RingBuffer::new(2 * size), RingBuffer::new(2 * size)];
        let end = |out, into| RingEnd { out, into, message: vec![1; size] };
        [end(out, into), end(far_out, far_in)]
    }
}

impl End for RingEnd {
    #[inline]
    fn rewrite(&mut self, value: u8) -> Result<()> {
        self.message.fill(value);
        Ok(())
    }

    #[inline]
    fn send(&mut self) -> Result<()> {
        wait(|| Ok(self.out.push_entire_slice(&self.message).ok()))
    }

    #[inline]
    fn receive(&mut self) -> Result<()> {
        let size = self.message.len();
        wait(|| {
            let Ok(chunk) = self.into.read_chunk(size) else { return Ok(None) };
            let (first, second) = chunk.as_slices();
            touch(first);
            touch(second);
            chunk.commit_all();
            Ok(Some(()))
        })
    }
}
