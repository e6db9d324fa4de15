//! Objects that C code sees: the ABI's prefix in front, zeroes up to the platform's size behind.
//!
//! Sizes on Linux: what rdma-core v44 has (`ibv_context` 328, `ibv_cq` 128, `ibv_qp` 160). On macOS the pthread objects
//! at the end are longer: 352, 152, 184. Programs compiled against a header may read those tails (`abi_compat` of a
//! context is looked at by inline functions of `verbs.h`; 0 says: not an extended context).
//!
//! `--cfg apple_layout` gives the objects macOS's sizes anywhere: for `ci/apple_layout`.

use rdma_sys as sys;

const fn sized(linux: usize, macos: usize) -> usize {
    if cfg!(any(target_vendor = "apple", apple_layout)) { macos } else { linux }
}

macro_rules! object {
    ($name:ident, $prefix:ident, $linux:literal, $macos:literal) => {
        #[repr(C)]
        pub(crate) struct $name {
            pub(crate) prefix: sys::$prefix,
            tail: [u8; sized($linux, $macos) - size_of::<sys::$prefix>()],
        }

        impl $name {
            pub(crate) fn new(prefix: sys::$prefix) -> Self {
                $name { prefix, tail: [0; sized($linux, $macos) - size_of::<sys::$prefix>()] }
            }
        }

        const _: () = assert!(size_of::<$name>() == sized($linux, $macos));
    };
}

object!(ContextObject, ibv_context, 328, 352);
object!(CqObject, ibv_cq, 128, 152);
object!(QpObject, ibv_qp, 160, 184);
