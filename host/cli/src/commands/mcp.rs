//! `rlf-host mcp`: the MCP servers of a configuration.

use std::process::ExitCode;

use anyhow::bail;
use console::style;
use rlf_dialogue::tool::{Hints, ToolDefinition};
use rlf_plugins::plugin::Printed;
use rlf_plugins::problem::one_line;
use rlf_tools::ToolServer;
use serde_json::json;

use super::plugin::call;
use super::signature::signature;
use crate::arguments::{Mcp, McpCommand};
use crate::interrupt;
use crate::operator::Operator;

pub(crate) fn run(options: &Mcp) -> anyhow::Result<ExitCode> {
    let Some(file) = &options.config else {
        bail!("name the configuration that has the servers: --config FILE, with tables [mcp.NAME]");
    };
    let operator = Operator::load(Some(file))?;
    interrupt::exit_with_servers()?;
    match &options.command {
        McpCommand::List => {
            let tools = operator.servers_alone()?;
            list(tools.servers(), options.json)
        }
        McpCommand::Call { tool, arguments } => {
            let arguments = call::arguments(arguments)?;
            let tools = operator.servers_alone()?;
            call::make(&tools, tool, &arguments, 0, Printed::default, options.json)
        }
    }
}

fn list(servers: &[std::sync::Arc<dyn ToolServer>], as_json: bool) -> anyhow::Result<ExitCode> {
    if as_json {
        let servers = servers.iter().map(|server| {
            let tools: Vec<&ToolDefinition> =
                server.tools().iter().map(|tool| &tool.definition).collect();
            json!({ "name": server.name(), "hash": server.hash(), "tools": tools })
        });
        let servers: Vec<_> = servers.collect();
        say!("{}", serde_json::to_string_pretty(&servers)?);
        return Ok(ExitCode::SUCCESS);
    }
    if servers.is_empty() {
        say!("the configuration has no server that is enabled: no [mcp.NAME], and no mcp_servers");
    }
    for server in servers {
        say!("{}", style(server.name()).cyan());
        for tool in server.tools() {
            let definition = &tool.definition;
            let renamed = (tool.own_name != definition.name)
                .then(|| format!(" (the server's `{}`)", one_line(&tool.own_name)));
            say!(
                "  {}{}{}",
                signature(&definition.name, &definition.input_schema),
                renamed.unwrap_or_default(),
                promises(definition.hints)
            );
            if !definition.description.is_empty() {
                say!("      {}", one_line(&definition.description));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A mark for tools that say that a call may be repeated. Calls of other tools are never repeated.
fn promises(hints: Hints) -> &'static str {
    match (hints.read_only, hints.idempotent) {
        (true, _) => "  [read-only]",
        (false, true) => "  [idempotent]",
        (false, false) => "",
    }
}
