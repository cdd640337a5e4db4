//! One component to prepare, and the result.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cache::CompiledCode;
use crate::guest::Gates;
use crate::record::Record;
use crate::wasi::data::DataSet;
use crate::wasi::files::FileGrant;

/// A component to prepare.
pub(crate) struct Job<'a> {
    pub(crate) plugin: Arc<str>,
    pub(crate) bytes: &'a [u8],
    pub(crate) config_json: &'a String,
    pub(crate) data: Arc<DataSet>,
    pub(crate) files: FileGrant,
    pub(crate) record: Arc<Record>,
    /// The gates that it imports. All of them are shut while it is prepared.
    pub(crate) gates: Gates,
}

/// Way in which the state after `init` reaches calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mode")]
pub enum InitMode {
    /// The component has no `rlf:plugin/lifecycle`: there is nothing to initialise.
    None,
    /// `init` ran once; every call starts from the memory it left.
    Snapshot,
    /// The memory cannot be kept, so `init` runs in every call: correct, but slower.
    PerCall {
        /// The reason, for the plugin's author.
        reason: String,
    },
}

/// Time and size of a template's preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preparation {
    /// True if the prepared component came from the cache: nothing ran, nothing was compiled.
    pub from_cache: bool,
    /// True if its functions were not compiled now, because the cache had their code: from the same preparation, or
    /// from one that left another memory.
    pub code_from_cache: bool,
    /// Time to run `init` and to keep its memory.
    pub prepare: Duration,
    /// Time to compile, or to load compiled code.
    pub compile: Duration,
    /// Size of the component that calls start from, with the kept memory.
    pub prepared_bytes: u64,
}

/// Facts about a prepared component. The cache keeps them beside its compiled code.
#[derive(Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) init: InitMode,
    pub(crate) prepared_bytes: u64,
    /// Name of the entry that has its code, if that is an entry of its own. What is kept here is then the image of its
    /// memory.
    #[serde(default)]
    pub(crate) code: Option<String>,
}

/// Facts about the compiled component that `init` runs in.
#[derive(Serialize, Deserialize)]
pub(crate) struct InitEntry {
    /// Name of the entry that has the code of calls.
    pub(crate) code: String,
}

/// Compiled code that earlier preparations of the same component left. It is trusted: only this program made it.
#[derive(Default)]
pub(crate) struct Earlier {
    /// The component that `init` runs in.
    pub(crate) init_code: Option<CompiledCode>,
    /// Name of the code of calls.
    pub(crate) code: Option<String>,
}

/// A prepared component, all its parts compiled and serialised.
pub(crate) struct Made {
    pub(crate) entry: Entry,
    /// The component. If `entry` names its code: the image of its memory.
    pub(crate) compiled: Vec<u8>,
    /// The code that `entry` names, unless it was there [earlier](Earlier::code).
    pub(crate) code: Option<Vec<u8>>,
    /// The component that `init` ran in, if it is worth keeping and was not there [earlier](Earlier::init_code).
    pub(crate) init_code: Option<Vec<u8>>,
    /// Time to run `init` and to keep its memory.
    pub(crate) prepare: Duration,
    /// Time to compile.
    pub(crate) compile: Duration,
}
