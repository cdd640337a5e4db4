//! The kinds of plugins, as the core sees them: each is a [`KindLoader`] that the crate of the kind implements.
//!
//! The core finds, admits and prepares components without knowing what they are for. A program chooses the kinds by the
//! list of loaders that it passes to [`Registry`](crate::registry::Registry).

use std::sync::Arc;

use rlf_sandbox::{Limits, Pool, ScratchFiles, State};
use serde_json::Value;
use wasmtime::component::InstancePre;

use crate::grants::PluginGrants;
use crate::manifest::PluginKind;
use crate::plugin::Exports;
use crate::problem::LoadRefusal;

/// The kinds of plugins that a program loads. A component of another kind becomes a problem of the registry.
pub type Kinds = &'static [&'static dyn KindLoader];

/// Loads the plugins of one kind.
pub trait KindLoader: Sync {
    /// The kind.
    fn kind(&self) -> PluginKind;

    /// Decides how a component is prepared, from the operator's grants. Blocks, because it may read files.
    /// `max_memory_bytes` is the most memory that the sandbox gives one instance.
    fn plan(
        &self,
        alias: &str,
        grants: &PluginGrants,
        max_memory_bytes: u64,
    ) -> Result<LoadPlan, LoadRefusal>;
}

/// Looks up the exports of a prepared component.
pub type FindExports =
    Box<dyn FnOnce(&InstancePre<State>) -> wasmtime::Result<Arc<dyn Exports>> + Send>;

/// The way in which a component is prepared.
pub struct LoadPlan {
    /// The pool in which its instances are counted.
    pub pool: Pool,
    /// The scratch directory of each call.
    pub files: Option<ScratchFiles>,
    /// The limits of loading, and of calls without limits of their own.
    pub limits: Limits,
    /// The files of an environment in Python. `init` finds them in its config under `environment`.
    pub environment: Option<Value>,
    /// Looks up the exports.
    pub exports: FindExports,
}

impl LoadPlan {
    /// Creates a plan for calls in `pool`, with the files and limits of the grants.
    pub fn new(
        pool: Pool,
        grants: &PluginGrants,
        exports: impl FnOnce(&InstancePre<State>) -> wasmtime::Result<Arc<dyn Exports>> + Send + 'static,
    ) -> Self {
        Self {
            pool,
            files: grants.files.clone(),
            limits: grants.limits.clone(),
            environment: None,
            exports: Box::new(exports),
        }
    }
}
