//! The table of exported calls.

use crate::bindings::*;
use crate::library::{Library, LoadError};
use core::ffi::{c_char, c_int, c_uint, c_void};
use std::path::Path;

/// Declares [`Verbs`] and the function that fills it, so that a call and its symbol are written once.
macro_rules! table {
    (
        $(#[$meta:meta])*
        required { $( $(#[$rdoc:meta])* $rfield:ident: $rsymbol:literal, fn($($rarg:ty),*) $(-> $rret:ty)?; )* }
        optional { $( $(#[$odoc:meta])* $ofield:ident: $osymbol:literal, fn($($oarg:ty),*) $(-> $oret:ty)?; )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct Verbs {
            $( $(#[$rdoc])* #[doc(alias = $rsymbol)] pub $rfield: unsafe extern "C" fn($($rarg),*) $(-> $rret)?, )*
            $( $(#[$odoc])* #[doc(alias = $osymbol)] pub $ofield: Option<unsafe extern "C" fn($($oarg),*) $(-> $oret)?>, )*
        }

        impl Verbs {
            /// The names of the symbols without which a library is refused.
            pub const REQUIRED: &'static [&'static str] = &[$($rsymbol),*];
            /// The names of the symbols that are taken where they exist.
            pub const OPTIONAL: &'static [&'static str] = &[$($osymbol),*];

            fn resolve(library: &Library) -> Result<Self, LoadError> {
                Ok(Verbs {
                    $(
                        // SAFETY: the type is that of the C function of this name, checked against an installed header
                        // by tests/abi_probe.rs; that the file is a verbs library is promised to `Verbs::load`.
                        $rfield: unsafe { library.required($rsymbol)? },
                    )*
                    $(
                        // SAFETY: as above.
                        $ofield: unsafe { library.optional($osymbol) },
                    )*
                })
            }
        }
    };
}

table! {
    /// The exported calls of one verbs library, or of a software device that stands in for one.
    ///
    /// The data path (post, poll, request a notification) is not in it: it goes through `context->ops`, see
    /// [`crate::ibv_post_send`] and its neighbours. A missing required symbol refuses the library; an optional one that
    /// is missing is `None`. Required are the calls that MLX and antirez/ds4 resolve by `dlsym` on shipping Macs.
    required {
        /// Lists the devices: a null-terminated array, with its length in the argument.
        get_device_list: "ibv_get_device_list", fn(*mut c_int) -> *mut *mut ibv_device;
        /// Frees the array (not the devices that are open).
        free_device_list: "ibv_free_device_list", fn(*mut *mut ibv_device);
        /// The device's name, owned by the device.
        get_device_name: "ibv_get_device_name", fn(*mut ibv_device) -> *const c_char;
        /// Opens a device.
        open_device: "ibv_open_device", fn(*mut ibv_device) -> *mut ibv_context;
        /// Closes it.
        close_device: "ibv_close_device", fn(*mut ibv_context) -> c_int;
        /// Fills the device's attributes.
        query_device: "ibv_query_device", fn(*mut ibv_context, *mut ibv_device_attr) -> c_int;
        /// Fills the *first 48 bytes* of a port's attributes: the exported symbol is the frozen one, in C the name is a
        /// macro. Zero the structure before.
        query_port: "ibv_query_port", fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int;
        /// Reads one entry of a port's GID table.
        query_gid: "ibv_query_gid", fn(*mut ibv_context, u8, c_int, *mut ibv_gid) -> c_int;
        /// Makes a protection domain.
        alloc_pd: "ibv_alloc_pd", fn(*mut ibv_context) -> *mut ibv_pd;
        /// Frees it.
        dealloc_pd: "ibv_dealloc_pd", fn(*mut ibv_pd) -> c_int;
        /// Registers memory.
        reg_mr: "ibv_reg_mr", fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr;
        /// Takes the registration back.
        dereg_mr: "ibv_dereg_mr", fn(*mut ibv_mr) -> c_int;
        /// Makes a completion queue.
        create_cq: "ibv_create_cq", fn(*mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int) -> *mut ibv_cq;
        /// Destroys it.
        destroy_cq: "ibv_destroy_cq", fn(*mut ibv_cq) -> c_int;
        /// Makes a queue pair.
        create_qp: "ibv_create_qp", fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp;
        /// Changes its attributes, its state among them.
        modify_qp: "ibv_modify_qp", fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int;
        /// Reads its attributes, the granted capacities among them.
        query_qp: "ibv_query_qp", fn(*mut ibv_qp, *mut ibv_qp_attr, c_int, *mut ibv_qp_init_attr) -> c_int;
        /// Destroys it.
        destroy_qp: "ibv_destroy_qp", fn(*mut ibv_qp) -> c_int;
    }
    optional {
        /// The node GUID, big endian.
        get_device_guid: "ibv_get_device_guid", fn(*mut ibv_device) -> u64;
        /// Reads one entry of a port's partition key table.
        query_pkey: "ibv_query_pkey", fn(*mut ibv_context, u8, c_int, *mut u16) -> c_int;
        /// Registers memory under another address. Apple's device wants the address itself.
        reg_mr_iova2: "ibv_reg_mr_iova2", fn(*mut ibv_pd, *mut c_void, usize, u64, c_uint) -> *mut ibv_mr;
        /// Changes a registration.
        rereg_mr: "ibv_rereg_mr", fn(*mut ibv_mr, c_int, *mut ibv_pd, *mut c_void, usize, c_int) -> c_int;
        /// Registers a dma-buf. Hidden in Apple's library, no report of it working.
        reg_dmabuf_mr: "ibv_reg_dmabuf_mr", fn(*mut ibv_pd, u64, usize, u64, c_int, c_int) -> *mut ibv_mr;
        /// Makes a completion channel.
        create_comp_channel: "ibv_create_comp_channel", fn(*mut ibv_context) -> *mut ibv_comp_channel;
        /// Destroys it.
        destroy_comp_channel: "ibv_destroy_comp_channel", fn(*mut ibv_comp_channel) -> c_int;
        /// Waits for an event of a completion channel.
        get_cq_event: "ibv_get_cq_event", fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int;
        /// Acknowledges events; destroying a queue waits for it.
        ack_cq_events: "ibv_ack_cq_events", fn(*mut ibv_cq, c_uint);
        /// Changes the capacity of a completion queue.
        resize_cq: "ibv_resize_cq", fn(*mut ibv_cq, c_int) -> c_int;
        /// Waits for an asynchronous event of the device.
        get_async_event: "ibv_get_async_event", fn(*mut ibv_context, *mut ibv_async_event) -> c_int;
        /// Acknowledges it.
        ack_async_event: "ibv_ack_async_event", fn(*mut ibv_async_event);
        /// Whether data arrives in memory in order.
        query_qp_data_in_order: "ibv_query_qp_data_in_order", fn(*mut ibv_qp, ibv_wr_opcode, u32) -> c_int;
        /// Prepares for fork.
        fork_init: "ibv_fork_init", fn() -> c_int;
        /// The text of a completion status.
        wc_status_str: "ibv_wc_status_str", fn(ibv_wc_status) -> *const c_char;
        /// The text of a port state.
        port_state_str: "ibv_port_state_str", fn(ibv_port_state) -> *const c_char;
        /// The text of a node type.
        node_type_str: "ibv_node_type_str", fn(ibv_node_type) -> *const c_char;
        /// The text of an event type.
        event_type_str: "ibv_event_type_str", fn(ibv_event_type) -> *const c_char;
    }
}

impl Verbs {
    /// Loads a verbs library from a file and resolves its calls. It is never unloaded.
    ///
    /// # Errors
    ///
    /// [`LoadError::NotFound`] if the file cannot be loaded, [`LoadError::MissingSymbol`] if it lacks a required call.
    ///
    /// # Safety
    ///
    /// Loading runs the file's initialisers, and its functions of verbs' names will be called with verbs' types: the
    /// file must be a verbs library whose ABI is the one this crate describes.
    pub unsafe fn load(path: impl AsRef<Path>) -> Result<Verbs, LoadError> {
        // SAFETY: passed on to the caller.
        let library = unsafe { Library::open(&[path.as_ref()])? };
        Verbs::resolve(&library)
    }

    /// Loads the platform's verbs library.
    ///
    /// Where the variable `RDMA_LIBRARY` is set and not empty, it names the only file that is tried; whoever sets it vouches for that
    /// file. Otherwise: on macOS `/usr/lib/librdma.dylib` (in the shared cache, so there is no file to be seen), then
    /// `librdma.dylib`; elsewhere `libibverbs.so.1`.
    ///
    /// # Errors
    ///
    /// As for [`Verbs::load`]; on a machine without RDMA, [`LoadError::NotFound`] is the ordinary answer.
    pub fn system() -> Result<Verbs, LoadError> {
        let candidates = crate::library::system_candidates(std::env::var_os(crate::LIBRARY_VARIABLE));
        // SAFETY: the platform's own verbs library, or the file that the environment's owner named for that purpose.
        let library = unsafe { Library::open(&candidates)? };
        Verbs::resolve(&library)
    }
}

#[cfg(test)]
mod tests {
    use super::Verbs;

    /// The list is spelled out again on purpose: making one more call required refuses libraries that load today.
    #[test]
    fn the_required_calls_are_the_eighteen() {
        let expected = [
            "ibv_get_device_list",
            "ibv_free_device_list",
            "ibv_get_device_name",
            "ibv_open_device",
            "ibv_close_device",
            "ibv_query_device",
            "ibv_query_port",
            "ibv_query_gid",
            "ibv_alloc_pd",
            "ibv_dealloc_pd",
            "ibv_reg_mr",
            "ibv_dereg_mr",
            "ibv_create_cq",
            "ibv_destroy_cq",
            "ibv_create_qp",
            "ibv_modify_qp",
            "ibv_query_qp",
            "ibv_destroy_qp",
        ];
        assert_eq!(Verbs::REQUIRED, expected);
    }

    #[test]
    fn no_call_is_listed_twice_and_none_is_an_inline_one() {
        let mut all = [Verbs::REQUIRED, Verbs::OPTIONAL].concat();
        all.extend(["ibv_post_send", "ibv_post_recv", "ibv_poll_cq", "ibv_req_notify_cq"]);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
