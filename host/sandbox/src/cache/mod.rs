//! Compiled components on disk: made by this program alone, authenticated, never an author's.
//!
//! The snapshots of one interpreter share an entry with its code. Each has an entry with the image of its memory, which
//! names the code.
//!
//! Loading compiled code runs it, whatever it contains. So the folder is private (mode 0700), and every entry has a
//! keyed BLAKE3 over its name and content, under a key that only this user can read (0600). The bytes that are loaded
//! are those that were verified: they are copied into memory first, or the kernel lets no one change the file. An entry
//! that fails verification is not an error but a miss: the component is compiled again and the entry replaced.
//!
//! An entry begins with the compiled code, so that it can be mapped. Then come its header, the header's length and the
//! authentication code.

mod eviction;
mod folder;
#[cfg(target_os = "linux")]
mod lease;
mod pieces;
mod sealed;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use blake3::Hash;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::eviction::{CacheUsage, cache_usage, shrink_cache};
use self::eviction::{EXTENSION, evict};
pub(crate) use self::folder::CacheError;
pub use self::folder::user_cache;
use self::folder::{KEY_BYTES, write_new};
pub(crate) use self::sealed::{CompiledCode, trusted, trusted_module};

/// Number of bytes that hold the header's length.
const LENGTH_BYTES: usize = size_of::<u32>();
/// Number of bytes after the header: its length and the authentication code.
const TAIL_BYTES: usize = LENGTH_BYTES + blake3::OUT_LEN;

/// Compiled components, by name.
pub(crate) struct Cache {
    folder: PathBuf,
    key: [u8; KEY_BYTES],
    max_bytes: u64,
    /// True if entries are mapped under a lease, if the kernel gives one.
    under_lease: bool,
}

/// A cached entry that cannot be used.
#[derive(Debug, thiserror::Error)]
enum EntryError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("it is not what was written")]
    NotAuthentic,
    #[error("its header: {0}")]
    Header(#[from] serde_json::Error),
    #[error("{0:#}")]
    Load(wasmtime::Error),
}

impl Cache {
    /// Opens the folder, making it and its key if they are missing.
    pub(crate) fn open(
        folder: &Path,
        max_bytes: u64,
        under_lease: bool,
    ) -> Result<Self, CacheError> {
        Ok(Self {
            folder: folder.to_owned(),
            key: folder::open(folder)?,
            max_bytes,
            under_lease,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{EXTENSION}"))
    }

    /// The authentication code of an entry, from its header and the hash of its compiled code.
    fn code(&self, name: &str, header: &[u8], length: [u8; LENGTH_BYTES], compiled: Hash) -> Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher
            .update(name.as_bytes())
            .update(&length)
            .update(header)
            .update(compiled.as_bytes());
        hasher.finalize()
    }

    /// The header of an entry and what `load` makes of its code, if the entry exists, is authentic and loads.
    pub(crate) fn load<H: DeserializeOwned, T>(
        &self,
        name: &str,
        load: impl FnOnce(&H, CompiledCode) -> wasmtime::Result<T>,
    ) -> Option<(H, T)> {
        let file = folder::open_file(&self.path(name)).ok()?;
        let loaded = self.read::<H>(name, &file).and_then(|(header, compiled)| {
            let loaded = load(&header, compiled).map_err(EntryError::Load)?;
            Ok((header, loaded))
        });
        match loaded {
            Ok(loaded) => {
                // If this fails, the only effect is that the entry is evicted earlier.
                let _ = file.set_modified(SystemTime::now());
                Some(loaded)
            }
            Err(error) => {
                tracing::warn!(
                    entry = name,
                    "a cached component cannot be used ({error}); compiling it again"
                );
                None
            }
        }
    }

    /// Notes that an entry is in use, so that others are evicted before it.
    pub(crate) fn note_use(&self, name: &str) {
        // If this fails, the only effect is that the entry is evicted earlier.
        let _ = folder::open_file(&self.path(name))
            .and_then(|file| file.set_modified(SystemTime::now()));
    }

    fn read<H: DeserializeOwned>(
        &self,
        name: &str,
        file: &File,
    ) -> Result<(H, CompiledCode), EntryError> {
        let before = |end: u64, bytes: u64| end.checked_sub(bytes).ok_or(EntryError::NotAuthentic);
        let tail_at = before(file.metadata()?.len(), TAIL_BYTES as u64)?;
        let mut tail = [0; TAIL_BYTES];
        file.read_exact_at(&mut tail, tail_at)?;
        let (length, code) = tail.split_at(LENGTH_BYTES);
        let length: [u8; LENGTH_BYTES] = length.try_into().expect("split there");
        let code = Hash::from_slice(code).map_err(|_| EntryError::NotAuthentic)?;
        let wanted = u32::from_le_bytes(length);
        let header_at = before(tail_at, wanted.into())?;
        let mut header = vec![0; wanted as usize];
        file.read_exact_at(&mut header, header_at)?;
        let (compiled, hash) = CompiledCode::read(file, header_at, self.under_lease)?;
        // `blake3::Hash` compares in constant time.
        if self.code(name, &header, length, hash) != code {
            return Err(EntryError::NotAuthentic);
        }
        let header = serde_json::from_slice(&header)?;
        Ok((header, compiled))
    }

    /// Writes an entry, and evicts others if space is short. After a failure the next load compiles again.
    pub(crate) fn store(&self, name: &str, header: &impl Serialize, compiled: &[u8]) {
        if let Err(reason) = self.write(name, header, compiled) {
            tracing::warn!(
                entry = name,
                "a compiled component cannot be kept: {reason}"
            );
        }
    }

    fn write(&self, name: &str, header: &impl Serialize, compiled: &[u8]) -> io::Result<()> {
        let header = serde_json::to_vec(header)?;
        let length = u32::try_from(header.len()).map_err(io::Error::other)?;
        let length = length.to_le_bytes();
        let bytes = (compiled.len() + header.len() + TAIL_BYTES) as u64;
        // An entry larger than the limit would only evict all others.
        let Some(others) = self.max_bytes.checked_sub(bytes) else {
            return Ok(());
        };
        let code = self.code(name, &header, length, pieces::hash(compiled));
        evict(&self.folder, others)?;
        let pieces: [&[u8]; 4] = [compiled, &header, &length, code.as_bytes()];
        let temporary = write_new(&self.folder, &pieces)?;
        // Not flushed to disk: if the machine stops before it is there, the entry fails verification.
        fs::rename(&temporary, self.path(name)).inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
    }
}
