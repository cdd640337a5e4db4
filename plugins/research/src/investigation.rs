//! The loop: a reply of the model, its calls, their results.

use rlf_plugin::model::{self, Answer};
use rlf_plugin::{Error, Observation};
use with_model::{follow_up, unanswered};

use crate::calls;
use crate::config::Config;
use crate::offer::Offer;
use crate::prompt;
use crate::reply::Reply;

/// The work on one question.
pub(crate) struct Investigation<'a> {
    question: &'a str,
    offer: &'a Offer,
    seed: u64,
    config: &'a Config,
    /// The notes of the model, in order.
    notes: Vec<String>,
    /// The last calls, and replies that could not be used since: each with the message that follows it.
    exchange: Vec<(Answer, String)>,
    steps: u32,
    calls: u32,
    questions: u32,
}

impl<'a> Investigation<'a> {
    pub(crate) fn new(question: &'a str, offer: &'a Offer, seed: u64, config: &'a Config) -> Self {
        Self {
            question,
            offer,
            seed,
            config,
            notes: Vec::new(),
            exchange: Vec::new(),
            steps: 0,
            calls: 0,
            questions: 0,
        }
    }

    /// Works until there is an answer or a limit is reached.
    pub(crate) fn run(mut self) -> Observation {
        let observation = match self.find() {
            Ok(answer) => Observation::text(answer),
            Err(why) => Observation::failure(why),
        };
        observation
            .metric("steps", f64::from(self.steps))
            .metric("calls", f64::from(self.calls))
            .metric("questions", f64::from(self.questions))
    }

    /// The answer. An error is for the calling model.
    fn find(&mut self) -> Result<String, String> {
        while self.steps < self.config.max_steps {
            let answer = match self.ask() {
                Ok(answer) => answer,
                Err(error) => return self.without_model(&error),
            };
            self.steps += 1;
            match Reply::read(&answer, self.config.max_calls_per_step) {
                Ok(Reply::Conclusion(conclusion)) => return Ok(conclusion.shown()),
                Ok(Reply::Step(step)) => {
                    let note = step.note.as_deref().map(str::trim).unwrap_or_default();
                    if !note.is_empty() {
                        self.notes.push(note.to_owned());
                    }
                    let max_chars = self.config.max_result_chars;
                    let results = calls::make(&step.calls, self.offer, max_chars, self.seed);
                    self.calls += results.made;
                    self.exchange = vec![(answer, results.text)];
                    if let Some(why) = results.spent {
                        if self.notes.is_empty() && !results.any_succeeded {
                            return Err(format!("the budget for calls of tools is spent: {why}"));
                        }
                        break;
                    }
                }
                Err(wrong) => self.exchange.push((answer, prompt::correction(&wrong))),
            }
        }
        self.conclude()
    }

    /// The answer to the last question, which allows no more calls.
    fn conclude(&mut self) -> Result<String, String> {
        if let Some((_, next)) = self.exchange.last_mut() {
            next.push_str("\n\n");
            next.push_str(prompt::CONCLUDE);
        }
        let answer = match self.ask() {
            Ok(answer) => answer,
            Err(error) => return self.without_model(&error),
        };
        match Reply::read(&answer, self.config.max_calls_per_step) {
            Ok(Reply::Conclusion(conclusion)) => Ok(conclusion.shown()),
            Ok(Reply::Step(_)) | Err(_) => {
                self.answer_from_notes("the language model's last reply was no answer".to_owned())
            }
        }
    }

    /// The answer to the question as it stands: with the notes, and with what was said since the last calls.
    fn ask(&mut self) -> Result<Answer, Error> {
        let (notes, offer) = (&self.notes, self.offer);
        let start = prompt::question(self.question, notes, offer, self.seed, self.config);
        let question = self.exchange.iter().fold(start, |question, (reply, next)| {
            follow_up(question, reply, next)
        });
        let answer = model::ask_one(question)?;
        self.questions += 1;
        Ok(answer)
    }

    /// The result if the model cannot be asked any more.
    fn without_model(&self, error: &Error) -> Result<String, String> {
        let why = unanswered(error);
        match error {
            // The budget is spent, or the question has become too long for the model.
            Error::Exhausted(_) | Error::InvalidArguments(_) => self.answer_from_notes(why),
            _ => Err(why),
        }
    }

    /// The notes, after the reason why there is no other answer. Without notes, the reason is the error.
    fn answer_from_notes(&self, why: String) -> Result<String, String> {
        if self.notes.is_empty() {
            return Err(why);
        }
        let notes = prompt::listed(&self.notes);
        Ok(format!(
            "No answer was reached: {why}. These are the notes until then:\n{notes}"
        ))
    }
}
