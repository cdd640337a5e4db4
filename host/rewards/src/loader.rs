//! Loading of a reward plugin, and one call to it, for the core.

use std::sync::Arc;

use rlf_interpreters::requests::LoadedFile;
use rlf_plugins::bindings::reward;
use rlf_plugins::gates::Nesting;
use rlf_plugins::kind::{FindInInterpreter, FindIndices, Interface};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::plugin::{Plugin, ToolList};
use rlf_plugins::problem::{LoadRefusal, ProblemKind};
use rlf_sandbox::{CallSpec, Pool, Stopped};

use crate::grading::{GradingRequest, GradingResult};
use crate::script::{self, ScriptRewards};

type RewardIndices = Arc<reward::GuestIndices>;

/// Loads plugins that grade trajectories.
#[derive(Debug)]
pub struct RewardLoader;

impl Interface for RewardLoader {
    const KIND: PluginKind = PluginKind::Reward;
    const POOL: Pool = Pool::Calls;
    type Indices = reward::GuestIndices;
    const FIND: FindIndices<reward::GuestIndices> = reward::GuestIndices::new;
    const FIND_IN_INTERPRETER: Option<FindInInterpreter> =
        Some(|component| Ok(Arc::new(ScriptRewards(LoadedFile::find(component)?))));

    /// Creates an instance and looks up its functions. Only then is it known whether they have the contract's types.
    async fn list(
        indices: RewardIndices,
        plugin: &Plugin,
    ) -> Result<Option<ToolList>, LoadRefusal> {
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
    }
}

/// Asks a reward to grade a group.
pub(crate) async fn grade(
    plugin: &Plugin,
    request: &Arc<GradingRequest>,
    seed: u64,
    nesting: Option<Arc<Nesting>>,
) -> Result<GradingResult, Stopped> {
    let label = format!("{}: grade {}", plugin.name(), request.task().id);
    let spec = CallSpec {
        label,
        seed,
        context: nesting.map(|nesting| nesting as _),
        ..CallSpec::default()
    };
    if let Some(file) = plugin.exports::<LoadedFile>() {
        return script::grade(file, plugin, request, spec).await;
    }
    let Some(indices) = plugin.exports::<RewardIndices>() else {
        return Err(Stopped::unavailable("the plugin is no reward"));
    };
    let indices = Arc::clone(indices);
    let request = Arc::clone(request);
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
