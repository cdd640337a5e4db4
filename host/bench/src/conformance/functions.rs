//! Runs rows that contain their tools as Python functions, in FTRL's form: `tools` and `codes`, JSON inside JSON. Every
//! row must load, and a call must give the same result as the machine's own python3.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::{Ended, ToolCall};
use rlf_interpreters::functions::{CALL_FUNCTION, TOOLS_FILE, module};
use rlf_plugins::arguments::validate;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::registry::Registry;
use rlf_plugins::schema::ToolSchema;
use rlf_plugins::turn::TurnContext;
use rlf_run::plugins::KINDS;
use rlf_sandbox::Sandbox;
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use super::Tally;

#[derive(Deserialize)]
struct Row {
    /// Tool definitions, as JSON text.
    tools: String,
    /// Sources by function name, as JSON text.
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
    let (mut unfit, mut clocks) = (0, 0);
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
                if !is_valid(&tool.input_schema, &arguments) {
                    unfit += 1;
                    continue;
                }
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
                // An error raised by the function is an answer too; python3 shows whether it is the right one.
                let answered = matches!(outcome.ended, Ended::Ok | Ended::Failed);
                let why = || format!("{}: {answer}", outcome.ended.as_str());
                ran.count(&name, if answered { Ok(()) } else { Err(why()) });
                if asks_for_the_clock(&row, &tool.name)? {
                    clocks += 1;
                } else if python {
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
    let mut good = loaded.print("rows with functions that loaded");
    good &= ran.print("calls of their functions that answered");
    if python {
        good &= same.print("calls that answered as the machine's python3 does");
    } else {
        println!("calls are not compared: this machine has no python3");
    }
    println!("not tried, because the arguments made up here break their schema: {unfit} calls");
    println!("not compared, because the function asks for the clock: {clocks} calls");
    Ok(good)
}

/// Writes a row as a folder of functions.
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
    let grants = PluginGrants {
        functions: Some(functions.to_owned()),
        ..PluginGrants::default()
    };
    let grants_by_name = BTreeMap::from([("python".to_owned(), grants)]);
    let registry = Registry::load_where(plugins, &grants_by_name, KINDS, sandbox, |name| {
        name == "python"
    });
    if let Some(problem) = registry.problems().first() {
        bail!("{problem}");
    }
    Ok(ToolManager::new(&registry, &ToolManagerConfig::default())?)
}

/// True if a schema accepts the arguments. A schema can demand more than its types say, so generated arguments may be
/// refused.
fn is_valid(schema: &Value, arguments: &Value) -> bool {
    ToolSchema::parse(&schema.to_string()).is_ok_and(|schema| validate(&schema, arguments).is_ok())
}

/// True if a tool's source reads the clock, which differs between the sandbox and the machine.
fn asks_for_the_clock(row: &Row, tool: &str) -> anyhow::Result<bool> {
    const CLOCKS: [&str; 12] = [
        ".now(",
        ".utcnow(",
        ".today(",
        "time.time",
        "time()",
        "localtime(",
        "gmtime(",
        "ctime(",
        "perf_counter",
        "monotonic",
        "process_time",
        "time.strftime",
    ];
    let codes: BTreeMap<String, String> = serde_json::from_str(&row.codes)?;
    let source = codes.get(tool).map_or("", String::as_str);
    Ok(CLOCKS.iter().any(|clock| source.contains(clock)))
}

/// Generates arguments for a schema: once only the required ones, once all.
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

/// Generates a value for a schema.
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

/// A text that the schema accepts, taken from a few texts that such schemas usually want.
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

/// Runs the call in the machine's own Python and returns its answer.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn row(source: &str) -> Row {
        Row {
            tools: "[]".into(),
            codes: json!({ "f": source }).to_string(),
        }
    }

    #[test]
    fn a_function_that_asks_for_the_clock_is_known_by_its_source() {
        let now =
            row("from datetime import datetime\n\ndef f():\n    return datetime.now().year\n");
        assert!(asks_for_the_clock(&now, "f").unwrap());
        let plain = row("def f(timeout, runtime):\n    return timeout + runtime\n");
        assert!(!asks_for_the_clock(&plain, "f").unwrap());
    }

    #[test]
    fn made_up_arguments_that_break_a_schema_are_known() {
        let schema = json!({
            "type": "object",
            "properties": {"code": {"type": "string", "pattern": "^[A-Z]{9}$"}},
            "required": ["code"],
        });
        let made_up = arguments(&schema);
        assert!(!is_valid(&schema, &made_up[0]), "{made_up:?}");
        assert!(is_valid(&schema, &json!({"code": "ABCDEFGHI"})));
    }
}
