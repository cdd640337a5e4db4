//! Calls made from inside a call, through the gates `tools`, `execute` and `model`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rlf_dialogue::tool::{CallOutcome, NestedCall, ToolCall, ToolDefinition};
use rlf_endpoint::{ChatMessage, Completion, Ledger, Sampling};
use rlf_sandbox::{BoxFuture, Caller, Stopped};
use serde_json::Value;

use super::answer_schema::AnswerSchema;
use crate::bindings::code::{Compiled, Exception, Program, Report};
use crate::bindings::types::Error;
use crate::convert::{observation_bytes, observation_to_guest};
use crate::turn::TurnContext;

/// The tools, interpreters and models that a plugin can reach from inside a call, by the names in its grants. `rlf-tools`
/// implements it, and `rlf-agents` for a plugin that leads a trajectory.
pub trait NestedCalls: fmt::Debug + Send + Sync {
    /// The definitions of these tools, in this order.
    fn definitions(&self, names: &[String]) -> Vec<ToolDefinition>;

    /// Maximum size of a tool's arguments, in bytes. `None` if there is no such tool.
    fn arguments_bytes(&self, name: &str) -> Option<u64>;

    /// Takes note of a call that is made next. The calls of one batch are announced in their order, and then made side by
    /// side.
    fn announce(&self, call: &ToolCall) {
        let _ = call;
    }

    /// Makes a call for the guest whose call is `from`.
    fn call<'a>(
        &'a self,
        call: ToolCall,
        from: &'a Arc<Nesting>,
        caller: Caller,
    ) -> BoxFuture<'a, CallOutcome>;

    /// The interpreter of a language, among these plugins.
    fn interpreter(&self, plugins: &[String], language: &str) -> Option<Arc<dyn ProgramRunner>>;

    /// The language model of this name.
    fn model(&self, name: &str) -> Option<Arc<dyn LanguageModel>>;
}

/// A question of a plugin in texts.
#[derive(Debug, Clone, Copy)]
pub struct ModelQuestion<'a> {
    /// The conversation so far.
    pub messages: &'a [ChatMessage],
    /// The settings of the question.
    pub sampling: Sampling,
    /// The schema that the answer must fit, if the plugin names one.
    pub schema: Option<&'a AnswerSchema>,
}

/// A language model that plugins can ask. `rlf-models` implements it.
pub trait LanguageModel: fmt::Debug + Send + Sync {
    /// Maximum number of tokens of an answer. 0 if the model itself sets the limit.
    fn max_tokens(&self) -> u32;

    /// Maximum number of tokens of a question with its answer. 0 if it is not known.
    fn context_tokens(&self) -> u32;

    /// Answers a question of the call `asker`, and charges it. An answer has no more tokens than [`Self::max_tokens`], whatever
    /// the question allows. If the question has a schema, the answer's text is JSON that fits it.
    fn ask<'a>(
        &'a self,
        question: ModelQuestion<'a>,
        asker: &'a Nesting,
    ) -> BoxFuture<'a, GateAnswer<Completion>>;

    /// Answers a request in the form of OpenAI's chat completions, which is JSON text. Most models refuse it: they answer
    /// texts.
    fn chat<'a>(
        &'a self,
        request: &'a str,
        sampling: Sampling,
        asker: &'a Nesting,
    ) -> BoxFuture<'a, GateAnswer<ChatAnswer>> {
        let _ = (request, sampling, asker);
        Box::pin(async {
            Ok(Err(Error::InvalidArguments(
                "this model does not take `chat`, which is for the policy in a trajectory that the plugin leads; put the texts \
                 into `messages`"
                    .to_owned(),
            )))
        })
    }
}

/// The answer to a request in the form of OpenAI's chat completions.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatAnswer {
    /// The assistant's message in OpenAI's form.
    pub message: Value,
    /// The text of the message, and the number of tokens.
    pub completion: Completion,
}

