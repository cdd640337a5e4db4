//! Checks at load which earlier turns a template renders unchanged.
//!
//! A model reads its prompt, writes a turn, and reads the reply. If the conversation is rendered again with that turn in
//! it, the text may differ from the text that the model had read. Qwen3's template, for example, drops the empty think
//! block of an earlier turn. This does not affect `history = "as-sampled"`. Under `"template"` each such place begins a
//! new training sequence.

use std::fmt;

use serde::Serialize;

use crate::history::{TurnStyle, assistant_message};
use crate::message::{Message, Role};
use crate::parser;
use crate::protocol::{Protocol, THINK_CLOSE, THINK_OPEN};
use crate::template::{ChatTemplate, RenderInput};
use crate::tool::{ToolCall, ToolDefinition};

/// Tells, for each kind of earlier turn, whether the template keeps it unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PrefixReport {
    /// One entry for each kind that the template can render.
    pub cases: Vec<PrefixCase>,
}

/// One kind of earlier turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PrefixCase {
    /// The case's name, for people and programs.
    pub name: &'static str,
    /// True if the text that the model had read stays unchanged.
    pub kept: bool,
}

impl PrefixReport {
    /// True if the case of this name is kept unchanged. `None` if the template cannot render it.
    pub fn kept(&self, name: &str) -> Option<bool> {
        self.cases
            .iter()
            .find(|case| case.name == name)
            .map(|case| case.kept)
    }

    /// True if every case is kept unchanged.
    pub fn keeps_all(&self) -> bool {
        self.cases.iter().all(|case| case.kept)
    }
}

impl fmt::Display for PrefixReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in &self.cases {
            writeln!(
                f,
                "{}  {}",
                if case.kept { "kept   " } else { "changed" },
                case.name
            )?;
        }
        Ok(())
    }
}

/// Name of a case: thinking is on, and the model reasons in the template's form before a call.
pub const REASONING: &str = "thinking on, reasoning as the template writes it";
/// Name of a case: thinking is on, and the model makes a call without reasoning.
pub const REASONING_SKIPPED: &str = "thinking on, reasoning skipped";
/// Name of a case: thinking is on, and the reasoning has no line breaks around it.
pub const REASONING_SPACED: &str = "thinking on, other white space around the reasoning";
/// Name of a case: thinking is off, and the model makes a call.
pub const THINKING_OFF: &str = "thinking off";
/// Name of a case: a call in the template's form, with thinking left undecided.
pub const CALL: &str = "call as the template writes it";
/// Name of a case: a call with the same JSON in other white space.
pub const CALL_SPACED: &str = "call with other white space in its JSON";
/// Name of a case: text, then a call.
pub const TEXT_AND_CALL: &str = "text before a call";
/// Name of a case: an answer with reasoning, then a user's turn.
pub const NEW_USER_TURN: &str = "new user turn after reasoning";

pub(crate) fn check(
    template: &ChatTemplate,
    protocol: Protocol,
    style: &TurnStyle,
    end: &str,
) -> PrefixReport {
    let check = Check {
        template,
        protocol,
        style,
        end,
    };
    let thinks = template.source().contains("think");
    let call = check.call();
    let mut cases = Vec::new();
    let mut case = |name, kept: Option<bool>| {
        cases.extend(kept.map(|kept| PrefixCase { name, kept }));
    };
    if let Some(call) = &call {
        let with_text = format!("I will look.{}{call}", style.separator);
        case(CALL, check.kept(None, call, Role::Tool));
        case(
            CALL_SPACED,
            Check::respaced(call).and_then(|c| check.kept(None, &c, Role::Tool)),
        );
        case(TEXT_AND_CALL, check.kept(None, &with_text, Role::Tool));
        if thinks {
            let think = check.reasoning("\n", call);
            case(REASONING, check.kept(Some(true), &think, Role::Tool));
            case(REASONING_SKIPPED, check.kept(Some(true), call, Role::Tool));
            let tight = check.reasoning("", call);
            case(REASONING_SPACED, check.kept(Some(true), &tight, Role::Tool));
            case(THINKING_OFF, check.kept(Some(false), call, Role::Tool));
        }
    }
    if thinks {
        let think = check.reasoning("\n", "It is 2.");
        case(NEW_USER_TURN, check.kept(Some(true), &think, Role::User));
    }
    PrefixReport { cases }
}

