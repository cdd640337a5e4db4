//! A component in a file, read once to identify it. It is not kept in memory: if its compiled code is cached, its bytes
//! are not needed again.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use wasmparser::{Chunk, Parser, Payload};

use super::attachment::Attachment;
use super::component::{ComponentInfo, check_start, damaged};
use super::error::LoadError;

/// Bytes that are read and hashed at a time: few enough to stay in a processor's cache.
const CHUNK_BYTES: usize = 256 << 10;

/// A component in an open file, with its identity, imports and exports.
#[derive(Debug)]
pub struct ComponentFile {
    file: File,
    info: ComponentInfo,
    /// The hasher, to which the component's bytes were given.
    hasher: blake3::Hasher,
}

impl ComponentFile {
    /// Reads a file that is open for reading, from its start. Refuses what [`ComponentInfo::read`] refuses, and files of
    /// more than `max_bytes`. Damage inside core modules is found only when the component is compiled.
    pub fn read(file: File, max_bytes: u64) -> Result<Self, LoadError> {
        let size = file.metadata()?.len();
        if size > max_bytes {
            return Err(LoadError::TooLarge {
                size,
                limit: max_bytes,
            });
        }
        // A file that grows while it is read counts as damaged.
        Self::read_start(file, max_bytes)
    }

    /// Reads the component that fills the first `bytes` of a file. Later bytes are ignored.
    fn read_start(file: File, bytes: u64) -> Result<Self, LoadError> {
        let mut stream = Stream::new((&file).take(bytes));
        let info = identify(&mut stream)?;
        let hasher = stream.hasher;
        Ok(Self { file, info, hasher })
    }

    /// Reads the component before an attachment. The second value is the hash of the whole file, in hexadecimal: of the
    /// component that [`bytes`](Self::bytes) returns, and of the attachment as it was read.
    pub fn read_before(file: File, attached: &Attachment) -> Result<(Self, String), LoadError> {
        let found = Self::read_start(file, attached.component_bytes)?;
        let mut hasher = found.hasher.clone();
        hasher.update(attached.section());
        Ok((found, hasher.finalize().to_hex().to_string()))
    }

    /// Its hash, imports and exports.
    pub fn info(&self) -> &ComponentInfo {
        &self.info
    }

    /// Its bytes, unless the file was changed since.
    pub fn bytes(&self) -> Result<Vec<u8>, LoadError> {
        let changed = || LoadError::Preparation {
            reason: "its file changed while it was being loaded; load it again".to_owned(),
        };
        let mut bytes = vec![0; usize::try_from(self.info.size).unwrap_or(usize::MAX)];
        match self.file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(changed()),
            read => read?,
        }
        if blake3::hash(&bytes).to_hex().as_str() != self.info.hash {
            return Err(changed());
        }
        ComponentInfo::read(&bytes)?;
        Ok(bytes)
    }
}

/// A component as its author built it.
#[derive(Debug, Clone, Copy)]
pub enum ComponentSource<'a> {
    /// All its bytes.
    Bytes(&'a [u8]),
    /// A file that was identified, and that is read again only if it has to be compiled.
    File(&'a ComponentFile),
}

impl<'a> ComponentSource<'a> {
    pub(crate) fn size(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(file) => file.info.size,
        }
    }

    pub(crate) fn info(self) -> Result<ComponentInfo, LoadError> {
        match self {
            Self::Bytes(bytes) => ComponentInfo::read(bytes),
            Self::File(file) => Ok(file.info.clone()),
        }
    }

    pub(crate) fn bytes(self) -> Result<Cow<'a, [u8]>, LoadError> {
        match self {
            Self::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::File(file) => file.bytes().map(Cow::Owned),
        }
    }
}

/// A stream that hashes all bytes read from it, and keeps only those that are not parsed yet.
struct Stream<R> {
    from: R,
    hasher: blake3::Hasher,
    chunk: Box<[u8]>,
    kept: Vec<u8>,
    /// Number of bytes at the start of `kept` that are parsed.
    parsed: usize,
    size: u64,
    has_ended: bool,
}

impl<R: Read> Stream<R> {
    fn new(from: R) -> Self {
        Self {
            from,
            hasher: blake3::Hasher::new(),
            chunk: vec![0; CHUNK_BYTES].into(),
            kept: Vec::new(),
            parsed: 0,
            size: 0,
            has_ended: false,
        }
    }

    fn unparsed(&self) -> &[u8] {
        &self.kept[self.parsed..]
    }

    /// Reads a chunk, and leaves out as many of its first bytes as `skip` says.
    fn read(&mut self, skip: &mut usize) -> io::Result<()> {
        let read = loop {
            match self.from.read(&mut self.chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break &self.chunk[..read?],
            }
        };
        self.has_ended = read.is_empty();
        self.size += read.len() as u64;
        self.hasher.update(read);
        let skipped = read.len().min(*skip);
        *skip -= skipped;
        self.kept.drain(..self.parsed);
        self.parsed = 0;
        self.kept.extend_from_slice(&read[skipped..]);
        Ok(())
    }

