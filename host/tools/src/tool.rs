//! One tool, and one attempt at a call of it.

use std::sync::Arc;
use std::time::Instant;

use rlf_dialogue::tool::{Ended, ToolCall};
use rlf_plugins::bindings::types;
use rlf_plugins::counters::CallCounters;
use rlf_plugins::gates::Nesting;
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::offered_tools::LoadedTool;
use rlf_plugins::outcome::CallEnd;
use rlf_plugins::plugin::{Plugin, ToolRequest};
use rlf_plugins::turn::TurnContext;
use rlf_sandbox::{Caller, LEVELS};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::outputs::{Outputs, listed};

/// A tool with its permits and counters.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) loaded: LoadedTool,
    /// Each nesting level has its own permits, so that a call never waits for the calls that made it.
    pub(crate) permits: [Semaphore; LEVELS],
    pub(crate) counters: CallCounters,
}

/// The data of one attempt at a call.
pub(crate) struct Attempt<'a> {
    pub(crate) arguments: &'a str,
    /// The plugin that serves at the time of the call: see [`Plugin::latest`].
    pub(crate) plugin: &'a Arc<Plugin>,
    /// The guest that makes the call, if a guest makes it.
    pub(crate) caller: Option<Caller>,
    /// The means for the plugin's own calls, if its grants open a gate for them.
    pub(crate) nesting: Option<Arc<Nesting>>,
    pub(crate) deadline: Instant,
    pub(crate) seed: u64,
    pub(crate) number: u32,
}

impl Tool {
    pub(crate) fn name(&self) -> &str {
        &self.loaded.definition.name
    }

    pub(crate) async fn attempt(
        &self,
        call: &ToolCall,
        context: &TurnContext,
        attempt: &Attempt<'_>,
        outputs: Option<&Arc<Outputs>>,
    ) -> CallEnd {
        let level = attempt.caller.as_ref().map_or(0, Caller::next_level);
        let Ok(_permit) = self.permit(level, attempt.deadline).await else {
            let deadline = match attempt.plugin.kind() {
                PluginKind::Interpreter => "programs.deadline_ms",
                PluginKind::Tool | PluginKind::Reward | PluginKind::Environment => "limits.wall_ms",
            };
            return CallEnd::by_infrastructure(
                Ended::Timeout,
                format!(
                    "waited longer than {deadline} for one of the places of tool `{}`; raise \
                     max_concurrency or {deadline} of [plugins.{}]",
                    self.name(),
                    self.plugin.name()
                ),
            );
        };
        let is_interpreter = attempt.plugin.kind() == PluginKind::Interpreter;
        let request = ToolRequest {
            name: self.loaded.own_name.clone(),
            // A program may see the order in which the keys were written; a component may not.
            arguments: if is_interpreter {
                call.arguments.to_string()
            } else {
                attempt.arguments.to_owned()
            },
            context: types::CallContext {
                call_id: call.call_id.clone(),
                attempt: attempt.number,
                trajectory_id: context.trajectory_id.clone(),
                turn: context.turn,
                seed: attempt.seed,
                budget_ms: u32::try_from(attempt.plugin.call_deadline().as_millis())
                    .unwrap_or(u32::MAX),
                extra: Vec::new(),
            },
            deadline: attempt.deadline,
            caller: attempt.caller.clone(),
            nesting: attempt.nesting.clone(),
        };
        let (end, files) = attempt.plugin.call_tool(request).await;
        self.counters.count_host_writes(&files);
        if end.ended != Ended::Ok || files.outputs.is_empty() {
            return end;
        }
        let kept = match outputs {
            Some(outputs) => Arc::clone(outputs).keep(&call.call_id, files.outputs).await,
            None => Ok(format!(
                "left {}, which nobody keeps",
                listed(&files.outputs)
            )),
        };
        match kept {
            Ok(said) => end.with_detail(said),
            Err(error) => {
                let what = format!("its files cannot be kept: {error}");
                CallEnd::by_infrastructure(Ended::Unavailable, what)
            }
        }
    }

    /// Waits for a permit on a nesting level until the deadline.
    async fn permit(
        &self,
        level: usize,
        deadline: Instant,
    ) -> Result<Option<SemaphorePermit<'_>>, ()> {
        // The sandbox refuses calls that nest deeper.
        let Some(permits) = self.permits.get(level) else {
            return Ok(None);
        };
        if let Ok(permit) = permits.try_acquire() {
            return Ok(Some(permit));
        }
        match tokio::time::timeout_at(deadline.into(), permits.acquire()).await {
            Ok(Ok(permit)) => Ok(Some(permit)),
            _ => Err(()),
        }
    }
}
