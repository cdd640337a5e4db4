//! One trajectory being made: a state machine between a generator and the tools.
//!
//! ```text
//! start -> next_input -> push_sampled -> Act      -> push_outcomes -> next_input ...
//!                                     -> Continue -> next_input ...
//!                                     -> Say      -> push_reply    -> next_input ...
//!                                     -> Grade    -> push_outcomes -> Finished
//!                                     -> Finished
//! ```
//!
//! It owns the rules of the trajectory: nothing that was sampled is ever changed or derived again
//! from text, everything between two turns is an observation, and nothing is cut from the left.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::config::{AnswerRule, History, LastTurnCalls, OnNoAnswer};
use crate::dialogue::{Dialogue, DialogueError};
use crate::history::assistant_message;
use crate::message::{Content, Message, Role};
use crate::observation::{self, Speaker};
use crate::parser::{self, Diagnostic, Malformed};
use crate::sequences::Sequences;
use crate::task::Task;
use crate::template::{RenderInput, TemplateError};
use crate::tool::{CallOutcome, Fault, ToolCall, ToolDefinition};
use crate::tool_news::tool_news;
use crate::trajectory::{
    Event, Finish, MalformedCall, ModelSegment, ModelTurn, Trajectory, Verdict,
};
use crate::turn::TurnOutcome;

/// What the generator must read before it samples the next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextInput {
    /// The sequence goes on.
    Continue {
        /// To be appended to what was read and sampled so far.
        append: Vec<u32>,
        /// How many tokens the turn may have, at least 1.
        max_new_tokens: usize,
    },
    /// A sequence begins. A second call in a row gives this too, with all ids of the sequence, so
    /// that a generator that lost its state can start over.
    Restart {
        /// All of the sequence.
        ids: Vec<u32>,
        /// How many tokens the turn may have, at least 1.
        max_new_tokens: usize,
    },
    /// There is nothing more to sample: invoke the calls, or take the trajectory.
    Finished,
}

/// What the caller does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Invoke these calls, then [`Episode::push_outcomes`].
    Act(Vec<ToolCall>),
    /// The same in the last turn, under `last_turn_calls = "grade"`: the outcomes are for the
    /// rewards only, and nothing is appended.
    Grade(Vec<ToolCall>),
    /// The model spoke without calling a tool: tell its environment, then [`Episode::push_reply`]. Only after
    /// [`Episode::enter_environment`].
    Say(String),
    /// Go on with [`Episode::next_input`].
    Continue,
    /// Take the trajectory with [`Episode::finish`].
    Finished(Finish),
}

/// What an environment makes of what the model said.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Someone answers, and the model's turn is next.
    Said(Vec<Content>),
    /// The episode is over.
    Ended,
    /// Nobody answers: what the turn comes to is decided as without an environment.
    Silence,
}

#[derive(Debug)]
enum State {
    /// The model's turn is next; true where the generator must begin a sequence.
    Ready {
        restart: bool,
    },
    /// The generator has its input.
    Sampling,
    /// Calls are out.
    Acting {
        calls: Vec<ToolCall>,
        attempts: Vec<Attempt>,
        grade: bool,
    },
    /// The environment hears what the model said.
    Speaking {
        /// The answer in it, by the configured rule.
        answer: Option<String>,
        /// Whether the turn was the last one allowed.
        last: bool,
    },
    Finished(Finish),
}

