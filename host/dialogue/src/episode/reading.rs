//! Prepares the text that the model reads before its next turn.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Episode, State, Step};
use crate::config::History;
use crate::message::{Content, Message, Role};
use crate::observation::{self, ObservationSource};
use crate::template::{RenderInput, TemplateError};
use crate::tool_changes::tool_changes;
use crate::trajectory::Finish;
use crate::trust::GuardedText;

impl Episode {
    /// Adds the observation between the model's last turn and its next one.
    pub(super) fn observe(&mut self, source: ObservationSource, bodies: &[String]) -> Step {
        let role = if source == ObservationSource::User {
            Role::User
        } else {
            Role::Tool
        };
        self.messages
            .extend(bodies.iter().map(|body| Message::text(role, body.as_str())));
        // If the template refuses the whole conversation, only the new part is rendered.
        if self.sequences.text().is_some()
            && let Ok(rendered) = self.render()
        {
            return self.follow(&rendered);
        }
        match self.observation_ids(source, bodies) {
            Ok((ids, in_think)) => {
                self.in_think = in_think;
                self.append(ids, None)
            }
            Err(error) => self.exclude(error.to_string()),
        }
    }

    fn observation_ids(
        &self,
        source: ObservationSource,
        bodies: &[String],
    ) -> Result<(Vec<u32>, bool), TemplateError> {
        let frame = self.dialogue.frame(source)?;
        let mut ids = Vec::with_capacity(frame.fixed_tokens + 32);
        if self.open_turn {
            ids.push(self.dialogue.end_of_turn());
        }
        self.dialogue
            .with_observation_renderer(|renderer| frame.encode(renderer, bodies, &mut ids))?;
        Ok((ids, frame.in_think))
    }

    /// Continues with a new rendering: appends the new text, or begins a new sequence if the rendering changes the text
    /// that the model had read.
    fn follow(&mut self, rendered: &GuardedText) -> Step {
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

    pub(super) fn render(&self) -> Result<GuardedText, TemplateError> {
        self.dialogue.render(&RenderInput {
            messages: &self.messages,
            tools: &self.tools,
            enable_thinking: Some(self.dialogue.config().enable_thinking),
            add_generation_prompt: true,
        })
    }

    /// Adds changes of the tools to the text that the model reads next.
    pub(super) fn announce_tool_changes(&mut self, bodies: &mut [String]) {
        let news = tool_changes(&self.announced_tools, &self.tools);
        self.announced_tools.clone_from(&self.tools);
        if self.dialogue.config().history == History::AsSampled
            && let (Some(news), Some(body)) = (news, bodies.last_mut())
        {
            // The text comes from a guest, so it is escaped and shortened like any observation.
            let max_tokens = self.dialogue.config().max_observation_tokens as usize;
            let news = [Content::Text(news)];
            let news = self.dialogue.with_observation_renderer(|renderer| {
                observation::body(&news, renderer, max_tokens)
            });
            body.push_str("\n\n");
            body.push_str(&news);
        }
    }
}
