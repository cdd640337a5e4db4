//! Compiled code that cannot be changed between check and use, and the only place that loads it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use blake3::Hash;
use wasmtime::Engine;
use wasmtime::component::Component;

use super::pieces;

/// Compiled code that is complete and that no one can change any more.
pub(super) enum CompiledCode {
    /// An entry of the cache under a lease, from which pages are mapped when they are used.
    #[cfg(target_os = "linux")]
    Leased(File),
    /// A sealed file in memory, from which pages are mapped when they are used.
    #[cfg(target_os = "linux")]
    Sealed(File),
    /// Memory of this process.
    Memory(Vec<u8>),
}

impl CompiledCode {
    /// Takes the first `length` bytes of an entry, and returns their hash too. They are not copied if `under_lease` is
    /// set and the kernel gives a lease.
    pub(super) fn read(entry: &File, length: u64, under_lease: bool) -> io::Result<(Self, Hash)> {
        #[cfg(target_os = "linux")]
        {
            if under_lease && let Some(leased) = super::lease::take(entry) {
                let hash = pieces::hash_file(&leased, length, |_, _| Ok(()))?;
                return Ok((Self::Leased(leased), hash));
            }
            if linux::may_write(length)
                && let Ok((sealed, hash)) = linux::seal(entry, length)
            {
                return Ok((Self::Sealed(sealed), hash));
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = under_lease;
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        entry.read_exact_at(&mut bytes, 0)?;
        let hash = pieces::hash(&bytes);
        Ok((Self::Memory(bytes), hash))
    }

    /// Loads it as code that [`Component::serialize`] made for us. The caller has verified it.
    pub(super) fn load(self, engine: &Engine) -> wasmtime::Result<Component> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Leased(file) => {
                let component = linux::load(&file, engine)?;
                // Never closed: the lease has to last as long as anything is mapped, and the process is short-lived.
                let _ = std::os::fd::IntoRawFd::into_raw_fd(file);
                Ok(component)
            }
            #[cfg(target_os = "linux")]
            Self::Sealed(file) => linux::load(&file, engine),
            Self::Memory(bytes) => trusted(engine, &bytes),
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    use blake3::Hash;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use rustix::process::{Resource, getrlimit};
    use wasmtime::Engine;
    use wasmtime::component::Component;

    use super::pieces;

    /// True if this process may write a file of `bytes`. A limit on the size of files counts files in memory too, and
    /// a write beyond it ends the process.
    pub(super) fn may_write(bytes: u64) -> bool {
        getrlimit(Resource::Fsize)
            .current
            .is_none_or(|limit| bytes <= limit)
    }

    /// Copies the first `length` bytes of `entry` into a file in memory, and seals it. The hash is that of the bytes
    /// that were copied.
    pub(super) fn seal(entry: &File, length: u64) -> io::Result<(File, Hash)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("rlf-compiled", flags)?);
        let copy = |piece: &[u8], start: u64| file.write_all_at(piece, start);
        let hash = pieces::hash_file(entry, length, copy)?;
        fcntl_add_seals(
            &file,
            SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
        )?;
        Ok((file, hash))
    }

    /// Loads a sealed file, or an entry under a lease. Only pages that are used are mapped, and instances share the
    /// image of their memory with it: nothing is copied again.
    pub(super) fn load(file: &File, engine: &Engine) -> wasmtime::Result<Component> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: `deserialize_file` runs native code on trust. No one can change the file between check and use: it
        // is sealed, or it is under a lease that lasts as long as this process, and the kernel ends this process before
        // it lets anyone write. Its bytes come out of an entry that carries a keyed hash made with a key that only this
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
