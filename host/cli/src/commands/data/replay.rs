//! Gold calls made in their environments: whether they can be, and the states they lead to, for rows that do not bring these
//! with them.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use rlf_dialogue::exact;
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

/// Plays the gold calls of every task that has some, and keeps where they began in its reference, and where they led if it does
/// not say. A task whose gold calls cannot be made, or whose reference has another end, is told of; their ids are returned.
pub(super) fn run(import: &Import, tasks: &mut [Task]) -> anyhow::Result<BTreeSet<String>> {
    let operator = Operator::load(import.config.as_deref())?;
    let sandbox = crate::assemble::sandbox(&operator.sandbox)?;
    let registry =
        loading(|| Registry::load(&import.plugins.plugins, &operator.policies, &sandbox));
    let environments = Environments::new(&registry, &sandbox, &operator.environments);
    let runtime = crate::commands::runtime()?;
    let (all, mut played, mut wrong) = (tasks.len(), 0, BTreeSet::new());
    for task in tasks {
        let Some(name) = task.environment.clone() else {
            bail!(
                "task {:?} lives in no environment, so its calls cannot be made; leave --replay out",
                task.id
            );
        };
        let problem = match gold_calls(&task.reference) {
            Ok(calls) if calls.is_empty() => continue,
            Ok(calls) => runtime.block_on(replay(&environments, &name, task, calls))?,
            Err(error) => Some(error.to_string()),
        };
        played += 1;
        if let Some(problem) = problem {
            warn(&format!("task {:?}: {problem}", task.id));
            wrong.insert(task.id.clone());
        }
    }
    say!(
        "{played} of {all} tasks have gold calls; {} of these do not lead where their rows say",
        wrong.len()
    );
    Ok(wrong)
}

async fn replay(
    environments: &Environments,
    name: &str,
    task: &mut Task,
    calls: Vec<(String, Value)>,
) -> anyhow::Result<Option<String>> {
    let seed = Environments::seed(task);
    let mut session = environments
        .open(name, "replay", &task.setup, seed)
        .await
        .with_context(|| format!("task {:?}", task.id))?;
    let initial = state(&session).await?;
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
    let differs = match task.reference.get("state") {
        None => false,
        // As the environment compares them, if it judges by states.
        Some(own) => match session.verify(None, &task.reference).await {
            Ok(verdict) => !verdict.success,
            Err(_) => *own != end,
        },
    };
    let Some(reference) = task.reference.as_object_mut() else {
        return Ok(Some("its reference is no object".into()));
    };
    reference.insert("initial".into(), initial);
    reference.entry("state").or_insert(end);
    Ok(if differs {
        Some(
            "its gold calls lead to another state than its row has, which is left as it is: mend the one or the other"
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
    exact::from_str(&text).context("the environment's state is no JSON")
}

/// The calls that a reference has, none where it does not say: `calls` of `{name, arguments}`, or tau-bench's `actions` of
/// `{name, kwargs}`. One that is not read would leave half a solution.
pub(crate) fn gold_calls(reference: &Value) -> anyhow::Result<Vec<(String, Value)>> {
    let list = ["calls", "actions"]
        .iter()
        .find_map(|key| reference.get(*key).filter(|list| !list.is_null()));
    let Some(list) = list else {
        return Ok(Vec::new());
    };
    let list = list
        .as_array()
        .with_context(|| format!("its gold calls are no list: {list}"))?;
    let call = |(number, call): (usize, &Value)| {
        let arguments = call.get("arguments").or_else(|| call.get("kwargs"));
        match (call["name"].as_str(), arguments) {
            (Some(name), Some(arguments)) => Ok((name.to_owned(), arguments.clone())),
            _ => bail!(
                "its gold call {} is not of the form {{\"name\": \"..\", \"arguments\": {{..}}}}: {call}",
                number + 1
            ),
        }
    };
    list.iter().enumerate().map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn gold_calls_are_read_in_either_form() {
        let one = (String::from("f"), json!({"x": 1}));
        assert_eq!(
            gold_calls(&json!({"calls": [{"name": "f", "arguments": {"x": 1}, "masked": []}]}))
                .unwrap(),
            std::slice::from_ref(&one)
        );
        assert_eq!(
            gold_calls(&json!({"actions": [{"name": "f", "kwargs": {"x": 1}}]})).unwrap(),
            [one]
        );
        assert!(gold_calls(&json!("text")).unwrap().is_empty());
        let good = json!({"name": "f", "arguments": {}});
        for bad in [
            json!(5),
            json!([good, {"name": "f", "args": {}}]),
            json!([good, {"name": 5, "arguments": {}}]),
            json!([good, 5]),
        ] {
            let error = gold_calls(&json!({ "calls": bad }))
                .unwrap_err()
                .to_string();
            assert!(error.contains("gold call"), "{error}");
        }
    }
}
