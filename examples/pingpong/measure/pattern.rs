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

/// The pattern's byte at `position`.
#[inline]
fn byte(base: u32, position: usize) -> u8 {
    let position = position as u32;
    // The last factors tell apart places that are multiples of 256 and 65536 bytes away from each other.
    let mixed = position.wrapping_mul(31) ^ (position >> 8).wrapping_mul(17) ^ (position >> 16).wrapping_mul(7);
    mixed.wrapping_add(base) as u8
}

fn base(sender: Sender, batch: u64) -> u32 {
    // Odd, so that 256 batches have 256 different patterns.
    (batch as u32).wrapping_mul(167).wrapping_add(if sender == Sender::Client { 0 } else { 85 })
}

/// Writes the pattern of a batch. The message's number comes with [`number`].
pub(crate) fn fill(bytes: &mut [u8], sender: Sender, batch: u64) {
    let base = base(sender, batch);
    for (position, place) in bytes.iter_mut().enumerate() {
        *place = byte(base, position);
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

/// Checks each byte of a message.
pub(crate) fn check(bytes: &[u8], size: usize, sender: Sender, batch: u64, message: u64) -> Result<(), Stop> {
    let corrupt = |what: String| Stop::Corrupt { message, size, what };
    if bytes.len() != size {
        return Err(corrupt(format!("it has {} bytes", bytes.len())));
    }
    let (first, rest) = bytes.split_at(size.min(NUMBER));
    if first != &message.to_le_bytes()[..first.len()] {
        return Err(corrupt(format!("it begins with {first:02x?}, which is another message's number")));
    }
    let base = base(sender, batch);
    let wrong = |(index, &got): (usize, &u8)| got != byte(base, NUMBER + index);
    // In pieces without a way out, which the compiler can do many bytes at a time.
    const PIECE: usize = 1024;
    for (index, piece) in rest.chunks(PIECE).enumerate() {
        let begin = NUMBER + index * PIECE;
        let differs = piece.iter().enumerate().fold(0, |sum, (offset, &got)| sum | (got ^ byte(base, begin + offset)));
        if differs != 0 {
            let (index, got) = rest.iter().enumerate().find(|&place| wrong(place)).unwrap_or((0, &0));
            let expected = byte(base, NUMBER + index);
            return Err(corrupt(format!("byte {} is {got:#04x} instead of {expected:#04x}", NUMBER + index)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        fill(&mut bytes, Sender::Client, 3);
        number(&mut bytes, 0x1234);
        bytes
    }

    #[test]
    fn what_was_sent_passes() {
        for size in [1, 2, 7, 8, 9, 1031, 1032, 1033, 70_000] {
            check(&message(size), size, Sender::Client, 3, 0x1234).unwrap();
        }
    }

    #[test]
    fn each_wrong_byte_is_found() {
        for size in [1, 2, 9, 64, 3000] {
            for position in 0..size {
                let mut bytes = message(size);
                bytes[position] ^= 0x10;
                let found = check(&bytes, size, Sender::Client, 3, 0x1234).unwrap_err().to_string();
                assert!(position < NUMBER || found.contains(&format!("byte {position} is")), "{found}");
            }
        }
    }

    #[test]
    fn other_batches_messages_senders_and_lengths_do_not_pass() {
        let bytes = message(64);
        assert!(check(&bytes, 64, Sender::Client, 4, 0x1234).is_err());
        assert!(check(&bytes, 64, Sender::Client, 3, 0x1235).is_err());
        assert!(check(&bytes, 64, Sender::Server, 3, 0x1234).is_err());
        assert!(check(&bytes[..63], 64, Sender::Client, 3, 0x1234).is_err());
    }

    #[test]
    fn every_byte_of_the_pattern_changes_from_batch_to_batch() {
        let [mut one, mut next] = [vec![0; 5000], vec![0; 5000]];
        fill(&mut one, Sender::Client, 7);
        fill(&mut next, Sender::Client, 8);
        assert!(one.iter().zip(&next).all(|(one, next)| one != next));
    }
}
