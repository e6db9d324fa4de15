//! What can be posted.

use crate::buffer::{Buffer, FrozenBuffer, SharedBuffer};
use crate::verbs::domain::RawDomain;
use crate::verbs::parcel::Parcel;
use crate::verbs::span::Span;
use std::sync::Arc;

/// Memory that came back from a queue pair: of the kind that was posted.
#[derive(Debug)]
#[non_exhaustive]
pub enum Memory {
    /// A [`Buffer`].
    Buffer(Buffer),
    /// A [`FrozenBuffer`].
    Frozen(FrozenBuffer),
    /// A [`SharedBuffer`].
    Shared(SharedBuffer),
}

impl Memory {
    /// The buffer, if that is what was posted.
    pub fn into_buffer(self) -> Option<Buffer> {
        match self {
            Memory::Buffer(buffer) => Some(buffer),
            _ => None,
        }
    }
}

/// Memory that a send can take: [`Buffer`], [`FrozenBuffer`], [`SharedBuffer`].
///
/// Posting takes it by value, and the completion returns it. There is no way to post an address.
pub trait Sendable: Payload {}

/// Memory that a receive can take: [`Buffer`], [`SharedBuffer`].
pub trait Receivable: Payload {}

impl Sendable for Buffer {}
impl Sendable for FrozenBuffer {}
impl Sendable for SharedBuffer {}
impl Receivable for Buffer {}
impl Receivable for SharedBuffer {}

/// What the data path needs to know of memory. Sealed: not nameable outside the crate.
pub trait Payload: Sized {
    #[doc(hidden)]
    fn extent(&self) -> Extent;
    #[doc(hidden)]
    fn into_parcel(self) -> Packed;
    #[doc(hidden)]
    fn from_parcel(parcel: Packed) -> Option<Self>;
}

/// Where memory lies.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub(crate) address: u64,
    pub(crate) length: usize,
    pub(crate) key: u32,
    /// The protection domain, to compare.
    pub(crate) domain: *const RawDomain,
    /// The number of the registration.
    pub(crate) serial: u64,
}

impl Extent {
    #[inline]
    pub(crate) fn of(span: &Span) -> Self {
        let region = span.region();
        Extent {
            address: span.address(),
            length: span.length(),
            key: region.key(),
            domain: Arc::as_ptr(&region.domain),
            serial: region.serial(),
        }
    }
}

/// Memory in the form in which it travels.
#[doc(hidden)]
#[derive(Debug)]
pub struct Packed(pub(crate) Parcel);

macro_rules! payload {
    ($type:ident, $from:ident, $into:ident) => {
        impl Payload for $type {
            #[inline]
            fn extent(&self) -> Extent {
                Extent::of(self.span())
            }

            #[inline]
            fn into_parcel(self) -> Packed {
                Packed(Parcel::$from(self))
            }

            #[inline]
            fn from_parcel(parcel: Packed) -> Option<Self> {
                parcel.0.$into()
            }
        }
    };
}

payload!(Buffer, from_buffer, into_buffer);
payload!(FrozenBuffer, from_frozen, into_frozen);
payload!(SharedBuffer, from_shared, into_shared);
