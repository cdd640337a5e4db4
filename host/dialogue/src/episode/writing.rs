//! Writes turns of demonstrations and of endpoints as the model would have to write them.

use super::Episode;
use crate::message::{Message, Role};
use crate::parser::{self, ParsedTurn};
use crate::protocol::{THINK_CLOSE, THINK_OPEN};
use crate::template::{RenderInput, TemplateError};

/// The reason why a model could not have written a turn.
#[derive(Debug, thiserror::Error)]
pub enum Unwritable {
    /// A text of the turn contains a control token.
    #[error(
        "it holds {token:?}, which is a control token of the model; nothing but the template may write it, so leave the \
         demonstration out"
    )]
    Control {
        /// The token.
        token: String,
    },
    /// The template refuses the conversation.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The prompt has ended the think block already.
    #[error(
        "the template writes its reasoning where the prompt for the turn leaves no room for it; set \
         dialogue.enable_thinking = true, or import without reasoning"
    )]
    NoRoomForReasoning,
    /// The template does not render the turn after its prompt.
    #[error(
        "the template does not write the turn behind the prompt for it, so the model could not have written it"
    )]
    Elsewhere,
    /// The turn does not fit into the context.
    #[error(
        "the turn has {tokens} tokens, and {room} are left of the context; raise dialogue.context ({context}), or leave the \
         demonstration out"
    )]
    TooLong {
        /// Tokens of the turn, with the one that ends it.
        tokens: usize,
        /// Tokens left in the context.
        room: usize,
        /// The setting.
        context: u32,
    },
    /// The rendered turn has no end-of-turn token.
    #[error("the template does not end the turn with {end:?}")]
    NoEnd {
        /// The end-of-turn token.
        end: String,
    },
    /// The parser reads another turn in the rendered text.
    #[error(
        "read back from what the template writes, by dialogue.protocol = \"{protocol}\", {what}: {text:?}"
    )]
    ReadBack {
        /// The protocol in use.
        protocol: &'static str,
        /// The first difference.
        what: String,
        /// The start of the text.
        text: String,
    },
}

impl Episode {
    /// The text that the model has to write now for its template to render `turn`, without the end-of-turn token. For
    /// [`Episode::push_demonstrated`]. The parser reads it back as exactly this turn.
    pub fn write_turn(&self, turn: &Message) -> Result<String, Unwritable> {
        if let Some(token) = self.control_token(turn) {
            let token = token.to_owned();
            return Err(Unwritable::Control { token });
        }
        // If the template refuses the conversation so far, the turn is written without it, like observations.
        let (asked, rendered) = self.around(&self.messages, turn).or_else(|refused| {
            let asking = [Message::text(Role::User, "?")];
            self.around(&asking, turn).map_err(|_| refused)
        })?;
        let reasoning = turn.reasoning_content.as_deref();
        let reasoning = reasoning
            .map(|text| text.trim_matches('\n'))
            .filter(|text| !text.trim().is_empty());
        let text = after_prompt(&asked, &rendered, reasoning).ok_or_else(|| {
            if reasoning.is_some() && asked.trim_end().ends_with(THINK_CLOSE) {
                Unwritable::NoRoomForReasoning
            } else {
                Unwritable::Elsewhere
            }
        })?;
        let end = self.dialogue.end_of_turn();
        let end = self.dialogue.tokenizer().decode(&[end]);
        let Some((text, _)) = text.rsplit_once(end.as_str()) else {
            return Err(Unwritable::NoEnd { end });
        };
        let protocol = self.dialogue.protocol();
        let names: Vec<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
        // Some tokenizers change what they read.
        let tokenizer = self.dialogue.tokenizer();
        let ids = tokenizer.encode_trusted(text);
        let context = self.dialogue.config().context;
        let room = (context as usize).saturating_sub(self.sequences.length());
        let tokens = ids.len() + 1;
        if tokens > room {
            return Err(Unwritable::TooLong {
                tokens,
                room,
                context,
            });
        }
        let said = tokenizer.decode(&ids);
        let parsed = parser::parse(&said, self.in_think, protocol.spec(), &names);
        match difference(&parsed, turn) {
            None => Ok(text.to_owned()),
            Some(what) => Err(Unwritable::ReadBack {
                protocol: protocol.as_str(),
                what,
                text: said.chars().take(400).collect(),
            }),
        }
    }

    /// The text of a turn whose reasoning, text and calls came apart, in the protocol of the dialogue. Unlike
    /// [`Episode::write_turn`], it refuses nothing.
    pub(super) fn text_of(&self, turn: &Message) -> String {
        let mut content = turn.plain_text();
        if !turn.tool_calls.is_empty() {
            // Whoever returned the calls apart has read the turn: what looks like a tag is text.
            content = self
                .dialogue
                .with_observation_renderer(|renderer| renderer.guard.escape_tags(content));
        }
        let reasoning = turn.reasoning_content.as_deref().unwrap_or_default();
        let reasoning = reasoning.replace(THINK_CLOSE, "");
        let mut text = match (self.in_think, reasoning.trim()) {
            (false, "") => String::new(),
            // The reasoning may be in the content.
            (true, "") if content.contains(THINK_CLOSE) => String::new(),
            (true, reasoning) => format!("{reasoning}\n{THINK_CLOSE}\n\n"),
            (false, reasoning) => format!("{THINK_OPEN}\n{reasoning}\n{THINK_CLOSE}\n\n"),
        };
        text.push_str(&content);
        if !content.is_empty() && !turn.tool_calls.is_empty() {
            text.push('\n');
        }
        text.push_str(&self.dialogue.protocol().spec().write(&turn.tool_calls));
        text
    }

