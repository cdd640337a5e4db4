//! Compiled components on disk: ours alone, authenticated, never an author's.
//!
//! Loading compiled code runs whatever it says, so the folder is private (mode 0700, ours), every
//! entry carries a keyed BLAKE3 over its name and content under a key only we can read (0600), and
//! what is loaded are the very bytes that were verified, from memory. An entry that does not verify
//! is not an error but a miss: the component is compiled again and the entry replaced.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Length of the authentication code at the start of an entry, and of the key.
const CODE: usize = 32;

pub(crate) struct Cache {
    folder: PathBuf,
    key: [u8; CODE],
}

impl Cache {
    /// Opens the folder, making it and its key if they are missing. The error says why it is not used.
    pub(crate) fn open(folder: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{}: {error}", folder.display());
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
        let metadata = fs::symlink_metadata(folder).map_err(failed)?;
        if !metadata.is_dir() {
            return Err(format!("{} is not a directory", folder.display()));
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
            return Err(format!(
                "others can enter {0}; `chmod 700 {0}`, or name another folder",
                folder.display()
            ));
        }
        let key = read_or_make_key(folder).map_err(failed)?;
        Ok(Self {
            folder: folder.to_owned(),
            key,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.cwasm"))
    }

    fn code(&self, name: &str, content: &[u8]) -> blake3::Hash {
        blake3::Hasher::new_keyed(&self.key)
            .update(name.as_bytes())
            .update(content)
            .finalize()
    }

    /// The header and the component of the entry of that name, if it is there and authentic and loads.
    pub(crate) fn load<H: DeserializeOwned>(
        &self,
        engine: &Engine,
        name: &str,
    ) -> Option<(H, Component)> {
        let mut bytes = Vec::new();
        File::open(self.path(name))
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .ok()?;
        let (code, content) = bytes.split_at_checked(CODE)?;
        // `blake3::Hash` compares in constant time.
        if blake3::Hash::from_slice(code).ok()? != self.code(name, content) {
            tracing::warn!(
                entry = name,
                "a cached component is not what was written; compiling it again"
            );
            return None;
        }
        let (length, rest) = content.split_first_chunk::<4>()?;
        let (header, compiled) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let header = serde_json::from_slice(header).ok()?;
        match trusted(engine, compiled) {
            Ok(component) => Some((header, component)),
            Err(error) => {
                tracing::warn!(
                    entry = name,
                    "a cached component does not load ({error:#}); compiling it again"
                );
                None
            }
        }
    }

    /// Writes an entry. A failure costs the next load its time and nothing else.
    pub(crate) fn store(&self, name: &str, header: &impl Serialize, compiled: &[u8]) {
        let written = || -> Result<(), String> {
            let header = serde_json::to_vec(header).map_err(|error| error.to_string())?;
            let mut content = u32::try_from(header.len())
                .map_err(|error| error.to_string())?
                .to_le_bytes()
                .to_vec();
            content.extend_from_slice(&header);
            content.extend_from_slice(compiled);
            let code = self.code(name, &content);
            let temporary = write_new(&self.folder, &[code.as_bytes(), &content])
                .map_err(|error| error.to_string())?;
            let moved = fs::rename(&temporary, self.path(name))
                .and_then(|()| File::open(&self.folder)?.sync_all());
            moved.map_err(|error| {
                let _ = fs::remove_file(&temporary);
                error.to_string()
            })
        };
        if let Err(reason) = written() {
            tracing::warn!(
                entry = name,
                "a compiled component cannot be kept: {reason}"
            );
        }
    }
}

/// Loads code that [`Component::serialize`] made for us.
pub(crate) fn trusted(engine: &Engine, compiled: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize` runs native code on trust. These bytes lie in our own memory, where no one
    // can change them between check and use. They come either out of an entry that carries a keyed hash
    // made with a key that only this user can read, or over a pipe that only our own child holds; both
    // are what `Component::serialize` gave. That they fit this engine is checked by wasmtime
    // (`module_version` and settings).
    #[allow(unsafe_code)]
    unsafe {
        Component::deserialize(engine, compiled)
    }
}

/// Writes a file of a name that nobody else uses, for us alone, through to the disk.
fn write_new(folder: &Path, pieces: &[&[u8]]) -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let path = folder.join(format!(
        ".new-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ));
    let write = || {
        // A file left by a process of the same id that died: nobody is writing it.
        let _ = fs::remove_file(&path);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        for piece in pieces {
            file.write_all(piece)?;
        }
        file.sync_all()
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&path);
    })?;
    Ok(path)
}

/// The folder's key. Of two processes that make one at once, both use the one that came first.
fn read_or_make_key(folder: &Path) -> io::Result<[u8; CODE]> {
    let path = folder.join("key");
    if !path.exists() {
        let mut fresh = [0; CODE];
        File::open("/dev/urandom")?.read_exact(&mut fresh)?;
        let temporary = write_new(folder, &[&fresh])?;
        // Unlike a rename, a link never replaces.
        let linked = fs::hard_link(&temporary, &path);
        fs::remove_file(&temporary)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let file = File::open(&path)?;
    let metadata = file.metadata()?;
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other(
            "others can read its `key`; remove the folder",
        ));
    }
    let mut key = [0; CODE];
    (&file).read_exact(&mut key)?;
    Ok(key)
}
