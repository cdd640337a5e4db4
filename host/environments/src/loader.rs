//! Loading of an environment that is a component, for the core.

use std::any::Any;
use std::sync::Arc;

use rlf_plugins::bindings::environment;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::kind::{KindLoader, LoadPlan};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::plugin::{Exports, Plugin, ToolList};
use rlf_plugins::problem::{LoadRefusal, ProblemKind};
use rlf_sandbox::{BoxFuture, Pool, Stopped};

/// The exports of an environment, as returned by [`Plugin::exports`].
pub(crate) type EnvironmentIndices = Arc<environment::GuestIndices>;

/// Loads environments that are components. To the core, environments in Python are interpreters, and `rlf-interpreters`
/// loads them.
#[derive(Debug)]
pub struct EnvironmentLoader;

impl KindLoader for EnvironmentLoader {
    fn kind(&self) -> PluginKind {
        PluginKind::Environment
    }

    fn plan(&self, _: &str, grants: &PluginGrants, _: u64) -> Result<LoadPlan, LoadRefusal> {
        Ok(LoadPlan::new(Pool::Sessions, grants, |pre| {
            let indices = Arc::new(environment::GuestIndices::new(pre)?);
            Ok(Arc::new(EnvironmentExports { indices }))
        }))
    }
}

struct EnvironmentExports {
    indices: EnvironmentIndices,
}

impl Exports for EnvironmentExports {
    fn as_any(&self) -> &dyn Any {
        &self.indices
    }

    /// Asks for the scenarios. Returns no tools, because they depend on the task.
    fn list<'a>(
        &'a self,
        plugin: &'a Plugin,
    ) -> BoxFuture<'a, Result<Option<ToolList>, LoadRefusal>> {
        Box::pin(async move {
            match list_scenarios(plugin).await {
                Ok(_) => Ok(None),
                Err(stopped) => Err(LoadRefusal::new(
                    ProblemKind::Component,
                    format!("scenarios did not return: {stopped}"),
                    "mend the environment, and build it against wit/",
                )),
            }
        })
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
