//! Registered memory.

use crate::buffer::{Buffer, SharedBuffer};
use crate::context::still_in_use;
use crate::error::{Error, ErrorKind, Result};
use crate::verbs::region::RawRegion;
use crate::verbs::span::Span;
use std::sync::Arc;

/// Registered memory that buffers are cut from.
///
/// It is a handle; the memory stays registered while the handle or any of its buffers lives, in flight or not.
#[doc(alias = "ibv_mr")]
#[derive(Clone, Debug)]
pub struct MemoryRegion(Arc<RawRegion>);

fn take(region: &Arc<RawRegion>, length: usize) -> Result<Span> {
    Span::take(region, length)
        .ok_or_else(|| {
            if length == 0 {
                return Error::argument("a buffer has at least one byte");
            }
            let whole = region.length();
            if length > whole {
                return Error::argument(format!("a buffer of {length} bytes: the region has {whole}"))
                    .with_hint("allocate a longer region");
            }
            let (free, longest) = region.available();
            let detail = format!(
                "no {length} bytes free in one piece: of the region's {whole}, {free} are free, {longest} in one piece"
            );
            Error::new(ErrorKind::OutOfMemory, detail)
                .with_hint("dropping buffers gives their memory back; each begins at a multiple of 128 bytes")
        })
        .map_err(|error| error.on_device(region.domain.context.device()))
}

macro_rules! region {
    ($region:ident, $buffer:ident) => {
        impl $region {
            pub(crate) fn new(raw: Arc<RawRegion>) -> Self {
                $region(raw)
            }

            /// Its length in bytes.
            #[allow(clippy::len_without_is_empty)]
            pub fn len(&self) -> usize {
                self.0.length()
            }

            /// How many bytes are in no buffer.
            pub fn available(&self) -> usize {
                self.0.available().0
            }

            /// Takes a buffer of this length from what is free. Buffers start at a multiple of 128 bytes in the region, so
            /// that neighbours share no cache line.
            ///
            /// # Errors
            ///
            /// [`ErrorKind::OutOfMemory`] if no free piece is that long, [`ErrorKind::InvalidArgument`] for 0 bytes or
            /// more than the region has.
            pub fn buffer(&self, length: usize) -> Result<$buffer> {
                take(&self.0, length).map($buffer::new)
            }

            /// Takes `count` buffers of one length.
            ///
            /// # Errors
            ///
            /// As for [`buffer`](Self::buffer); then none is taken.
            pub fn buffers(&self, count: usize, length: usize) -> Result<Vec<$buffer>> {
                // What cannot be is refused before anything is taken.
                if count.saturating_mul(length) > self.0.length() {
                    let detail = format!("{count} buffers of {length} bytes: the region has {}", self.0.length());
                    return Err(Error::argument(detail)
                        .with_hint("allocate a longer region")
                        .on_device(self.0.domain.context.device()));
                }
                (0..count).map(|_| self.buffer(length)).collect()
            }

            /// Deregisters the memory and says whether that worked. Dropping the last handle and buffer does the same,
            /// silently. If the device refuses, the memory is leaked, because the device may still use it.
            ///
            /// # Errors
            ///
            /// [`ErrorKind::Busy`] if a buffer or another handle still exists: then it is deregistered when the last of
            /// them goes.
            #[doc(alias = "ibv_dereg_mr")]
            pub fn close(self) -> Result<()> {
                match Arc::try_unwrap(self.0) {
                    Ok(raw) => raw.close(),
                    Err(_) => Err(still_in_use("the memory region")),
                }
            }

            pub(crate) fn raw(&self) -> &Arc<RawRegion> {
                &self.0
            }
        }
    };
}

region!(MemoryRegion, Buffer);
region!(SharedRegion, SharedBuffer);

/// Registered memory that others may touch at any time: see
/// [`ProtectionDomain::register_shared`](crate::ProtectionDomain::register_shared).
#[derive(Clone, Debug)]
pub struct SharedRegion(Arc<RawRegion>);
