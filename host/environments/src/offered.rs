//! The tools that a session offers, at its start, after a step, and after it was restored; and the check of a call.

use rlf_dialogue::tool::{Ended, ToolCall, ToolDefinition};
use rlf_plugins::arguments::canonical_json;
use rlf_plugins::bindings::{environment, types};
use rlf_plugins::convert::{definition_to_guest, finite};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::offered_tools::{Checking, LoadedTool, OfferedToolsError, check_tools};
use rlf_plugins::outcome::{CallEnd, bytes, invalid_arguments};
use rlf_plugins::plugin::Plugin;

/// The tools of a snapshot, checked as when they were first offered.
pub(crate) fn loaded_again(
    tools: &[ToolDefinition],
    plugin: &Plugin,
) -> Result<Vec<LoadedTool>, OfferedToolsError> {
    let rename = &plugin.grants().rename;
    let own_name = |tool: &ToolDefinition| {
        let own = rename.iter().find(|(_, new)| **new == tool.name);
        let name = own.map_or(&tool.name, |(own, _)| own).clone();
        ToolDefinition {
            name,
            ..tool.clone()
        }
    };
    let own = tools
        .iter()
        .map(|tool| definition_to_guest(&own_name(tool)));
    offered(own.collect(), plugin)
}

/// The tools that an environment offers. An environment in Python checks the arguments itself: functions of FastMCP
/// accept more than their schemas say, and published functions accept what their code accepts.
pub(crate) fn offered(
    tools: Vec<types::ToolDefinition>,
    plugin: &Plugin,
) -> Result<Vec<LoadedTool>, OfferedToolsError> {
    let checking = match plugin.kind() {
        PluginKind::Interpreter => Checking::Tool,
        _ => Checking::Host,
    };
    check_tools(tools, &plugin.grants().rename, checking)
}

/// The new tools of a step, if it changes them.
pub(crate) fn check_step(
    step: &environment::Step,
    plugin: &Plugin,
) -> Result<Option<Vec<LoadedTool>>, OfferedToolsError> {
    if let Some(reward) = step.reward {
        finite(reward, || "the reward of a step".to_owned())?;
    }
    step.tools
        .clone()
        .map(|tools| offered(tools, plugin))
        .transpose()
}

/// The tool of a call, and its arguments as canonical JSON. The error is the end of a call that cannot be made.
pub(crate) fn accepted<'a>(
    call: &ToolCall,
    tools: &'a [LoadedTool],
    terminated: bool,
    arguments_bytes: u64,
) -> Result<(&'a LoadedTool, String), CallEnd> {
    if terminated {
        let text = "error: the episode is over; this call was not made";
        return Err(CallEnd::by_model(Ended::Denied, text));
    }
    let refused = |text: String| CallEnd::by_model(Ended::InvalidArguments, text);
    let tool = tools
        .iter()
        .find(|tool| tool.definition.name == call.name)
        .ok_or_else(|| refused(format!("error: there is no tool {:?} now", call.name)))?;
    // Size before shape: the cost of a schema check grows with the size of the arguments.
    let arguments = canonical_json(&call.arguments);
    let size = arguments.len();
    if size as u64 > arguments_bytes {
        let most = bytes(arguments_bytes);
        let what = format!("they have {size} bytes; at most {most} are allowed");
        return Err(refused(invalid_arguments(&what)));
    }
    tool.check(&call.arguments)
        .map_err(|error| refused(invalid_arguments(&error.to_string())))?;
    Ok((tool, arguments))
}
