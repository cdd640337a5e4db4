//! Loading of a reward plugin, and one call to it, for the core.

use std::any::Any;
use std::sync::Arc;

use rlf_plugins::bindings::{reward, types};
use rlf_plugins::gates::Nesting;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::kind::{KindLoader, LoadPlan};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::plugin::{Exports, Plugin, ToolList};
use rlf_plugins::problem::{LoadRefusal, ProblemKind};
use rlf_sandbox::{BoxFuture, CallSpec, Pool, Stopped};

use crate::grading::GradingRequest;

type RewardIndices = Arc<reward::GuestIndices>;

/// Loads plugins that grade trajectories.
#[derive(Debug)]
pub struct RewardLoader;

impl KindLoader for RewardLoader {
    fn kind(&self) -> PluginKind {
        PluginKind::Reward
    }

    fn plan(&self, _: &str, grants: &PluginGrants, _: u64) -> Result<LoadPlan, LoadRefusal> {
        Ok(LoadPlan::new(Pool::Calls, grants, |pre| {
            let indices = Arc::new(reward::GuestIndices::new(pre)?);
            Ok(Arc::new(RewardExports { indices }))
        }))
    }
}

struct RewardExports {
    indices: RewardIndices,
}

impl Exports for RewardExports {
    fn as_any(&self) -> &dyn Any {
        &self.indices
    }

    /// Creates an instance and looks up its functions. Only then is it known whether they have the contract's types.
    fn list<'a>(
        &'a self,
        plugin: &'a Plugin,
    ) -> BoxFuture<'a, Result<Option<ToolList>, LoadRefusal>> {
        let indices = Arc::clone(&self.indices);
        Box::pin(async move {
            let probed = plugin
                .ask("probe", move |store, instance| {
                    Box::pin(async move { indices.load(&mut *store, &instance).map(drop) })
                })
                .await;
            probed.map(|()| None).map_err(|stopped| {
                LoadRefusal::new(
                    ProblemKind::Component,
                    format!("it cannot be made ready to grade: {stopped}"),
                    "build it against wit/",
                )
            })
        })
    }
}

/// A guest's answer to a grading request.
pub(crate) type GradingResult = Result<Vec<Result<reward::Score, types::Error>>, types::Error>;

/// Asks a reward to grade a group.
pub(crate) async fn grade(
    plugin: &Plugin,
    request: &Arc<GradingRequest>,
    seed: u64,
    nesting: Option<Arc<Nesting>>,
) -> Result<GradingResult, Stopped> {
    let Some(indices) = plugin.exports::<RewardIndices>() else {
        return Err(Stopped::unavailable("the plugin is no reward"));
    };
    let indices = Arc::clone(indices);
    let request = Arc::clone(request);
    let label = format!("{}: grade {}", plugin.name(), request.task().id);
    let spec = CallSpec {
        label,
        seed,
        context: nesting.map(|nesting| nesting as _),
        ..CallSpec::default()
    };
    let report = plugin
        .template()
        .call(spec, move |store, instance| {
            Box::pin(async move {
                let guest = indices.load(&mut *store, &instance)?;
                let grading = request.grading(seed);
                guest
                    .call_grade(store, request.task(), request.group(), &grading)
                    .await
            })
        })
        .await;
    plugin.finish(report)
}
