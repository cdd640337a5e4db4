//! The allocator of the programs: mimalloc, because training allocates and frees tensors of a few kilobytes all day.

#![allow(unsafe_code)] // One call of mimalloc, which takes two numbers.

use libmimalloc_sys::{mi_option_set_default, mi_option_t};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The place of `mi_option_purge_delay` in mimalloc.h, versions 2 and 3. The crate has no name for it.
const PURGE_DELAY: mi_option_t = 15;
/// A minute, in milliseconds.
const MINUTE: std::ffi::c_long = 60_000;

/// Keeps freed memory for a minute before the system gets it back, unless `MIMALLOC_PURGE_DELAY` is set. A step of training
/// frees gradients and activations, and the next one needs as much again. The kernel clears every page that it gives, and
/// at 30 M parameters that took a third of a run's time.
pub fn keep_freed_memory() {
    // SAFETY: it changes one number, before other threads begin.
    unsafe { mi_option_set_default(PURGE_DELAY, MINUTE) };
}
