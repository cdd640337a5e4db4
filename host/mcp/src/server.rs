//! One server: its tools under the operator's names, and the check of its answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use rlf_dialogue::tool::Ended;
use rlf_plugins::bindings::types::ToolDefinition;
use rlf_plugins::offered_tools::{Checking, LoadedTool, check_names, check_tools, printable_name};
use rlf_plugins::outcome::CallEnd;
use rlf_sandbox::BoxFuture;
use rlf_tools::{ServerCall, ServerLimits, ToolServer};

use crate::background::Background;
use crate::config::McpConfig;
use crate::connection::{Connection, Introduction};
use crate::convert::{definition, valid_name};
use crate::error::McpError;

/// A connected server.
#[derive(Debug)]
pub(crate) struct Server {
    name: String,
    tools: Vec<LoadedTool>,
    hash: String,
    limits: ServerLimits,
    connection: Arc<Connection>,
    background: Arc<Background>,
}

impl Server {
    /// Checks what a server said of its tools. A tool that cannot be offered is left out with a warning, unless the operator
    /// named it.
    pub(crate) fn new(
        name: &str,
        config: &McpConfig,
        introduction: &Introduction,
        connection: Arc<Connection>,
        background: Arc<Background>,
        warn: &dyn Fn(&str),
    ) -> Result<Self, McpError> {
        let wrong = |key: &'static str, reason: String| McpError::Tools {
            server: name.to_owned(),
            key,
            reason,
        };
        let listing = &introduction.listing;
        for tool in &listing.unreadable {
            let named = tool.name.as_ref().zip(config.tools.as_ref());
            match named.map(|(name, wanted)| wanted.contains(name)) {
                Some(true) => return Err(wrong("tools", tool.what())),
                Some(false) => {}
                None => warn(&format!("[mcp.{name}] {}", tool.what())),
            }
        }
        let mut listed: Vec<ToolDefinition> = listing.tools.iter().map(definition).collect();
        check_names(&listed, &config.rename).map_err(|error| wrong("rename", error.to_string()))?;
        if let Some(wanted) = &config.tools {
            check_offered(&listed, wanted).map_err(|reason| wrong("tools", reason))?;
            listed.retain(|tool| wanted.contains(&tool.name));
        }
        let mut tools: Vec<LoadedTool> = Vec::new();
        for tool in listed {
            let own_name = printable_name(&tool.name);
            match load(tool, config, &tools) {
                Ok(tool) => tools.push(tool),
                Err(reason) => {
                    let what = format!("its tool `{own_name}` cannot be offered: {reason}");
                    if config.tools.is_some() {
                        return Err(wrong("tools", what));
                    }
                    warn(&format!("[mcp.{name}] {what}"));
                }
            }
        }
        if tools.is_empty() {
            let reason = "the server offers no tool that can be used";
            return Err(wrong("tools", reason.to_owned()));
        }
        let mut hash = blake3::Hasher::new();
        hash.update(introduction.server.as_bytes());
        for tool in &tools {
            hash.update(&serde_json::to_vec(&tool.definition).unwrap_or_default());
        }
        Ok(Self {
            name: name.to_owned(),
            tools,
            hash: hash.finalize().to_hex().to_string(),
            limits: ServerLimits {
                arguments_bytes: config.arguments_bytes,
                deadline: config.deadline,
                retries: config.retries,
            },
            connection,
            background,
        })
    }
}

/// Checks that a server offers all tools that the operator wants.
fn check_offered(listed: &[ToolDefinition], wanted: &[String]) -> Result<(), String> {
    let names = || listed.iter().map(|tool| tool.name.as_str());
    let Some(missing) = (wanted.iter()).find(|wanted| !names().any(|name| name == *wanted)) else {
        return Ok(());
    };
    let hint = if let Some(near) = rlf_config::nearest(missing, names()) {
        format!("did you mean `{}`?", printable_name(near))
    } else {
        let names: Vec<String> = names().take(50).map(printable_name).collect();
        format!("it offers: {}", names.join(", "))
    };
    Err(format!("the server offers no tool `{missing}`; {hint}"))
}

/// Checks one tool, beside others of the server, and gives it the name that models see.
fn load(
    mut tool: ToolDefinition,
    config: &McpConfig,
    others: &[LoadedTool],
) -> Result<LoadedTool, String> {
    let own_name = tool.name;
    let renamed = config.rename.get(&own_name).cloned();
    tool.name = renamed
        .or_else(|| valid_name(&own_name))
        .ok_or("no name can be made of its name; give it one in `rename`")?;
    if (others.iter()).any(|other| other.definition.name == tool.name) {
        return Err(format!(
            "another tool of the server is called `{}`; give one of them another name in `rename`",
            tool.name
        ));
    }
    let mut loaded = check_tools(vec![tool], &BTreeMap::new(), Checking::Host)
        .map_err(|error| error.to_string())?;
    let mut loaded = loaded.pop().ok_or("it was not loaded")?;
    loaded.own_name = own_name;
    Ok(loaded)
}

impl ToolServer for Server {
    fn name(&self) -> &str {
        &self.name
    }

    fn tools(&self) -> &[LoadedTool] {
        &self.tools
    }

    fn hash(&self) -> &str {
        &self.hash
    }

    fn limits(&self) -> ServerLimits {
        self.limits
    }

    fn call<'a>(&'a self, call: ServerCall<'a>) -> BoxFuture<'a, CallEnd> {
        let name = call.name.to_owned();
        let arguments = call.arguments.clone();
        let connection = Arc::clone(&self.connection);
        Box::pin(async move {
            let made = connection.call(name, arguments, call.deadline);
            let end = self.background.run(made).await;
            end.unwrap_or_else(|reason| CallEnd::by_infrastructure(Ended::Unavailable, reason))
        })
    }
}
