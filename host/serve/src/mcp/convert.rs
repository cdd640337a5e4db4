//! Definitions and answers in the protocol's form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rlf_dialogue::message::Content;
use rlf_dialogue::tool::{CallOutcome, Hints, Observation, ToolDefinition};
use rmcp::model::{
    CallToolResult, ContentBlock, ErrorData, JsonObject, MetaObject, Tool, ToolAnnotations,
};
use serde_json::{Value, json};

/// A tool as clients see it.
pub(super) fn definition(tool: ToolDefinition) -> Tool {
    let object = |schema: Value| match schema {
        Value::Object(members) => Some(members),
        _ => None,
    };
    let schema: JsonObject = object(tool.input_schema).unwrap_or_default();
    let defined =
        Tool::new(tool.name, tool.description, schema).with_annotations(annotations(tool.hints));
    // The older revision of the protocol allows objects only.
    let answers = (tool.output_schema.and_then(object))
        .filter(|schema| schema.get("type") == Some(&json!("object")));
    match answers {
        Some(schema) => defined.with_raw_output_schema(schema.into()),
        None => defined,
    }
}

fn annotations(hints: Hints) -> ToolAnnotations {
    let annotations = ToolAnnotations::new()
        .read_only(hints.read_only)
        .idempotent(hints.idempotent || hints.read_only)
        .open_world(hints.open_world);
    // Nothing inside the sandbox outlives a call. Nobody knows what a tool destroys outside.
    if hints.open_world {
        annotations
    } else {
        annotations.destructive(false)
    }
}

/// The answer to a call. `_meta` says how the call ended and which component answered. If the machine is to blame, there is
/// nothing to show, and the answer is an error of the protocol.
pub(super) fn answer(outcome: CallOutcome) -> Result<CallToolResult, ErrorData> {
    let fault = serde_json::to_value(outcome.fault).unwrap_or_default();
    let about = json!({
        "rlf-host/ended": outcome.ended.as_str(),
        "rlf-host/fault": fault,
        "rlf-host/component": outcome.component,
    });
    let Some(observation) = outcome.observation else {
        let said = format!(
            "the call ended as `{}`, which says nothing about the tool; it may be made again",
            outcome.ended.as_str()
        );
        return Err(ErrorData::internal_error(said, Some(about)));
    };
    let mut result = shown(observation);
    if let Value::Object(members) = about {
        result.meta = Some(MetaObject(members));
    }
    Ok(result)
}

fn shown(observation: Observation) -> CallToolResult {
    let mut structured = Vec::new();
    let mut blocks = Vec::new();
    for part in observation.content {
        blocks.push(match part {
            Content::Text(text) => ContentBlock::text(text),
            Content::Structured(value) => {
                let block = ContentBlock::text(value.to_string());
                structured.push(value);
                block
            }
            Content::Image(blob) => {
                ContentBlock::image(STANDARD.encode(blob.data), blob.media_type)
            }
            Content::Audio(blob) => {
                ContentBlock::audio(STANDARD.encode(blob.data), blob.media_type)
            }
            Content::File(blob) => {
                ContentBlock::text(format!("[{}, {} bytes]", blob.media_type, blob.data.len()))
            }
        });
    }
    let mut result = if observation.failed {
        CallToolResult::error(blocks)
    } else {
        CallToolResult::success(blocks)
    };
    if let ([Value::Object(_)], Some(value)) = (structured.as_slice(), structured.first()) {
        result.structured_content = Some(value.clone());
    }
    result
}
