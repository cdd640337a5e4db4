//! Reasons that a component is not loaded.

use crate::contract::CONTRACT;
use crate::limits::LimitsError;
use crate::record::Record;
use crate::report::shortened;
use crate::wasi::data::DataError;
use crate::wasi::files::FilesError;

/// Reason that a component is not loaded, in one line. The caller adds the plugin's name.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read it: {0}; check the disk and the permissions")]
    Read(#[from] std::io::Error),
    /// The file is not WebAssembly.
    #[error(
        "not WebAssembly (it begins with {start:?}); a plugin is a component, built for wasm32-wasip2"
    )]
    NotWasm {
        /// The first characters of the file.
        start: String,
    },
    /// The file is WebAssembly, but not a component.
    #[error("a core module, not a component; build it with `cargo build --target wasm32-wasip2`")]
    CoreModule,
    /// The file is native code, which is never loaded from others.
    #[error(
        "compiled code (.cwasm), which is never loaded; give the .wasm component it was made from"
    )]
    Precompiled,
    /// The file is truncated or broken.
    #[error("damaged: {reason}; build or download it again")]
    Damaged {
        /// The parser's error and its place.
        reason: String,
    },
    /// The file is too large to be read.
    #[error("{size} bytes; components of more than {limit} bytes are refused")]
    TooLarge {
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The component imports interfaces that this host does not give it.
    #[error("it imports what this host does not give it: {}", .missing.join("; "))]
    Imports {
        /// One sentence for each of them.
        missing: Vec<String>,
    },
    /// Its `lifecycle` has another version of the contract.
    #[error(
        "built for version {found} of rlf:plugin, this host speaks {CONTRACT}; build it against {CONTRACT}"
    )]
    Contract {
        /// The component's version.
        found: String,
    },
    /// Data bound to it cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Its files cannot be given as granted.
    #[error("files: {0}")]
    Files(#[from] FilesError),
    /// Its limits cannot be kept.
    #[error("limits: {0}")]
    Limits(#[from] LimitsError),
    /// The component is invalid, or does not fit the contract or the pools.
    #[error("it does not compile or link: {reason}")]
    Compile {
        /// The error of wasmtime.
        reason: String,
    },
    /// The component could not be prepared within its limits of time and memory, or preparing it failed.
    #[error("{reason}")]
    Preparation {
        /// The limit, or the failure.
        reason: String,
    },
    /// Its `init` returned the error `invalid-arguments`: it refuses its config.
    #[error("its init failed: invalid arguments: {reason}{}", and_printed(.printed))]
    Config {
        /// The text of its error.
        reason: String,
        /// The standard error of `init` until then, shortened.
        printed: String,
    },
    /// Its `init` returned another error, broke, or reached a limit.
    #[error("its init failed: {reason}{}", and_printed(.printed))]
    Init {
        /// The error of `init`, or the reason why `init` was stopped.
        reason: String,
        /// Its standard error before that, shortened.
        printed: String,
    },
}

impl LoadError {
    pub(crate) fn compile(error: &wasmtime::Error) -> Self {
        Self::Compile {
            reason: format!("{error:#}"),
        }
    }

    pub(crate) fn config(reason: String, record: &Record) -> Self {
        let printed = printed(record);
        Self::Config { reason, printed }
    }

    pub(crate) fn init(reason: String, record: &Record) -> Self {
        let printed = printed(record);
        Self::Init { reason, printed }
    }
}

/// The standard error of `init` on one line, shortened.
fn printed(record: &Record) -> String {
    let printed = record.take_output()[1].captured().text;
    let printed = printed.trim().lines().collect::<Vec<_>>().join(" | ");
    shortened(printed, 1000)
}

fn and_printed(printed: &str) -> String {
    if printed.is_empty() {
        return String::new();
    }
    format!("; it printed: {printed}")
}
