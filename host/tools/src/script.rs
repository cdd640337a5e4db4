//! Tools in a source file: the interpreter's component has executed the file, and each call is a request to a fresh
//! instance of it.

use std::any::Any;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rlf_interpreters::requests::LoadedFile;
use rlf_plugins::bindings::types;
use rlf_plugins::outcome::CallEnd;
use rlf_plugins::plugin::{Exports, Plugin, ToolList, ToolRequest};
use rlf_plugins::problem::{LoadRefusal, ProblemKind};
use rlf_sandbox::{BoxFuture, CallSpec, FilesReport};
use serde::Deserialize;
use serde_json::{Value, json};

/// The exports of a plugin whose tools are in a source file.
pub(crate) struct ScriptTools(pub(crate) LoadedFile);

/// The answer to `describe`.
#[derive(Deserialize)]
struct Described {
    tools: Vec<Definition>,
    rewards: Vec<String>,
}

/// A tool, as its file describes it.
#[derive(Deserialize)]
struct Definition {
    name: String,
    description: String,
    input_schema: Value,
    output_schema: Option<Value>,
    hints: Vec<String>,
}

/// The answer to `call`.
#[derive(Deserialize)]
struct Observed {
    content: Vec<Part>,
    failed: bool,
    metrics: Vec<(String, f64)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Text(String),
    Structured(String),
    Image { media_type: String, data: String },
}

impl From<Definition> for types::ToolDefinition {
    fn from(definition: Definition) -> Self {
        let mut hints = types::Hints::empty();
        for (name, hint) in [
            ("read-only", types::Hints::READ_ONLY),
            ("idempotent", types::Hints::IDEMPOTENT),
            ("deterministic", types::Hints::DETERMINISTIC),
            ("open-world", types::Hints::OPEN_WORLD),
        ] {
            if definition.hints.iter().any(|given| given == name) {
                hints |= hint;
            }
        }
        Self {
            name: definition.name,
            description: definition.description,
            input_schema: definition.input_schema.to_string(),
            output_schema: definition.output_schema.map(|schema| schema.to_string()),
            hints,
            extra: Vec::new(),
        }
    }
}

impl Part {
    fn into_content(self) -> Result<types::Content, types::Error> {
        Ok(match self {
            Self::Text(text) => types::Content::Text(text),
            Self::Structured(json) => types::Content::Structured(json),
            Self::Image { media_type, data } => {
                let data = STANDARD.decode(data).map_err(|error| {
                    types::Error::Internal(format!("an image is not base64: {error}"))
                })?;
                types::Content::Image(types::Blob { media_type, data })
            }
        })
    }
}

impl Observed {
    fn into_observation(self) -> Result<types::Observation, types::Error> {
        let content = self.content.into_iter().map(Part::into_content);
        let metrics = self.metrics.into_iter();
        Ok(types::Observation {
            content: content.collect::<Result<_, _>>()?,
            failed: self.failed,
            metrics: metrics
                .map(|(name, value)| types::Metric { name, value })
                .collect(),
            extra: Vec::new(),
        })
    }
}

impl ScriptTools {
    async fn describe(&self, plugin: &Plugin) -> Result<Option<ToolList>, LoadRefusal> {
        let mend = "mend the tool's function in the file".to_owned();
        let refused = |what: String| Err(LoadRefusal::new(ProblemKind::Tools, what, mend.clone()));
        let described: Described = match self.0.ask_about(plugin, "describe").await {
            Ok(Ok(described)) => described,
            Ok(Err(error)) => return refused(rlf_plugins::convert::error_text(&error)),
            Err(stopped) => return refused(format!("its tools cannot be listed: {stopped}")),
        };
        if let Some(reward) = described.rewards.first() {
            return Err(LoadRefusal::new(
                ProblemKind::Tools,
                format!("it has tools, and the reward `{reward}`"),
                "put tools and rewards into files of their own",
            ));
        }
        let listed = described.tools.into_iter().map(Into::into).collect();
        Ok(Some(ToolList { listed, mend }))
    }

    async fn call(&self, plugin: &Plugin, request: ToolRequest) -> (CallEnd, FilesReport) {
        let context = request.context;
        let spec = CallSpec {
            label: context.call_id.clone(),
            seed: context.seed,
            deadline: Some(request.deadline),
            caller: request.caller,
            context: request.nesting.map(|nesting| nesting as _),
            ..CallSpec::default()
        };
        let facts = json!({
            "call_id": context.call_id,
            "attempt": context.attempt,
            "trajectory_id": context.trajectory_id,
            "turn": context.turn,
            "seed": context.seed,
            "budget_ms": context.budget_ms,
        });
        let arguments = json!([request.name, request.arguments, facts]);
        let report = self
            .0
            .ask::<Observed>(plugin, spec, "call", arguments)
            .await;
        let end = match plugin.finish(report) {
            Ok(answer) => {
                let observation = answer.and_then(Observed::into_observation);
                CallEnd::from_result(observation, plugin.grants().limits.result_bytes)
            }
            Err(stopped) => CallEnd::from_stopped(&stopped),
        };
        // A call's files are its own, and are gone with it.
        (end, FilesReport::default())
    }
}

impl Exports for ScriptTools {
    fn as_any(&self) -> &dyn Any {
        &self.0
    }

    fn list<'a>(
        &'a self,
        plugin: &'a Plugin,
    ) -> BoxFuture<'a, Result<Option<ToolList>, LoadRefusal>> {
        Box::pin(self.describe(plugin))
    }

    fn call_tool<'a>(
        &'a self,
        plugin: &'a Arc<Plugin>,
        request: ToolRequest,
    ) -> BoxFuture<'a, (CallEnd, FilesReport)> {
        Box::pin(self.call(plugin, request))
    }
}
