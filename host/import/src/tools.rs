//! Reads tool definitions in the form of OpenAI's API.

use rlf_dialogue::ToolDefinition;
use rlf_dialogue::tool::Hints;
use serde_json::{Value, json};

use crate::error::RowError;
use crate::field::{label, object, unpacked_list};

/// Reads a list of tools, each `{type: "function", function: {..}}` or its `function` alone; as a list, or as JSON in a
/// text.
pub(crate) fn definitions(
    value: Option<&Value>,
    field: &str,
) -> Result<Vec<ToolDefinition>, RowError> {
    let listed = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(Vec::new()),
        Some(value) => unpacked_list(value, field)?,
    };
    let mut tools: Vec<ToolDefinition> = Vec::with_capacity(listed.len());
    for (at, tool) in listed.iter().enumerate() {
        let tool = definition(tool, &format!("{field}[{at}]"))?;
        if tools.iter().any(|other| other.name == tool.name) {
            let problem = format!("a tool {:?} stands before it already", tool.name);
            return Err(RowError::field(format!("{field}[{at}]"), problem));
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn definition(value: &Value, field: &str) -> Result<ToolDefinition, RowError> {
    let value = value.get("function").unwrap_or(value);
    let members = object(value, field)?;
    let at = format!("{field}.name");
    let name = label(&members, "name").ok_or_else(|| RowError::missing(&at))?;
    if !is_tool_name(&name) {
        let problem =
            format!("{name:?} is no tool's name; it has 1 to 64 of a-z, A-Z, 0-9, _ and -");
        return Err(RowError::field(at, problem));
    }
    let described = members.get("description").and_then(Value::as_str);
    let schema = ["parameters", "inputSchema", "input_schema"]
        .iter()
        .find_map(|name| members.get(*name))
        .filter(|schema| !schema.is_null());
    let input_schema = match schema {
        None => json!({"type": "object", "properties": {}}),
        Some(schema) => Value::Object(object(schema, &format!("{field}.parameters"))?),
    };
    Ok(ToolDefinition {
        name,
        description: described.unwrap_or_default().to_owned(),
        input_schema,
        output_schema: None,
        hints: Hints::default(),
        extra: Vec::new(),
    })
}

pub(crate) fn is_tool_name(name: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(known)
}

/// Takes the tools out of a system text that lists them like chat templates of the Hermes kind. Returns the rest of the
/// text and the tools. A text without such a list is returned whole.
pub(crate) fn listed_in(
    system: &str,
    field: &str,
) -> Result<(String, Vec<ToolDefinition>), RowError> {
    let whole = || Ok((system.to_owned(), Vec::new()));
    let Some((before, rest)) = system.split_once("<tools>\n") else {
        return whole();
    };
    let (Some((listed, after)), Some(heading)) =
        (rest.split_once("</tools>"), before.rfind("# Tools"))
    else {
        return whole();
    };
    // The explanation of calls is also the template's, and ends with an example.
    let Some(end) = after.rfind("</tool_call>") else {
        return whole();
    };
    let mut tools = Vec::new();
    for line in listed.lines().filter(|line| !line.trim().is_empty()) {
        let tool: Value = serde_json::from_str(line).map_err(|error| {
            let problem = format!("a line between <tools> tags is not JSON: {error}");
            RowError::field(field, problem)
        })?;
        tools.push(tool);
    }
    let said = [
        before[..heading].trim(),
        after[end + "</tool_call>".len()..].trim(),
    ];
    let said: Vec<&str> = said.into_iter().filter(|part| !part.is_empty()).collect();
    let field = format!("{field} <tools>");
    Ok((
        said.join("\n\n"),
        definitions(Some(&Value::Array(tools)), &field)?,
    ))
}
