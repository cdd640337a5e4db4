//! Standard output that cannot be written: the command ends with an error, after its work.

use std::io::{self, ErrorKind, Stdout};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first error in writing to standard output.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Whether the process began without standard output.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Standard output, or an error if the process began without one (`>&-`). Before `main`, the standard library opens
/// /dev/null in its place, so that writing would succeed.
pub(crate) fn stdout() -> io::Result<Stdout> {
    if CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::new(
            ErrorKind::NotFound,
            "standard output is closed",
        ));
    }
    Ok(io::stdout())
}

/// Remembers an error in writing, unless the reader just closed the pipe (`| head`).
pub(crate) fn unwritten(error: io::Error) {
    if error.kind() != ErrorKind::BrokenPipe {
        let _ = UNWRITTEN.set(error);
    }
}

/// The first error that [`unwritten`] was told.
pub(crate) fn first_unwritten() -> Option<&'static io::Error> {
    UNWRITTEN.get()
}

/// Notes whether standard output is open.
extern "C" fn note_stdout() {
    // SAFETY: The call takes two numbers and changes nothing.
    #[allow(unsafe_code)]
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// The C library calls this function before `main`, and so before the standard library opens anything.
// SAFETY: The section has functions of the C library's signature, whose arguments may be ignored. This one needs nothing
// that is set up later: one system call and one atomic.
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = note_stdout;
