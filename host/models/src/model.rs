//! One model, and a question to it: its budgets, its recorded answer, or else a new one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rlf_endpoint::{
    Budget, ChatMessage, Completion, Ledger, Reserved, Sampling, Spent, Usage, tokens_of,
};
use rlf_plugins::bindings::types::Error;
use rlf_plugins::gates::{GateAnswer, LanguageModel, Nesting};
use rlf_sandbox::{BoxFuture, Stopped};
use serde_json::json;

use crate::config::ModelConfig;
use crate::record::{Record, Recorded};
use crate::source::{Source, SourceError};

/// Number of trajectories whose ledgers are kept. Older ones have ended long ago.
const MAX_TRAJECTORIES: usize = 100_000;
/// Tokens that are reserved for an answer whose length nothing limits.
const UNLIMITED_ANSWER: u64 = 4_096;

/// What was asked, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    /// Questions whose answer was recorded before.
    pub(crate) recorded: u64,
    /// Questions that the model did not answer.
    pub(crate) unanswered: u64,
    /// Questions that a budget refused.
    pub(crate) refused: u64,
}

/// A model that plugins may ask.
pub(crate) struct Model {
    name: String,
    config: ModelConfig,
    /// None if only recorded answers are given.
    source: Option<Arc<dyn Source>>,
    record: Option<Record>,
    run: Ledger,
    trajectories: Mutex<HashMap<String, Ledger>>,
    counts: Mutex<Counts>,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Model {
    pub(crate) fn new(
        name: &str,
        config: ModelConfig,
        source: Option<Arc<dyn Source>>,
        record: Option<Record>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            config,
            source,
            record,
            run: Ledger::default(),
            trajectories: Mutex::default(),
            counts: Mutex::default(),
        }
    }