/// What the model is told about one call of its turn.
#[derive(Debug)]
enum Attempt {
    /// What the tool of this index says.
    Call(usize),
    /// How to mend it.
    Mend(String),
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Episode {
    dialogue: Arc<Dialogue>,
    id: String,
    task: String,
    tools: Vec<ToolDefinition>,
    state: State,
    turn: u32,
    messages: Vec<Message>,
    events: Vec<Event>,
    sequences: Sequences,
    /// Whether the model's next turn begins inside a think block.
    in_think: bool,
    /// Whether the last turn still needs its end-of-turn token.
    open_turn: bool,
    closed_turns: u32,
    answer: Option<String>,
    excluded: Option<String>,
    final_state: Option<Value>,
    verdict: Option<Verdict>,
    in_environment: bool,
    /// The tools that the model knows of.
    told_tools: Vec<ToolDefinition>,
    /// Tools that were on offer and are not any more.
    gone_tools: Vec<ToolDefinition>,
}

impl Episode {
    /// Renders the prompt of a task. `trajectory_id` is unique within a run and begins the id of
    /// every call.
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
            in_environment: false,
            told_tools: Vec::new(),
            gone_tools: Vec::new(),
        };
        episode.told_tools.clone_from(&episode.tools);
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

    /// What the generator must read before it samples the next turn.
    pub fn next_input(&mut self) -> NextInput {
        let config = self.dialogue.config();
        let room = (config.context as usize).saturating_sub(self.sequences.length());
        let max_new_tokens = room.min(config.max_tokens_per_turn as usize);
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

    /// A turn the policy sampled, its end-of-turn token included if it came, with the
    /// log-probability of each id when it was sampled.
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

    /// A turn of a demonstrator: trusted text in the model's own protocol, without the
    /// end-of-turn token. It becomes the ids that the model should have sampled, that token
    /// included.
    pub fn push_demonstrated(&mut self, text: &str) -> Step {
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
            ModelSegment::Demonstrated { ids },
            &text,
            spoken,
            true,
            tokens,
        )
    }

    /// A turn of an endpoint that gives text without ids. It trains nothing.
    pub fn push_text(&mut self, text: String) -> Step {
        let tokens = self.dialogue.tokenizer().encode_untrusted(&text).len();
        self.open_turn = false;
        let said = text.clone();
        self.push_turn(ModelSegment::Text(text), &said, said.len(), true, tokens)
    }

    /// How the calls of [`Step::Act`] or [`Step::Grade`] ended, in the order of the calls.
    pub fn push_outcomes(&mut self, outcomes: Vec<CallOutcome>) -> Step {
        self.take_outcomes(outcomes, None)
    }

    /// The same where the environment ended the episode with these calls: nobody reads what they showed.
    pub fn push_last_outcomes(&mut self, outcomes: Vec<CallOutcome>) -> Step {
        self.take_outcomes(outcomes, Some(Finish::Terminated))
    }

    /// The same where the trajectory cannot go on for a reason of the host's: it is excluded from its group.
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
        let mut bodies: Vec<String> = self.dialogue.on_stage(|stage| {
            let body = |content: &[Content]| observation::body(content, stage, max_tokens);
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
        self.tell_of_tools(&mut bodies);
        self.observe(Speaker::Tools(bodies.len()), &bodies)
    }

    /// The episode takes place in an environment, which hears every turn of the model that calls no tool.
    pub fn enter_environment(&mut self) {
        self.in_environment = true;
    }

    /// What the environment makes of what the model said ([`Step::Say`]).
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
                let text = self
                    .dialogue
                    .on_stage(|stage| observation::body(&content, stage, max_tokens));
                self.events
                    .push(Event::User(Message::text(Role::User, text.as_str())));
                let mut bodies = [text];
                self.tell_of_tools(&mut bodies);
                self.observe(Speaker::User, &bodies)
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

    /// Other tools are on offer from now on. Called before the outcomes of the calls, or the reply, that made the change
    /// are pushed: the model reads of it there, or, with `history = "template"`, in a new rendering of the conversation.
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

    /// Adds what the model does not know of its tools to what it reads next.
    fn tell_of_tools(&mut self, bodies: &mut [String]) {
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

    /// The episode ends on the environment's terms, whatever the model would have done next.
    pub fn terminate(&mut self) {
        if !matches!(self.state, State::Finished(_)) {
            self.end(Finish::Terminated);
        }
    }

    /// What the environment was in the end, however the episode ended, and how it judges that.
    pub fn judge(&mut self, final_state: Option<Value>, verdict: Option<Verdict>) {
        (self.final_state, self.verdict) = (final_state, verdict);
    }

    /// The answer so far.
    pub fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    /// Ends the trajectory for a reason of the host's; it is excluded from its group.
    pub fn abort(&mut self, reason: String) {
        if !matches!(self.state, State::Finished(_)) {
            self.exclude(reason);
        }
    }

    /// The trajectory. One that had not ended counts as aborted.
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
        }
    }

