//! Makes one trajectory: a state machine between a generator and the tools.
//!
//! ```text
//! start -> next_input -> push_sampled -> Act      -> push_outcomes -> next_input ...
//!                                     -> Continue -> next_input ...
//!                                     -> Say      -> push_reply    -> next_input ...
//!                                     -> Grade    -> push_outcomes -> Finished
//!                                     -> Finished
//! ```
//!
//! It keeps the rules of the trajectory. Sampled ids are never changed and never derived again from text. Everything
//! between two turns is an observation. Nothing is cut from the left.
//!
//! - `step`: what an episode asks of its caller
//! - `speaking`: takes a turn of the model and decides the next step
//! - `reading`: prepares the text that the model reads before its next turn
//! - `writing`: writes a turn of a demonstrator or of an endpoint as the model would have to write it

mod reading;
mod speaking;
mod step;
mod writing;

pub use step::{NextInput, Reply, Step};
pub use writing::Unwritable;

use std::sync::Arc;

use serde_json::Value;

use crate::config::History;
use crate::dialogue::{Dialogue, DialogueError};
use crate::message::{Content, Message, Role};
use crate::observation::{self, ObservationSource};
use crate::sequences::Sequences;
use crate::task::Task;
use crate::tool::{CallOutcome, Fault, ToolCall, ToolDefinition};
use crate::trajectory::{EnvironmentFeedback, Event, Finish, ModelSegment, Trajectory, Verdict};

#[derive(Debug)]
enum State {
    /// The model's turn is next. `restart` says whether the generator must begin a sequence.
    Ready {
        restart: bool,
    },
    /// The generator has its input and samples.
    Sampling,
    /// The caller runs the calls.
    Acting {
        calls: Vec<ToolCall>,
        attempts: Vec<Attempt>,
        grade: bool,
    },
    /// The environment reads the model's text.
    Speaking {
        /// The answer in it, by the configured rule.
        answer: Option<String>,
        /// True if the turn was the last one allowed.
        last: bool,
    },
    Finished(Finish),
}

/// The observation for one call of a turn.
#[derive(Debug)]
enum Attempt {
    /// The result of the call with this index.
    Call(usize),
    /// The text that tells the model how to correct a malformed call.
    Mend(String),
}

/// One trajectory in the making. The module's documentation shows the order of calls.
#[derive(Debug)]
pub struct Episode {
    dialogue: Arc<Dialogue>,
    id: String,
    task: String,
    tools: Vec<ToolDefinition>,
    state: State,
    turn: u32,
    /// Number of turns that the model may take.
    max_turns: u32,
    messages: Vec<Message>,
    events: Vec<Event>,
    sequences: Sequences,
    /// True if the model's next turn begins inside a think block.
    in_think: bool,
    /// True if the last turn still needs its end-of-turn token.
    open_turn: bool,
    closed_turns: u32,
    answer: Option<String>,
    excluded: Option<String>,
    final_state: Option<Value>,
    verdict: Option<Verdict>,
    unjudged: Option<String>,
    in_environment: bool,
    /// The tools that the model has been told about.
    announced_tools: Vec<ToolDefinition>,
    /// Tools that are no longer offered.
    gone_tools: Vec<ToolDefinition>,
}

impl Episode {
    /// Renders the prompt of a task. `trajectory_id` must be unique within a run; the id of every call begins with it.
    pub fn start(
        dialogue: &Arc<Dialogue>,
        trajectory_id: String,
        task: &Task,
        tools: Vec<ToolDefinition>,
    ) -> Result<Self, DialogueError> {
        if task.prompt.is_empty() {
            return Err(DialogueError::EmptyPrompt {
                task: task.id.clone(),
            });
        }
        let mut episode = Self {
            dialogue: Arc::clone(dialogue),
            id: trajectory_id,
            task: task.id.clone(),
            tools,
            state: State::Ready { restart: true },
            turn: 0,
            max_turns: dialogue.config().max_turns,
            messages: task.prompt.clone(),
            events: Vec::new(),
            sequences: Sequences::new(dialogue.config().history == History::Template),
            in_think: false,
            open_turn: false,
            closed_turns: 0,
            answer: None,
            excluded: None,
            final_state: None,
            verdict: None,
            unjudged: None,
            in_environment: false,
            announced_tools: Vec::new(),
            gone_tools: Vec::new(),
        };
        episode.announced_tools.clone_from(&episode.tools);
        let rendered = episode.render()?;
        let ids = rendered.encode(&dialogue.tokenizer().clone());
        let context = dialogue.config().context;
        if ids.len() >= context as usize {
            let tokens = ids.len();
            return Err(DialogueError::PromptTooLong {
                task: task.id.clone(),
                tokens,
                context,
            });
        }
        episode.in_think = dialogue.ends_in_think(&rendered);
        episode.begin_sequence(ids, &rendered.plain());
        Ok(episode)
    }

