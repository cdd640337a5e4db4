//! `rlf:plugin/gates`: the gates of a plugin that is a source file. Its interpreter sends requests as JSON. Each is carried
//! out by the gate of its kind, if that is open, with the same limits as a request of a component.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rlf_sandbox::{OpenGate, State};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, SeqAccess, Visitor};
use serde_json::{Value, json};
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use super::execute::wit::Host as _;
use super::http::wit::Host as _;
use super::model::wit::Host as _;
use super::tools::wit::Host as _;
use super::{execute, http, model, tools};
use crate::bindings::code::{File, Limits, Outcome, Program, Report};
use crate::bindings::types::{Error, Role, ToolDefinition};
use crate::guest_json::{captured_text, ended_name, error_to_json, observation_to_json};

#[allow(missing_docs, unreachable_pub, clippy::pedantic)] // generated
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "package rlf:gates; world gate { import rlf:plugin/gates@0.1.0; }",
        world: "rlf:gates/gate",
        imports: { default: async | trappable },
        with: { "rlf:plugin/types@0.1.0": crate::bindings::rlf::plugin::types },
    });
}

use bindings::rlf::plugin::gates as wit;

/// Maximum number of requests that are read at once. Limits of the gates are usually smaller.
const MAX_REQUESTS: usize = 1_024;

/// All gates of a plugin, as JSON.
pub(crate) struct JsonGates;

impl OpenGate for JsonGates {
    fn interface(&self) -> &'static str {
        "rlf:plugin/gates"
    }

    fn link(&self, linker: &mut Linker<State>) -> Result<()> {
        wit::add_to_linker::<State, HasGates>(linker, |state| View(state))
    }
}

/// A value, or the error that the guest gets.
type Answer<T> = std::result::Result<T, Error>;

struct HasGates;

impl HasData for HasGates {
    type Data<'a> = View<'a>;
}

struct View<'a>(&'a mut State);

impl View<'_> {
    /// The gate of a kind of requests, if it is closed.
    fn closed(&self, kind: &str) -> Option<&'static str> {
        let (gate, is_open) = match kind {
            "tools.invoke" => ("tools", self.0.gate::<tools::ToolsGate>().is_some()),
            "execute.run" => ("execute", self.0.gate::<execute::ExecuteGate>().is_some()),
            "http.fetch" => ("http", self.0.gate::<http::HttpGate>().is_some()),
            "model.ask" => ("model", self.0.gate::<model::ModelGate>().is_some()),
            _ => return None,
        };
        (!is_open).then_some(gate)
    }
}

impl wit::Host for View<'_> {
    async fn ask(&mut self, kind: String, requests: String) -> Result<String> {
        if let Some(gate) = self.closed(&kind) {
            let refusal = format!(
                "the gate `{gate}` is not open: plugin.toml asks for it (gates = [\"{gate}\"]), the operator grants it, and it \
                 opens when the file has been loaded"
            );
            return Ok(error_to_json(&Error::Denied(refusal)).to_string());
        }
        let answers = match kind.as_str() {
            "tools.list" => {
                let listed = tools::View(self.0).list_tools().await?;
                Ok(Value::Array(listed.iter().map(definition).collect()))
            }
            "tools.invoke" => match parsed(&requests, |call: Invocation| Ok(call.into())) {
                Ok(calls) => Ok(array(&tools::View(self.0).invoke(calls).await?, invoked)),
                Err(refusal) => Err(refusal),
            },
            "execute.run" => match parsed(&requests, JsonProgram::into_guest) {
                Ok(programs) => Ok(array(&execute::View(self.0).run(programs).await?, report)),
                Err(refusal) => Err(refusal),
            },
            "http.fetch" => match parsed(&requests, JsonRequest::into_guest) {
                Ok(requests) => Ok(array(&http::View(self.0).fetch(requests).await?, response)),
                Err(refusal) => Err(refusal),
            },
            "model.list" => {
                let listed = model::View(self.0).list_models().await?;
                Ok(Value::Array(listed.iter().map(described).collect()))
            }
            "model.ask" => match parsed(&requests, |question: JsonQuestion| Ok(question.into())) {
                Ok(questions) => Ok(array(&model::View(self.0).ask(questions).await?, answered)),
                Err(refusal) => Err(refusal),
            },
            _ => {
                let kind: String = kind.chars().take(64).collect();
                Err(invalid(format!(
                    "unknown kind of request {kind:?}; there are: tools.list, tools.invoke, execute.run, http.fetch, \
                     model.list, model.ask"
                )))
            }
        };
        let answers = answers.unwrap_or_else(|refusal| error_to_json(&refusal));
        Ok(answers.to_string())
    }
}

