//! One conversation of an agent with the policy, over an [`Episode`].

use std::collections::BTreeMap;
use std::sync::Arc;

use rlf_dialogue::config::OnNoAnswer;
use rlf_dialogue::dialogue::{Dialogue, DialogueError};
use rlf_dialogue::episode::{Episode, NextInput, Reply, Step};
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{CallOutcome, Ended, Fault, Observation, ToolCall, ToolDefinition};
use rlf_dialogue::trajectory::{Event, Finish, ModelTurn, Trajectory};

use rlf_policy::{DrawKey, Sampler};
use serde_json::{Map, Value};

use super::message::{AgentMessage, after};
use super::{Stopped, Turn, TurnRefused, TurnRequest};
use crate::generate::{
    GenerateError, GenerateRequest, Generated, Generator, OpenSequence, SequenceId,
};

/// A call of the policy that the agent has been given.
#[derive(Debug, Clone)]
pub(super) struct GivenCall {
    /// The id that the agent knows.
    pub(super) given_id: String,
    /// The call with its id in the trajectory.
    pub(super) call: ToolCall,
}

/// The messages that may come after the policy's last turn.
#[derive(Debug)]
enum Awaited {
    /// The results of these calls. If the turn was the last one, they are for the rewards alone.
    Results { calls: Vec<GivenCall>, last: bool },
    /// A message of a user.
    User,
    /// Nothing: the conversation has ended, and a request that continues it begins a new sequence.
    Nothing,
}

/// The draws of the tokens of turns.
pub(super) trait Draws {
    /// Counts a turn of at most this many tokens. Returns its number and the key of its first draw, or the reason why
    /// there is no further turn.
    fn begin(&self, max_new_tokens: usize) -> Result<(u32, DrawKey), TurnRefused>;

    /// Notes that the turn with this key has `sampled` tokens.
    fn end(&self, key: DrawKey, max_new_tokens: usize, sampled: usize);
}

/// The reason why there is no turn.
pub(super) enum TurnError {
    /// The request is refused.
    Refused(TurnRefused),
    /// The generator failed.
    Generate(GenerateError),
}

/// A conversation.
pub(super) struct Conversation {
    number: usize,
    episode: Episode,
    generator: Arc<dyn Generator>,
    /// The generator's sequence; none before the first turn.
    sequence: Option<OpenSequence>,
    /// The messages as the agent knows them.
    known: Vec<AgentMessage>,
    tools: Vec<ToolDefinition>,
    awaited: Awaited,
    /// The way in which the episode ended, if it did.
    ended: Option<Finish>,
    /// Number of tokens that a sequence may have.
    context: u32,
    /// Number of turns that the trajectory may have, over all conversations.
    max_turns: u32,
    /// Number of its last turn among all turns of the trajectory.
    last_turn: u32,
    /// The reply to a last turn without calls, by which the dialogue's rule finds the answer.
    reply_at_end: Reply,
}

