//! What the messages hold, so that every byte of them can be checked.
//!
//! A message begins with its number (as much of it as fits); all that follows is a pattern of the batch. From one batch
//! to the next each byte of the pattern changes, and the two directions have different ones, so a byte that is left from
//! earlier, shifted, or one's own, is found.

use super::stop::Stop;

/// Who sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Client,
    Server,
}

/// The bytes of a message's number.
const NUMBER: usize = 8;

/// A message is made of blocks of this length (the last may be shorter).
const BLOCK: usize = 4096;

/// What one side's messages of one batch hold: a block, which in a message begins at another place each time, so that
/// exchanged blocks are found, too.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// The block, twice in a row.
    twice: Vec<u8>,
}

impl Pattern {
    pub(crate) fn new(sender: Sender, batch: u64) -> Self {
        // Odd, so that 256 batches have 256 different patterns.
        let base = (batch as u8).wrapping_mul(167).wrapping_add(if sender == Sender::Client { 0 } else { 85 });
        let byte = |place: usize| ((place * 31) ^ ((place >> 8) * 17)) as u8;
        let mut twice: Vec<u8> = (0..BLOCK).map(|place| byte(place).wrapping_add(base)).collect();
        twice.extend_from_within(..);
        Pattern { twice }
    }

    /// The block number `index` of a message, if it has `length` bytes.
    fn block(&self, index: usize, length: usize) -> &[u8] {
        &self.twice[index * 1031 % BLOCK..][..length]
    }

    /// Writes it. The message's number comes with [`number`].
    pub(crate) fn fill(&self, bytes: &mut [u8]) {
        for (index, block) in bytes.chunks_mut(BLOCK).enumerate() {
            block.copy_from_slice(self.block(index, block.len()));
        }
    }

    /// Checks each byte of a message.
    pub(crate) fn check(&self, bytes: &[u8], size: usize, message: u64) -> Result<(), Stop> {
        let corrupt = |what: String| Err(Stop::Corrupt { message, size, what });
        if bytes.len() != size {
            return corrupt(format!("it has {} bytes", bytes.len()));
        }
        let (first, rest) = bytes.split_at(size.min(NUMBER));
        if first != &message.to_le_bytes()[..first.len()] {
            return corrupt(format!("it begins with {first:02x?}, which is another message's number"));
        }
        for (index, block) in bytes.chunks(BLOCK).enumerate() {
            // The number stands where the pattern of the first block would begin.
            let skipped = if index == 0 { bytes.len() - rest.len() } else { 0 };
            let (got, expected) = (&block[skipped..], &self.block(index, block.len())[skipped..]);
            if got != expected {
                let place = got.iter().zip(expected).position(|(got, expected)| got != expected).unwrap_or(0);
                let (byte, got, expected) = (index * BLOCK + skipped + place, got[place], expected[place]);
                return corrupt(format!("byte {byte} is {got:#04x} instead of {expected:#04x}"));
            }
        }
        Ok(())
    }
}

/// Writes the number of a message, just before it is sent.
#[inline]
pub(crate) fn number(bytes: &mut [u8], message: u64) {
    let number = message.to_le_bytes();
    match bytes.first_chunk_mut::<NUMBER>() {
        Some(first) => *first = number,
        None => bytes.copy_from_slice(&number[..bytes.len()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern() -> Pattern {
        Pattern::new(Sender::Client, 3)
    }

    fn message(size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        pattern().fill(&mut bytes);
        number(&mut bytes, 0x1234);
        bytes
    }

    #[test]
    fn what_was_sent_passes() {
        for size in [1, 2, 7, 8, 9, 4095, 4096, 4097, 4104, 70_000] {
            pattern().check(&message(size), size, 0x1234).unwrap();
        }
    }

    #[test]
    fn each_wrong_byte_is_found() {
        for size in [1, 2, 9, 64, 9000] {
            for position in (0..size).step_by(if size > 100 { 97 } else { 1 }) {
                let mut bytes = message(size);
                bytes[position] ^= 0x10;
                let found = pattern().check(&bytes, size, 0x1234).unwrap_err().to_string();
                assert!(position < NUMBER || found.contains(&format!("byte {position} is")), "{found}");
            }
        }
    }

    #[test]
    fn other_batches_messages_senders_and_lengths_do_not_pass() {
        let bytes = message(64);
        assert!(Pattern::new(Sender::Client, 4).check(&bytes, 64, 0x1234).is_err());
        assert!(Pattern::new(Sender::Server, 3).check(&bytes, 64, 0x1234).is_err());
        assert!(pattern().check(&bytes, 64, 0x1235).is_err());
        assert!(pattern().check(&bytes[..63], 64, 0x1234).is_err());
    }

    #[test]
    fn blocks_in_another_order_do_not_pass() {
        let bytes = message(100 * BLOCK);
        for other in 2..100 {
            let mut exchanged = bytes.clone();
            let (one, two) = exchanged.split_at_mut(other * BLOCK);
            one[BLOCK..2 * BLOCK].swap_with_slice(&mut two[..BLOCK]);
            assert!(pattern().check(&exchanged, bytes.len(), 0x1234).is_err(), "{other}");
        }
    }

    #[test]
    fn every_byte_changes_from_batch_to_batch() {
        let [mut one, mut next] = [vec![0; 9000], vec![0; 9000]];
        Pattern::new(Sender::Client, 7).fill(&mut one);
        Pattern::new(Sender::Client, 8).fill(&mut next);
        assert!(one.iter().zip(&next).all(|(one, next)| one != next));
    }
}
