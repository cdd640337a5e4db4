//! One conversation of an agent with the policy, over an [`Episode`].

use std::collections::BTreeMap;
use std::sync::Arc;

use rlf_dialogue::config::OnNoAnswer;
use rlf_dialogue::dialogue::{Dialogue, DialogueError};
use rlf_dialogue::episode::{Episode, NextInput, Reply, Step};
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{CallOutcome, Observation, ToolCall, ToolDefinition};
use rlf_dialogue::trajectory::{Event, ModelTurn, Trajectory};

use serde_json::{Map, Value};

use super::message::{AgentMessage, after};
use super::{Stopped, TurnRefused};
use crate::generate::{Generated, Generator, OpenSequence, SequenceId};

/// A call of the policy that the agent has been given.
#[derive(Debug, Clone)]
pub(super) struct GivenCall {
    /// The id that the agent knows.
    pub(super) given_id: String,
    /// The call with its id in the trajectory.
    pub(super) call: ToolCall,
}

/// What may come after the policy's last turn.
#[derive(Debug)]
enum Awaited {
    /// The results of these calls.
    Results(Vec<GivenCall>),
    /// A message of a user.
    User,
    /// Nothing: the conversation has ended, and a request that continues it begins a new sequence.
    Nothing,
}

/// A conversation.
pub(super) struct Conversation {
    number: usize,
    episode: Episode,
    sequence: OpenSequence,
    /// The messages as the agent knows them.
    known: Vec<AgentMessage>,
    tools: Vec<ToolDefinition>,
    awaited: Awaited,
    /// The reply to a last turn without calls, by which the dialogue's rule finds the answer.
    at_end: Reply,
}

impl Conversation {
    /// Begins a conversation with the messages of a request.
    pub(super) fn begin(
        dialogue: &Arc<Dialogue>,
        generator: &Arc<dyn Generator>,
        number: usize,
        trajectory: &str,
        task: &str,
        messages: &[AgentMessage],
        tools: &[ToolDefinition],
    ) -> Result<Self, TurnRefused> {
        let id = if number == 0 {
            trajectory.to_owned()
        } else {
            format!("{trajectory}~{number}")
        };
        let prompt = messages.iter().map(|sent| sent.message.clone()).collect();
        let task = Task {
            id: task.to_owned(),
            source: String::new(),
            prompt,
            tools: None,
            reference: Value::Null,
            environment: None,
            setup: Value::Null,
            extra: Map::new(),
        };
        let episode = Episode::start(dialogue, id, &task, tools.to_vec());
        let mut episode = episode.map_err(|error| match error {
            DialogueError::PromptTooLong {
                tokens, context, ..
            } => TurnRefused::TooLong { tokens, context },
            DialogueError::EmptyPrompt { .. } => {
                TurnRefused::Invalid("`messages` is empty".to_owned())
            }
            other => TurnRefused::Invalid(other.to_string()),
        })?;
        // A turn without calls waits for what the agent does next.
        episode.enter_environment();
        Ok(Self {
            number,
            episode,
            sequence: OpenSequence::new(generator),
            known: messages.to_vec(),
            tools: tools.to_vec(),
            awaited: Awaited::Nothing,
            at_end: match dialogue.config().on_no_answer {
                OnNoAnswer::End => Reply::Silence,
                // The agent has ended, so nobody reads a reminder.
                OnNoAnswer::Remind => Reply::Ended,
            },
        })
    }

    /// Number of its messages, if a request continues this conversation.
    pub(super) fn continued_by(
        &self,
        messages: &[AgentMessage],
        tools: &[ToolDefinition],
    ) -> Option<usize> {
        let new = after(&self.known, messages)?;
        let fits = self.tools == tools
            && match &self.awaited {
                Awaited::Results(calls) => results(calls, new).is_some(),
                Awaited::User => matches!(new, [only] if only.message.role == Role::User),
                Awaited::Nothing => false,
            };
        fits.then_some(self.known.len())
    }

    /// Takes the new messages of a request that continues this conversation. `outcomes` are those of calls that were made
    /// through the trajectory, by the ids that the agent knows.
    pub(super) fn take(
        &mut self,
        messages: &[AgentMessage],
        outcomes: &BTreeMap<String, CallOutcome>,
    ) {
        let new = &messages[self.known.len()..];
        match std::mem::replace(&mut self.awaited, Awaited::Nothing) {
            Awaited::Results(calls) => {
                let shown = results(&calls, new).unwrap_or_default();
                let results = calls.iter().zip(shown);
                let results = results.map(|(given, shown)| outcome(given, shown, outcomes));
                self.episode.push_outcomes(results.collect());
            }
            Awaited::User => {
                let said = new.iter().flat_map(|sent| sent.message.content.clone());
                self.episode.push_reply(Reply::Said(said.collect()));
            }
            Awaited::Nothing => {}
        }
        self.known.extend_from_slice(new);
    }

