//! Compiled code that cannot be changed between check and use, and the only place that loads it.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;

use blake3::Hash;
use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use super::pieces;

/// Compiled code that is complete and that no one can change any more.
pub(crate) enum CompiledCode {
    /// An entry of the cache under a lease, from which pages are mapped when they are used. The code has this length.
    #[cfg(target_os = "linux")]
    Leased(File, u64),
    /// A sealed file in memory, from which pages are mapped when they are used. The code has this length.
    #[cfg(target_os = "linux")]
    Sealed(File, u64),
    /// A file of one of these kinds that the parent of this process has open, by its path.
    OfParent(PathBuf),
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
                return Ok((Self::Leased(leased, length), hash));
            }
            if linux::may_write(length)
                && let Ok((sealed, hash)) = linux::seal(entry, length)
            {
                return Ok((Self::Sealed(sealed, length), hash));
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = under_lease;
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        entry.read_exact_at(&mut bytes, 0)?;
        let hash = pieces::hash(&bytes);
        Ok((Self::Memory(bytes), hash))
    }

    /// Loads it as code that [`Component::serialize`] made for us. Everyone who has it got it from the cache, verified.
    pub(crate) fn component(&self, engine: &Engine) -> wasmtime::Result<Component> {
        self.load(
            #[cfg(target_os = "linux")]
            |path| linux::component(path, engine),
            |bytes| trusted(engine, bytes),
        )
    }

    /// Loads it as code that [`Module::serialize`] made for us.
    pub(crate) fn module(&self, engine: &Engine) -> wasmtime::Result<Module> {
        self.load(
            #[cfg(target_os = "linux")]
            |path| linux::module(path, engine),
            |bytes| trusted_module(engine, bytes),
        )
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> io::Result<Cow<'_, [u8]>> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Leased(file, length) | Self::Sealed(file, length) => {
                let mut bytes = vec![0; usize::try_from(*length).map_err(io::Error::other)?];
                file.read_exact_at(&mut bytes, 0)?;
                Ok(Cow::Owned(bytes))
            }
            Self::OfParent(path) => std::fs::read(path).map(Cow::Owned),
            Self::Memory(bytes) => Ok(Cow::Borrowed(bytes)),
        }
    }

    /// The path by which a child of this process loads it as [`OfParent`](Self::OfParent), as long as this exists.
    pub(crate) fn for_child(&self) -> Option<PathBuf> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Leased(file, _) | Self::Sealed(file, _) => Some(linux::path(file)),
            Self::OfParent(_) | Self::Memory(_) => None,
        }
    }

    fn load<T>(
        &self,
        #[cfg(target_os = "linux")] map: impl FnOnce(&Path) -> wasmtime::Result<T>,
        copy: impl FnOnce(&[u8]) -> wasmtime::Result<T>,
    ) -> wasmtime::Result<T> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Leased(file, _) => {
                // Never closed: the lease has to last as long as anything is mapped, and the process is short-lived.
                let kept = file.try_clone()?;
                let loaded = map(&linux::path(file))?;
                let _ = std::os::fd::IntoRawFd::into_raw_fd(kept);
                Ok(loaded)
            }
            #[cfg(target_os = "linux")]
            Self::Sealed(file, _) => map(&linux::path(file)),
            #[cfg(target_os = "linux")]
            Self::OfParent(path) => map(path),
            #[cfg(not(target_os = "linux"))]
            Self::OfParent(path) => copy(&std::fs::read(path)?),
            Self::Memory(bytes) => copy(bytes),
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};

    use blake3::Hash;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use rustix::process::{Resource, getrlimit};
    use wasmtime::component::Component;
    use wasmtime::{Engine, Module};

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
    pub(super) fn component(path: &Path, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize_file` runs native code on trust. No one can change the file between check and use: it
        // is sealed, or it is under a lease that lasts as long as this process, or as our parent, which ends us with
        // itself. The kernel ends the holder of a lease before it lets anyone write. Its bytes come out of an entry that carries a keyed hash made with a key that only this
        // user can read: they are what `Component::serialize` gave. That they fit this engine is checked by
        // wasmtime (`module_version` and settings).
        #[allow(unsafe_code)]
        unsafe {
            Component::deserialize_file(engine, path)
        }
    }

    /// Like [`component`], for a core module.
    pub(super) fn module(path: &Path, engine: &Engine) -> wasmtime::Result<Module> {
        // SAFETY: as for a component above; its bytes are what `Module::serialize` gave.
        #[allow(unsafe_code)]
        unsafe {
            Module::deserialize_file(engine, path)
        }
    }

    /// The path of an open file, for this process and its children.
    pub(super) fn path(file: &File) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
    }
}

/// Loads code that [`Component::serialize`] made for us, in this process, in our own child, or in our parent.
pub(crate) fn trusted(engine: &Engine, compiled: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize` runs native code on trust. These bytes are in our own memory, where no one
    // can change them. They come over a pipe that only our own child or our parent holds, or out of an entry that
    // carries our keyed hash, and are what `Component::serialize` gave. That they fit this engine is checked by wasmtime
    // (`module_version` and settings).
    #[allow(unsafe_code)]
    unsafe {
        Component::deserialize(engine, compiled)
    }
}

/// Loads code that [`Module::serialize`] made for us, in this process or in our own child.
pub(crate) fn trusted_module(engine: &Engine, compiled: &[u8]) -> wasmtime::Result<Module> {
    // SAFETY: as in `trusted`; the bytes are what `Module::serialize` gave.
    #[allow(unsafe_code)]
    unsafe {
        Module::deserialize(engine, compiled)
    }
}