/// The models that plugins can ask, by the operator's names.
pub type LanguageModels = BTreeMap<String, Arc<dyn LanguageModel>>;

/// An answer to a plugin, or the end of its own call after an infrastructure failure.
pub type GateAnswer<T> = Result<Result<T, Error>, Stopped>;

/// Runs programs for plugins that are granted `execute`. `rlf-interpreters` implements it.
pub trait ProgramRunner: Send + Sync {
    /// Compiles a module for programs to import. The innermost error describes the mistake in the source.
    fn compile<'a>(
        &'a self,
        name: &'a str,
        source: &'a str,
    ) -> BoxFuture<'a, GateAnswer<Result<Compiled, Exception>>>;

    /// Runs a program until it ends or the deadline passes. `label` names it in logs.
    fn run(
        &self,
        program: Program,
        label: String,
        deadline: Instant,
    ) -> BoxFuture<'_, GateAnswer<Report>>;
}

/// The means by which a call makes other calls. The sandbox receives it with the call.
pub struct Nesting {
    pub(super) calls: Arc<dyn NestedCalls>,
    pub(super) turn: TurnContext,
    call_id: String,
    /// The call that made this one.
    within: Option<Arc<Self>>,
    /// The one that the call works for.
    account: Account,
    made: AtomicU32,
    /// Number of questions to models.
    asked: AtomicU32,
    /// Interpreters that were looked up, by language.
    found: Mutex<BTreeMap<String, Arc<dyn ProgramRunner>>>,
    /// The spending of the call, and of the calls that it makes, on models.
    ledgers: Ledgers,
    /// The calls that the call made, if they are recorded.
    record: Option<Mutex<CallRecord>>,
}

/// The calls that a program made.
#[derive(Debug, Default)]
struct CallRecord {
    calls: Vec<NestedCall>,
    /// Bytes of their arguments, and of what they showed.
    bytes: usize,
}

/// Maximum number of calls of one program that are recorded. Further ones are made and not recorded.
const RECORDED_CALLS: usize = 1_000;
/// Maximum size of the arguments and observations of the recorded calls of one program, in bytes. Of further ones, the record
/// has neither.
const RECORDED_BYTES: usize = 1 << 20;

/// The account that is charged besides a call: of its trajectory, or of the group of trajectories that it grades.
#[derive(Debug, Clone)]
pub enum Account {
    /// The trajectory with this id. Its calls share what they spend.
    Trajectory(String),
    /// A group of this size. What its grading spends is kept here.
    Group {
        /// Number of trajectories.
        size: u64,
        /// By model.
        ledgers: Arc<Ledgers>,
    },
}

/// Ledgers by the names of models.
#[derive(Debug, Default)]
pub struct Ledgers(Mutex<BTreeMap<String, Ledger>>);

impl Ledgers {
    /// The ledger of a model.
    pub fn of(&self, model: &str) -> Ledger {
        let mut by_model = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        by_model.entry(model.to_owned()).or_default().clone()
    }
}

impl Nesting {
    /// Creates the context in which the call `call_id` can make other calls. The calls that it makes derive their seeds
    /// from `turn.seed`.
    pub fn new(calls: Arc<dyn NestedCalls>, turn: TurnContext, call_id: &str) -> Self {
        let account = Account::Trajectory(turn.trajectory_id.clone());
        Self {
            calls,
            turn,
            call_id: call_id.to_owned(),
            within: None,
            account,
            made: AtomicU32::new(0),
            asked: AtomicU32::new(0),
            found: Mutex::default(),
            ledgers: Ledgers::default(),
            record: None,
        }
    }

    /// Records the calls that the call makes: see [`Nesting::take_record`].
    #[must_use]
    pub fn recording(mut self) -> Self {
        self.record = Some(Mutex::default());
        self
    }

    /// True if the calls that the call makes are recorded.
    pub(super) fn is_recording(&self) -> bool {
        self.record.is_some()
    }