    /// The ids that the generator must read before it samples the next turn.
    pub fn next_input(&mut self) -> NextInput {
        let max_new_tokens = self.room();
        let restart = match self.state {
            State::Ready { restart } => restart,
            State::Sampling => true,
            State::Acting { .. } | State::Speaking { .. } | State::Finished(_) => {
                return NextInput::Finished;
            }
        };
        self.state = State::Sampling;
        let append = self.sequences.take_pending();
        if restart {
            NextInput::Restart {
                ids: self.sequences.ids(),
                max_new_tokens,
            }
        } else {
            NextInput::Continue {
                append,
                max_new_tokens,
            }
        }
    }

    /// Number of tokens that the next turn may have.
    fn room(&self) -> usize {
        let config = self.dialogue.config();
        let room = (config.context as usize).saturating_sub(self.sequences.length());
        room.min(config.max_tokens_per_turn as usize)
    }

    /// Adds a turn that the policy sampled, with the log-probability of each id when it was sampled. The end-of-turn
    /// token is included if it was sampled.
    pub fn push_sampled(&mut self, ids: Vec<u32>, log_probs: Vec<f32>) -> Step {
        if ids.len() != log_probs.len() {
            let (ids, log_probs) = (ids.len(), log_probs.len());
            return self.misuse(&format!(
                "{ids} ids came with {log_probs} log-probabilities"
            ));
        }
        let finished = ids
            .last()
            .is_some_and(|id| self.dialogue.stop_ids().contains(id));
        let text = self.dialogue.tokenizer().decode(&ids);
        let spoken = ids.len() - usize::from(finished);
        let spoken = self.dialogue.tokenizer().decode(&ids[..spoken]).len();
        self.open_turn = ids.last() != Some(&self.dialogue.end_of_turn());
        let tokens = ids.len();
        let segment = ModelSegment::Sampled { ids, log_probs };
        self.push_turn(segment, &text, spoken.min(text.len()), finished, tokens)
    }

    /// Adds a turn of a demonstrator: trusted text in the model's own protocol, without the end-of-turn token. It becomes
    /// the ids that the model should have sampled, with that token.
    pub fn push_demonstrated(&mut self, text: &str) -> Step {
        self.push_written(text, true)
    }

    /// Like [`Self::push_demonstrated`], for a turn that the model reads as its own and does not learn to say.
    pub fn push_left_out(&mut self, text: &str) -> Step {
        self.push_written(text, false)
    }

    fn push_written(&mut self, text: &str, imitated: bool) -> Step {
        let end = self.dialogue.end_of_turn();
        let tokenizer = Arc::clone(self.dialogue.tokenizer());
        let mut ids = tokenizer.encode_trusted(text);
        if ids.last() != Some(&end) {
            ids.push(end);
        }
        let text = tokenizer.decode(&ids);
        let spoken = tokenizer.decode(&ids[..ids.len() - 1]).len();
        self.open_turn = false;
        let tokens = ids.len();
        self.push_turn(
            ModelSegment::Demonstrated { ids, imitated },
            &text,
            spoken,
            true,
            tokens,
        )
    }

    /// Adds a turn of an endpoint, which returns reasoning, text and calls apart and no ids. It is written in the
    /// dialogue's protocol and then read like a turn of the policy, so a mistake in it has the same consequences. Arguments
    /// that are not an object are such a mistake. A turn that is longer than [`NextInput`] allows is cut there. Such a
    /// turn trains nothing.
    ///
    /// `finished` says whether the model ended the turn itself.
    pub fn push_message(&mut self, turn: &Message, finished: bool) -> Step {
        let mut text = self.text_of(turn);
        let tokenizer = Arc::clone(self.dialogue.tokenizer());
        let ids = tokenizer.encode_untrusted(&text);
        let room = self.room();
        // The token that ends the turn counts as well.
        let finished = finished && ids.len() < room;
        if let Some((kept, [_, ..])) = ids.split_at_checked(room) {
            // A cut inside a character loses that character.
            let cut = tokenizer.decode(kept);
            cut.trim_end_matches('\u{fffd}').clone_into(&mut text);
        }
        let tokens = ids.len().min(room) + usize::from(finished);
        self.open_turn = !finished;
        let said = text.clone();
        let spoken = said.len();
        self.push_turn(ModelSegment::Text(text), &said, spoken, finished, tokens)
    }

