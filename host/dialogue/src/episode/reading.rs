//! What the model reads before its next turn.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Episode, State, Step};
use crate::config::History;
use crate::message::{Content, Message, Role};
use crate::observation::{self, Speaker};
use crate::template::{RenderInput, TemplateError};
use crate::tool_news::tool_news;
use crate::trajectory::Finish;
use crate::trust::Marked;

impl Episode {
    /// Puts what was said between the model's last turn and its next one.
    pub(super) fn observe(&mut self, speaker: Speaker, bodies: &[String]) -> Step {
        let role = if speaker == Speaker::User {
            Role::User
        } else {
            Role::Tool
        };
        self.messages
            .extend(bodies.iter().map(|body| Message::text(role, body.as_str())));
        // A template that refuses the whole conversation is followed turn by turn instead.
        if self.sequences.text().is_some()
            && let Ok(rendered) = self.render()
        {
            return self.follow(&rendered);
        }
        match self.observation_ids(speaker, bodies) {
            Ok((ids, in_think)) => {
                self.in_think = in_think;
                self.append(ids, None)
            }
            Err(error) => self.exclude(error.to_string()),
        }
    }

    fn observation_ids(
        &self,
        speaker: Speaker,
        bodies: &[String],
    ) -> Result<(Vec<u32>, bool), TemplateError> {
        let frame = self.dialogue.frame(speaker)?;
        let mut ids = Vec::with_capacity(frame.fixed_tokens + 32);
        if self.open_turn {
            ids.push(self.dialogue.end_of_turn());
        }
        self.dialogue
            .on_stage(|stage| frame.encode(stage, bodies, &mut ids))?;
        Ok((ids, frame.in_think))
    }

    /// Goes on with a new rendering: what it adds, or, where it changes what the model had read,
    /// a new sequence.
    fn follow(&mut self, rendered: &Marked) -> Step {
        self.in_think = self.dialogue.ends_in_think(rendered);
        let plain = rendered.plain();
        let tokenizer = Arc::clone(self.dialogue.tokenizer());
        let before = self.sequences.text().unwrap_or_default();
        if let Some(added) = plain.strip_prefix(before) {
            let ids = rendered.after(before.len()).encode(&tokenizer);
            return self.append(ids, Some(added));
        }
        let ids = rendered.encode(&tokenizer);
        if ids.len() >= self.dialogue.config().context as usize {
            return self.end(Finish::Length);
        }
        self.closed_turns += u32::from(self.open_turn);
        self.begin_sequence(ids, &plain);
        Step::Continue
    }

    fn append(&mut self, ids: Vec<u32>, text: Option<&str>) -> Step {
        if self.sequences.length() + ids.len() >= self.dialogue.config().context as usize {
            return self.end(Finish::Length);
        }
        self.closed_turns += u32::from(self.open_turn);
        self.open_turn = false;
        let text = match (text, self.sequences.text()) {
            (Some(text), _) => Cow::Borrowed(text),
            (None, Some(_)) => Cow::Owned(self.dialogue.tokenizer().decode(&ids)),
            (None, None) => Cow::Borrowed(""),
        };
        self.sequences.push_observation(ids, &text);
        self.state = State::Ready { restart: false };
        Step::Continue
    }

    pub(super) fn begin_sequence(&mut self, ids: Vec<u32>, text: &str) {
        self.open_turn = false;
        self.sequences.begin(ids, text);
        self.state = State::Ready { restart: true };
    }

    pub(super) fn render(&self) -> Result<Marked, TemplateError> {
        self.dialogue.render(&RenderInput {
            messages: &self.messages,
            tools: &self.tools,
            enable_thinking: Some(self.dialogue.config().enable_thinking),
            add_generation_prompt: true,
        })
    }

    /// Adds what the model does not know of its tools to what it reads next.
    pub(super) fn tell_of_tools(&mut self, bodies: &mut [String]) {
        let news = tool_news(&self.told_tools, &self.tools);
        self.told_tools.clone_from(&self.tools);
        if self.dialogue.config().history == History::AsSampled
            && let (Some(news), Some(body)) = (news, bodies.last_mut())
        {
            // A guest's words as any others: escaped, and no longer than an observation may be.
            let max_tokens = self.dialogue.config().max_observation_tokens as usize;
            let news = [Content::Text(news)];
            let news = self
                .dialogue
                .on_stage(|stage| observation::body(&news, stage, max_tokens));
            body.push_str("\n\n");
            body.push_str(&news);
        }
    }
}
