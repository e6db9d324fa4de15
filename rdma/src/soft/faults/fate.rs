//! What the plan has in store for a message.

/// Decided once, when the message is about to leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    /// It is delivered once more.
    pub(crate) again: bool,
    /// A number from which the byte that changes is chosen.
    pub(crate) corrupt: Option<u64>,
    /// How often it is to be looked at in vain.
    pub(crate) held: u32,
}

impl Fate {
    /// Whether it is still held back. Each question brings it nearer.
    pub(crate) fn is_held(&mut self) -> bool {
        let held = self.held != 0;
        self.held = self.held.saturating_sub(1);
        held
    }

    /// The message with one byte changed, if it is to be so.
    ///
    /// # Safety
    ///
    /// `length` bytes at `source` can be read.
    pub(crate) unsafe fn spoil(self, source: *const u8, length: usize) -> Option<Vec<u8>> {
        let choice = self.corrupt.filter(|_| length != 0)?;
        // SAFETY: promised by the caller.
        let mut bytes = unsafe { core::slice::from_raw_parts(source, length) }.to_vec();
        // Not zero, so the byte does change.
        bytes[(choice % length as u64) as usize] ^= (choice >> 32) as u8 | 1;
        Some(bytes)
    }
}