    /// The prompt for a turn after `messages`, and the conversation with the turn in it.
    fn around(
        &self,
        messages: &[Message],
        turn: &Message,
    ) -> Result<(String, String), TemplateError> {
        let render = |messages: &[Message], add_generation_prompt| {
            self.dialogue.template().render(&RenderInput {
                messages,
                tools: &self.tools,
                enable_thinking: Some(self.dialogue.config().enable_thinking),
                add_generation_prompt,
            })
        };
        let asked = render(messages, true)?;
        let with = [messages, std::slice::from_ref(turn)].concat();
        Ok((asked, render(&with, false)?))
    }

    /// An added token in the text of a turn. The model may write the tags of answers.
    fn control_token(&self, turn: &Message) -> Option<&str> {
        let mut texts = vec![turn.plain_text()];
        texts.extend(turn.reasoning_content.clone());
        for call in &turn.tool_calls {
            texts.extend([call.name.clone(), call.arguments.to_string()]);
        }
        let is_answer = |token: &str| matches!(token, "<answer>" | "</answer>");
        let tokenizer = self.dialogue.tokenizer();
        tokenizer
            .added_tokens()
            .filter(|(id, _)| tokenizer.is_forbidden(*id))
            .map(|(_, token)| token)
            .filter(|token| !token.trim().is_empty() && !is_answer(token))
            .find(|token| texts.iter().any(|text| text.contains(token)))
    }
}

/// The text that `rendered` has after `asked`. The prompts of some templates begin a think block that their rendering
/// of the turn leaves out.
fn after_prompt(asked: &str, rendered: &str, reasoning: Option<&str>) -> Option<String> {
    if let Some(text) = rendered.strip_prefix(asked) {
        return Some(text.to_owned());
    }
    let (before, inside) = asked.rsplit_once(THINK_OPEN)?;
    let text = rendered.strip_prefix(before)?;
    let written = text.starts_with(THINK_OPEN);
    match (inside.trim(), reasoning) {
        ("", reasoning) if !written => {
            let thought = reasoning.map_or(String::new(), |thought| format!("{thought}\n"));
            Some(format!(
                "{thought}{THINK_CLOSE}\n\n{}",
                text.trim_start_matches('\n')
            ))
        }
        (THINK_CLOSE, None) if !written => Some(text.to_owned()),
        _ => None,
    }
}

/// The first difference between the parsed turn and the meant one.
fn difference(parsed: &ParsedTurn, turn: &Message) -> Option<String> {
    let mut calls = turn.tool_calls.iter();
    for (_, read) in parsed.attempts() {
        match (read, calls.next()) {
            (Ok((name, with)), Some(call)) if *name == call.name && *with == call.arguments => {}
            (Err(malformed), _) => {
                return Some(format!("its calls are others ({})", malformed.detail));
            }
            (Ok(_), _) => return Some("its calls are others".into()),
        }
    }
    if calls.next().is_some() {
        return Some("its calls are others".into());
    }
    if let Some((_, diagnostic)) = parsed.diagnostics().next() {
        return Some(format!("it is malformed ({})", diagnostic.as_str()));
    }
    let reasoning = parsed.reasoning().unwrap_or_default();
    let meant = turn.reasoning_content.as_deref().unwrap_or_default();
    if reasoning.trim() != meant.trim() {
        return Some("its reasoning is another".into());
    }
    (parsed.visible().trim() != turn.plain_text().trim()).then(|| "its text is another".into())
}

#[cfg(test)]
mod tests {
    use super::after_prompt;

    #[test]
    fn a_turn_goes_on_where_its_prompt_ends() {
        let after = |asked, rendered, reasoning| after_prompt(asked, rendered, reasoning);
        assert_eq!(after("u a:", "u a:six.", None).as_deref(), Some("six."));
        // The prompt opens a think block that the rendered turn lacks.
        let open = "u a:<think>\n";
        assert_eq!(
            after(open, "u a:six.", Some("hm")).as_deref(),
            Some("hm\n</think>\n\nsix.")
        );
        assert_eq!(
            after(open, "u a:six.", None).as_deref(),
            Some("</think>\n\nsix.")
        );
        // The prompt contains an empty think block.
        let shut = "u a:<think>\n\n</think>\n\n";
        assert_eq!(after(shut, "u a:six.", None).as_deref(), Some("six."));
        assert_eq!(
            after(shut, "u a:<think>\nhm\n</think>\n\nsix.", Some("hm")),
            None
        );
        assert_eq!(after(shut, "u a:six.", Some("hm")), None);
        assert_eq!(after("u a:", "u b:six.", None), None);
    }
}
