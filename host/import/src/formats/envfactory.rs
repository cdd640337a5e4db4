//! EnvFactory's rows for RL: a conversation up to a query, the calls that answer it, and the environments of the calls.

use rlf_dialogue::Task;
use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::error::RowError;
use crate::field::{Row, label, needed, object, unpacked_list};
use crate::row_context::RowContext;

const TRUTH: &str = "reward_model.ground_truth";
const SERVERS: &str = "extra_info.mcp_factory_kwargs.mcp_servers";
const INITIAL: &str = "extra_info.mcp_factory_kwargs.initial_config";
const FINAL: &str = "extra_info.mcp_factory_kwargs.final_config";

pub(crate) fn task(row: &Row, context: &RowContext) -> Result<Task, RowError> {
    let messages = unpacked_list(needed(row, "prompt")?, "prompt")?;
    let prompt = Conversation::from_openai("prompt", &messages)?.into_prompt("prompt")?;

    let extra_info = needed(row, "extra_info")?;
    let environment = object(
        extra_info.get("mcp_factory_kwargs").unwrap_or(&Value::Null),
        "extra_info.mcp_factory_kwargs",
    )?;
    let servers = environment
        .get("mcp_servers")
        .ok_or_else(|| RowError::missing(SERVERS))?;
    let servers = unpacked_list(servers, SERVERS)?;
    let initial = environment
        .get("initial_config")
        .ok_or_else(|| RowError::missing(INITIAL))?;
    let mut initial = object(initial, INITIAL)?;
    let last = match environment.get("final_config") {
        None | Some(Value::Null) => Row::new(),
        Some(config) => object(config, FINAL)?,
    };

    let mut begin = Row::new();
    for server in servers {
        let Value::String(server) = server else {
            return Err(RowError::field(SERVERS, "it must hold the servers' names"));
        };
        // A server may be named twice; its state is the same.
        if begin.contains_key(&server) {
            continue;
        }
        let scenario = initial.remove(&server).ok_or_else(|| {
            let problem = format!("the state of the server {server:?} is missing");
            RowError::field(INITIAL, problem)
        })?;
        begin.insert(server, scenario);
    }
    if begin.is_empty() {
        return Err(RowError::field(SERVERS, "there is no server in it"));
    }

    let calls = calls(row)?;
    let mut reference = json!({"calls": calls});
    if !last.is_empty() {
        reference["state"] = Value::Object(last);
        reference["initial"] = Value::Object(begin.clone());
    }
    let mut extra = Row::new();
    if let Some(ability) = label(row, "ability") {
        extra.insert("ability".into(), ability.into());
    }
    Ok(Task {
        id: context.id(),
        source: label(row, "data_source").unwrap_or_else(|| "EnvFactory".into()),
        prompt,
        tools: None,
        reference,
        environment: Some(context.environment("servers")),
        setup: json!({"servers": begin}),
        extra,
    })
}

/// The calls of the reference, each with the arguments that may have any value.
fn calls(row: &Row) -> Result<Vec<Value>, RowError> {
    let truth = needed(row, "reward_model")?
        .get("ground_truth")
        .unwrap_or(&Value::Null);
    let mut calls = Vec::new();
    for (at, call) in unpacked_list(truth, TRUTH)?.into_iter().enumerate() {
        let fail = |problem: &str| RowError::field(format!("{TRUTH}[{at}]"), problem);
        let name = call
            .get("name")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| fail("`name` is missing"))?;
        let arguments = call
            .get("arguments")
            .filter(|arguments| arguments.is_object());
        let arguments = arguments.ok_or_else(|| fail("`arguments` must be an object"))?;
        let masked = match call.get("masked_arguments") {
            None | Some(Value::Null) => &[][..],
            Some(masked) => masked
                .as_array()
                .filter(|names| names.iter().all(Value::is_string))
                .ok_or_else(|| fail("`masked_arguments` must hold names of arguments"))?,
        };
        calls.push(json!({"name": name, "arguments": arguments, "masked": masked}));
    }
    if calls.is_empty() {
        return Err(RowError::field(
            TRUTH,
            "it holds no call, so nothing could be rewarded",
        ));
    }
    Ok(calls)
}
