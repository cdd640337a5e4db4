//! Rows that carry their own tools as Python functions (FTRL's form: `tools` and `codes`, JSON inside JSON): every row
//! must load, and a call must give what the machine's own python3 gives.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::{Ended, ToolCall};
use rlf_plugins::arguments::validate;
use rlf_plugins::interpreter::functions::{CALL_FUNCTION, TOOLS_FILE, module};
use rlf_plugins::policy::PluginPolicy;
use rlf_plugins::registry::Registry;
use rlf_plugins::schema::ToolSchema;
use rlf_plugins::tool_manager::{ToolManager, ToolManagerConfig, TurnContext};
use rlf_sandbox::Sandbox;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use super::Tally;

#[derive(Deserialize)]
struct Row {
    /// Definitions as JSON text.
    tools: String,
    /// Name to source, as JSON text.
    codes: String,
}

pub(super) fn run(
    plugins: &Path,
    file: &Path,
    sandbox: &Sandbox,
    runtime: &Runtime,
) -> anyhow::Result<bool> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let (mut loaded, mut ran, mut same) = (Tally::default(), Tally::default(), Tally::default());
    let python = Command::new("python3")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    for (number, line) in text.lines().enumerate() {
        let place = format!("{}:{}", file.display(), number + 1);
        let row: Row = serde_json::from_str(line).with_context(|| place.clone())?;
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        write(&row, folder.path()).with_context(|| place.clone())?;
        let tools = match load(plugins, folder.path(), sandbox) {
            Ok(tools) => {
                loaded.count(&place, Ok(()));
                tools
            }
            Err(error) => {
                loaded.count(&place, Err(format!("{error:#}")));
                continue;
            }
        };
        for tool in tools.definitions(None)? {
            for arguments in arguments(&tool.input_schema) {
                let name = format!("{place}: {}({arguments})", tool.name);
                let call = ToolCall {
                    call_id: name.clone(),
                    name: tool.name.clone(),
                    arguments: arguments.clone(),
                };
                let context = TurnContext {
                    trajectory_id: "conformance".to_owned(),
                    turn: 0,
                    seed: 0,
                };
                let outcomes = runtime.block_on(tools.invoke(vec![call], &context));
                let outcome = outcomes.first().context("one call has one outcome")?;
                let answer = (outcome.observation.as_ref())
                    .map(|observation| plain_text(&observation.content))
                    .unwrap_or_default();
                // An error of the function's own is an answer; python3 says whether it is the right one.
                let answered = matches!(outcome.ended, Ended::Ok | Ended::Failed);
                let why = || format!("{}: {answer}", outcome.ended.as_str());
                ran.count(&name, if answered { Ok(()) } else { Err(why()) });
                if python {
                    let native = native(&row, &tool.name, &arguments)?;
                    let differs = || format!("python3 says\n{native}\nthe sandbox says\n{answer}");
                    same.count(
                        &name,
                        if answer == native {
                            Ok(())
                        } else {
                            Err(differs())
                        },
                    );
                }
            }
        }
    }
    let mut good = loaded.told("rows with functions that loaded");
    good &= ran.told("calls of their functions that answered");
    if python {
        good &= same.told("calls that answered as the machine's python3 does");
    } else {
        println!("calls are not compared: this machine has no python3");
    }
    Ok(good)
}

/// A row as a folder of functions.
fn write(row: &Row, folder: &Path) -> anyhow::Result<()> {
    fs::write(folder.join(TOOLS_FILE), &row.tools)?;
    let codes: BTreeMap<String, String> = serde_json::from_str(&row.codes)?;
    for (name, source) in codes {
        ensure!(
            !name.contains(['/', '\\']),
            "{name:?} is the name of no function"
        );
        fs::write(folder.join(format!("{name}.py")), source)?;
    }
    Ok(())
}

fn load(plugins: &Path, functions: &Path, sandbox: &Sandbox) -> anyhow::Result<ToolManager> {
    let policy = PluginPolicy {
        functions: Some(functions.to_owned()),
        ..PluginPolicy::default()
    };
    let policies = BTreeMap::from([("python".to_owned(), policy)]);
    let registry = Registry::load_where(plugins, &policies, sandbox, |name| name == "python");
    if let Some(problem) = registry.problems().first() {
        bail!("{problem}");
    }
    Ok(ToolManager::new(&registry, &ToolManagerConfig::default())?)
}

/// Arguments that a schema takes: what it requires, and everything it knows.
fn arguments(schema: &Value) -> Vec<Value> {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let of = |wanted: &dyn Fn(&str) -> bool| {
        let given = properties.iter().filter(|(name, _)| wanted(name));
        Value::Object(
            given
                .map(|(name, schema)| (name.clone(), value(schema)))
                .collect(),
        )
    };
    let (least, most) = (of(&|name| required.contains(&name)), of(&|_| true));
    if least == most {
        vec![least]
    } else {
        vec![least, most]
    }
}

/// A value that a schema takes.
fn value(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        return default.clone();
    }
    match schema["type"].as_str() {
        Some("integer") => json!(schema["minimum"].as_i64().unwrap_or(1).max(1)),
        Some("number") => json!(schema["minimum"].as_f64().unwrap_or(1.5).max(1.5)),
        Some("boolean") => json!(true),
        Some("array") => {
            let items = schema["minItems"].as_u64().unwrap_or(1).max(1);
            json!(
                (0..items)
                    .map(|_| value(&schema["items"]))
                    .collect::<Vec<_>>()
            )
        }
        Some("object") => arguments(schema).pop().unwrap_or_default(),
        _ => match schema["format"].as_str() {
            Some("date") => json!("2020-02-29"),
            Some("date-time") => json!("2020-02-29T12:00:00"),
            _ => json!(text(schema)),
        },
    }
}

/// Text that a schema takes, among what such schemas mostly want.
fn text(schema: &Value) -> &'static str {
    const TEXTS: [&str; 8] = [
        "example",
        "2020",
        "2020-02",
        "2020-02-29",
        "2019-2020",
        "12:30",
        "2 days",
        "EX",
    ];
    let whole = json!({"type": "object", "properties": {"text": schema}}).to_string();
    let taken = ToolSchema::parse(&whole).ok().and_then(|schema| {
        let fits = |text: &&&str| validate(&schema, &json!({ "text": text })).is_ok();
        TEXTS.iter().find(fits)
    });
    taken.copied().unwrap_or(TEXTS[0])
}

#[derive(Deserialize)]
struct Answer {
    text: String,
}

/// What the machine's own Python answers.
fn native(row: &Row, tool: &str, arguments: &Value) -> anyhow::Result<String> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let at = |name: &str| folder.path().join(name);
    let codes: BTreeMap<String, String> = serde_json::from_str(&row.codes)?;
    let source = codes
        .get(tool)
        .with_context(|| format!("no code of {tool}"))?;
    fs::write(at(&format!("{}.py", module(tool))), source)?;
    fs::write(at("call_function.py"), CALL_FUNCTION)?;
    fs::write(at("arguments.json"), arguments.to_string())?;
    let output = Command::new("python3")
        .arg(at("call_function.py"))
        .args([&module(tool), tool])
        .args([at("arguments.json"), at("answer.json")])
        .output()
        .context("python3 cannot be started")?;
    ensure!(
        output.status.success(),
        "python3 could not call {tool}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let answer: Answer = serde_json::from_slice(&fs::read(at("answer.json"))?)?;
    Ok(answer.text)
}
