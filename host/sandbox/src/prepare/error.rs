//! Why a component is not loaded.

use crate::contract::CONTRACT;
use crate::record::Record;
use crate::report::shortened;
use crate::wasi::data::DataError;

/// A component that is not loaded, and why. One line each; the plugin's name is the caller's to add.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Some other file.
    #[error(
        "not WebAssembly (it begins with {start:?}); a plugin is a component, built for wasm32-wasip2"
    )]
    NotWasm {
        /// Its first characters.
        start: String,
    },
    /// WebAssembly, but not a component.
    #[error("a core module, not a component; build it with `cargo build --target wasm32-wasip2`")]
    CoreModule,
    /// Native code, which is never loaded from others.
    #[error(
        "compiled code (.cwasm), which is never loaded; give the .wasm component it was made from"
    )]
    Precompiled,
    /// Truncated or broken.
    #[error("damaged: {reason}; build or download it again")]
    Damaged {
        /// What the parser met, and where.
        reason: String,
    },
    /// Too big to look at.
    #[error(
        "{size} bytes; components of more than {limit} are refused (the sandbox's max_component_bytes)"
    )]
    TooLarge {
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// Imports that are not there; all of them.
    #[error("it imports what this host does not give it: {}", .missing.join("; "))]
    Imports {
        /// One sentence for each.
        missing: Vec<String>,
    },
    /// Its `lifecycle` is of another version of the contract.
    #[error(
        "built for version {found} of rlf:plugin, this host speaks {CONTRACT}; build it against {CONTRACT}"
    )]
    Contract {
        /// The component's version.
        found: String,
    },
    /// Data that cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Files that cannot be given as the grant says.
    #[error("files: {0}")]
    Files(String),
    /// Limits that cannot hold.
    #[error("limits: {0}")]
    Limits(String),
    /// Invalid, or of a shape that does not fit the contract or the pools.
    #[error("it does not compile or link: {reason}")]
    Compile {
        /// What wasmtime said.
        reason: String,
    },
    /// It could not be prepared within the limits on that.
    #[error("{reason}")]
    Preparation {
        /// Which limit, or what broke.
        reason: String,
    },
    /// Its `init` said no, broke, or ran into a limit.
    #[error("its init failed: {reason}{}", if .printed.is_empty() { String::new() } else { format!("; it printed: {printed}") })]
    Init {
        /// What it said, or what stopped it.
        reason: String,
        /// The end of what it printed before.
        printed: String,
    },
}

impl LoadError {
    pub(crate) fn compile(error: &wasmtime::Error) -> Self {
        Self::Compile {
            reason: format!("{error:#}"),
        }
    }

    pub(crate) fn init(reason: String, record: &Record) -> Self {
        let printed = record.take_output()[1].captured().text;
        let printed = printed.trim().lines().collect::<Vec<_>>().join(" | ");
        Self::Init {
            reason,
            printed: shortened(printed, 1000),
        }
    }
}
