//! The signals that ask a program to end: a person's, a launcher's, a closed terminal's. What is left unfinished stays taken
//! on a Mac, so all of them want the same.

// For asking what a signal does, which nothing safe tells.
#![allow(unsafe_code)]

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// Does something about each of them.
pub(crate) fn each<T>(mut register: impl FnMut(i32) -> io::Result<T>) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // `nohup` starts programs that are to outlive their terminal.
        if signal != SIGHUP || !is_ignored(signal) {
            register(signal)?;
        }
    }
    Ok(())
}

fn is_ignored(signal: i32) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is set, and `now` has room for what is.
    if unsafe { libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: it is plain numbers, which the call has filled in.
    unsafe { now.assume_init() }.sa_sigaction == libc::SIG_IGN
}
