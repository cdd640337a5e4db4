//! How models write tool calls, as data.
//!
//! A protocol is the pair of what a model was trained to write and what its template renders.
//! The parser knows no protocol by name: it reads a [`ProtocolSpec`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::parser;

/// A known way of writing tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// `<tool_call>{"name": .., "arguments": ..}</tool_call>`: Hermes, Qwen2.5, Qwen3, and our
    /// small template.
    Hermes,
    /// `<|python_tag|>{"name": .., "parameters": ..}` to the end of the turn, or the JSON object
    /// alone: Llama 3.1.
    #[serde(rename = "llama-3.1")]
    Llama31,
}

/// What the parser needs to know of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolSpec {
    /// What a call begins with.
    pub open: &'static str,
    /// What a call ends with; without one it ends with the turn.
    pub close: Option<&'static str>,
    /// A turn that begins with a JSON object that has a name is a call without `open`.
    pub bare: bool,
    /// May stand between calls that follow one `open`.
    pub separator: Option<char>,
    /// The member that names the tool.
    pub name: &'static str,
    /// The member that holds the arguments.
    pub arguments: &'static str,
    /// Tags that templates of this protocol put around observations; in an observation's own text
    /// they are escaped, so that it cannot seem to end early.
    pub response: &'static [&'static str],
    /// A call as the model should write it, for observations that say how to mend one.
    pub example: &'static str,
}

/// What encloses reasoning, in every protocol.
pub const THINK_OPEN: &str = "<think>";
/// See [`THINK_OPEN`].
pub const THINK_CLOSE: &str = "</think>";

const HERMES: ProtocolSpec = ProtocolSpec {
    open: "<tool_call>",
    close: Some("</tool_call>"),
    bare: false,
    separator: None,
    name: "name",
    arguments: "arguments",
    response: &["<tool_response>", "</tool_response>"],
    example: r#"<tool_call>{"name": "tool", "arguments": {"key": "value"}}</tool_call>"#,
};

const LLAMA31: ProtocolSpec = ProtocolSpec {
    open: "<|python_tag|>",
    close: None,
    bare: true,
    separator: Some(';'),
    name: "name",
    arguments: "parameters",
    response: &[
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
        "<|eom_id|>",
    ],
    example: r#"{"name": "tool", "parameters": {"key": "value"}}"#,
};

impl Protocol {
    /// Every known protocol.
    pub const ALL: [Self; 2] = [Self::Hermes, Self::Llama31];

    /// Its data.
    pub fn spec(self) -> &'static ProtocolSpec {
        match self {
            Self::Hermes => &HERMES,
            Self::Llama31 => &LLAMA31,
        }
    }

    /// The name used in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hermes => "hermes",
            Self::Llama31 => "llama-3.1",
        }
    }

    /// The protocol whose markers a chat template's source writes, if any.
    pub fn detect(template_source: &str) -> Option<Self> {
        if template_source.contains(HERMES.open) {
            return Some(Self::Hermes);
        }
        // Llama 3.1's template writes its marker for built-in tools only, but asks for this form.
        let llama = template_source.contains(LLAMA31.open)
            || (template_source.contains("<|start_header_id|>")
                && template_source.contains("\"parameters\""));
        llama.then_some(Self::Llama31)
    }
}

impl ProtocolSpec {
    /// Tags that only the template and the model may write.
    pub fn tags(&self) -> impl Iterator<Item = &'static str> {
        [self.open, THINK_OPEN, THINK_CLOSE]
            .into_iter()
            .chain(self.close)
            .chain(self.response.iter().copied())
    }

    /// A turn that makes `calls`, names with their arguments, without the end-of-turn token. The parser reads exactly
    /// these calls in it, or there is none. `control` are the tokenizer's added tokens: where a text in the arguments
    /// has one, it is escaped as JSON allows, for written out it would be the token.
    pub fn write(&self, calls: &[(&str, &Value)], control: &[&str]) -> Result<String, Unwritable> {
        let mut objects = Vec::with_capacity(calls.len());
        for (name, arguments) in calls {
            objects.push(self.write_object(name, arguments, control)?);
        }
        let text = match (self.close, self.separator) {
            (Some(close), _) => {
                let tagged = |object: &String| format!("{}\n{object}\n{close}", self.open);
                objects.iter().map(tagged).collect::<Vec<_>>().join("\n")
            }
            (None, separator) => {
                let open = if self.bare { "" } else { self.open };
                let between = separator.map_or(String::new(), String::from);
                format!("{open}{}", objects.join(&between))
            }
        };
        let names: Vec<&str> = calls.iter().map(|(name, _)| *name).collect();
        let parsed = parser::parse(&text, false, self, &names);
        let mut read = parsed.attempts();
        for (name, arguments) in calls {
            let what = match read.next() {
                Some((_, Ok((read, with)))) if read == name && with == *arguments => continue,
                Some((_, Err(malformed))) => malformed.detail.clone(),
                _ => "it would be read as another call".to_owned(),
            };
            let tool = (*name).to_owned();
            return Err(Unwritable::ReadBack { tool, what });
        }
        drop(read);
        Ok(text)
    }

    /// The JSON of a call, its name first: a call without `open` is known by it.
    fn write_object(
        &self,
        name: &str,
        arguments: &Value,
        control: &[&str],
    ) -> Result<String, Unwritable> {
        let tool = || name.to_owned();
        if !arguments.is_object() {
            return Err(Unwritable::NoObject { tool: tool() });
        }
        let mut object = format!(
            "{{{}:{},{}:{arguments}}}",
            Value::from(self.name),
            Value::from(name),
            Value::from(self.arguments)
        );
        for token in control {
            // JSON has `<` within its texts alone, and nearly all such tokens begin with it.
            if let Some(rest) = token.strip_prefix('<') {
                object = object.replace(token, &format!("\\u003c{rest}"));
            } else if !token.trim().is_empty() && object.contains(token) {
                let token = (*token).to_owned();
                return Err(Unwritable::Control {
                    tool: tool(),
                    token,
                });
            }
        }
        Ok(object)
    }
}

/// Why a call cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// No protocol writes other arguments.
    #[error("the arguments of the call to `{tool}` are no JSON object, and must be one")]
    NoObject {
        /// The tool.
        tool: String,
    },
    /// Nothing but the template may write such a token.
    #[error(
        "the call to `{tool}` holds {token:?}, which is a control token of the model: none of its calls can have it"
    )]
    Control {
        /// The tool.
        tool: String,
        /// The token.
        token: String,
    },
    /// The parser takes it for something else.
    #[error("the call to `{tool}` cannot be written so that the model's could be read: {what}")]
    ReadBack {
        /// The tool.
        tool: String,
        /// What it would be read as.
        what: String,
    },
}