    /// All ids of the current sequence, what the generator has not read yet included.
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

    /// How many turns the model has taken; while calls are out, the turn they belong to is
    /// `turn() - 1`, as in their ids.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// What happened so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// `text[..spoken]` is the turn without the token that ended it.
    fn push_turn(
        &mut self,
        segment: ModelSegment,
        text: &str,
        spoken: usize,
        finished: bool,
        tokens: usize,
    ) -> Step {
        match &self.state {
            State::Finished(finish) => return Step::Finished(*finish),
            State::Acting { .. } | State::Speaking { .. } => {
                return self.misuse("a turn came while the one before is not dealt with");
            }
            State::Ready { .. } | State::Sampling => {}
        }
        let dialogue = Arc::clone(&self.dialogue);
        let mut said = Cow::Borrowed(text);
        if matches!(segment, ModelSegment::Text(_)) {
            // An endpoint keeps the end of its turns to itself.
            let end = dialogue.tokenizer().decode(&[dialogue.end_of_turn()]);
            said.to_mut().push_str(&end);
        }
        self.sequences.push_model(segment, tokens, &said);

        let config = dialogue.config();
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        let protocol = dialogue.protocol().spec();
        let spoken = text.get(..spoken).unwrap_or(text);
        let parsed = parser::parse(spoken, self.in_think, protocol, &names);
        let mut calls = Vec::new();
        let mut attempts = Vec::new();
        for (_, call) in parsed.attempts() {
            attempts.push(match call {
                Ok((name, arguments)) => {
                    let call_id = format!("{}/{}/{}", self.id, self.turn, calls.len());
                    let (name, arguments) = (name.clone(), arguments.clone());
                    calls.push(ToolCall {
                        call_id,
                        name,
                        arguments,
                    });
                    Attempt::Call(calls.len() - 1)
                }
                Err(malformed) => Attempt::Mend(mend(malformed, protocol.example, &names)),
            });
        }
        let malformed = parsed
            .diagnostics()
            .map(|(text, diagnostic)| MalformedCall {
                text: text.to_owned(),
                diagnostic: diagnostic.as_str().to_owned(),
            });
        self.events.push(Event::Turn(ModelTurn {
            text: text.to_owned(),
            reasoning: parsed.reasoning(),
            visible: parsed.visible(),
            calls: calls.clone(),
            malformed: malformed.collect(),
            tokens: tokens as u32,
        }));
        self.messages
            .push(assistant_message(&parsed, &calls, dialogue.style()));
        self.turn += 1;
        let last = self.turn >= config.max_turns;

        match TurnOutcome::of(&parsed, config.answer, finished) {
            outcome @ (TurnOutcome::Answer(_) | TurnOutcome::Nothing)
                if self.in_environment && finished =>
            {
                let answer = match outcome {
                    TurnOutcome::Answer(answer) => Some(answer),
                    TurnOutcome::Action | TurnOutcome::Nothing => None,
                };
                self.state = State::Speaking { answer, last };
                Step::Say(parsed.visible())
            }
            TurnOutcome::Answer(answer) => self.answered(answer),
            TurnOutcome::Action => self.act(calls, attempts, last),
            TurnOutcome::Nothing => self.no_answer(finished, last),
        }
    }