    /// Adds the outcomes of the calls of [`Step::Act`] or [`Step::Grade`], in the order of the calls.
    pub fn push_outcomes(&mut self, outcomes: Vec<CallOutcome>) -> Step {
        self.take_outcomes(outcomes, None)
    }

    /// Like [`Episode::push_outcomes`], if the environment ended the episode with these calls. The model does not read
    /// their observations.
    pub fn push_last_outcomes(&mut self, outcomes: Vec<CallOutcome>) -> Step {
        self.take_outcomes(outcomes, Some(Finish::Terminated))
    }

    /// Like [`Episode::push_outcomes`], if an infrastructure failure ends the trajectory: it is excluded from its group.
    pub fn abort_with(&mut self, outcomes: Vec<CallOutcome>, reason: String) -> Step {
        let step = self.take_outcomes(outcomes, Some(Finish::Aborted));
        self.excluded.get_or_insert(reason);
        step
    }

    fn take_outcomes(&mut self, outcomes: Vec<CallOutcome>, end: Option<Finish>) -> Step {
        let acting = std::mem::replace(&mut self.state, State::Sampling);
        let State::Acting {
            calls,
            attempts,
            grade,
        } = acting
        else {
            self.state = acting;
            return self.misuse("outcomes came, but no calls are out");
        };
        let same = |(call, outcome): (&ToolCall, &CallOutcome)| call.call_id == outcome.call_id;
        if calls.len() != outcomes.len() || !calls.iter().zip(&outcomes).all(same) {
            return self.misuse("outcomes do not match the calls that are out");
        }
        let end = end.or(grade.then_some(Finish::MaxTurns));
        let broken = outcomes.iter().find_map(broken);
        let config = self.dialogue.config();
        let max_tokens = config.max_observation_tokens as usize;
        let mut bodies: Vec<String> = self.dialogue.with_observation_renderer(|renderer| {
            let body = |content: &[Content]| observation::body(content, renderer, max_tokens);
            let of = |attempt: &Attempt| match attempt {
                Attempt::Mend(text) => body(&[Content::Text(text.clone())]),
                Attempt::Call(index) => match &outcomes[*index].observation {
                    Some(observation) => body(&observation.content),
                    None => format!("The call failed ({}).", outcomes[*index].ended.as_str()),
                },
            };
            if broken.is_some() || end.is_some() {
                Vec::new()
            } else {
                attempts.iter().map(of).collect()
            }
        });
        self.events.extend(outcomes.into_iter().map(Event::Outcome));
        if let Some(reason) = broken {
            return self.exclude(reason);
        }
        if let Some(finish) = end {
            return self.end(finish);
        }
        self.announce_tool_changes(&mut bodies);
        self.observe(ObservationSource::Tools(bodies.len()), &bodies)
    }

    /// Sets that the episode takes place in an environment, which reads every turn of the model without calls.
    pub fn enter_environment(&mut self) {
        self.in_environment = true;
    }

    /// Makes the next turn the last one, for an episode that shares its turns with others.
    pub fn end_with_next_turn(&mut self) {
        self.max_turns = self.turn + 1;
    }

    /// Records the environment's feedback on the model's text ([`Step::Say`]), or on the user's leaving. Call it before
    /// [`Episode::push_reply`].
    pub fn note_feedback(&mut self, feedback: EnvironmentFeedback) {
        if let (State::Speaking { .. }, Some(Event::Turn(turn))) =
            (&self.state, self.events.last_mut())
        {
            turn.feedback.push(feedback);
        }
    }

