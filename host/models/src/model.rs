//! One model, and a question to it: its budgets, its recorded answer, or else a new one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rlf_endpoint::{
    Budget, ChatMessage, Completion, Ledger, Reserved, Sampling, Spent, Usage, tokens_of,
};
use rlf_plugins::bindings::types::Error;
use rlf_plugins::gates::{Account, GateAnswer, ModelQuestion};
use rlf_sandbox::Stopped;
use serde_json::{Value, json};

use crate::config::{ModelConfig, UNLIMITED_ANSWER};
use crate::record::{Outcome, Record};
use crate::source::{Source, SourceError};

/// Number of trajectories after which the ledgers of others are forgotten that were not used since as many before.
const MAX_TRAJECTORIES: usize = 50_000;
/// Tokens that a chat template adds to a message, as an estimate.
const TOKENS_OF_A_MESSAGE: u64 = 8;
/// The name of the budget of a run.
const RUN: &str = "run";

/// Numbers of questions that ended in a special way.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    /// Questions whose end was recorded before.
    pub(crate) recorded: u64,
    /// Questions that the model did not answer.
    pub(crate) unanswered: u64,
    /// Questions that a budget refused.
    pub(crate) over_budget: u64,
    /// Answers that do not fit the schema of their question.
    pub(crate) unfit: u64,
}

/// The accounts that a question is charged to.
pub(crate) struct Payer<'a> {
    /// The trajectory or the group that the question is for.
    pub(crate) account: &'a Account,
    /// The ledgers of the calls around the question.
    pub(crate) calls: Vec<Ledger>,
}

/// A model that can be asked, with its budgets and its record.
pub struct Model {
    name: String,
    config: ModelConfig,
    /// None if only recorded answers are given.
    source: Option<Arc<dyn Source>>,
    record: Option<Record>,
    run: Ledger,
    trajectories: Mutex<Trajectories>,
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

