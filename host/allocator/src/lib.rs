//! The allocator of the programs: mimalloc, because training allocates and frees tensors of a few kilobytes all day.

#![allow(unsafe_code)] // One call of mimalloc, which takes two numbers.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_set_default, mi_option_t};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The place of `mi_option_purge_delay` in mimalloc.h, versions 2 and 3. The crate has no name for it.
const PURGE_DELAY: mi_option_t = 15;
/// A minute, in milliseconds.
const MINUTE: c_long = 60_000;

/// Keeps freed memory for about a minute before the system gets it back, unless `MIMALLOC_PURGE_DELAY` is set. By default,
/// mimalloc keeps it for a second. A step of training frees gradients and activations, and the next one needs as much again.
/// The kernel clears every page that it gives: docs/performance.md has what that costs. A program calls this first, before
/// it has other threads.
pub fn configure() {
    // SAFETY: it changes one number of mimalloc, which other threads could only read too early or too late.
    unsafe { mi_option_set_default(PURGE_DELAY, MINUTE) };
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    use super::*;

    #[test]
    fn the_option_that_is_set_is_the_delay_of_purging() {
        // SAFETY: it reads a number.
        let delay = || unsafe { mi_option_get(PURGE_DELAY) };
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
            println!("not tested: MIMALLOC_PURGE_DELAY is set");
            return;
        }
        // The default in mimalloc's own table of options.
        assert_eq!(delay(), 1_000);
        configure();
        assert_eq!(delay(), MINUTE);
    }
}
