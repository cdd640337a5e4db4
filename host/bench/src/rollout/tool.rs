//! A tool that only takes time. It is native, like that of a server, so that the sandbox costs nothing here.

use std::collections::BTreeMap;
use std::time::Duration;

use rlf_dialogue::{Ended, Fault, Observation};
use rlf_plugins::bindings::types;
use rlf_plugins::offered_tools::{Checking, LoadedTool, OfferedToolsError, check_tools};
use rlf_plugins::outcome::CallEnd;
use rlf_sandbox::BoxFuture;
use rlf_tools::{ServerCall, ServerLimits, ToolServer};
use serde_json::{Value, json};

/// Text that the model reads after a call.
pub(super) const OBSERVATION: &str = "it is done";

const NAME: &str = "wait";
const SCHEMA: &str =
    r#"{"type":"object","required":["ms"],"properties":{"ms":{"type":"integer"}}}"#;

/// A call that takes this long, as the model writes it.
pub(super) fn call(latency: Duration) -> String {
    let call = json!({"name": NAME, "arguments": {"ms": latency.as_millis() as u64}});
    format!("<tool_call>{call}</tool_call>")
}

/// Waits as long as the call says, or answers at once.
#[derive(Debug)]
pub(super) struct WaitingTool {
    tools: Vec<LoadedTool>,
    waits: bool,
}

impl WaitingTool {
    pub(super) fn new(waits: bool) -> Result<Self, OfferedToolsError> {
        let tool = types::ToolDefinition {
            name: NAME.into(),
            description: "Waits.".into(),
            input_schema: SCHEMA.into(),
            output_schema: None,
            hints: types::Hints::READ_ONLY,
            extra: Vec::new(),
        };
        let tools = check_tools(vec![tool], &BTreeMap::new(), Checking::Host)?;
        Ok(Self { tools, waits })
    }
}

impl ToolServer for WaitingTool {
    fn name(&self) -> &'static str {
        "bench"
    }

    fn tools(&self) -> &[LoadedTool] {
        &self.tools
    }

    fn hash(&self) -> &'static str {
        ""
    }

    fn limits(&self) -> ServerLimits {
        ServerLimits {
            arguments_bytes: 1024,
            deadline: Duration::from_mins(10),
            retries: 0,
        }
    }

    fn call<'a>(&'a self, call: ServerCall<'a>) -> BoxFuture<'a, CallEnd> {
        let asked = call.arguments.get("ms").and_then(Value::as_u64);
        let ms = asked.filter(|_| self.waits).unwrap_or(0);
        Box::pin(async move {
            if ms > 0 {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            CallEnd {
                ended: Ended::Ok,
                fault: Fault::None,
                observation: Some(Observation::text(OBSERVATION, false)),
                detail: None,
            }
        })
    }
}