    fn answered(&mut self, answer: String) -> Step {
        self.answer = Some(answer);
        self.end(Finish::Answered)
    }

    fn act(&mut self, calls: Vec<ToolCall>, attempts: Vec<Attempt>, last: bool) -> Step {
        let config = self.dialogue.config();
        if last {
            if config.last_turn_calls == LastTurnCalls::Skip || calls.is_empty() {
                return self.end(Finish::MaxTurns);
            }
            self.state = State::Acting {
                calls: calls.clone(),
                attempts,
                grade: true,
            };
            return Step::Grade(calls);
        }
        let frame = match self.dialogue.frame(Speaker::Tools(attempts.len())) {
            Ok(frame) => frame,
            Err(error) => return self.exclude(error.to_string()),
        };
        // Calls whose observations cannot be read any more are not run.
        let least = frame.fixed_tokens + usize::from(self.open_turn);
        if self.sequences.length() + least >= config.context as usize {
            return self.end(Finish::Length);
        }
        self.state = State::Acting {
            calls: calls.clone(),
            attempts,
            grade: false,
        };
        if calls.is_empty() {
            self.push_outcomes(Vec::new())
        } else {
            Step::Act(calls)
        }
    }

    fn no_answer(&mut self, finished: bool, last: bool) -> Step {
        let dialogue = Arc::clone(&self.dialogue);
        let config = dialogue.config();
        let full = self.sequences.length() >= config.context as usize;
        let remind =
            config.answer != AnswerRule::FinalTurn && config.on_no_answer == OnNoAnswer::Remind;
        if full || (!finished && !remind) {
            return self.end(Finish::Length);
        }
        if !remind {
            return self.end(Finish::Answered);
        }
        if last {
            return self.end(Finish::MaxTurns);
        }
        let reminder = config.reminder().to_owned();
        self.events
            .push(Event::User(Message::text(Role::User, reminder.as_str())));
        self.observe(Speaker::User, &[reminder])
    }

    /// Puts what was said between the model's last turn and its next one.
    fn observe(&mut self, speaker: Speaker, bodies: &[String]) -> Step {
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
    fn follow(&mut self, rendered: &crate::trust::Marked) -> Step {
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

    fn begin_sequence(&mut self, ids: Vec<u32>, text: &str) {
        self.open_turn = false;
        self.sequences.begin(ids, text);
        self.state = State::Ready { restart: true };
    }

    fn render(&self) -> Result<crate::trust::Marked, TemplateError> {
        self.dialogue.render(&RenderInput {
            messages: &self.messages,
            tools: &self.tools,
            enable_thinking: Some(self.dialogue.config().enable_thinking),
            add_generation_prompt: true,
        })
    }

    fn end(&mut self, finish: Finish) -> Step {
        self.state = State::Finished(finish);
        Step::Finished(finish)
    }

    fn exclude(&mut self, reason: String) -> Step {
        self.excluded = Some(reason);
        self.end(Finish::Aborted)
    }

    /// The caller broke the protocol of this type: nobody's score may depend on that.
    fn misuse(&mut self, what: &str) -> Step {
        match self.state {
            State::Finished(finish) => Step::Finished(finish),
            _ => self.exclude(format!("bug of the host: {what}")),
        }
    }
}

/// Why an outcome excludes its trajectory, if it does.
fn broken(outcome: &CallOutcome) -> Option<String> {
    let why = match outcome.fault {
        Fault::Infrastructure => outcome.ended.as_str(),
        Fault::Nobody => "given up",
        Fault::Model | Fault::Plugin => return None,
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

/// What the model is told about a call that cannot be run.
fn mend(malformed: &Malformed, example: &str, tools: &[&str]) -> String {
    let detail = &malformed.detail;
    match malformed.diagnostic {
        Diagnostic::UnknownTool => format!("Error: {detail}. Tools: {}.", tools.join(", ")),
        _ => format!("Error: {detail}. Write a call as {example}"),
    }
}
