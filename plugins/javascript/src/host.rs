//! The engine's calls of the host. Outside a component, that is in tests, output is kept and time is a variable.

#[cfg(target_family = "wasm")]
pub(crate) use crate::bindings::rlf::plugin::process::{monotonic_now, sleep, write};

#[cfg(not(target_family = "wasm"))]
pub(crate) use native::{monotonic_now, sleep, write};

#[cfg(not(target_family = "wasm"))]
pub(crate) mod native {
    use std::cell::{Cell, RefCell};

    thread_local! {
        static OUTPUT: RefCell<[Vec<u8>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn write(fd: u8, data: &[u8]) {
        OUTPUT.with_borrow_mut(|output| output[usize::from(fd == 2)].extend(data));
    }

    pub(crate) fn monotonic_now() -> u64 {
        NOW.get()
    }

    pub(crate) fn sleep(ns: u64) {
        NOW.set(NOW.get() + ns);
    }

    /// The output of this thread since the last call: standard output, standard error.
    #[cfg(test)]
    pub(crate) fn printed() -> (String, String) {
        let text =
            |bytes: &mut Vec<u8>| String::from_utf8_lossy(&std::mem::take(bytes)).into_owned();
        OUTPUT.with_borrow_mut(|[out, err]| (text(out), text(err)))
    }
}
