//! Compiled code in sealed memory that cannot be changed, and the only place that loads it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use wasmtime::Engine;
use wasmtime::component::Component;

/// Compiled code that is complete and that no one can change any more.
pub(super) enum CompiledCode {
    /// A sealed file in memory, from which pages are mapped when they are used.
    #[cfg(target_os = "linux")]
    Sealed(File),
    /// Memory of this process.
    Memory(Vec<u8>),
}

impl CompiledCode {
    /// Copies the rest of `from`, and shows it to `hasher`.
    pub(super) fn copy(mut from: &File, hasher: &mut blake3::Hasher) -> io::Result<Self> {
        let start = from.stream_position()?;
        #[cfg(target_os = "linux")]
        if linux::may_write(from.metadata()?.len()) {
            let mut seen = hasher.clone();
            if let Ok(sealed) = linux::seal(from, &mut seen) {
                *hasher = seen;
                return Ok(Self::Sealed(sealed));
            }
        }
        from.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        hasher.update(&bytes);
        Ok(Self::Memory(bytes))
    }

    /// Loads it as code that [`Component::serialize`] made for us. The caller has verified it.
    pub(super) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Sealed(file) => linux::load(file, engine),
            Self::Memory(bytes) => trusted(engine, bytes),
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::{self, Read, Write};
    use std::os::fd::AsRawFd;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use rustix::process::{Resource, getrlimit};
    use wasmtime::Engine;
    use wasmtime::component::Component;

    /// Bytes that are read, hashed and written at a time: few enough to stay in a processor's cache.
    const CHUNK_BYTES: usize = 256 << 10;

    /// Whether this process may write a file of `bytes`. A limit on the size of files counts files in memory too, and
    /// a write beyond it ends the process.
    pub(super) fn may_write(bytes: u64) -> bool {
        getrlimit(Resource::Fsize)
            .current
            .is_none_or(|limit| bytes <= limit)
    }

    /// Copies the rest of `from` into a file in memory, shows every piece to `hasher`, and seals the file.
    pub(super) fn seal(mut from: impl Read, hasher: &mut blake3::Hasher) -> io::Result<File> {
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
        Ok(file)
    }

    /// Loads a sealed file. Only pages that are used are mapped, and instances share the image of their memory with
    /// it: nothing is copied again.
    pub(super) fn load(file: &File, engine: &Engine) -> wasmtime::Result<Component> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
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
    // can change them. They come over a pipe that only our own child holds, or out of an entry that
    // carries our keyed hash, and are what `Component::serialize` gave. That they fit this engine is checked by wasmtime
    // (`module_version` and settings).
    #[allow(unsafe_code)]
    unsafe {
        Component::deserialize(engine, compiled)
    }
}