    /// The ids that the generator must read now, with the sequence that they belong to. None if the conversation ended.
    pub(super) fn next_input(&mut self) -> Option<(SequenceId, Vec<u32>, usize)> {
        let (ids, max_new_tokens) = match self.episode.next_input() {
            NextInput::Continue {
                append,
                max_new_tokens,
            } => (append, max_new_tokens),
            NextInput::Restart {
                ids,
                max_new_tokens,
            } => {
                self.sequence.restart();
                (ids, max_new_tokens)
            }
            NextInput::Finished => return None,
        };
        Some((self.sequence.id(), ids, max_new_tokens))
    }

    /// Adds a sampled turn. Returns false if the policy was told how to mend its calls, and has to take another turn.
    pub(super) fn push(&mut self, Generated { ids, log_probs }: Generated) -> bool {
        match self.episode.push_sampled(ids, log_probs) {
            Step::Act(calls) | Step::Grade(calls) => {
                let given = calls
                    .into_iter()
                    .enumerate()
                    .map(|(place, call)| GivenCall {
                        given_id: format!(
                            "call_{}_{}_{place}",
                            self.number,
                            self.episode.turn() - 1
                        ),
                        call,
                    });
                self.awaited = Awaited::Results(given.collect());
                true
            }
            Step::Say(_) => {
                self.awaited = Awaited::User;
                true
            }
            Step::Continue => false,
            Step::Finished(_) => {
                self.awaited = Awaited::Nothing;
                true
            }
        }
    }

    /// The policy's last turn as a message for the agent, which is part of the conversation from now on.
    pub(super) fn answer(&mut self) -> (Message, Stopped) {
        let last = self.episode.events().iter().rev().find_map(|event| {
            if let Event::Turn(turn) = event {
                Some(turn)
            } else {
                None
            }
        });
        let message = message(last, self.given_calls());
        let stopped = match &self.awaited {
            Awaited::Results(_) => Stopped::Calls,
            Awaited::User => Stopped::Ended,
            Awaited::Nothing => Stopped::Length,
        };
        self.known.push(AgentMessage::new(message.clone()));
        (message, stopped)
    }

    /// The calls that wait for results.
    pub(super) fn given_calls(&self) -> &[GivenCall] {
        match &self.awaited {
            Awaited::Results(calls) => calls,
            Awaited::User | Awaited::Nothing => &[],
        }
    }

    /// Position among the conversations of the trajectory.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Number of turns that the policy has taken here.
    pub(super) fn turns(&self) -> u32 {
        self.episode.turn()
    }

    /// Number of tokens of the current sequence.
    pub(super) fn tokens(&self) -> usize {
        self.episode.sequence_ids().len()
    }

    /// Ends the conversation. Calls that were made, and whose results the policy has not read, stay in the trajectory.
    pub(super) fn finish(mut self, outcomes: &BTreeMap<String, CallOutcome>) -> Trajectory {
        match self.awaited {
            Awaited::Results(calls) => {
                let made: Option<Vec<CallOutcome>> = calls
                    .iter()
                    .map(|given| outcomes.get(&given.given_id).cloned())
                    .collect();
                match made {
                    Some(outcomes) => _ = self.episode.push_last_outcomes(outcomes),
                    None => self.episode.terminate(),
                }
            }
            Awaited::User => _ = self.episode.push_reply(self.at_end.clone()),
            Awaited::Nothing => {}
        }
        // A request that was given up, or a turn that could not be continued.
        self.episode.terminate();
        self.episode.finish()
    }
}

/// The results of the calls in the messages, in the order of the calls, if they are exactly that.
fn results<'a>(calls: &[GivenCall], messages: &'a [AgentMessage]) -> Option<Vec<&'a Message>> {
    if calls.len() != messages.len() {
        return None;
    }
    let of = |given: &GivenCall| {
        let is_result = |sent: &&AgentMessage| {
            sent.message.role == Role::Tool && sent.call_id.as_ref() == Some(&given.given_id)
        };
        messages.iter().find(is_result).map(|sent| &sent.message)
    };
    calls.iter().map(of).collect()
}

/// The outcome of a call, with the text that the agent shows the policy.
fn outcome(
    given: &GivenCall,
    shown: &Message,
    made: &BTreeMap<String, CallOutcome>,
) -> CallOutcome {
    let made = made.get(&given.given_id).cloned();
    let mut outcome = made.unwrap_or_else(|| {
        let (id, name) = (given.call.call_id.clone(), given.call.name.clone());
        CallOutcome::from_observation(id, name, Observation::default())
    });
    let observation = outcome.observation.get_or_insert_default();
    observation.content.clone_from(&shown.content);
    outcome
}

/// A turn as a message: its visible text, its reasoning, and its well-formed calls.
fn message(turn: Option<&ModelTurn>, calls: &[GivenCall]) -> Message {
    let Some(turn) = turn else {
        return Message::text(Role::Assistant, "");
    };
    let mut text = turn.visible.trim().to_owned();
    if text.is_empty() && calls.is_empty() {
        let malformed = turn
            .malformed
            .iter()
            .map(|malformed| malformed.text.as_str());
        text = malformed.collect::<Vec<_>>().join("\n");
    }
    let given = calls.iter().map(|given| ToolCall {
        call_id: given.given_id.clone(),
        ..given.call.clone()
    });
    Message {
        reasoning_content: turn.reasoning.clone(),
        tool_calls: given.collect(),
        ..Message::text(Role::Assistant, text)
    }
}
