//! `rlf:plugin/tools`: a plugin calls tools of other plugins through the tool manager, as a model does.
//!
//! The calls use the time that the caller has left, and run one level deeper in the sandbox's pools. Their ids and
//! seeds are derived from the caller's, so they are the same in every replay. If a call ends in an infrastructure
//! failure, its caller ends too: no trajectory must be judged by a result that was based on such a failure.

use std::sync::Arc;

use rlf_dialogue::tool::{CallOutcome, Ended, Fault, ToolCall};
use rlf_sandbox::{Caller, OpenGate, State, Stopped};
use tokio::task::JoinSet;
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use super::nesting::Nesting;
use crate::bindings::types::{Error, ToolDefinition};
use crate::convert::{definition_to_guest, ended_to_guest, observation_to_guest};

#[allow(missing_docs, unreachable_pub, clippy::pedantic)] // generated
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "package rlf:tools-gate; world gate { import rlf:plugin/tools@0.1.0; }",
        world: "rlf:tools-gate/gate",
        imports: { default: async | trappable },
        with: { "rlf:plugin/types@0.1.0": crate::bindings::rlf::plugin::types },
    });
}

pub(super) use bindings::rlf::plugin::tools as wit;

/// Access to the tools that the grants name.
pub(crate) struct ToolsGate {
    names: Arc<[String]>,
}

impl ToolsGate {
    pub(crate) fn open(names: &[String]) -> Self {
        Self {
            names: Arc::from(names),
        }
    }
}

impl OpenGate for ToolsGate {
    fn interface(&self) -> &'static str {
        "rlf:plugin/tools"
    }

    fn link(&self, linker: &mut Linker<State>) -> Result<()> {
        wit::add_to_linker::<State, HasTools>(linker, |state| View(state))
    }
}

struct HasTools;

impl HasData for HasTools {
    type Data<'a> = View<'a>;
}

pub(super) struct View<'a>(pub(super) &'a mut State);

impl View<'_> {
    /// The names of the open tools, and the context of this call. `None` if no tool can be called from here.
    fn open(&self) -> Option<(Arc<[String]>, Arc<Nesting>)> {
        let names = Arc::clone(&self.0.gate::<ToolsGate>()?.names);
        Some((names, self.0.context()?))
    }
}

impl wit::Host for View<'_> {
    async fn list_tools(&mut self) -> Result<Vec<ToolDefinition>> {
        let Some((names, nesting)) = self.open() else {
            return Ok(Vec::new());
        };
        let definitions = nesting.calls.definitions(&names);
        Ok(definitions.iter().map(definition_to_guest).collect())
    }

    async fn invoke(
        &mut self,
        requests: Vec<wit::Request>,
    ) -> Result<Vec<Result<wit::Response, Error>>> {
        let most = self.0.limits().nested_calls;
        // All results wait together in the host's memory.
        if requests.len() > most as usize {
            let asked = requests.len() as u64;
            return Err(Stopped::limited("nested_calls", u64::from(most), asked).into());
        }
        let Some((names, nesting)) = self.open() else {
            let refusal = || Err(Error::Denied("no tools can be called from here".to_owned()));
            return Ok(requests.iter().map(|_| refusal()).collect());
        };
        let caller = self.0.as_caller();
        // Parsed arguments take many times their length, and all of them wait together.
        let bytes: u64 = requests
            .iter()
            .map(|request| request.arguments.len() as u64)
            .sum();
        let most_bytes = self.0.limits().arguments_bytes;
        if bytes > most_bytes {
            return Err(Stopped::limited("arguments_bytes", most_bytes, bytes).into());
        }
        let answer =
            async |call: Result<ToolCall, Error>, caller: Caller, nesting: Arc<Nesting>| {
                let call = match call {
                    Ok(call) => call,
                    Err(refusal) => return Ok(Err(refusal)),
                };
                let arguments = nesting.is_recording().then(|| call.arguments.clone());
                let outcome = nesting.calls.call(call, &nesting, caller).await;
                // Turned back into text at once, because a parsed value takes many times as much memory.
                let answer = response(&outcome).map(Ok);
                if let Some(arguments) = arguments {
                    nesting.note(arguments, outcome);
                }
                answer
            };
        let mut calls: Vec<_> = (requests.into_iter())
            .map(|request| allowed(request, &names, &nesting, most))
            .collect();
        if calls.len() == 1
            && let Some(call) = calls.pop()
        {
            let only = self.0.outside(answer(call, caller, nesting)).await?;
            return Ok(vec![only]);
        }
        // One task for each call: checking arguments cannot be interrupted, and there may be many of them.
        let mut tasks = JoinSet::new();
        for (index, call) in calls.into_iter().enumerate() {
            let answer = answer(call, caller.clone(), Arc::clone(&nesting));
            tasks.spawn(async move { (index, answer.await) });
        }
        let all_answers = async {
            let mut answers = Vec::with_capacity(tasks.len());
            while let Some(answer) = tasks.join_next().await {
                let broken = |_| Stopped::unavailable("the host broke while serving its calls");
                answers.push(answer.map_err(broken)?);
            }
            answers.sort_unstable_by_key(|(index, _)| *index);
            Ok::<_, Stopped>(answers)
        };
        let answers = self.0.outside(all_answers).await?;
        Ok(answers
            .into_iter()
            .map(|(_, answer)| answer)
            .collect::<Result<Vec<_>, Stopped>>()?)
    }
}

/// Turns a request into a call, if it is allowed.
fn allowed(
    request: wit::Request,
    names: &[String],
    nesting: &Nesting,
    most: u32,
) -> Result<ToolCall, Error> {
    let call_id = nesting.count(most)?;
    if !names.contains(&request.name) {
        let name: String = request.name.chars().take(64).collect();
        let open = names.join(", ");
        return Err(Error::NotFound(format!(
            "no tool {name:?} is open to this plugin; there are: {open}"
        )));
    }
    // Checked before parsing: in memory, parsed arguments take many times their length.
    let allowed = nesting.calls.arguments_bytes(&request.name);
    let (length, allowed) = (request.arguments.len() as u64, allowed.unwrap_or_default());
    if length > allowed {
        return Err(Error::InvalidArguments(format!(
            "the arguments of {:?} have {length} bytes; at most {allowed} are allowed",
            request.name
        )));
    }
    let arguments = rlf_json::from_str(&request.arguments).map_err(|error| {
        Error::InvalidArguments(format!(
            "the arguments of {:?} are not JSON: {error}",
            request.name
        ))
    })?;
    let call = ToolCall {
        call_id,
        name: request.name,
        arguments,
    };
    nesting.calls.announce(&call);
    Ok(call)
}

/// The answer to the plugin, or the end of its own call after an infrastructure failure.
fn response(outcome: &CallOutcome) -> Result<wit::Response, Stopped> {
    if outcome.fault == Fault::Infrastructure || outcome.ended == Ended::Unavailable {
        let detail = outcome.detail.as_deref().unwrap_or("no more is known");
        let reason = format!("its call of `{}` could not be made: {detail}", outcome.name);
        return Err(Stopped::unavailable(reason));
    }
    Ok(wit::Response {
        ended: ended_to_guest(outcome.ended),
        observation: outcome.observation.as_ref().map(observation_to_guest),
    })
}