impl Conversation {
    /// Begins a conversation with the messages of a request. They are tokenised, which may take long, so this must not
    /// run on a thread that futures wait for.
    pub(super) fn begin(
        dialogue: &Arc<Dialogue>,
        generator: Arc<dyn Generator>,
        number: usize,
        trajectory: &str,
        task: &str,
        request: &TurnRequest,
    ) -> Result<Self, TurnRefused> {
        let TurnRequest {
            messages, tools, ..
        } = request;
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
        let episode = Episode::start(dialogue, id, &task, tools.clone());
        let mut episode = episode.map_err(|error| match error {
            DialogueError::PromptTooLong { context, .. } => TurnRefused::TooLong(context),
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
            generator,
            sequence: None,
            known: messages.clone(),
            tools: tools.clone(),
            awaited: Awaited::Nothing,
            ended: None,
            context: dialogue.config().context,
            max_turns: dialogue.config().max_turns,
            last_turn: 0,
            reply_at_end: match dialogue.config().on_no_answer {
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
                Awaited::Results { calls, .. } => results(calls, new).is_some(),
                Awaited::User => matches!(new, [only] if only.message.role == Role::User),
                Awaited::Nothing => false,
            };
        fits.then_some(self.known.len())
    }

    /// Takes the new messages of a request that continues this conversation. `outcomes` are those of calls that were made
    /// through the trajectory, by the ids that the agent knows. It tokenises, as [`Conversation::begin`] does.
    pub(super) fn take(
        &mut self,
        messages: &[AgentMessage],
        outcomes: &BTreeMap<String, CallOutcome>,
    ) {
        let new = &messages[self.known.len()..];
        let step = match std::mem::replace(&mut self.awaited, Awaited::Nothing) {
            Awaited::Results { calls, .. } => {
                let shown = results(&calls, new).unwrap_or_default();
                let results = calls.iter().zip(shown);
                let results = results.map(|(given, shown)| outcome(given, shown, outcomes));
                Some(self.episode.push_outcomes(results.collect()))
            }
            Awaited::User => {
                let said = new
                    .iter()
                    .flat_map(|sent| sent.message.content.iter().cloned());
                Some(self.episode.push_reply(Reply::Said(said.collect())))
            }
            Awaited::Nothing => None,
        };
        if let Some(Step::Finished(finish)) = step {
            self.ended = Some(finish);
        }
        self.known.extend_from_slice(new);
    }

    /// Has the policy take a turn, and more turns as long as they have only malformed calls. `max_tokens` limits all of
    /// them together.
    pub(super) async fn take_turn(
        &mut self,
        sampler: Sampler,
        max_tokens: Option<usize>,
        draws: &impl Draws,
    ) -> Result<Turn, TurnError> {
        let generator = Arc::clone(&self.generator);
        let prompt_tokens = self.tokens();
        let mut room_of_request = max_tokens.unwrap_or(usize::MAX).max(1);
        let mut sampled_tokens = 0;
        while room_of_request > 0 {
            let Some((sequence, append, room)) = self.next_input() else {
                let refused = match self.ended {
                    Some(Finish::Length) => TurnRefused::TooLong(self.context),
                    _ => TurnRefused::Over("its conversation has ended".to_owned()),
                };
                return Err(TurnError::Refused(refused));
            };
            let max_new_tokens = room.min(room_of_request);
            let (number, key) = match draws.begin(max_new_tokens) {
                Ok(begun) => begun,
                Err(refused) if sampled_tokens == 0 => return Err(TurnError::Refused(refused)),
                // The agent gets the turn that could not be mended.
                Err(_) => break,
            };
            if number >= self.max_turns {
                self.episode.end_with_next_turn();
            }
            let request = GenerateRequest {
                sequence,
                append,
                max_new_tokens,
                sampler,
                key,
            };
            let generated = generator.generate(request).await;
            let generated = generated.map_err(TurnError::Generate)?;
            let count = generated.ids.len();
            draws.end(key, max_new_tokens, count);
            self.last_turn = number;
            sampled_tokens += count;
            room_of_request -= count;
            if self.push(generated) {
                break;
            }
        }
        let (message, stopped) = self.answer();
        Ok(Turn {
            message,
            stopped,
            prompt_tokens,
            sampled_tokens,
        })
    }

    /// The ids that the generator must read now, with the sequence that they belong to. None if the episode has ended.
    fn next_input(&mut self) -> Option<(SequenceId, Vec<u32>, usize)> {
        let (ids, max_new_tokens) = match self.episode.next_input() {
            NextInput::Continue {
                append,
                max_new_tokens,
            } => (append, max_new_tokens),
            NextInput::Restart {
                ids,
                max_new_tokens,
            } => {
                self.sequence = None;
                (ids, max_new_tokens)
            }
            NextInput::Finished => return None,
        };
        let generator = &self.generator;
        let sequence = (self.sequence).get_or_insert_with(|| OpenSequence::new(generator));
        Some((sequence.id(), ids, max_new_tokens))
    }

    /// Adds a sampled turn. Returns false if the policy was told how to mend its calls, and has to take another turn.
    fn push(&mut self, Generated { ids, log_probs }: Generated) -> bool {
        let step = self.episode.push_sampled(ids, log_probs);
        let last = matches!(step, Step::Grade(_));
        match step {
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
                self.awaited = Awaited::Results {
                    calls: given.collect(),
                    last,
                };
                true
            }
            Step::Say(_) => {
                self.awaited = Awaited::User;
                true
            }
            Step::Continue => false,
            Step::Finished(finish) => {
                self.awaited = Awaited::Nothing;
                self.ended = Some(finish);
                true
            }
        }
    }

    /// Number of the last turn among all turns of the trajectory.
    pub(super) fn last_turn(&self) -> u32 {
        self.last_turn
    }

    /// The policy's last turn as a message for the agent, which is part of the conversation from now on.
    fn answer(&mut self) -> (Message, Stopped) {
        let last = self.episode.events().iter().rev().find_map(|event| {
            if let Event::Turn(turn) = event {
                Some(turn)
            } else {
                None
            }
        });
        let message = message(last, self.given_calls());
        let stopped = match &self.awaited {
            Awaited::Results { .. } => Stopped::Calls,
            Awaited::User => Stopped::Ended,
            Awaited::Nothing => Stopped::Length,
        };
        self.known.push(AgentMessage::new(message.clone()));
        (message, stopped)
    }

    /// The calls that wait for results.
    pub(super) fn given_calls(&self) -> &[GivenCall] {
        match &self.awaited {
            Awaited::Results { calls, .. } => calls,
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
    fn tokens(&self) -> usize {
        self.episode.sequence_ids().len()
    }

    /// Ends the conversation. The outcomes of calls that were made stay in the trajectory, although the policy has not read
    /// them. Calls that were not made count as cancelled.
    pub(super) fn finish(mut self, outcomes: &BTreeMap<String, CallOutcome>) -> Trajectory {
        match self.awaited {
            Awaited::Results { calls, last } => {
                let outcome = |given: &GivenCall| {
                    let made = outcomes.get(&given.given_id).cloned();
                    made.unwrap_or_else(|| cancelled(&given.call))
                };
                let outcomes = calls.iter().map(outcome).collect();
                if last {
                    self.episode.push_outcomes(outcomes);
                } else {
                    self.episode.push_last_outcomes(outcomes);
                }
            }
            Awaited::User => _ = self.episode.push_reply(self.reply_at_end.clone()),
            Awaited::Nothing => {}
        }
        // A request that was given up, or a turn that could not be continued.
        self.episode.terminate();
        self.episode.finish()
    }
}

/// The results of the calls in the messages, in the order of the calls, if they are exactly that.
fn results<'a>(calls: &[GivenCall], messages: &'a [AgentMessage]) -> Option<Vec<&'a AgentMessage>> {
    if calls.len() != messages.len() {
        return None;
    }
    let of = |given: &GivenCall| {
        let is_result = |sent: &&AgentMessage| {
            sent.message.role == Role::Tool && sent.call_id.as_ref() == Some(&given.given_id)
        };
        messages.iter().find(is_result)
    };
    calls.iter().map(of).collect()
}

/// The outcome of a call, with the text that the agent shows the policy.
fn outcome(
    given: &GivenCall,
    shown: &AgentMessage,
    made: &BTreeMap<String, CallOutcome>,
) -> CallOutcome {
    let made = made.get(&given.given_id).cloned();
    let mut outcome = made.unwrap_or_else(|| {
        let (id, name) = (given.call.call_id.clone(), given.call.name.clone());
        CallOutcome::from_observation(id, name, Observation::default())
    });
    let observation = outcome.observation.get_or_insert_default();
    observation.content.clone_from(&shown.message.content);
    observation.failed |= shown.failed;
    outcome
}

/// The outcome of a call that the agent never made.
fn cancelled(call: &ToolCall) -> CallOutcome {
    let (id, name) = (call.call_id.clone(), call.name.clone());
    CallOutcome {
        ended: Ended::Cancelled,
        fault: Fault::Model,
        observation: None,
        ..CallOutcome::from_observation(id, name, Observation::default())
    }
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
