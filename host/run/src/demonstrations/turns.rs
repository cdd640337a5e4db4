//! Turns of demonstrations, written as the run's model writes them, and tried before a run begins.

use std::collections::BTreeSet;
use std::sync::Arc;

use rlf_dialogue::config::AnswerRule;
use rlf_dialogue::dialogue::{Dialogue, DialogueError};
use rlf_dialogue::episode::{Episode, Step, Unwritable};
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::parser;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{CallOutcome, Hints, Observation, ToolCall, ToolDefinition};
use rlf_dialogue::turn::TurnOutcome;
use serde_json::{Map, Value, json};

use crate::error::GoldError;

/// A turn that makes all of `calls` at once.
pub(crate) fn calling(calls: Vec<ToolCall>) -> Message {
    Message {
        tool_calls: calls,
        ..Message::text(Role::Assistant, "")
    }
}

/// A turn whose answer is `said`.
pub(crate) fn answering(said: &str, rule: AnswerRule) -> Message {
    let text = match rule {
        AnswerRule::Tag => format!("<answer>{said}</answer>"),
        AnswerRule::Boxed => format!("\\boxed{{{said}}}"),
        AnswerRule::FinalTurn => said.to_owned(),
    };
    Message::text(Role::Assistant, text)
}

/// A conversation that checks, before a run begins, whether the run's model could write the turns.
pub(crate) struct TrialConversation {
    dialogue: Arc<Dialogue>,
    episode: Episode,
}

impl TrialConversation {
    /// Makes a conversation that offers the tools of these names.
    pub(crate) fn new<'n>(
        dialogue: &Arc<Dialogue>,
        tools: impl Iterator<Item = &'n str>,
    ) -> Result<Self, DialogueError> {
        let task = Task {
            id: "trial".into(),
            source: "trial".into(),
            prompt: vec![Message::text(Role::User, "?")],
            tools: None,
            reference: Value::Null,
            environment: None,
            setup: Value::Null,
            extra: Map::new(),
        };
        let tool = |name: &str| ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            output_schema: None,
            hints: Hints::default(),
            extra: Vec::new(),
        };
        let names: BTreeSet<&str> = tools.collect();
        let tools = names.into_iter().map(tool).collect();
        let mut episode = Episode::start(dialogue, "trial".into(), &task, tools)?;
        episode.enter_environment();
        Ok(Self {
            dialogue: dialogue.clone(),
            episode,
        })
    }

    /// Adds a turn. Its calls are answered with `ok`.
    pub(crate) fn say(&mut self, turn: &Message) -> Result<(), Unwritable> {
        let text = self.episode.write_turn(turn)?;
        if let Step::Act(calls) = self.episode.push_demonstrated(&text) {
            let outcomes = calls.into_iter().map(|call| {
                let observation = Observation::text("ok", false);
                CallOutcome::from_observation(call.call_id, call.name, observation)
            });
            self.episode.push_outcomes(outcomes.collect());
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn episode(&self) -> &Episode {
        &self.episode
    }

    /// Adds a turn with the answer `said`, and returns the turn.
    pub(crate) fn answer(&mut self, said: &str) -> Result<Message, GoldError> {
        let rule = self.dialogue.config().answer;
        let turn = answering(said, rule);
        self.say(&turn).map_err(|source| GoldError::Answer {
            answer: said.to_owned(),
            source,
        })?;
        let text = turn.plain_text();
        let protocol = self.dialogue.protocol().spec();
        let parsed = parser::parse(&text, false, protocol, &[] as &[&str]);
        let read = TurnOutcome::from_parsed(&parsed, rule, true);
        if read != TurnOutcome::Answer(said.trim().to_owned()) {
            return Err(GoldError::Unread {
                answer: said.to_owned(),
                turn: text,
            });
        }
        Ok(turn)
    }
}
