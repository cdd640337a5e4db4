//! A server's definitions and answers, as those of a plugin.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rlf_plugins::bindings::types;
use rlf_plugins::manifest::is_valid_name;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool};
use serde_json::Value;

/// A tool's definition. Its name may be one that tools cannot have here: see [`valid_name`].
pub(crate) fn definition(tool: &Tool) -> types::ToolDefinition {
    let mut hints = types::Hints::empty();
    if let Some(given) = &tool.annotations {
        // Without a word of the server, a tool changes things and is not repeatable.
        if given.read_only_hint == Some(true) {
            hints |= types::Hints::READ_ONLY;
        }
        if given.idempotent_hint == Some(true) {
            hints |= types::Hints::IDEMPOTENT;
        }
    }
    // Whatever it says, the tool runs outside of the sandbox.
    hints |= types::Hints::OPEN_WORLD;
    let json = |schema| serde_json::to_string(schema).unwrap_or_default();
    types::ToolDefinition {
        name: tool.name.to_string(),
        description: tool.description.as_deref().unwrap_or_default().to_owned(),
        input_schema: json(&tool.input_schema),
        // A promise of the server, checked at the connection. What is shown here may have another form.
        output_schema: None,
        hints,
        extra: Vec::new(),
    }
}

/// The name under which a tool is offered, if the operator gives no other. Characters that no name may have become `_`.
/// `None` if nothing of the name is left.
pub(crate) fn valid_name(name: &str) -> Option<String> {
    let name: String = (name.chars().take(64))
        .map(|c| {
            if c.is_ascii_alphanumeric() || "_-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    is_valid_name(&name).then_some(name)
}

/// The observation of an answer. Servers send structured content as text, too. If the text is the same JSON value, the
/// value is shown, and otherwise the text.
pub(crate) fn observation(result: CallToolResult) -> Result<types::Observation, String> {
    let mut content = Vec::new();
    for block in result.content {
        content.push(match block {
            ContentBlock::Text(text) => types::Content::Text(text.text),
            ContentBlock::Image(image) => {
                types::Content::Image(blob(image.mime_type, &image.data)?)
            }
            ContentBlock::Audio(audio) => {
                types::Content::Audio(blob(audio.mime_type, &audio.data)?)
            }
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { text, .. } => types::Content::Text(text),
                ResourceContents::BlobResourceContents {
                    mime_type,
                    blob: data,
                    ..
                } => {
                    let media_type =
                        mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                    types::Content::File(blob(media_type, &data)?)
                }
                _ => return Err("it answered with a resource of an unknown kind".to_owned()),
            },
            ContentBlock::ResourceLink(link) => {
                types::Content::Text(format!("[{}: {}]", link.name, link.uri))
            }
            _ => return Err("it answered with content of an unknown kind".to_owned()),
        });
    }
    if let Some(value) = result.structured_content {
        match content.as_slice() {
            [] => content.push(types::Content::Structured(value.to_string())),
            [types::Content::Text(text)] => {
                let text = rlf_json::from_str::<Value>(text).ok();
                // Some servers wrap a value that is no object.
                let is_same = |text: &Value| *text == value || Some(text) == value.get("result");
                if let Some(same) = text.filter(is_same) {
                    content = vec![types::Content::Structured(same.to_string())];
                }
            }
            _ => {}
        }
    }
    Ok(types::Observation {
        content,
        failed: result.is_error == Some(true),
        metrics: Vec::new(),
        extra: Vec::new(),
    })
}

fn blob(media_type: String, data: &str) -> Result<types::Blob, String> {
    let data = STANDARD
        .decode(data)
        .map_err(|error| format!("its {media_type} is not base64: {error}"))?;
    Ok(types::Blob { media_type, data })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_s_word_on_its_tools_is_taken_but_for_the_sandbox() {
        let tool: Tool = serde_json::from_value(json!({
            "name": "fs.read",
            "description": "Reads",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        }))
        .unwrap();
        let definition = definition(&tool);
        assert_eq!(
            definition.hints,
            types::Hints::READ_ONLY | types::Hints::OPEN_WORLD
        );
        assert_eq!(valid_name(&definition.name).as_deref(), Some("fs_read"));
        assert_eq!(valid_name(""), None);
    }

    #[test]
    fn an_answer_is_shown_once() {
        let seen = |answer: serde_json::Value| observation(serde_json::from_value(answer).unwrap());
        let both = |text: &str, value: serde_json::Value| {
            let text = json!({"type": "text", "text": text});
            let seen = seen(json!({"content": [text], "structuredContent": value}));
            seen.unwrap().content
        };
        let value = both("{ \"a\": 1 }", json!({"a": 1}));
        assert!(
            matches!(value.as_slice(), [types::Content::Structured(json)] if json == r#"{"a":1}"#)
        );
        let wrapped = both("[1, 2]", json!({"result": [1, 2]}));
        assert!(
            matches!(wrapped.as_slice(), [types::Content::Structured(json)] if json == "[1,2]")
        );
        let other = both("hello", json!({"result": "hello"}));
        assert!(matches!(other.as_slice(), [types::Content::Text(text)] if text == "hello"));
        let alone =
            seen(json!({"content": [], "structuredContent": {"a": 1}, "isError": true})).unwrap();
        assert!(
            matches!(alone.content.as_slice(), [types::Content::Structured(json)] if json == r#"{"a":1}"#)
        );
        assert!(alone.failed);
        let image = json!({"content": [{"type": "image", "mimeType": "image/png", "data": "!"}]});
        assert!(seen(image).unwrap_err().contains("image/png is not base64"));
    }
}
