//! Read-only data that the operator bound to a slot of this plugin.
//!
//! A plugin names its slots in `plugin.toml` (`data = ["corpus"]`); the operator decides which file or folder is
//! bound to each. Data is best read once, in `init`: every call starts from the memory that `init` leaves.

pub use crate::bindings::lifecycle::rlf::plugin::data::Entry;

use crate::Error;

/// Bytes requested at a time: large enough that the number of host calls does not matter.
const CHUNK: u32 = 1 << 20;

/// The files of a slot, sorted by path. A slot bound to a single file has one entry.
pub fn entries(slot: &str) -> Result<Vec<Entry>, Error> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::lifecycle::rlf::plugin::data::entries(slot);
    #[cfg(not(target_family = "wasm"))]
    crate::stand_in::entries(slot)
}

/// At most `length` bytes of one file, starting at `offset`; fewer only at its end.
pub fn read_at(slot: &str, path: &str, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::lifecycle::rlf::plugin::data::read(slot, path, offset, length);
    #[cfg(not(target_family = "wasm"))]
    crate::stand_in::read(slot, path, offset, length)
}

/// One whole file of a slot.
pub fn read(slot: &str, entry: &Entry) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::with_capacity(usize::try_from(entry.size).unwrap_or(0));
    while (bytes.len() as u64) < entry.size {
        let part = read_at(slot, &entry.path, bytes.len() as u64, CHUNK)?;
        if part.is_empty() {
            break;
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// One whole file of a slot as text, without its byte order mark.
pub fn read_text(slot: &str, entry: &Entry) -> Result<String, Error> {
    let text = String::from_utf8(read(slot, entry)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::Internal(format!(
            "data `{slot}`, file {}: not UTF-8 at byte {at}",
            entry.path
        ))
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Every file of a slot as text, with its path, in the order of [`entries`].
pub fn texts(slot: &str) -> Result<Vec<(String, String)>, Error> {
    entries(slot)?
        .into_iter()
        .map(|entry| Ok((entry.path.clone(), read_text(slot, &entry)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_file_larger_than_one_read_comes_whole() {
        let bytes: Vec<u8> = (0..2_500_000_u32).map(|n| n as u8).collect();
        testing::bind("slot", "b", bytes.clone());
        testing::bind("slot", "a", "\u{feff}text");
        let files = entries("slot").unwrap();
        assert_eq!(
            files
                .iter()
                .map(|file| file.path.as_str())
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert!(read("slot", &files[1]).unwrap() == bytes);
        assert_eq!(read_text("slot", &files[0]).unwrap(), "text");
    }

    #[test]
    fn what_is_not_text_says_where() {
        testing::bind("slot", "f", b"ab\xff".as_slice());
        let error = texts("slot").unwrap_err();
        assert_eq!(
            crate::error_message(&error),
            "data `slot`, file f: not UTF-8 at byte 2"
        );
        assert!(matches!(entries("other"), Err(Error::NotFound(_))));
    }
}