    /// What is spent so far.
    pub(crate) fn spent(&self) -> Spent {
        self.run.spent()
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn count(&self, count: impl FnOnce(&mut Counts)) {
        count(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn trajectory(&self, name: &str) -> Ledger {
        let mut all = self
            .trajectories
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_TRAJECTORIES && !all.contains_key(name) {
            all.clear();
        }
        all.entry(name.to_owned()).or_default().clone()
    }

    /// Reserves a question in every budget that it counts against.
    fn reserve(&self, tokens: u64, asker: &Nesting) -> Result<Vec<Reserved>, Error> {
        let [call, trajectory, run] = self.config.budgets();
        let (account, size) = asker.account();
        let calls = asker.ledgers(&self.name);
        let call = times(call, size);
        let trajectory = times(trajectory, size);
        let all = calls.into_iter().map(|ledger| (ledger, "call", call));
        let all = all.chain([
            (self.trajectory(account), "trajectory", trajectory),
            (self.run.clone(), "run", run),
        ]);
        let mut reserved = Vec::new();
        for (ledger, scope, budget) in all {
            let one = ledger.reserve(&budget, tokens).map_err(|error| {
                self.count(|counts| counts.refused += 1);
                let name = &self.name;
                let what =
                    format!("the budget of a {scope} is spent (models.{name}.{scope}): {error}");
                Error::Exhausted(what)
            })?;
            reserved.push(one);
        }
        Ok(reserved)
    }

    async fn answer(
        &self,
        messages: &[ChatMessage],
        sampling: Sampling,
        asker: &Nesting,
    ) -> GateAnswer<Completion> {
        let prompt: u64 = messages
            .iter()
            .map(|message| tokens_of(&message.content))
            .sum();
        let longest = sampling.max_tokens.unwrap_or_else(|| self.max_tokens());
        let longest = match longest {
            0 => UNLIMITED_ANSWER,
            longest => u64::from(longest),
        };
        let reserved = match self.reserve(prompt + longest, asker) {
            Ok(reserved) => reserved,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let identity = identity(messages, sampling);
        if let Some(recorded) = self.recorded(&identity)? {
            let spent = spent(recorded.usage, recorded.seconds);
            settle(reserved, &spent);
            self.count(|counts| counts.recorded += 1);
            return Ok(Ok(recorded.completion()));
        }
        let Some(source) = &self.source else {
            self.count(|counts| counts.unanswered += 1);
            reserved.into_iter().for_each(Reserved::release);
            let record = self
                .record
                .as_ref()
                .map(|record| record.path().display().to_string());
            return Err(Stopped::unavailable(format!(
                "model `{}` only replays, and {} has no answer to this question; was it recorded with the same seed, \
                 plugins and tasks?",
                self.name,
                record.unwrap_or_default()
            )));
        };
        self.ask(&**source, messages, sampling, (identity, prompt), reserved)
            .await
    }

    fn recorded(&self, identity: &str) -> Result<Option<Recorded>, Stopped> {
        let Some(record) = &self.record else {
            return Ok(None);
        };
        record.get(identity).map_err(|error| {
            let path = record.path().display();
            Stopped::unavailable(format!("{path}: {error}"))
        })
    }

    async fn ask(
        &self,
        source: &dyn Source,
        messages: &[ChatMessage],
        sampling: Sampling,
        (identity, prompt): (String, u64),
        mut reserved: Vec<Reserved>,
    ) -> GateAnswer<Completion> {
        let asked = Instant::now();
        for one in &mut reserved {
            one.sent(Spent {
                answers: 1,
                prompt_tokens: prompt,
                ..Spent::default()
            });
        }
        let answer = match source.answer(messages, sampling).await {
            Ok(answer) => answer,
            Err(error) => {
                self.count(|counts| counts.unanswered += 1);
                reserved.into_iter().for_each(Reserved::release);
                tracing::warn!(model = self.name, %error, "a model gave no answer");
                return match error {
                    SourceError::Question(what) => Ok(Err(Error::InvalidArguments(what))),
                    SourceError::Unavailable(what) => {
                        let what = format!("model `{}`: {what}", self.name);
                        Err(Stopped::unavailable(what))
                    }
                };
            }
        };
        let seconds = asked.elapsed().as_secs_f64();
        let usage = answer.usage.unwrap_or_else(|| Usage {
            prompt_tokens: prompt,
            completion_tokens: tokens_of(&answer.text),
        });
        let spent = spent(usage, seconds);
        settle(reserved, &spent);
        if let Some(record) = &self.record {
            let question = (messages, sampling);
            record
                .put(&identity, &answer, usage, seconds, question)
                .map_err(|error| {
                    let path = record.path().display();
                    Stopped::unavailable(format!(
                        "the answer cannot be recorded in {path}: {error}"
                    ))
                })?;
        }
        Ok(Ok(Completion {
            usage: Some(usage),
            ..answer
        }))
    }
}

impl LanguageModel for Model {
    fn max_tokens(&self) -> u32 {
        self.source.as_ref().map_or(0, |source| source.max_tokens())
    }

    fn context_tokens(&self) -> u32 {
        self.source
            .as_ref()
            .map_or(0, |source| source.context_tokens())
    }

    fn ask<'a>(
        &'a self,
        messages: &'a [ChatMessage],
        sampling: Sampling,
        asker: &'a Nesting,
    ) -> BoxFuture<'a, GateAnswer<Completion>> {
        Box::pin(self.answer(messages, sampling, asker))
    }
}

/// The hash of a question. A record is read by whoever has none of the model's settings, so they are not part of it.
fn identity(messages: &[ChatMessage], sampling: Sampling) -> String {
    let all = json!([messages, sampling]).to_string();
    blake3::hash(all.as_bytes()).to_hex()[..32].to_owned()
}

fn settle(reserved: Vec<Reserved>, spent: &Spent) {
    for one in reserved {
        one.settle(spent);
    }
}

fn spent(usage: Usage, seconds: f64) -> Spent {
    Spent {
        answers: 1,
        prompt_tokens: usage.prompt_tokens,
        answer_tokens: usage.completion_tokens,
        seconds,
    }
}

/// The budget of so many trajectories.
fn times(budget: Budget, count: u64) -> Budget {
    let times = |one: Option<u64>| one.map(|one| one.saturating_mul(count));
    Budget {
        questions: times(budget.questions),
        tokens: times(budget.tokens),
        time_ms: times(budget.time_ms),
    }
}
