//! What the model would have to write to say something: turns of demonstrations.

use super::Episode;
use crate::message::Message;
use crate::parser::{self, ParsedTurn};
use crate::protocol::{THINK_CLOSE, THINK_OPEN};
use crate::template::{RenderInput, TemplateError};

/// Why no model could have written a turn.
#[derive(Debug, thiserror::Error)]
pub enum Unwritable {
    /// A text of the turn has a control token.
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
    /// The template renders the turn in another place.
    #[error(
        "the template does not write the turn behind the prompt for it, so the model could not have written it"
    )]
    Elsewhere,
    /// Nothing says where the turn ends.
    #[error("the template does not end the turn with {end:?}")]
    NoEnd {
        /// What ends turns.
        end: String,
    },
    /// The parser reads something else in it.
    #[error(
        "read back from what the template writes, by dialogue.protocol = \"{protocol}\", {what}: {text:?}"
    )]
    ReadBack {
        /// How it is read.
        protocol: &'static str,
        /// What is not as it was meant.
        what: String,
        /// The beginning of the text.
        text: String,
    },
}

impl Episode {
    /// What the model has to write now so that its template, rendered with the turn in it, says `turn`; without the
    /// end-of-turn token, for [`Episode::push_demonstrated`]. It is read back as exactly this turn.
    pub fn write_turn(&self, turn: &Message) -> Result<String, Unwritable> {
        if let Some(token) = self.control_token(turn) {
            let token = token.to_owned();
            return Err(Unwritable::Control { token });
        }
        let mut messages = self.messages.clone();
        let asked = self.rendered(&messages, true)?;
        messages.push(turn.clone());
        let told = self.rendered(&messages, false)?;
        let reasoning = turn.reasoning_content.as_deref();
        let reasoning = reasoning.map(|text| text.trim_matches('\n'));
        let text = after_prompt(&asked, &told, reasoning).ok_or(if reasoning.is_some() {
            Unwritable::NoRoomForReasoning
        } else {
            Unwritable::Elsewhere
        })?;
        let end = self.dialogue.end_of_turn();
        let end = self.dialogue.tokenizer().decode(&[end]);
        let Some((text, _)) = text.rsplit_once(end.as_str()) else {
            return Err(Unwritable::NoEnd { end });
        };
        let protocol = self.dialogue.protocol();
        let names: Vec<&str> = turn.tool_calls.iter().map(|call| &*call.name).collect();
        // Some tokenizers change what they read.
        let tokenizer = self.dialogue.tokenizer();
        let said = tokenizer.decode(&tokenizer.encode_trusted(text));
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

    fn rendered(&self, messages: &[Message], prompt: bool) -> Result<String, TemplateError> {
        self.dialogue.template().render(&RenderInput {
            messages,
            tools: &self.tools,
            enable_thinking: Some(self.dialogue.config().enable_thinking),
            add_generation_prompt: prompt,
        })
    }

    /// An added token in the text of a turn. The tags of answers are the model's to write.
    fn control_token(&self, turn: &Message) -> Option<&str> {
        let mut texts = vec![turn.plain_text()];
        texts.extend(turn.reasoning_content.clone());
        texts.extend(
            turn.tool_calls
                .iter()
                .map(|call| call.arguments.to_string()),
        );
        let is_answer = |token: &str| matches!(token, "<answer>" | "</answer>");
        self.dialogue
            .tokenizer()
            .added_tokens()
            .map(|(_, token)| token)
            .filter(|token| !token.trim().is_empty() && !is_answer(token))
            .find(|token| texts.iter().any(|text| text.contains(token)))
    }
}

/// What `told` says behind `asked`. Some templates' prompts for a turn begin a think block that their rendering of the
/// turn leaves out.
fn after_prompt(asked: &str, told: &str, reasoning: Option<&str>) -> Option<String> {
    if let Some(text) = told.strip_prefix(asked) {
        return Some(text.to_owned());
    }
    let (before, inside) = asked.rsplit_once(THINK_OPEN)?;
    let text = told.strip_prefix(before)?;
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

/// What was read that was not meant.
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
        let after = |asked, told, reasoning| after_prompt(asked, told, reasoning);
        assert_eq!(after("u a:", "u a:six.", None).as_deref(), Some("six."));
        // The prompt opens a think block that the rendering of the turn leaves out.
        let open = "u a:<think>\n";
        assert_eq!(
            after(open, "u a:six.", Some("hm")).as_deref(),
            Some("hm\n</think>\n\nsix.")
        );
        assert_eq!(
            after(open, "u a:six.", None).as_deref(),
            Some("</think>\n\nsix.")
        );
        // The prompt holds an empty one.
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
