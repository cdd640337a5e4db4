//! `rlf-host plugin call`: makes one call of a tool and prints the result.

use std::process::ExitCode;

use anyhow::{Context, bail};
use console::style;
use rlf_config::nearest;
use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::{CallOutcome, Ended, ToolCall};
use rlf_plugins::plugin::{Plugin, Printed};
use rlf_plugins::turn::TurnContext;
use rlf_tools::tool_manager::ToolManager;
use serde_json::{Value, json};

use crate::display::{failure, printable};

/// Parses a tool's arguments from the command line.
pub(crate) fn arguments(text: &str) -> anyhow::Result<Value> {
    let arguments: Value = rlf_json::from_str(text).with_context(|| {
        let start: String = text.chars().take(100).collect();
        format!("the arguments are not JSON: {start}")
    })?;
    if !arguments.is_object() {
        bail!("the arguments must be a JSON object, such as '{{\"expression\": \"1+1\"}}'");
    }
    Ok(arguments)
}

pub(super) fn run(
    manager: &ToolManager,
    plugin: &Plugin,
    tool: &str,
    arguments: &Value,
    seed: u64,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    check_tool(plugin, tool)?;
    // Output from loading the plugin does not belong to this call.
    plugin.take_printed();
    let printed = || plugin.take_printed().unwrap_or_default();
    make(manager, tool, arguments, seed, printed, as_json)
}

/// Makes a call, and prints how it ended and what the tool printed.
pub(crate) fn make(
    manager: &ToolManager,
    tool: &str,
    arguments: &Value,
    seed: u64,
    printed: impl FnOnce() -> Printed,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let context = TurnContext {
        trajectory_id: "command-line".into(),
        turn: 0,
        seed,
    };
    let definition = manager.definitions(Some(&[tool.to_owned()]))?;
    let call = ToolCall {
        call_id: "command-line/0/0".into(),
        name: tool.into(),
        arguments: arguments.clone(),
    };
    let outcomes = crate::commands::runtime()?.block_on(manager.invoke(vec![call], &context));
    let outcome = outcomes
        .into_iter()
        .next()
        .context("the call gave no outcome")?;
    let printed = printed();
    let code = if outcome.ended == Ended::Ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    };
    if as_json {
        let report = report(&outcome, &printed)?;
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(code);
    }
    let detail = outcome.detail.as_deref().unwrap_or_default();
    show_printed(&printed, detail);
    let shown = outcome
        .observation
        .as_ref()
        .map(|seen| plain_text(&seen.content));
    match (&shown, outcome.ended) {
        (Some(text), Ended::Ok) => say!("{}", printable(text)),
        (shown, ended) => {
            let (label, why) = failure(ended, shown.as_deref().unwrap_or_default());
            let unknown = (definition.first())
                .filter(|_| ended == Ended::InvalidArguments)
                .and_then(|known| unknown_arguments(&known.input_schema, arguments, &why));
            eprintln!(
                "{} {why}{}",
                style(label).yellow().for_stderr(),
                unknown.unwrap_or_default()
            );
            if !detail.is_empty() {
                eprintln!("{}", printable(detail));
            }
        }
    }
    Ok(code)
}

/// Fails if the plugin has no tool `tool`.
pub(super) fn check_tool(plugin: &Plugin, tool: &str) -> anyhow::Result<()> {
    let tools = plugin.tools().iter();
    let tools: Vec<&str> = tools.map(|tool| tool.definition.name.as_str()).collect();
    if tools.contains(&tool) {
        return Ok(());
    }
    let hint = match nearest(tool, tools.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if tools.is_empty() => {
            format!("it is {} and has no tools", plugin.kind().with_article())
        }
        None => format!("it has: {}", tools.join(", ")),
    };
    bail!("plugin `{}` has no tool `{tool}`; {hint}", plugin.name());
}

/// Names arguments that the schema does not have, each with the nearest that it has, unless they are in `told`. A schema
/// may allow them, so they are not errors.
fn unknown_arguments(schema: &Value, arguments: &Value, told: &str) -> Option<String> {
    let known = schema["properties"].as_object()?;
    let unknown: Vec<String> = (arguments.as_object()?.keys())
        .filter(|name| !known.contains_key(*name) && !told.contains(&format!("`{name}`")))
        .map(|name| {
            let hint = nearest(name, known.keys().map(String::as_str))
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            format!("; unknown `{}`{hint}", printable(name))
        })
        .collect();
    Some(unknown.concat()).filter(|unknown| !unknown.is_empty())
}

/// The outcome of a call as JSON, with what the plugin printed. If the call was answered, `fault` is null.
fn report(outcome: &CallOutcome, printed: &Printed) -> anyhow::Result<Value> {
    let mut report = serde_json::to_value(outcome)?;
    if matches!(outcome.ended, Ended::Ok | Ended::Failed) {
        report["fault"] = Value::Null;
    }
    report["printed"] = json!({
        "stdout": printed.stdout.text,
        "stderr": printed.stderr.text,
    });
    Ok(report)
}

/// Prints the plugin's output on standard error, each line marked so that it is not taken for the result. Leaves out
/// errors that `told` contains already.
pub(super) fn show_printed(printed: &Printed, told: &str) {
    for (stream, captured) in [("stdout", &printed.stdout), ("stderr", &printed.stderr)] {
        let text = captured.text.trim_end();
        if text.is_empty() || (stream == "stderr" && told.contains(text.trim())) {
            continue;
        }
        for line in text.lines() {
            let mark = style(format!("{stream} |")).dim().for_stderr();
            eprintln!("{mark} {}", printable(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::tool::{Fault, Observation};

    use super::*;

    #[test]
    fn a_misspelt_argument_is_named_with_the_nearest_one() {
        let schema = json!({"properties": {"expression": {"type": "string"}}});
        let unknown = |arguments| unknown_arguments(&schema, &arguments, "");
        assert_eq!(
            unknown(json!({"expresion": "1"})).unwrap(),
            "; unknown `expresion`; did you mean `expression`?"
        );
        assert_eq!(unknown(json!({"zzz": 1})).unwrap(), "; unknown `zzz`");
        assert_eq!(unknown(json!({"expression": "1"})), None);
        let told = "`zzz` is not an argument";
        assert_eq!(unknown_arguments(&schema, &json!({"zzz": 1}), told), None);
    }

    #[test]
    fn only_a_call_that_went_wrong_is_somebodys_fault() {
        let observation = Observation::default();
        let mut outcome = CallOutcome::from_observation("1".into(), "add".into(), observation);
        let fault =
            |outcome: &CallOutcome| report(outcome, &Printed::default()).unwrap()["fault"].clone();
        assert_eq!(fault(&outcome), Value::Null);
        outcome.ended = Ended::InvalidArguments;
        outcome.fault = Fault::Model;
        assert_eq!(fault(&outcome), "model");
    }
}
