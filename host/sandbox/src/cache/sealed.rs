//! Compiled code in sealed memory that cannot be changed, and the only place that loads it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use wasmtime::Engine;
use wasmtime::component::Component;

/// Bytes that are read, hashed and written at a time: few enough to stay in a processor's cache.
const CHUNK_BYTES: usize = 256 << 10;

/// A file in memory that is complete and cannot be written any more.
pub(super) struct Sealed(File);

impl Sealed {
    /// Copies the rest of `from`, and passes every piece to `hasher`.
    pub(super) fn copy(mut from: impl Read, hasher: &mut blake3::Hasher) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create("rlf-compiled", flags)?);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = match from.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            hasher.update(&chunk[..read]);
            file.write_all(&chunk[..read])?;
        }
        fcntl_add_seals(
            &file,
            SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
        )?;
        Ok(Self(file))
    }

    /// Loads the file as code that [`Component::serialize`] made for this program. The caller has verified it.
    ///
    /// Only used pages are mapped, and instances share the image of their memory with the file: nothing is copied
    /// again.
    pub(super) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        // SAFETY: `deserialize_file` runs native code on trust. The file is sealed, so no one can change it between
        // check and use. Its bytes come out of an entry that carries a keyed hash made with a key that only this
        // user can read: they are what `Component::serialize` gave. That they fit this engine is checked by
        // wasmtime (`module_version` and settings).
        #[allow(unsafe_code)]
        unsafe {
            Component::deserialize_file(engine, path)
        }
    }
}

/// Loads code that [`Component::serialize`] made for us, in this process or in our own child.
pub(crate) fn trusted(engine: &Engine, compiled: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize` runs native code on trust. These bytes are in our own memory, where no one
    // can change them. They come over a pipe that only our own child holds, and are what
    // `Component::serialize` gave. That they fit this engine is checked by wasmtime
    // (`module_version` and settings).
    #[allow(unsafe_code)]
    unsafe {
        Component::deserialize(engine, compiled)
    }
}