    /// Leaves out the next `bytes`. False if there are fewer.
    fn skip(&mut self, mut bytes: usize) -> io::Result<bool> {
        let here = self.unparsed().len().min(bytes);
        self.parsed += here;
        bytes -= here;
        while bytes > 0 && !self.has_ended {
            self.read(&mut bytes)?;
        }
        Ok(bytes == 0)
    }
}

/// Reads a component to its end. Nested components are hashed, but not parsed.
fn identify(stream: &mut Stream<impl Read>) -> Result<ComponentInfo, LoadError> {
    stream.read(&mut 0)?;
    check_start(stream.unparsed())?;
    let mut info = ComponentInfo::default();
    let mut parser = Parser::new(0);
    loop {
        let parsed = parser.parse(stream.unparsed(), stream.has_ended);
        let part = match parsed.map_err(|error| damaged(&error))? {
            Chunk::NeedMoreData(_) => None,
            Chunk::Parsed { consumed, payload } => {
                info.note(&payload)?;
                Some((consumed, nested_bytes(&payload), is_end(&payload)))
            }
        };
        let Some((consumed, nested, is_end)) = part else {
            stream.read(&mut 0)?;
            continue;
        };
        if !stream.skip(consumed.saturating_add(nested))? {
            let reason = format!("unexpected end-of-file (at offset {:#x})", stream.size);
            return Err(LoadError::Damaged { reason });
        }
        if is_end {
            info.hash = stream.hasher.finalize().to_hex().to_string();
            info.size = stream.size;
            return Ok(info);
        }
    }
}

fn nested_bytes(payload: &Payload<'_>) -> usize {
    match payload {
        Payload::ModuleSection {
            unchecked_range, ..
        }
        | Payload::ComponentSection {
            unchecked_range, ..
        } => unchecked_range.len(),
        _ => 0,
    }
}

fn is_end(payload: &Payload<'_>) -> bool {
    matches!(payload, Payload::End(_))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        file
    }

    /// A component with a core module and a component of these sizes in it.
    fn nesting(bytes: usize) -> Vec<u8> {
        let data = "x".repeat(bytes);
        let text = format!(
            r#"(component (import "a:b/c@0.1.0" (instance))
                (core module (memory 100) (data (i32.const 0) "{data}"))
                (component (import "d" (func)) (core module (memory 100) (data (i32.const 0) "{data}")))
                (component $empty) (instance $i (instantiate $empty)) (export "e:f/g@0.1.0" (instance $i)))"#
        );
        wat::parse_str(text).unwrap()
    }

    #[test]
    fn a_file_is_identified_as_its_bytes_are() {
        for size in [0, 1, CHUNK_BYTES - 200, CHUNK_BYTES, 5 * CHUNK_BYTES] {
            let bytes = nesting(size);
            let read = ComponentFile::read(file(&bytes), bytes.len() as u64).unwrap();
            assert_eq!(*read.info(), ComponentInfo::read(&bytes).unwrap());
            assert_eq!(read.info().imports, ["a:b/c@0.1.0"]);
            assert_eq!(read.info().exports, ["e:f/g@0.1.0"]);
            assert_eq!(read.bytes().unwrap(), bytes);
        }
    }

    #[test]
    fn what_is_no_component_is_refused_as_its_bytes_are() {
        let good = nesting(2 * CHUNK_BYTES);
        let mut trailing = nesting(1);
        trailing.push(0);
        let cases: [&[u8]; 9] = [
            b"",
            b"this is text",
            b"\0asm",
            b"\0asm\x01\0\0\0",
            &good[..9],
            &good[..good.len() / 2],
            &good[..good.len() - 1],
            &trailing,
            &[0; 100],
        ];
        for bytes in cases {
            let refusal = |read: Result<ComponentInfo, LoadError>| match read.unwrap_err() {
                LoadError::Damaged { reason } => {
                    // Nested bytes are not parsed, so the place is another one.
                    reason.split(" (at").next().unwrap().to_owned()
                }
                error => error.to_string(),
            };
            let read = ComponentFile::read(file(bytes), 1 << 30).map(|read| read.info);
            assert_eq!(refusal(read), refusal(ComponentInfo::read(bytes)));
        }
    }

    #[test]
    fn a_file_beyond_the_limit_or_changed_since_is_refused() {
        let bytes = nesting(10);
        let most = bytes.len() as u64 - 1;
        let refused = ComponentFile::read(file(&bytes), most);
        assert!(refused.is_err(), "{refused:?}");
        let opened = file(&bytes);
        let mut writer = opened.try_clone().unwrap();
        let read = ComponentFile::read(opened, 1 << 20).unwrap();
        writer.set_len(most).unwrap();
        assert!(matches!(read.bytes(), Err(LoadError::Preparation { .. })));
        io::Seek::rewind(&mut writer).unwrap();
        writer.write_all(&nesting(11)).unwrap();
        assert!(matches!(read.bytes(), Err(LoadError::Preparation { .. })));
    }
}
