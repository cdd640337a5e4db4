//! What is to be prepared, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::guest::Gates;
use crate::record::Record;
use crate::wasi::data::DataSet;
use crate::wasi::files::FileGrant;

/// What is to be prepared.
pub(crate) struct Job<'a> {
    pub(crate) plugin: Arc<str>,
    pub(crate) bytes: &'a [u8],
    pub(crate) config_json: &'a String,
    pub(crate) data: Arc<DataSet>,
    pub(crate) files: FileGrant,
    pub(crate) record: Arc<Record>,
    /// What it imports of gates; all of them are shut here.
    pub(crate) gates: Gates,
}

/// How a template's state after `init` reaches its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mode")]
pub enum InitMode {
    /// The component has no `rlf:plugin/lifecycle`: there is nothing to initialise.
    None,
    /// `init` ran once; every call starts from the memory it left.
    Snapshot,
    /// The memory cannot be kept, so `init` runs in every call: correct, but slower.
    PerCall {
        /// What stands in the way, for the plugin's author.
        reason: String,
    },
}

/// What making a template took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preparation {
    /// True where compiled code came from the cache: nothing ran, nothing was compiled.
    pub from_cache: bool,
    /// Running `init` and keeping its memory.
    pub prepare: Duration,
    /// Compiling, or loading compiled code.
    pub compile: Duration,
    /// Size of the component that calls start from, with the kept memory.
    pub prepared_bytes: u64,
}

/// What is known of a prepared component beside its compiled code; kept with it in the cache.
#[derive(Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) init: InitMode,
    pub(crate) prepared_bytes: u64,
}
