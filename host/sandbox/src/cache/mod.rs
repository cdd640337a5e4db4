//! Compiled components on disk: made by this program alone, authenticated, never an author's.
//!
//! Loading compiled code runs it, whatever it contains. So the folder is private (mode 0700), and every entry has a
//! keyed BLAKE3 over its name and content, under a key that only this user can read (0600). The bytes that are loaded
//! are those that were verified, in memory. An entry that fails verification is not an error but a miss: the component
//! is compiled again and the entry replaced.

mod eviction;
mod folder;
mod sealed;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wasmtime::Engine;
use wasmtime::component::Component;

use self::eviction::{EXTENSION, evict};
pub(crate) use self::folder::CacheError;
use self::folder::{KEY_BYTES, write_new};
use self::sealed::CompiledCode;
pub(crate) use self::sealed::trusted;

/// Length of the authentication code at the start of an entry.
const CODE_BYTES: usize = blake3::OUT_LEN;

/// Compiled components, by name.
pub(crate) struct Cache {
    folder: PathBuf,
    key: [u8; KEY_BYTES],
    max_bytes: u64,
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
    pub(crate) fn open(folder: &Path, max_bytes: u64) -> Result<Self, CacheError> {
        Ok(Self {
            folder: folder.to_owned(),
            key: folder::open(folder)?,
            max_bytes,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{EXTENSION}"))
    }

    /// The hasher of an entry's authentication code, before its header and its compiled code.
    fn hasher(&self, name: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(name.as_bytes());
        hasher
    }

    /// The header and the component of an entry, if it exists, is authentic and loads.
    pub(crate) fn load<H: DeserializeOwned>(
        &self,
        engine: &Engine,
        name: &str,
    ) -> Option<(H, Component)> {
        let file = File::open(self.path(name)).ok()?;
        let loaded = self.read(engine, name, &file);
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

    fn read<H: DeserializeOwned>(
        &self,
        engine: &Engine,
        name: &str,
        mut file: &File,
    ) -> Result<(H, Component), EntryError> {
        let mut code = [0; CODE_BYTES];
        file.read_exact(&mut code)?;
        let mut length = [0; 4];
        file.read_exact(&mut length)?;
        let mut header = Vec::new();
        let wanted = u32::from_le_bytes(length);
        file.take(wanted.into()).read_to_end(&mut header)?;
        let mut hasher = self.hasher(name);
        hasher.update(&length).update(&header);
        let compiled = CompiledCode::copy(file, &mut hasher)?;
        // `blake3::Hash` compares in constant time.
        if hasher.finalize() != code {
            return Err(EntryError::NotAuthentic);
        }
        let header = serde_json::from_slice(&header)?;
        let component = compiled.load(engine).map_err(EntryError::Load)?;
        Ok((header, component))
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
        let bytes = (CODE_BYTES + length.len() + header.len() + compiled.len()) as u64;
        // An entry larger than the limit would only evict all others.
        let Some(others) = self.max_bytes.checked_sub(bytes) else {
            return Ok(());
        };
        let mut hasher = self.hasher(name);
        hasher.update(&length).update(&header).update(compiled);
        let code = hasher.finalize();
        evict(&self.folder, others)?;
        let pieces: [&[u8]; 4] = [code.as_bytes(), &length, &header, compiled];
        let temporary = write_new(&self.folder, &pieces)?;
        let moved = fs::rename(&temporary, self.path(name))
            .and_then(|()| File::open(&self.folder)?.sync_all());
        moved.inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
    }
}
