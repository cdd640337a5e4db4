//! Takes a turn of the model and decides the next step.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Attempt, Episode, State, Step};
use crate::config::{AnswerRule, LastTurnCalls, OnNoAnswer};
use crate::history::assistant_message;
use crate::message::{Message, Role};
use crate::observation::ObservationSource;
use crate::parser::{self, Diagnostic, Malformed};
use crate::tool::ToolCall;
use crate::trajectory::{Event, Finish, MalformedCall, ModelSegment, ModelTurn};
use crate::turn::TurnOutcome;

impl Episode {
    /// Adds a turn. `text[..spoken]` is the turn without the token that ended it.
    pub(super) fn push_turn(
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
        let is_of_endpoint = matches!(segment, ModelSegment::Text(_));
        if is_of_endpoint && finished {
            // An endpoint does not return the end-of-turn token.
            let end = dialogue.tokenizer().decode(&[dialogue.end_of_turn()]);
            said.to_mut().push_str(&end);
        }
        self.sequences.push_model(segment, tokens, &said);

        let config = dialogue.config();
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        let protocol = dialogue.protocol().spec();
        let spoken = text.get(..spoken).unwrap_or(text);
        let parsed = parser::parse(spoken, self.in_think, protocol, &names);
        // An endpoint's own form of calls is another.
        let example = (!is_of_endpoint).then_some(protocol.example);
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
                Err(malformed) => Attempt::Mend(mend(malformed, example, &names)),
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
            feedback: Vec::new(),
        }));
        self.messages
            .push(assistant_message(&parsed, &calls, dialogue.style()));
        self.turn += 1;
        let last = self.turn >= self.max_turns;

        match TurnOutcome::from_parsed(&parsed, config.answer, finished) {
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

    pub(super) fn answered(&mut self, answer: String) -> Step {
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
        let frame = match self
            .dialogue
            .frame(ObservationSource::Tools(attempts.len()))
        {
            Ok(frame) => frame,
            Err(error) => return self.exclude(error.to_string()),
        };
        // Calls are not run if the context has no room for their observations.
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

    pub(super) fn no_answer(&mut self, finished: bool, last: bool) -> Step {
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
        self.observe(ObservationSource::User, &[reminder])
    }
}

/// The observation for a call that cannot be run, with an example of a call if there is one.
fn mend(malformed: &Malformed, example: Option<&str>, tools: &[&str]) -> String {
    let detail = &malformed.detail;
    match (malformed.diagnostic, example) {
        (Diagnostic::UnknownTool, _) => format!("Error: {detail}. Tools: {}.", tools.join(", ")),
        (_, Some(example)) => format!("Error: {detail}. Write a call as {example}"),
        (_, None) => format!("Error: {detail}."),
    }
}