    /// Records a call.
    pub(super) fn note(&self, mut arguments: Value, mut outcome: CallOutcome) {
        let Some(record) = &self.record else { return };
        let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
        if record.calls.len() >= RECORDED_CALLS {
            return;
        }
        let observation = outcome.observation.as_ref();
        let shown = observation.map_or(0, |observation| {
            observation_bytes(&observation_to_guest(observation))
        });
        let bytes = shown + arguments.to_string().len();
        if record.bytes + bytes > RECORDED_BYTES {
            outcome.observation = None;
            arguments = Value::Null;
        } else {
            record.bytes += bytes;
        }
        record.calls.push(NestedCall { arguments, outcome });
    }

    /// Takes the recorded calls, in the order in which they were made.
    pub fn take_record(&self) -> Vec<NestedCall> {
        let Some(record) = &self.record else {
            return Vec::new();
        };
        let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
        let mut calls = std::mem::take(&mut record.calls);
        let number = |call: &NestedCall| {
            let (_, number) = call.outcome.call_id.rsplit_once('/')?;
            number.parse::<u32>().ok()
        };
        calls.sort_by_key(number);
        calls
    }

    /// Charges what the call spends to the call that made it, too.
    #[must_use]
    pub fn within(mut self, caller: Option<&Arc<Self>>) -> Self {
        if let Some(caller) = caller {
            self.account = caller.account.clone();
            self.within = Some(Arc::clone(caller));
        }
        self
    }

    /// Says that the call grades a group of this size. It then has an account of its own.
    #[must_use]
    pub fn for_group(mut self, size: usize) -> Self {
        self.account = Account::Group {
            size: size as u64,
            ledgers: Arc::default(),
        };
        self
    }

    /// The place in a trajectory where the call is made.
    pub fn turn(&self) -> &TurnContext {
        &self.turn
    }

    /// The one that the call works for.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The ledgers of a model: of this call, of the call that made it, and so on outwards.
    pub fn ledgers(&self, model: &str) -> Vec<Ledger> {
        let mut ledgers = Vec::new();
        let mut call = Some(self);
        while let Some(nesting) = call {
            ledgers.push(nesting.ledgers.of(model));
            call = nesting.within.as_deref();
        }
        ledgers
    }

    /// The interpreter for a language, among these plugins.
    pub(super) fn interpreter(
        &self,
        plugins: &[String],
        language: &str,
    ) -> Option<Arc<dyn ProgramRunner>> {
        // One call always gets the same interpreter, because another one may not be able to read the compiled modules.
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interpreter) = found.get(language) {
            return Some(Arc::clone(interpreter));
        }
        let interpreter = self.calls.interpreter(plugins, language)?;
        found.insert(language.to_owned(), Arc::clone(&interpreter));
        Some(interpreter)
    }

    /// Counts one more call or program, and returns its id. Fails if there are already `max` of them.
    pub(super) fn count(&self, max: u32) -> Result<String, Error> {
        let number = counted(&self.made, max).ok_or_else(|| {
            Error::Exhausted(format!(
                "a call makes {max} others at the most (nested_calls)"
            ))
        })?;
        Ok(format!("{}/{number}", self.call_id))
    }

    /// Counts one more question to a model, and returns its id. Fails if there are already `max` of them.
    pub(super) fn count_question(&self, max: u32) -> Result<String, Error> {
        let number = counted(&self.asked, max).ok_or_else(|| {
            Error::Exhausted(format!(
                "a call asks {max} questions at the most (nested_calls)"
            ))
        })?;
        Ok(format!("{}/question-{number}", self.call_id))
    }
}

/// Counts one more, and returns its number from 0. None if there are already `max`.
fn counted(counter: &AtomicU32, max: u32) -> Option<u32> {
    let number = counter.fetch_add(1, Ordering::Relaxed);
    if number < max {
        return Some(number);
    }
    counter.store(max, Ordering::Relaxed);
    None
}

impl fmt::Debug for Nesting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nesting")
            .field("call_id", &self.call_id)
            .finish_non_exhaustive()
    }
}
