//! The signals by which a guest traps.
//!
//! A guest that reads outside its memory or runs out of its stack raises a signal, and the sandbox's handler makes it a
//! trap. Another library can replace that handler: `faulthandler.enable()` does. Then the next trap would end this
//! process. So the handlers are looked at before every operation, and put back if they were replaced.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use libc::{SIGBUS, SIGFPE, SIGILL, SIGSEGV, c_int, sigaction};

const SIGNALS: [c_int; 4] = [SIGSEGV, SIGILL, SIGFPE, SIGBUS];

/// The sandbox's handlers.
pub(crate) struct TrapSignals([Option<sigaction>; SIGNALS.len()]);

impl TrapSignals {
    /// The handlers as they are now, right after the sandbox has installed its own.
    pub(crate) fn installed() -> Self {
        Self(SIGNALS.map(current))
    }

    /// Puts the handlers back that were replaced.
    pub(crate) fn keep(&self) {
        for (signal, ours) in SIGNALS.into_iter().zip(&self.0) {
            let (Some(ours), Some(now)) = (ours, current(signal)) else {
                continue;
            };
            if now.sa_sigaction != ours.sa_sigaction {
                // SAFETY: `ours` was the action of this signal, so its handler may be installed. The null pointer says that
                // the present action is not wanted.
                unsafe {
                    sigaction(signal, ours, std::ptr::null_mut());
                }
            }
        }
    }
}

/// The action of a signal; `None` if the system does not say.
fn current(signal: c_int) -> Option<sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: the null pointer says that the action is not to change; the present one is written to `action`, and is read
    // only if the call says that it was.
    unsafe {
        let failed = sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        (failed == 0).then(|| action.assume_init())
    }
}
