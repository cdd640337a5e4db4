//! One call of each tool, before anything is played: a tool that loops takes its whole time in every call of every walk.

use rlf_dialogue::tool::ToolDefinition;
use rlf_environments::environments::Environments;
use rlf_random::Key;
use rlf_sandbox::BoxFuture;
use serde_json::Value;

use super::Start;
use super::arguments::{Known, valid};
use super::play::call;
use super::report::{Finding, FindingKind, Findings};
use super::served::{Unserved, served};

/// Calls each tool once with valid arguments, and finds those that break the environment. A start that does not load
/// has no findings here.
pub fn first_calls<'a>(
    environments: &'a Environments,
    name: &'a str,
    start: &'a Start,
    seed: u64,
) -> BoxFuture<'a, Result<Vec<Finding>, Unserved>> {
    let played = async move {
        let mut findings = Findings::default();
        let Start {
            name: label, task, ..
        } = start;
        let opened = environments.open(name, label, task, start.seed).await;
        let Ok(mut session) = opened else {
            return Vec::new();
        };
        let mut known = Known::default();
        let state = session.state().await.ok();
        if let Some(state) = state.and_then(|state| rlf_json::from_str::<Value>(&state).ok()) {
            known.learn(&state);
        }
        let tools: Vec<ToolDefinition> = session.tools().cloned().collect();
        for (number, tool) in tools.iter().enumerate() {
            if session.is_terminated() || session.lost().is_some() {
                break;
            }
            let key = Key::from_value(seed).named(&tool.name);
            let arguments = valid(&tool.input_schema, &known, key);
            let played = call(&mut session, number, &tool.name, &arguments).await;
            if played.is_broken() {
                let (shown, ended) = (Value::Object(arguments), played.ended.as_str());
                let message = format!("{shown} ended as {ended}: {}", played.detail);
                let mend = "handle these arguments, and end every loop";
                findings.add(FindingKind::Breaks, &tool.name, message, mend);
            }
        }
        findings.into_list()
    };
    Box::pin(served(environments, played))
}
