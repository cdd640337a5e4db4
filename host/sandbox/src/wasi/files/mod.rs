//! `wasi:filesystem` for guests that are granted files: a scratch directory in memory, which every call finds
//! empty, or a real directory of the host.
//!
//! Without a grant a guest has wasmtime-wasi's file system, with nothing preopened. With one, its template has its own
//! linker, in which `wasi:filesystem` is replaced, so other templates pay nothing.
//!
//! - `grant`: the scratch directory that an operator configures
//! - `tree`, `names`, `path`: the directory tree, plain data
//! - `handle`, `interface`, `stream`: the tree as WASI shows it
//! - `host`: the real directory, its writes counted

mod grant;
mod handle;
mod host;
mod interface;
#[cfg(test)]
mod model;
mod names;
mod path;
mod stream;
mod tree;

use std::path::Path;
use std::sync::Arc;

use wasmtime_wasi::WasiCtxBuilder;

pub use grant::{FilesError, ScratchFiles};
pub(crate) use handle::Scratch;
pub(crate) use host::{HasHost, HostDirectory, HostView};
pub(crate) use interface::{HasScratch, ScratchView};

use crate::report::FilesReport;

/// The files that calls of one template get.
#[derive(Clone, Default)]
pub(crate) enum FileGrant {
    #[default]
    None,
    Scratch(Arc<ScratchFiles>),
    Host(Arc<Path>),
}

impl FileGrant {
    /// Checks the grants.
    pub(crate) fn new(
        scratch: Option<&ScratchFiles>,
        host_directory: Option<&Path>,
    ) -> Result<Self, FilesError> {
        match (scratch, host_directory) {
            (None, None) => Ok(Self::None),
            (Some(files), None) => {
                files.check()?;
                Ok(Self::Scratch(Arc::new(files.clone())))
            }
            (None, Some(path)) if path.is_dir() => Ok(Self::Host(Arc::from(path))),
            (None, Some(path)) => Err(FilesError::NoHostDirectory(path.to_owned())),
            (Some(_), Some(_)) => Err(FilesError::Both),
        }
    }

    /// The parts that a snapshot of `init` may depend on, for the cache's key.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Scratch(files) => {
                let ScratchFiles {
                    at,
                    bytes,
                    entries,
                    depth,
                    outputs: _,
                } = &**files;
                format!("scratch {bytes} {entries} {depth} {at}")
            }
            // Its path is left out, because nothing in it is ever kept.
            Self::Host(_) => "host".to_owned(),
        }
    }

    /// The reason that no snapshot of `init` can be kept, if there is one. (An `init` that opens scratch files holds
    /// handles, which is noticed after it ran.)
    pub(crate) fn forbids_snapshot(&self) -> Option<String> {
        matches!(self, Self::Host(_)).then(|| {
            "a directory of the host is granted, and what `init` may read there can change"
                .to_owned()
        })
    }

    /// Files for one call, of at most `bytes` if that is less than the grant allows.
    pub(crate) fn open(&self, bytes: Option<u64>) -> Files {
        match self {
            Self::None => Files::None,
            Self::Scratch(grant) => Files::Scratch(Scratch::new(match bytes {
                Some(bytes) if bytes < grant.bytes => Arc::new(ScratchFiles {
                    bytes,
                    ..ScratchFiles::clone(grant)
                }),
                _ => Arc::clone(grant),
            })),
            Self::Host(path) => Files::Host(HostDirectory::new(Arc::clone(path))),
        }
    }
}

/// The files of one call. Clones share them.
#[derive(Clone, Default)]
pub(crate) enum Files {
    #[default]
    None,
    Scratch(Arc<Scratch>),
    Host(Arc<HostDirectory>),
}

impl Files {
    pub(crate) fn scratch(&self) -> Option<&Arc<Scratch>> {
        match self {
            Self::Scratch(scratch) => Some(scratch),
            _ => None,
        }
    }

    pub(crate) fn host(&self) -> Option<&Arc<HostDirectory>> {
        match self {
            Self::Host(directory) => Some(directory),
            _ => None,
        }
    }

    /// Gives the directory of the host, if that is granted, to wasmtime-wasi.
    pub(crate) fn preopen(&self, builder: &mut WasiCtxBuilder) {
        if let Self::Host(directory) = self {
            directory.preopen(builder);
        }
    }

    /// Report of the files when the call is over. It takes the outputs out, so it works once.
    pub(crate) fn report(&self, succeeded: bool) -> FilesReport {
        match self {
            Self::None => FilesReport::default(),
            Self::Scratch(scratch) => scratch.report(succeeded),
            Self::Host(directory) => directory.report(),
        }
    }
}
