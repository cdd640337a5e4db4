//! One tool, and one attempt at a call of it.

use std::sync::{Arc, Mutex, PoisonError};
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
use crate::server::ToolServer;

/// A tool with its counters.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) owner: Owner,
    pub(crate) loaded: LoadedTool,
    pub(crate) counters: CallCounters,
}

/// The side that runs the calls of a tool.
#[derive(Debug)]
pub(crate) enum Owner {
    Plugin(PluginTool),
    Server {
        server: Arc<dyn ToolServer>,
        /// The reason of the last call that the server broke on.
        last_trap: Mutex<Option<String>>,
    },
}

/// A plugin, with the permits of one of its tools.
#[derive(Debug)]
pub(crate) struct PluginTool {
    pub(crate) plugin: Arc<Plugin>,
    /// Each nesting level has its own permits, so that a call never waits for the calls that made it.
    permits: [Semaphore; LEVELS],
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

    /// The name of the plugin or server.
    pub(crate) fn owner_name(&self) -> &str {
        match &self.owner {
            Owner::Plugin(PluginTool { plugin, .. }) => plugin.name(),
            Owner::Server { server, .. } => server.name(),
        }
    }

    /// True if models see it without being told to: all tools, except those of interpreters that the configuration does not
    /// mention.
    pub(crate) fn is_offered(&self) -> bool {
        match &self.owner {
            Owner::Plugin(PluginTool { plugin, .. }) => plugin.is_offered(),
            Owner::Server { .. } => true,
        }
    }

    /// The limit of a call's arguments, in bytes.
    pub(crate) fn arguments_bytes(&self) -> u64 {
        match &self.owner {
            Owner::Plugin(PluginTool { plugin, .. }) => plugin.grants().limits.arguments_bytes,
            Owner::Server { server, .. } => server.limits().arguments_bytes,
        }
    }

    /// Remembers the reason of the last trap, for the message that stops a run.
    pub(crate) fn note_trap(&self, end: &CallEnd) {
        match &self.owner {
            Owner::Plugin(PluginTool { plugin, .. }) => plugin.note_trap(end),
            Owner::Server { last_trap, .. } => {
                let mut last = last_trap.lock().unwrap_or_else(PoisonError::into_inner);
                last.clone_from(&end.detail);
            }
        }
    }

    /// The reason of the last trap.
    pub(crate) fn last_trap(&self) -> Option<String> {
        match &self.owner {
            Owner::Plugin(PluginTool { plugin, .. }) => plugin.last_trap(),
            Owner::Server { last_trap, .. } => last_trap
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        }
    }
}

impl PluginTool {
    /// A tool of a plugin of which so many calls run at once.
    pub(crate) fn new(plugin: Arc<Plugin>, max_concurrency: usize) -> Self {
        let permits = max_concurrency.min(Semaphore::MAX_PERMITS);
        Self {
            plugin,
            permits: std::array::from_fn(|_| Semaphore::new(permits)),
        }
    }

    pub(crate) async fn attempt(
        &self,
        tool: &Tool,
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
                    tool.name(),
                    self.plugin.name()
                ),
            );
        };
        let is_interpreter = attempt.plugin.kind() == PluginKind::Interpreter;
        let request = ToolRequest {
            name: tool.loaded.own_name.clone(),
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
        tool.counters.count_host_writes(&files);
        if end.ended != Ended::Ok || files.outputs.is_empty() {
            return end;
        }
        if let Some(caller) = &attempt.caller {
            let bytes = files.outputs.values().map(|file| file.len() as u64).sum();
            if let Err(stopped) = caller.charge_files(bytes) {
                return CallEnd::from_stopped(&stopped);
            }
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
