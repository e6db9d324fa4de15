//! Calls that the device does not have. They are here because a symbol that this library lacks is found in the real
//! libibverbs, below it, which would be given objects that it has not made, and crash.

use super::extras::set_errno;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null_mut;

/// For a call that returns a pointer, null and EOPNOTSUPP; for one that returns a number, EOPNOTSUPP, in `errno`, too.
macro_rules! refuse {
    (@answer pointer) => { null_mut() };
    (@answer errno) => { libc::EOPNOTSUPP };
    (@answer minus_one) => { -1 };
    (@type pointer) => { *mut c_void };
    (@type errno) => { c_int };
    (@type minus_one) => { c_int };
    ($($style:tt $name:ident($($type:ty),*);)*) => { $(
        /// Not supported by the device: EOPNOTSUPP.
        ///
        /// # Safety
        ///
        /// None: the arguments are not looked at.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($(_: $type),*) -> refuse!(@type $style) {
            set_errno(libc::EOPNOTSUPP);
            refuse!(@answer $style)
        }
    )* };
}

type Object = *mut c_void;

refuse! {
    // Apple's device reports nothing by events: TN3205 passes no channel.
    pointer ibv_create_comp_channel(Object);
    errno ibv_destroy_comp_channel(Object);
    minus_one ibv_get_cq_event(Object, Object, Object);
    minus_one ibv_get_async_event(Object, Object);
    errno ibv_resize_cq(Object, c_int);

    errno ibv_rereg_mr(Object, c_int, Object, Object, usize, c_int);
    pointer ibv_reg_mr_iova(Object, Object, usize, u64, c_int);
    pointer ibv_reg_dmabuf_mr(Object, u64, usize, u64, c_int, c_int);

    pointer ibv_create_ah(Object, Object);
    pointer ibv_create_ah_from_wc(Object, Object, Object, u8);
    minus_one ibv_init_ah_from_wc(Object, u8, Object, Object, Object);
    errno ibv_destroy_ah(Object);
    errno ibv_resolve_eth_l2_from_gid(Object, Object, Object, Object);

    pointer ibv_create_srq(Object, Object);
    errno ibv_modify_srq(Object, Object, c_int);
    errno ibv_query_srq(Object, Object);
    errno ibv_destroy_srq(Object);

    errno ibv_attach_mcast(Object, Object, u16);
    errno ibv_detach_mcast(Object, Object, u16);

    pointer ibv_qp_to_qp_ex(Object);
    errno ibv_query_ece(Object, Object);
    errno ibv_set_ece(Object, Object);
    minus_one _ibv_query_gid_table(Object, Object, usize, u32, usize);

    pointer ibv_import_device(c_int);
    pointer ibv_import_pd(Object, u32);
    pointer ibv_import_mr(Object, u32);
    pointer ibv_import_dm(Object, u32);
}

/// Acknowledges events of a completion channel, of which there are none.
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_cq_events(_: Object, _: c_uint) {}

/// Acknowledges an asynchronous event, of which there are none.
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_async_event(_: Object) {}

/// Forgets what was imported, which nothing was.
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_unimport_pd(_: Object) {}

/// As [`ibv_unimport_pd`].
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_unimport_mr(_: Object) {}

/// As [`ibv_unimport_pd`].
///
/// # Safety
///
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_unimport_dm(_: Object) {}
