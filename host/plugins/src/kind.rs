//! The kinds of plugins, as the core sees them: each is a [`KindLoader`] that the crate of the kind implements.
//!
//! The core finds, admits and prepares components without knowing what they are for. A program chooses the kinds by the
//! list of loaders that it passes to [`Registry`](crate::registry::Registry).
//!
//! Most kinds export one interface, and are prepared as their grants say. They implement [`Interface`], which makes them
//! a [`KindLoader`].

use std::any::Any;
use std::future::Future;
use std::sync::Arc;

use rlf_sandbox::{BoxFuture, FilesReport, Limits, Pool, ScratchFiles, State};
use serde_json::Value;
use wasmtime::component::InstancePre;

use crate::grants::PluginGrants;
use crate::manifest::PluginKind;
use crate::outcome::CallEnd;
use crate::plugin::{Exports, Plugin, ToolList, ToolRequest, no_tools};
use crate::problem::LoadRefusal;

/// The kinds of plugins that a program loads. A component of another kind becomes a problem of the registry.
pub type Kinds = &'static [&'static dyn KindLoader];

/// Loads the plugins of one kind.
pub trait KindLoader: Sync {
    /// The kind.
    fn kind(&self) -> PluginKind;

    /// Decides how a component is prepared, from the operator's grants. Blocks, because it may read files.
    /// `max_memory_bytes` is the maximum memory that the sandbox gives one instance.
    fn plan(
        &self,
        alias: &str,
        grants: &PluginGrants,
        max_memory_bytes: u64,
    ) -> Result<LoadPlan, LoadRefusal>;

    /// Like [`plan`](Self::plan), for a plugin of this kind that is a source file: the component is the interpreter's.
    /// `None` if a source file cannot be of this kind.
    fn plan_for_script(&self, grants: &PluginGrants) -> Option<LoadPlan> {
        let _ = grants;
        None
    }
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

/// Looks up the functions of an interface in a component.
pub type FindIndices<T> = fn(&InstancePre<State>) -> wasmtime::Result<T>;

/// Looks up the exports of an interpreter.
pub type FindInInterpreter = fn(&InstancePre<State>) -> wasmtime::Result<Arc<dyn Exports>>;

/// The interface that the components of one kind export.
pub trait Interface: Sync + 'static {
    /// The kind.
    const KIND: PluginKind;

    /// The pool in which the instances are counted.
    const POOL: Pool;

    /// The indices of the interface's functions. [`Plugin::exports`] returns them in an [`Arc`].
    type Indices: Send + Sync;

    /// Looks up the functions in a component.
    const FIND: FindIndices<Self::Indices>;

    /// Looks up the exports of an interpreter, for a plugin of this kind that is a source file. `None` if a source file
    /// cannot be of this kind.
    const FIND_IN_INTERPRETER: Option<FindInInterpreter> = None;

    /// See [`Exports::list`].
    fn list(
        indices: Arc<Self::Indices>,
        plugin: &Plugin,
    ) -> impl Future<Output = Result<Option<ToolList>, LoadRefusal>> + Send;

    /// See [`Exports::call_tool`].
    fn call_tool(
        indices: Arc<Self::Indices>,
        plugin: &Plugin,
        request: ToolRequest,
    ) -> impl Future<Output = (CallEnd, FilesReport)> + Send {
        let _ = (indices, plugin, request);
        async { no_tools() }
    }
}

impl<I: Interface> KindLoader for I {
    fn kind(&self) -> PluginKind {
        I::KIND
    }

    fn plan(&self, _: &str, grants: &PluginGrants, _: u64) -> Result<LoadPlan, LoadRefusal> {
        Ok(LoadPlan::new(I::POOL, grants, |pre| {
            let indices = Arc::new((I::FIND)(pre)?);
            Ok(Arc::new(InterfaceExports::<I> { indices }))
        }))
    }

    fn plan_for_script(&self, grants: &PluginGrants) -> Option<LoadPlan> {
        let find = I::FIND_IN_INTERPRETER?;
        Some(LoadPlan {
            // The interpreter keeps its files below the root.
            files: Some(grants.programs.files()),
            ..LoadPlan::new(I::POOL, grants, find)
        })
    }
}

/// The exports of a component of the kind `I`.
struct InterfaceExports<I: Interface> {
    indices: Arc<I::Indices>,
}

impl<I: Interface> Exports for InterfaceExports<I> {
    fn as_any(&self) -> &dyn Any {
        &self.indices
    }

    fn list<'a>(
        &'a self,
        plugin: &'a Plugin,
    ) -> BoxFuture<'a, Result<Option<ToolList>, LoadRefusal>> {
        Box::pin(I::list(Arc::clone(&self.indices), plugin))
    }

    fn call_tool<'a>(
        &'a self,
        plugin: &'a Arc<Plugin>,
        request: ToolRequest,
    ) -> BoxFuture<'a, (CallEnd, FilesReport)> {
        Box::pin(I::call_tool(Arc::clone(&self.indices), plugin, request))
    }
}
