//! The engine's calls of the host. Outside a component, that is in tests, output is kept and time is a variable.

#[cfg(target_family = "wasm")]
pub(crate) use crate::bindings::rlf::plugin::process::{monotonic_now, sleep, write};

#[cfg(target_family = "wasm")]
pub(crate) use crate::bindings::rlf::plugin::gates::ask;

#[cfg(target_family = "wasm")]
pub(crate) use self::slots::{data, entries, message};

#[cfg(not(target_family = "wasm"))]
pub(crate) use native::{ask, data, entries, monotonic_now, sleep, write};

/// The files of data slots.
#[cfg(target_family = "wasm")]
mod slots {
    use crate::bindings::rlf::plugin::{data, types::Error};

    /// Number of bytes that are read at once.
    const PIECE_BYTES: u32 = 1 << 20;

    /// The text of an error.
    pub(crate) fn message(error: Error) -> String {
        match error {
            Error::InvalidArguments(text)
            | Error::NotFound(text)
            | Error::Denied(text)
            | Error::Exhausted(text)
            | Error::Unavailable(text)
            | Error::Internal(text) => text,
            Error::Cancelled => "cancelled".to_owned(),
        }
    }

    /// The paths and sizes of a slot's files.
    pub(crate) fn entries(slot: &str) -> Result<Vec<(String, u64)>, String> {
        let entries = data::entries(slot).map_err(message)?;
        Ok(entries
            .into_iter()
            .map(|entry| (entry.path, entry.size))
            .collect())
    }

    /// One file of a slot.
    pub(crate) fn data(slot: &str, path: &str, size: u64) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < size {
            let piece = data::read(slot, path, bytes.len() as u64, PIECE_BYTES).map_err(message)?;
            if piece.is_empty() {
                break;
            }
            bytes.extend(piece);
        }
        Ok(bytes)
    }
}

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

    /// A test has one slot, with one file.
    pub(crate) fn entries(slot: &str) -> Result<Vec<(String, u64)>, String> {
        match slot {
            "words" => Ok(vec![("a.txt".to_owned(), 3)]),
            _ => Err(format!("there is no data slot {slot}")),
        }
    }

    pub(crate) fn data(slot: &str, _path: &str, _size: u64) -> Result<Vec<u8>, String> {
        entries(slot).map(|_| b"fox".to_vec())
    }

    /// In a test, every tool shows the length of its requests, and other gates are closed.
    pub(crate) fn ask(kind: &str, requests: &str) -> String {
        match kind {
            "tools.invoke" => {
                let content = format!(r#"[{{"text":"{} bytes"}}]"#, requests.len());
                format!(
                    r#"[{{"ended":"ok","observation":{{"content":{content},"failed":false}}}}]"#
                )
            }
            _ => r#"{"error":{"kind":"denied","message":"no"}}"#.to_owned(),
        }
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
