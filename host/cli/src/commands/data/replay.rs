//! Gold calls made in their environments: whether they can be, and the states they lead to, for rows that do not bring these
//! with them.

use anyhow::{Context, bail};
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{Ended, ToolCall};
use rlf_plugins::environment::{Environments, Session};
use rlf_plugins::registry::Registry;
use rlf_plugins::tool_manager::TurnContext;
use serde_json::Value;

use crate::arguments::Import;
use crate::assemble::warn;
use crate::operator::Operator;
use crate::progress::loading;

/// Plays the gold calls of every task and keeps where they began and led in its reference. A task whose gold calls cannot be
/// made, or whose reference has another end, is told of.
pub(super) fn run(import: &Import, tasks: &mut [Task]) -> anyhow::Result<()> {
    let operator = Operator::load(import.config.as_deref())?;
    let sandbox = crate::assemble::sandbox(&operator.sandbox)?;
    let registry =
        loading(|| Registry::load(&import.plugins.plugins, &operator.policies, &sandbox));
    let environments = Environments::new(&registry, &sandbox, &operator.environments);
    let runtime = crate::commands::runtime()?;
    let (mut played, mut wrong) = (0, 0);
    for task in tasks {
        let Some(name) = task.environment.clone() else {
            bail!(
                "task {:?} lives in no environment, so its calls cannot be made; leave --replay out",
                task.id
            );
        };
        let problem = runtime.block_on(replay(&environments, &name, task))?;
        played += 1;
        if let Some(problem) = problem {
            wrong += 1;
            warn(&format!("task {:?}: {problem}", task.id));
        }
    }
    say!("gold calls of {played} tasks made, {wrong} of them not as their rows have it");
    Ok(())
}

async fn replay(
    environments: &Environments,
    name: &str,
    task: &mut Task,
) -> anyhow::Result<Option<String>> {
    let seed = Environments::seed(task);
    let mut session = environments
        .open(name, "replay", &task.setup, seed)
        .await
        .with_context(|| format!("task {:?}", task.id))?;
    let initial = state(&session).await?;
    let calls = gold_calls(&task.reference);
    let mut failed = Vec::new();
    for (number, (tool, arguments)) in calls.into_iter().enumerate() {
        let call = ToolCall {
            call_id: format!("replay/{number}/0"),
            name: tool.clone(),
            arguments,
        };
        let context = TurnContext {
            trajectory_id: "replay".into(),
            turn: u32::try_from(number).unwrap_or(u32::MAX),
            seed: 0,
        };
        let outcome = session.call(call, &context).await;
        if outcome.ended == Ended::Failed {
            failed.push(format!("{} ({tool})", number + 1));
        } else if outcome.ended != Ended::Ok {
            let shown = outcome
                .observation
                .map(|seen| rlf_dialogue::message::plain_text(&seen.content));
            return Ok(Some(format!(
                "gold call {} to `{tool}` ended as {}: {}",
                number + 1,
                outcome.ended.as_str(),
                shown.unwrap_or_default()
            )));
        }
    }
    let end = state(&session).await?;
    let Some(reference) = task.reference.as_object_mut() else {
        return Ok(Some("its reference is no object".into()));
    };
    let differs = reference.get("state").is_some_and(|state| *state != end);
    reference.insert("initial".into(), initial);
    reference.insert("state".into(), end);
    Ok(if differs {
        Some(
            "its gold calls lead to another state than its row has; the one they lead to is kept"
                .into(),
        )
    } else if failed.is_empty() {
        None
    } else {
        Some(format!("gold calls that fail: {}", failed.join(", ")))
    })
}

async fn state(session: &Session) -> anyhow::Result<Value> {
    let text = session.state().await.map_err(anyhow::Error::msg)?;
    serde_json::from_str(&text).context("the environment's state is no JSON")
}

/// The calls that a reference has: `calls` of `{name, arguments}`, or tau-bench's `actions` of `{name, kwargs}`.
pub(crate) fn gold_calls(reference: &Value) -> Vec<(String, Value)> {
    let list = ["calls", "actions"]
        .iter()
        .find_map(|key| reference[*key].as_array());
    list.into_iter()
        .flatten()
        .filter_map(|call| {
            let arguments = call.get("arguments").or_else(|| call.get("kwargs"))?;
            Some((call["name"].as_str()?.to_owned(), arguments.clone()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn gold_calls_are_read_in_either_form() {
        let one = (String::from("f"), json!({"x": 1}));
        assert_eq!(
            gold_calls(&json!({"calls": [{"name": "f", "arguments": {"x": 1}, "masked": []}]})),
            std::slice::from_ref(&one)
        );
        assert_eq!(
            gold_calls(&json!({"actions": [{"name": "f", "kwargs": {"x": 1}}]})),
            [one]
        );
        assert!(gold_calls(&json!("text")).is_empty());
    }
}