struct Check<'a> {
    template: &'a ChatTemplate,
    protocol: Protocol,
    style: &'a TurnStyle,
    end: &'a str,
}

impl Check<'_> {
    fn tool() -> ToolDefinition {
        ToolDefinition {
            name: "add".into(),
            description: "Adds.".into(),
            input_schema: serde_json::json!({"type": "object", "properties": {"x": {"type": "integer"}}}),
            output_schema: None,
            hints: crate::tool::Hints::default(),
            extra: Vec::new(),
        }
    }

    fn render(&self, messages: &[Message], thinking: Option<bool>, prompt: bool) -> Option<String> {
        let tools = [Self::tool()];
        let input = RenderInput {
            messages,
            tools: &tools,
            enable_thinking: thinking,
            add_generation_prompt: prompt,
        };
        self.template.render(&input).ok()
    }

    /// A call as the template writes it.
    fn call(&self) -> Option<String> {
        let call = ToolCall {
            call_id: String::new(),
            name: "add".into(),
            arguments: serde_json::json!({"x": 1, "y": [2]}),
        };
        let ask = Message::text(Role::User, "Add.");
        let said = |content: &str, calls| Message {
            tool_calls: calls,
            ..Message::text(Role::Assistant, content)
        };
        let text = self.render(
            &[ask.clone(), said("qzsaidqz", vec![call.clone()])],
            None,
            false,
        )?;
        if let Some((_, after)) = text.split_once("qzsaidqz") {
            let call = after.strip_prefix(self.style.separator.as_str())?;
            return Some(call[..call.find(self.end)?].to_owned());
        }
        // Templates of Llama write either text or a call.
        let other = self.render(&[ask, said("qzsaidqz", Vec::new())], None, false)?;
        let start = other.find("qzsaidqz")?;
        Some(text.get(start..)?[..text[start..].find(self.end)?].to_owned())
    }

    /// The call with other white space in its JSON than the template uses.
    fn respaced(call: &str) -> Option<String> {
        let other = if call.contains("\"x\": 1") {
            call.replace("\": ", "\":")
        } else {
            call.replace("\":", "\": ")
        };
        (other != call).then_some(other)
    }

    fn reasoning(&self, space: &str, rest: &str) -> String {
        let after = if space.is_empty() { "" } else { "\n\n" };
        let open = if self.starts_in_think(Some(true)) {
            String::new()
        } else {
            format!("{THINK_OPEN}{space}")
        };
        format!("{open}One plus one.{space}{THINK_CLOSE}{after}{rest}")
    }

    fn starts_in_think(&self, thinking: Option<bool>) -> bool {
        let text = self
            .render(&[Message::text(Role::User, "Add.")], thinking, true)
            .unwrap_or_default();
        let tail = &text[text.rfind(self.end).unwrap_or(0)..];
        tail.rfind(THINK_OPEN) > tail.rfind(THINK_CLOSE)
    }

    fn kept(&self, thinking: Option<bool>, turn: &str, next: Role) -> Option<bool> {
        let mut messages = vec![Message::text(Role::User, "Add.")];
        let mut read = self.render(&messages, thinking, true)?;
        let parsed = parser::parse(
            turn,
            self.starts_in_think(thinking),
            self.protocol.spec(),
            &["add"],
        );
        let calls: Vec<ToolCall> = parsed
            .attempts()
            .filter_map(|(_, call)| call.as_ref().ok())
            .map(|(name, arguments)| ToolCall {
                call_id: String::new(),
                name: name.clone(),
                arguments: arguments.clone(),
            })
            .collect();
        messages.push(assistant_message(&parsed, &calls, self.style));
        messages.push(Message::text(next, "2"));
        read.push_str(turn);
        read.push_str(self.end);
        Some(self.render(&messages, thinking, true)?.starts_with(&read))
    }
}
