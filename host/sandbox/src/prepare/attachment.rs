//! Data attached to a component, as the last custom section of its file. Programs that read components ignore it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use wasm_encoder::{ComponentSection, CustomSection};
use wasmparser::BinaryReader;

/// Id of a custom section.
const CUSTOM: u8 = 0;
/// The first bytes of a component.
const MAGIC: &[u8; 4] = b"\0asm";
/// Bytes of magic, version and layer.
const HEADER_BYTES: u64 = 8;
/// Maximum length of a section's id and size.
const MAX_SECTION_HEADER_BYTES: usize = 6;
/// Maximum number of sections that are looked at. Components have thousands at the most.
const MAX_SECTIONS: usize = 100_000;

/// The data attached to a component.
#[derive(Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Length of the component without it, in bytes.
    pub component_bytes: u64,
    /// The bytes that follow the component in the file: a section with the data at its end.
    section: Vec<u8>,
    /// Length of the data.
    length: usize,
}

impl Attachment {
    /// Appends `data` to the bytes of a component, under `name`, which has at most 127 bytes.
    pub fn append(component: &mut Vec<u8>, name: &str, data: &[u8]) {
        let section = CustomSection {
            name: name.into(),
            data: data.into(),
        };
        section.append_to_component(component);
    }

    /// Finds the data that is attached under `name`, which has at most 127 bytes. Returns `None` if there is none, or if
    /// the file is not a component. Fails if the data is longer than `max_bytes`, or if something follows it. Of all other
    /// sections, only the headers are read.
    pub fn read(file: &File, name: &str, max_bytes: usize) -> io::Result<Option<Self>> {
        let end = file.metadata()?.len();
        let mut magic = [0; MAGIC.len()];
        if end < HEADER_BYTES || file.read_exact_at(&mut magic, 0).is_err() || magic != *MAGIC {
            return Ok(None);
        }
        let mut at = HEADER_BYTES;
        for _ in 0..MAX_SECTIONS {
            if at >= end {
                break;
            }
            let mut header = [0; MAX_SECTION_HEADER_BYTES];
            let length = header
                .len()
                .min(usize::try_from(end - at).unwrap_or(usize::MAX));
            file.read_exact_at(&mut header[..length], at)?;
            let mut reader = BinaryReader::new(&header[..length], 0);
            let (Ok(id), Ok(size)) = (reader.read_u8(), reader.read_var_u32()) else {
                break;
            };
            let body = at + reader.current_position() as u64;
            let next = body + u64::from(size);
            if next > end {
                break;
            }
            let start = 1 + name.len();
            if id == CUSTOM && size as usize >= start && is_named(file, body, name)? {
                let length = size as usize - start;
                return Self::whole(file, at, end, (next, length), max_bytes).map(Some);
            }
            at = next;
        }
        Ok(None)
    }

    /// Reads the section that begins at `at`, ends at `next` and has `length` bytes of data.
    fn whole(
        file: &File,
        at: u64,
        end: u64,
        (next, length): (u64, usize),
        max_bytes: usize,
    ) -> io::Result<Self> {
        let invalid = |what| Err(io::Error::new(ErrorKind::InvalidData, what));
        if next != end {
            return invalid(format!("{} bytes follow it", end - next));
        }
        if length > max_bytes {
            return invalid(format!(
                "it has {length} bytes, and at most {max_bytes} are read"
            ));
        }
        let mut section = vec![0; usize::try_from(next - at).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut section, at)?;
        Ok(Self {
            component_bytes: at,
            section,
            length,
        })
    }

    /// The data.
    pub fn data(&self) -> &[u8] {
        &self.section[self.section.len() - self.length..]
    }

    /// All bytes that follow the component in the file.
    pub(crate) fn section(&self) -> &[u8] {
        &self.section
    }
}

/// True if the custom section whose body is at `at` has this name.
fn is_named(file: &File, at: u64, name: &str) -> io::Result<bool> {
    let mut named = vec![0; 1 + name.len()];
    file.read_exact_at(&mut named, at)?;
    // The length of a short name is one byte.
    Ok(named.split_first() == Some((&(name.len() as u8), name.as_bytes())))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Option<Attachment>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Attachment::read(&file, "extra", 1000)
    }

    fn component() -> Vec<u8> {
        wat::parse_str("(component (core module (memory 1)))").unwrap()
    }

    fn with(name: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = component();
        Attachment::append(&mut bytes, name, data);
        bytes
    }

    #[test]
    fn what_is_attached_is_read_back_and_the_component_stays_one() {
        for data in [vec![], vec![7; 1000]] {
            let attached = with("extra", &data);
            assert!(super::super::ComponentInfo::read(&attached).is_ok());
            let found = read(&attached).unwrap().unwrap();
            assert_eq!(found.component_bytes, component().len() as u64);
            assert_eq!(found.data(), data);
            assert_eq!([&component(), found.section()].concat(), attached);
        }
    }

    #[test]
    fn data_that_is_too_long_or_followed_by_something_is_an_error() {
        let error = read(&with("extra", &[7; 1001])).unwrap_err().to_string();
        assert!(error.contains("1001 bytes"), "{error}");
        let mut followed = with("extra", b"x");
        followed.extend_from_slice(&[0, 2, 1, b'y']);
        let error = read(&followed).unwrap_err().to_string();
        assert_eq!(error, "4 bytes follow it");
    }

    #[test]
    fn files_without_an_attachment_have_none() {
        let attached = with("extra", b"some");
        let long_size = [b"\0asm\x0d\0\x01\0\0".as_slice(), &[0xff; 9]].concat();
        let unnamed = [b"\0asm\x0d\0\x01\0\0".as_slice(), &[0]].concat();
        for bytes in [
            &component()[..],
            &with("other", b"x"),
            &attached[..attached.len() - 1],
            &long_size,
            &unnamed,
            b"text",
            b"",
        ] {
            assert_eq!(read(bytes).unwrap(), None, "{bytes:?}");
        }
    }
}
