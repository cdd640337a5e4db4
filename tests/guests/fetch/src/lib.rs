//! A tool that uses the gate `http`. The host's tests give it hosts, and hosts that it must not reach.

use rlf_plugin::http::{self, HeaderValue, Request};
use rlf_plugin::{error_message, plugin, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Get {
    /// What to fetch
    url: String,
    /// The name of a secret to send along
    secret: Option<String>,
    /// How many times, all at once
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

/// Fetches a page and returns its status and text, once for each time.
#[tool(open_world)]
fn get(Get { url, secret, times }: Get) -> String {
    let headers = secret.map(|name| ("authorization".to_owned(), HeaderValue::Secret(name)));
    let request = Request {
        method: "GET".to_owned(),
        url,
        headers: headers.into_iter().collect(),
        body: Vec::new(),
    };
    let answers: Vec<String> = http::fetch(&vec![request; times])
        .into_iter()
        .map(|answer| match answer {
            Ok(answer) => format!(
                "{} {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            ),
            Err(error) => format!("refused: {}", error_message(&error)),
        })
        .collect();
    answers.join("\n")
}

plugin!(tools: [get]);