/// The requests in a JSON text.
fn parsed<T: DeserializeOwned, G>(
    requests: &str,
    into_guest: impl Fn(T) -> Answer<G>,
) -> Answer<Vec<G>> {
    let Requests(requests) = serde_json::from_str(requests)
        .map_err(|error| invalid(format!("the requests cannot be read: {error}")))?;
    requests.into_iter().map(into_guest).collect()
}

/// At most [`MAX_REQUESTS`] requests. Parsed, they take many times the length of their text.
struct Requests<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Requests<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Few<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
            type Value = Requests<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of requests")
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut array: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut requests = Vec::new();
                while let Some(request) = array.next_element()? {
                    if requests.len() == MAX_REQUESTS {
                        let what = format!("there are more than {MAX_REQUESTS}");
                        return Err(serde::de::Error::custom(what));
                    }
                    requests.push(request);
                }
                Ok(Requests(requests))
            }
        }

        deserializer.deserialize_seq(Few(PhantomData))
    }
}

fn invalid(what: String) -> Error {
    Error::InvalidArguments(what)
}

/// Encodes the answers: each is an error, or a value encoded by `form`.
fn array<T>(answers: &[Answer<T>], form: impl Fn(&T) -> Value) -> Value {
    answers
        .iter()
        .map(|answer| answer.as_ref().map_or_else(error_to_json, &form))
        .collect()
}

fn decoded(text: &str, what: &str) -> Answer<Vec<u8>> {
    let decoded = STANDARD.decode(text);
    decoded.map_err(|error| invalid(format!("{what} is not base64: {error}")))
}

/// A request to `tools.invoke`. The arguments are a JSON text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invocation {
    name: String,
    arguments: String,
}

impl From<Invocation> for tools::wit::Request {
    fn from(Invocation { name, arguments }: Invocation) -> Self {
        Self { name, arguments }
    }
}

fn definition(tool: &ToolDefinition) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": serde_json::from_str(&tool.input_schema).unwrap_or(Value::Null),
    })
}

fn invoked(response: &tools::wit::Response) -> Value {
    json!({
        "ended": ended_name(response.ended),
        "observation": response.observation.as_ref().map(observation_to_json),
    })
}

/// A request to `execute.run`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonProgram {
    language: String,
    code: String,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    stdin: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    fetch: Vec<String>,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    limits: JsonLimits,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct JsonLimits {
    wall_ms: u32,
    memory_bytes: u64,
    output_bytes: u32,
    file_bytes: u64,
}

impl JsonProgram {
    fn into_guest(self) -> Answer<Program> {
        let files = self.files.into_iter().map(|(path, data)| {
            let data = decoded(&data, &format!("file {path:?}"))?;
            Ok(File { path, data })
        });
        Ok(Program {
            language: self.language,
            code: self.code,
            arguments: self.arguments,
            stdin: decoded(&self.stdin, "stdin")?,
            files: files.collect::<Answer<_>>()?,
            fetch: self.fetch,
            modules: Vec::new(),
            seed: self.seed,
            limits: Limits {
                wall_ms: self.limits.wall_ms,
                memory_bytes: self.limits.memory_bytes,
                output_bytes: self.limits.output_bytes,
                file_bytes: self.limits.file_bytes,
            },
        })
    }
}

