//! Data attached to a component: a custom section behind everything else in its file. Readers of components skip it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use wasm_encoder::{ComponentSection, CustomSection};
use wasmparser::BinaryReader;

/// Id of a custom section.
const CUSTOM: u8 = 0;
/// Bytes of magic, version and layer.
const HEADER_BYTES: u64 = 8;
/// Maximum length of a section's id and size.
const MAX_SECTION_HEADER_BYTES: usize = 6;

/// The data attached to a component.
#[derive(Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Length of the component without it, in bytes.
    pub component_bytes: u64,
    /// The data.
    pub data: Vec<u8>,
}

impl Attachment {
    /// Returns the bytes of a component with `data` attached under `name`.
    pub fn attach(component: &[u8], name: &str, data: &[u8]) -> Vec<u8> {
        let mut file = component.to_vec();
        let section = CustomSection {
            name: name.into(),
            data: data.into(),
        };
        section.append_to_component(&mut file);
        file
    }

    /// Finds the data that is attached under `name`. Returns `None` if there is none, and for a file that is no
    /// component. Fails if there are more than `max_bytes` of it. Only the headers of the other sections are read.
    pub fn read(file: &File, name: &str, max_bytes: usize) -> io::Result<Option<Self>> {
        let end = file.metadata()?.len();
        let mut at = HEADER_BYTES;
        while at < end {
            let mut header = [0; MAX_SECTION_HEADER_BYTES];
            let length = header
                .len()
                .min(usize::try_from(end - at).unwrap_or(usize::MAX));
            file.read_exact_at(&mut header[..length], at)?;
            let mut reader = BinaryReader::new(&header[..length], 0);
            let (Ok(id), Ok(size)) = (reader.read_u8(), reader.read_var_u32()) else {
                return Ok(None);
            };
            let body = at + reader.current_position() as u64;
            let next = body + u64::from(size);
            if next == end && id == CUSTOM {
                let named = Self::data(file, body, size as usize, name, max_bytes)?;
                return Ok(named.map(|data| Self {
                    component_bytes: at,
                    data,
                }));
            }
            at = next;
        }
        Ok(None)
    }

    /// The data of the custom section at `at`, if it has this name.
    fn data(
        file: &File,
        at: u64,
        size: usize,
        name: &str,
        max_bytes: usize,
    ) -> io::Result<Option<Vec<u8>>> {
        // The name is short enough for its length to be one byte.
        let start = 1 + name.len();
        let mut named = vec![0; start.min(size)];
        file.read_exact_at(&mut named, at)?;
        if named.split_first() != Some((&(name.len() as u8), name.as_bytes())) {
            return Ok(None);
        }
        let length = size - start;
        if length > max_bytes {
            let what =
                format!("{length} bytes are attached to it, and at most {max_bytes} are read");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let mut data = vec![0; length];
        file.read_exact_at(&mut data, at + start as u64)?;
        Ok(Some(data))
    }
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

    #[test]
    fn what_is_attached_is_read_back_and_the_component_stays_one() {
        let component = wat::parse_str("(component (core module (memory 1)))").unwrap();
        for data in [vec![], vec![7; 1000]] {
            let attached = Attachment::attach(&component, "extra", &data);
            assert!(super::super::ComponentInfo::read(&attached).is_ok());
            let component_bytes = component.len() as u64;
            let expected = Attachment {
                component_bytes,
                data,
            };
            assert_eq!(read(&attached).unwrap(), Some(expected));
        }
        let too_long = Attachment::attach(&component, "extra", &[7; 1001]);
        let error = read(&too_long).unwrap_err().to_string();
        assert!(error.contains("1001 bytes"), "{error}");
    }

    #[test]
    fn files_without_an_attachment_have_none() {
        let component = wat::parse_str("(component (core module (memory 1)))").unwrap();
        let named_otherwise = Attachment::attach(&component, "other", b"x");
        let mut followed = Attachment::attach(&component, "extra", b"x");
        followed.extend_from_slice(&[1, 0]);
        let attached = Attachment::attach(&component, "extra", b"some");
        let cut = &attached[..attached.len() - 1];
        let long_size = [b"\0asm\x0d\0\x01\0\0".as_slice(), &[0xff; 9]].concat();
        let unnamed = [b"\0asm\x0d\0\x01\0\0".as_slice(), &[0]].concat();
        for bytes in [
            &component[..],
            &named_otherwise,
            &followed,
            cut,
            &long_size,
            &unnamed,
            b"text",
            b"",
        ] {
            assert_eq!(read(bytes).unwrap(), None, "{bytes:?}");
        }
    }
}
