//! Loading of an interpreter, and calls of the tools that it offers, for the core.

use std::any::Any;
use std::error::Error;
use std::sync::{Arc, OnceLock};

use rlf_plugins::bindings::interpreter;
use rlf_plugins::convert::definition_to_guest;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::kind::{KindLoader, LoadPlan};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::outcome::CallEnd;
use rlf_plugins::plugin::{Exports, Plugin, ToolList, ToolRequest};
use rlf_plugins::problem::{LoadRefusal, ProblemKind};
use rlf_plugins::programs::ProgramLimits;
use rlf_plugins::python_environment::PythonEnvironment;
use rlf_sandbox::{BoxFuture, FilesReport, Pool};

use crate::functions::{self, FunctionSources, Functions};
use crate::language::{Loaded, check_languages, language};
use crate::tool;

/// Loads plugins that run programs.
#[derive(Debug)]
pub struct InterpreterLoader;

impl KindLoader for InterpreterLoader {
    fn kind(&self) -> PluginKind {
        PluginKind::Interpreter
    }

    fn plan(
        &self,
        alias: &str,
        grants: &PluginGrants,
        max_memory_bytes: u64,
    ) -> Result<LoadPlan, LoadRefusal> {
        check(alias, grants)?;
        let refused = |key: &str, error: &dyn Error| {
            let mend = format!("correct `{key}` in [plugins.{alias}], or what lies there");
            LoadRefusal::new(ProblemKind::Grants, error.to_string(), mend)
        };
        let sources = (grants.functions.as_deref())
            .map(FunctionSources::read)
            .transpose()
            .map_err(|error| refused("functions", &error))?;
        let environment = (grants.environment.as_ref())
            .map(PythonEnvironment::read)
            .transpose()
            .map_err(|error| refused("environment", &error))?;
        let programs = &grants.programs;
        let wanted = ProgramLimits::default();
        let mut limits = programs.limits(&grants.limits, &wanted, max_memory_bytes);
        // The limit of memory for loading. Programs have limits of their own.
        limits.memory_bytes = max_memory_bytes;
        let pool = if environment.is_some() {
            Pool::Sessions
        } else {
            Pool::Programs
        };
        let plan = LoadPlan::new(pool, grants, |pre| {
            let indices = Arc::new(interpreter::GuestIndices::new(pre)?);
            let loaded = Loaded {
                indices,
                languages: OnceLock::new(),
            };
            Ok(Arc::new(InterpreterExports {
                loaded,
                sources,
                functions: OnceLock::new(),
            }))
        });
        Ok(LoadPlan {
            files: Some(programs.files()),
            limits,
            environment,
            ..plan
        })
    }
}

/// Refuses grants that make no sense for an interpreter.
fn check(alias: &str, grants: &PluginGrants) -> Result<(), LoadRefusal> {
    let what = if grants.files.is_some() || grants.unsandboxed_host_directory.is_some() {
        "an interpreter gives every program files of its own (`programs.file_bytes`)"
    } else if grants.functions.is_some() && grants.environment.is_some() {
        "`functions` have no state and an `environment` has one: an interpreter serves one of the two"
    } else if !grants.programs.tools.is_empty()
        && (grants.functions.is_some() || grants.environment.is_some())
    {
        "`programs.tools` are for programs, and this interpreter runs none"
    } else {
        return Ok(());
    };
    let mend = format!("leave it out of [plugins.{alias}]");
    Err(LoadRefusal::new(ProblemKind::Grants, what, mend))
}

struct InterpreterExports {
    loaded: Loaded,
    /// The sources of the functions that it offers as tools, if its grants name a folder of them.
    sources: Option<FunctionSources>,
    functions: OnceLock<Functions>,
}

impl InterpreterExports {
    /// Asks for its languages.
    async fn list_languages(&self, plugin: &Plugin) -> Result<(), LoadRefusal> {
        let refused = |what| LoadRefusal::new(ProblemKind::Component, what, "mend the interpreter");
        let indices = Arc::clone(&self.loaded.indices);
        let listed = plugin
            .ask("languages", move |store, instance| {
                Box::pin(async move {
                    let guest = indices.load(&mut *store, &instance)?;
                    guest.call_languages(store).await
                })
            })
            .await
            .map_err(|stopped| refused(format!("languages did not return: {stopped}")))?;
        let languages = check_languages(listed).map_err(|error| refused(error.to_string()))?;
        self.loaded.languages.get_or_init(|| languages);
        Ok(())
    }
}

impl Exports for InterpreterExports {
    fn as_any(&self) -> &dyn Any {
        &self.loaded
    }

    fn list<'a>(
        &'a self,
        plugin: &'a Plugin,
    ) -> BoxFuture<'a, Result<Option<ToolList>, LoadRefusal>> {
        Box::pin(async move {
            self.list_languages(plugin).await?;
            let is_python = language(plugin, "python").is_some();
            if !plugin.grants().programs.tools.is_empty() && !is_python {
                let what = "`programs.tools` are for programs in Python, and it runs none";
                let mend = format!("leave it out of [plugins.{}]", plugin.name());
                return Err(LoadRefusal::new(ProblemKind::Grants, what, mend));
            }
            if let Err(what) = tool::check_function_names(&plugin.grants().programs.tools) {
                let mend = "leave it out of `programs.tools`, or rename it in the table of its plugin or server";
                return Err(LoadRefusal::new(ProblemKind::Grants, what, mend));
            }
            if plugin.is_environment() {
                return Ok(None);
            }
            let definitions = match &self.sources {
                Some(sources) => {
                    let compiled = sources.compile(plugin).await.map_err(|problem| {
                        LoadRefusal::new(ProblemKind::Grants, problem.what, problem.mend)
                    })?;
                    self.functions.get_or_init(|| compiled);
                    sources.definitions.clone()
                }
                None => tool::definitions(plugin),
            };
            Ok(Some(ToolList {
                listed: definitions.iter().map(definition_to_guest).collect(),
                mend: format!("correct `functions` of [plugins.{}]", plugin.name()),
            }))
        })
    }

    fn call_tool<'a>(
        &'a self,
        plugin: &'a Arc<Plugin>,
        request: ToolRequest,
    ) -> BoxFuture<'a, (CallEnd, FilesReport)> {
        Box::pin(async move {
            let end = match self.functions.get() {
                Some(functions) => functions::call(plugin, functions, request).await,
                None => tool::call(plugin, request).await,
            };
            (end, FilesReport::default())
        })
    }
}