fn report(report: &Report) -> Value {
    let (outcome, exit_code, exception) = match &report.outcome {
        None => (None, None, None),
        Some(Outcome::Completed) => (Some("completed"), None, None),
        Some(Outcome::Exited(code)) => (Some("exited"), Some(code), None),
        Some(Outcome::Raised(exception)) => (Some("raised"), None, Some(exception)),
        Some(Outcome::Rejected(exception)) => (Some("rejected"), None, Some(exception)),
    };
    let files: BTreeMap<&str, String> = (report.files.iter())
        .map(|file| (file.path.as_str(), STANDARD.encode(&file.data)))
        .collect();
    json!({
        "ended": ended_name(report.ended),
        "outcome": outcome,
        "exit_code": exit_code,
        "exception": exception.map(|exception| json!({
            "kind": exception.kind,
            "message": exception.message,
            "traceback": exception.traceback,
        })),
        "stdout": captured_text(&report.stdout),
        "stderr": captured_text(&report.stderr),
        "files": files,
        "cpu_us": report.cpu_us,
    })
}

/// A request to `http.fetch`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRequest {
    #[serde(default = "get")]
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<(String, HeaderValue)>,
    #[serde(default)]
    body: String,
}

fn get() -> String {
    "GET".to_owned()
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum HeaderValue {
    Text(String),
    Secret(String),
}

impl JsonRequest {
    fn into_guest(self) -> Answer<http::wit::Request> {
        let header = |(name, value)| {
            let value = match value {
                HeaderValue::Text(text) => http::wit::HeaderValue::Text(text),
                HeaderValue::Secret(name) => http::wit::HeaderValue::Secret(name),
            };
            (name, value)
        };
        Ok(http::wit::Request {
            method: self.method,
            url: self.url,
            headers: self.headers.into_iter().map(header).collect(),
            body: decoded(&self.body, "the body")?,
        })
    }
}

fn response(response: &http::wit::Response) -> Value {
    json!({
        "status": response.status,
        "headers": response.headers,
        "body": STANDARD.encode(&response.body),
    })
}

fn described(model: &model::wit::Description) -> Value {
    json!({
        "name": model.name,
        "max_tokens": model.max_tokens,
        "context_tokens": model.context_tokens,
    })
}

/// A request to `model.ask`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonQuestion {
    #[serde(default)]
    model: String,
    #[serde(default)]
    messages: Vec<JsonMessage>,
    /// A request in the form of OpenAI's chat completions, instead of messages: a JSON text.
    #[serde(default)]
    chat: Option<String>,
    /// The JSON Schema that the answer must fit: a JSON text.
    #[serde(default)]
    schema: Option<String>,
    #[serde(default)]
    max_tokens: u32,
    #[serde(default)]
    temperature: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonMessage {
    role: JsonRole,
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum JsonRole {
    System,
    User,
    Assistant,
}

impl From<JsonQuestion> for model::wit::Question {
    fn from(question: JsonQuestion) -> Self {
        let message = |message: JsonMessage| model::wit::ChatMessage {
            role: match message.role {
                JsonRole::System => Role::System,
                JsonRole::User => Role::User,
                JsonRole::Assistant => Role::Assistant,
            },
            text: message.text,
        };
        Self {
            model: question.model,
            messages: question.messages.into_iter().map(message).collect(),
            max_tokens: question.max_tokens,
            temperature: question.temperature,
            extra: [
                (model::CHAT, question.chat),
                (model::SCHEMA, question.schema),
            ]
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect(),
        }
    }
}

fn answered(answer: &model::wit::Answer) -> Value {
    let mut answered = json!({
        "text": answer.text,
        "cut_short": answer.cut_short,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
    });
    let message = (answer.extra.iter()).find(|(name, _)| name == model::MESSAGE);
    if let Some((name, message)) = message {
        answered[name] = serde_json::from_str(message).unwrap_or(Value::Null);
    }
    answered
}
