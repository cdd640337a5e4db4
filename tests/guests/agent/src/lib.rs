//! A tool that calls other tools, also itself. The host's tests say which.

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::tools::{self, Request};
use rlf_plugin::{Content, Json, error_message, plugin, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Delegate {
    /// What to call, all at once
    calls: Vec<Call>,
    /// How many times, one after the other
    #[serde(default = "once")]
    times: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Call {
    /// The name of a tool
    tool: String,
    /// Its arguments, as JSON in a string
    arguments: String,
}

fn once() -> usize {
    1
}

/// Calls tools and returns how each call ended and what it showed.
#[tool]
fn delegate(Delegate { calls, times }: Delegate) -> Json<Vec<Value>> {
    let requests: Vec<Request> = calls
        .into_iter()
        .map(|call| Request {
            name: call.tool,
            arguments: call.arguments,
        })
        .collect();
    let answers = (0..times).flat_map(|_| tools::invoke(&requests));
    let answers = answers.map(|answer| match answer {
        Ok(response) => {
            let content = response.observation.map(|seen| seen.content);
            let shown: Vec<Value> = content.into_iter().flatten().map(to_json).collect();
            json!({ "ended": format!("{:?}", response.ended), "shown": shown })
        }
        Err(error) => json!({ "refused": error_message(&error) }),
    });
    Json(answers.collect())
}

fn to_json(content: Content) -> Value {
    match content {
        Content::Text(text) => json!(text),
        Content::Structured(text) => rlf_plugin::serde_json::from_str(&text).unwrap_or_default(),
        _ => json!("bytes"),
    }
}

/// Calls itself, and that call does, for as long as the host lets it.
#[tool]
fn descend() -> String {
    match tools::invoke_one("descend", &json!({})) {
        Ok(seen) => match seen.content.into_iter().next() {
            Some(Content::Text(text)) => format!("1 + {text}"),
            _ => "1 + nothing".to_owned(),
        },
        Err(error) => format!("refused: {}", error_message(&error)),
    }
}

/// Names the tools that are open.
#[tool(pure)]
fn list() -> String {
    let names: Vec<String> = tools::list().into_iter().map(|tool| tool.name).collect();
    names.join(" ")
}

plugin!(tools: [delegate, descend, list]);
