//! Loading of an environment that is a component, for the core.

use std::sync::Arc;

use rlf_plugins::bindings::environment;
use rlf_plugins::kind::{FindIndices, Interface};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::plugin::{Plugin, ToolList};
use rlf_plugins::problem::{LoadRefusal, ProblemKind};
use rlf_sandbox::{Ending, Pool, Stopped};

/// The exports of an environment, as returned by [`Plugin::exports`].
pub(crate) type EnvironmentIndices = Arc<environment::GuestIndices>;

/// Loads environments that are components. To the core, environments in Python are interpreters, and `rlf-interpreters`
/// loads them.
#[derive(Debug)]
pub struct EnvironmentLoader;

impl Interface for EnvironmentLoader {
    const KIND: PluginKind = PluginKind::Environment;
    const POOL: Pool = Pool::Sessions;
    type Indices = environment::GuestIndices;
    const FIND: FindIndices<environment::GuestIndices> = environment::GuestIndices::new;

    /// Asks for the scenarios. Returns no tools, because they depend on the task.
    async fn list(_: EnvironmentIndices, plugin: &Plugin) -> Result<Option<ToolList>, LoadRefusal> {
        match list_scenarios(plugin).await {
            Ok(_) => Ok(None),
            Err(stopped) => Err(LoadRefusal::new(
                ProblemKind::Component,
                format!("scenarios did not return: {stopped}"),
                match stopped.ended {
                    Ending::MemoryLimit => {
                        "give it less data, or more memory: `limits.memory_bytes` in the configuration"
                    }
                    _ => "mend the environment, and build it against wit/",
                },
            )),
        }
    }
}

/// Asks an environment for its scenarios.
pub(crate) async fn list_scenarios(plugin: &Plugin) -> Result<Vec<environment::Scenario>, Stopped> {
    let Some(indices) = plugin.exports::<EnvironmentIndices>() else {
        return Ok(Vec::new());
    };
    let indices = Arc::clone(indices);
    plugin
        .ask("scenarios", move |store, instance| {
            Box::pin(async move {
                let guest = indices.load(&mut *store, &instance)?;
                guest.call_scenarios(store).await
            })
        })
        .await
}