    /// Adds the environment's reply to the model's text ([`Step::Say`]).
    pub fn push_reply(&mut self, reply: Reply) -> Step {
        let speaking = std::mem::replace(&mut self.state, State::Sampling);
        let State::Speaking { answer, last } = speaking else {
            self.state = speaking;
            return self.misuse("a reply came, but nothing was said");
        };
        match reply {
            Reply::Said(_) if last => self.end(Finish::MaxTurns),
            Reply::Said(content) => {
                let max_tokens = self.dialogue.config().max_observation_tokens as usize;
                let text = self.dialogue.with_observation_renderer(|renderer| {
                    observation::body(&content, renderer, max_tokens)
                });
                self.events
                    .push(Event::User(Message::text(Role::User, text.as_str())));
                let mut bodies = [text];
                self.announce_tool_changes(&mut bodies);
                self.observe(ObservationSource::User, &bodies)
            }
            Reply::Ended => {
                let finish = if answer.is_some() {
                    Finish::Answered
                } else {
                    Finish::Terminated
                };
                self.answer = answer;
                self.end(finish)
            }
            Reply::Silence => match answer {
                Some(answer) => self.answered(answer),
                None => self.no_answer(true, last),
            },
        }
    }

    /// Replaces the tools on offer. Call it before pushing the outcomes or the reply that made the change: the model is
    /// told there or, with `history = "template"`, by a new rendering of the conversation.
    pub fn change_tools(&mut self, tools: Vec<ToolDefinition>) {
        let before = std::mem::replace(&mut self.tools, tools);
        let is_there =
            |all: &[ToolDefinition], name: &str| all.iter().any(|tool| tool.name == name);
        self.gone_tools
            .retain(|tool| !is_there(&self.tools, &tool.name));
        let gone = before
            .into_iter()
            .filter(|tool| !is_there(&self.tools, &tool.name));
        self.gone_tools.extend(gone);
    }

    /// Ends the episode because the environment ended it.
    pub fn terminate(&mut self) {
        if !matches!(self.state, State::Finished(_)) {
            self.end(Finish::Terminated);
        }
    }

    /// Sets the environment's final state and its verdict. `unjudged` is the reason why one of them is missing.
    pub fn judge(
        &mut self,
        final_state: Option<Value>,
        verdict: Option<Verdict>,
        unjudged: Option<String>,
    ) {
        (self.final_state, self.verdict, self.unjudged) = (final_state, verdict, unjudged);
    }

    /// The answer so far.
    pub fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    /// Ends the trajectory because of an infrastructure failure; it is excluded from its group.
    pub fn abort(&mut self, reason: String) {
        if !matches!(self.state, State::Finished(_)) {
            self.exclude(reason);
        }
    }

    /// Returns the trajectory. One that had not ended counts as aborted.
    pub fn finish(mut self) -> Trajectory {
        self.abort("the trajectory was taken before it had ended".into());
        let finish = match self.state {
            State::Finished(finish) => finish,
            _ => Finish::Aborted,
        };
        Trajectory {
            id: self.id,
            task: self.task,
            tools: self.tools.into_iter().chain(self.gone_tools).collect(),
            events: self.events,
            sequences: self.sequences.into_all(),
            answer: self.answer,
            finish,
            excluded: self.excluded,
            closed_turns: self.closed_turns,
            final_state: self.final_state,
            verdict: self.verdict,
            unjudged: self.unjudged,
        }
    }

    /// All ids of the current sequence, with those that the generator has not read yet.
    pub fn sequence_ids(&self) -> Vec<u32> {
        self.sequences.ids()
    }

    /// The conversation so far as messages, for an endpoint that takes text.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The tools on offer.
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// The trajectory's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Number of turns that the model has taken. Calls that are being run belong to turn `turn() - 1`, as in their ids.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// The events so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    fn end(&mut self, finish: Finish) -> Step {
        self.state = State::Finished(finish);
        Step::Finished(finish)
    }

    fn exclude(&mut self, reason: String) -> Step {
        self.excluded = Some(reason);
        self.end(Finish::Aborted)
    }

    /// Excludes the trajectory because the caller used this type wrongly: no score may depend on that.
    fn misuse(&mut self, what: &str) -> Step {
        match self.state {
            State::Finished(finish) => Step::Finished(finish),
            _ => self.exclude(format!("bug of the host: {what}")),
        }
    }
}

/// The reason why an outcome excludes its trajectory, if it does.
fn broken(outcome: &CallOutcome) -> Option<String> {
    let why = match outcome.fault {
        Fault::Infrastructure => outcome.ended.as_str(),
        Fault::Nobody => "given up",
        Fault::None | Fault::Model | Fault::Plugin => return None,
    };
    let detail = outcome
        .detail
        .as_deref()
        .map_or(String::new(), |detail| format!(": {detail}"));
    Some(format!(
        "call {} to `{}` ended as {why}{detail}",
        outcome.call_id, outcome.name
    ))
}