    /// The tokens and time spent so far.
    pub(crate) fn spent(&self) -> Spent {
        self.run.spent()
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn config(&self) -> &ModelConfig {
        &self.config
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The source of answers. None if only recorded answers are given.
    pub(crate) fn source(&self) -> Option<&dyn Source> {
        self.source.as_deref()
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Counts)) {
        count(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The ledger of a trajectory or a group, and its size.
    fn account(&self, account: &Account) -> (Ledger, u64) {
        match account {
            Account::Group { size, ledgers } => (ledgers.of(&self.name), *size),
            Account::Trajectory(name) => {
                let trajectories = self.trajectories.lock();
                let mut trajectories = trajectories.unwrap_or_else(PoisonError::into_inner);
                (trajectories.ledger(name), 1)
            }
        }
    }

    /// All ledgers that a question counts in: of the call and the calls around it, of the trajectory, of the run. Each with
    /// its budget.
    fn ledgers(&self, payer: &Payer<'_>) -> Vec<(Ledger, &'static str, Budget)> {
        let [call, trajectory, run] = self.config.budgets();
        let (account, size) = self.account(payer.account);
        let calls = payer.calls.iter().cloned();
        let call = times(call, size);
        let calls = calls.map(|ledger| (ledger, "call", call));
        let others = [
            (account, "trajectory", times(trajectory, size)),
            (self.run.clone(), RUN, run),
        ];
        calls.chain(others).collect()
    }

    /// Reserves a question in every ledger. If a budget is spent, returns its name and the reason.
    fn reserve(
        &self,
        tokens: u64,
        payer: &Payer<'_>,
    ) -> Result<Vec<Reserved>, (&'static str, String)> {
        let mut reserved = Vec::new();
        for (ledger, scope, budget) in self.ledgers(payer) {
            let one = ledger.reserve(&budget, tokens).map_err(|error| {
                self.count(|counts| counts.over_budget += 1);
                let name = &self.name;
                let what =
                    format!("the budget of a {scope} is spent (models.{name}.{scope}): {error}");
                (scope, what)
            })?;
            reserved.push(one);
        }
        Ok(reserved)
    }

    /// Answers a question that no plugin asks, and charges it to this trajectory. It counts as one call.
    pub async fn ask_for(
        &self,
        trajectory: &str,
        messages: &[ChatMessage],
        sampling: Sampling,
    ) -> GateAnswer<Completion> {
        let question = ModelQuestion {
            messages,
            sampling,
            schema: None,
        };
        let payer = Payer {
            account: &Account::Trajectory(trajectory.to_owned()),
            calls: vec![Ledger::default()],
        };
        self.answer(question, &payer).await
    }

    /// Answers a question once. The answer may not fit the question's schema.
    pub(crate) async fn answer(
        &self,
        question: ModelQuestion<'_>,
        payer: &Payer<'_>,
    ) -> GateAnswer<Completion> {
        let ModelQuestion {
            messages, sampling, ..
        } = question;
        let identity = self.identity(question);
        // A refusal may be mended meanwhile, so only a replay repeats it.
        let recorded = self
            .recorded(&identity)?
            .filter(|outcome| self.source.is_none() || matches!(outcome, Outcome::Answered { .. }));
        if let Some(outcome) = recorded {
            self.count(|counts| counts.recorded += 1);
            if let Outcome::Answered { usage, seconds, .. } = &outcome {
                let spent = spent(*usage, *seconds);
                for (ledger, _, _) in self.ledgers(payer) {
                    ledger.add(&spent);
                }
            }
            return Ok(given(outcome));
        }
        let Some(source) = self.source() else {
            self.count(|counts| counts.unanswered += 1);
            return Err(Stopped::unavailable(self.without_record()));
        };
        let most = source.max_tokens();
        let sampling = Sampling {
            max_tokens: match sampling.max_tokens {
                Some(asked) if most > 0 => Some(asked.min(most)),
                asked => asked,
            },
            ..sampling
        };
        let longest = match sampling.max_tokens.unwrap_or(most) {
            0 => UNLIMITED_ANSWER,
            longest => u64::from(longest),
        };
        let prompt = prompt_tokens(messages);
        let most = prompt + longest;
        let outcome = match self.reserve(most, payer) {
            Ok(reserved) => {
                let limited = ModelQuestion {
                    sampling,
                    ..question
                };
                let asked = self.ask(source, limited, (most, reserved));
                asked.await?
            }
            // What others spent must not decide what a trajectory gets.
            Err((RUN, what)) => return Err(Stopped::unavailable(what)),
            Err((_, what)) => Outcome::OverBudget(what),
        };
        Ok(given(self.keep(&identity, outcome, question)?))
    }

    fn without_record(&self) -> String {
        let record = self.record.as_ref().map(|record| record.path().display());
        format!(
            "model `{}` only replays, and {} has no answer to this question; was it recorded with the same seed, plugins and \
             tasks?",
            self.name,
            record.map_or_else(String::new, |path| path.to_string())
        )
    }

    /// The identity of a question to what answers at present.
    fn identity(&self, question: ModelQuestion<'_>) -> String {
        let version = self.source().and_then(Source::version);
        identity(question, version.as_deref())
    }

    /// True if the end of a question is recorded.
    pub(crate) fn has_recorded(&self, question: ModelQuestion<'_>) -> bool {
        let record = self.record.as_ref();
        record.is_some_and(|record| record.has(&self.identity(question)))
    }

    fn recorded(&self, identity: &str) -> Result<Option<Outcome>, Stopped> {
        let Some(record) = &self.record else {
            return Ok(None);
        };
        record.get(identity).map_err(|error| {
            let path = record.path().display();
            Stopped::unavailable(format!("{path}: {error}"))
        })
    }

    fn keep(
        &self,
        identity: &str,
        outcome: Outcome,
        question: ModelQuestion<'_>,
    ) -> Result<Outcome, Stopped> {
        let Some(record) = &self.record else {
            return Ok(outcome);
        };
        record.put(identity, outcome, question).map_err(|error| {
            let path = record.path().display();
            Stopped::unavailable(format!("the answer cannot be recorded in {path}: {error}"))
        })
    }

    /// Asks the model.
    async fn ask(
        &self,
        source: &dyn Source,
        question: ModelQuestion<'_>,
        (most, mut reserved): (u64, Vec<Reserved>),
    ) -> Result<Outcome, Stopped> {
        let asked = Instant::now();
        let prompt_tokens = prompt_tokens(question.messages);
        // A question counts, even if there is no answer or nobody waits for it.
        for one in &mut reserved {
            one.sent(prompt_tokens);
        }
        let answer = match source.answer(question).await {
            Ok(answer) => answer,
            Err(SourceError::Question(what)) => return Ok(Outcome::Refused(what)),
            Err(SourceError::Unavailable(what)) => {
                self.count(|counts| counts.unanswered += 1);
                let what = format!("model `{}`: {what}", self.name);
                return Err(Stopped::unavailable(what));
            }
        };
        let seconds = asked.elapsed().as_secs_f64();
        let estimate = Usage {
            prompt_tokens,
            completion_tokens: tokens_of(&answer.text),
        };
        let usage = answer
            .usage
            .filter(|usage| is_likely(*usage, most))
            .unwrap_or(estimate);
        let spent = spent(usage, seconds);
        for one in reserved {
            one.settle(&spent);
        }
        Ok(Outcome::Answered {
            text: answer.text,
            cut_short: answer.cut_short,
            usage,
            seconds,
        })
    }
}

/// Ledgers by trajectory. When there are too many, those that were not used for the longest time go.
#[derive(Debug, Default)]
struct Trajectories {
    used: HashMap<String, Ledger>,
    before: HashMap<String, Ledger>,
}

impl Trajectories {
    fn ledger(&mut self, name: &str) -> Ledger {
        if let Some(ledger) = self.used.get(name) {
            return ledger.clone();
        }
        if self.used.len() >= MAX_TRAJECTORIES {
            self.before = std::mem::take(&mut self.used);
        }
        let ledger = self.before.remove(name).unwrap_or_default();
        self.used.insert(name.to_owned(), ledger.clone());
        ledger
    }
}

/// Turns the end of a question into the plugin's result.
fn given(outcome: Outcome) -> Result<Completion, Error> {
    match outcome {
        Outcome::Answered {
            text,
            cut_short,
            usage,
            ..
        } => Ok(Completion {
            text,
            cut_short,
            usage: Some(usage),
            ..Completion::default()
        }),
        Outcome::Refused(what) => Err(Error::InvalidArguments(what)),
        Outcome::OverBudget(what) => Err(Error::Exhausted(what)),
    }
}

/// An estimate of the tokens of messages, with those of the chat template.
fn prompt_tokens(messages: &[ChatMessage]) -> u64 {
    let tokens = messages
        .iter()
        .map(|message| tokens_of(&message.content) + TOKENS_OF_A_MESSAGE);
    tokens.sum()
}

/// True if a count of tokens can be right. Such a question has tokens, and not many times what was reserved for it.
fn is_likely(usage: Usage, reserved: u64) -> bool {
    let tokens = usage.prompt_tokens.saturating_add(usage.completion_tokens);
    (1..=reserved.saturating_mul(8)).contains(&tokens)
}

/// The hash of a question to a version of the model. The settings of the model are not part of it, because a replay does
/// not have them.
fn identity(question: ModelQuestion<'_>, version: Option<&str>) -> String {
    let mut all = vec![json!(question.messages), json!(question.sampling)];
    all.extend(version.map(Value::from));
    // The schema is an object and the version a text, so neither can pass for the other.
    all.extend(question.schema.map(|schema| schema.value().clone()));
    let all = Value::Array(all).to_string();
    blake3::hash(all.as_bytes()).to_hex()[..32].to_owned()
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
