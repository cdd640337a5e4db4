//! A lease on an entry: the kernel ends this process before it lets anyone write to the file.
//!
//! Only Linux has leases, and only some file systems: an entry without one is copied instead.

use std::fs::File;
use std::os::fd::AsRawFd;

use libc::{F_RDLCK, F_SETLEASE, F_SETOWN, SIGKILL, c_int};

/// Sets the signal of a lease. See fcntl(2).
const F_SETSIG: c_int = 10;

/// Takes a read lease on a file that is open for reading. It lasts until the returned handle is closed, and with it all
/// other copies of `file`'s descriptor.
///
/// There is no lease while anyone has the file open for writing or mapped as writable. From then on, opening it for
/// writing and shortening it wait until this process, which is sent SIGKILL, is gone. That signal cannot be caught,
/// blocked or ignored. Removing or replacing the file does not change its content, so neither needs to wait.
pub(super) fn take(file: &File) -> Option<File> {
    let held = file.try_clone().ok()?;
    let set = |command: c_int, argument: c_int| {
        // SAFETY: the descriptor is open, and these commands take a number, not memory.
        #[allow(unsafe_code)]
        let result = unsafe { libc::fcntl(held.as_raw_fd(), command, argument) };
        result == 0
    };
    // Otherwise the signal would go to the thread that takes the lease, which may be gone by then.
    let process = c_int::try_from(std::process::id()).ok()?;
    let is_leased =
        set(F_SETSIG, SIGKILL) && set(F_SETOWN, process) && set(F_SETLEASE, F_RDLCK as c_int);
    is_leased.then_some(held)
}
