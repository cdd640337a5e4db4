//! Running a plugin natively, in the author's own tests.
//!
//! Data, logs and calls are per thread, and each test has its own thread.

mod environment;
mod scenarios;

pub use environment::{Session, init_environment, open};
pub use scenarios::check_scenarios;

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::data::Entry;
#[cfg(not(target_family = "wasm"))]
use crate::execute::{Compiled, Exception};
use crate::execute::{Program, Report};
use crate::http::{Request, Response};
use crate::log::Level;
use crate::tools::{Request as ToolRequest, Response as ToolResponse};
use crate::{
    CallContext, CallResult, Content, Ended, Error, Event, Finish, Grading, MalformedCall, Message,
    ModelTurn, Observation, RewardPlugin, Role, Score, Task, ToolCall, ToolPlugin, Trajectory,
};

type Slots = BTreeMap<String, BTreeMap<String, Vec<u8>>>;

thread_local! {
    static DATA: RefCell<Slots> = const { RefCell::new(Slots::new()) };
    static LOGGED: RefCell<Vec<(Level, String)>> = const { RefCell::new(Vec::new()) };
    static NETWORK: RefCell<Option<Network>> = const { RefCell::new(None) };
    static INTERPRETER: RefCell<Option<Interpreter>> = const { RefCell::new(None) };
    static TOOLS: RefCell<Option<Tools>> = const { RefCell::new(None) };
}

type Interpreter = Box<dyn FnMut(&Program) -> Result<Report, Error>>;
type Network = Box<dyn FnMut(&Request) -> Result<Response, Error>>;
type Tools = Box<dyn FnMut(&ToolRequest) -> Result<ToolResponse, Error>>;

/// Answers for other tools in this test, as those that the operator opens would.
pub fn invoke_with(tools: impl FnMut(&ToolRequest) -> Result<ToolResponse, Error> + 'static) {
    TOOLS.set(Some(Box::new(tools)));
}

#[cfg(not(target_family = "wasm"))]
pub(crate) fn invoke(request: &ToolRequest) -> Result<ToolResponse, Error> {
    TOOLS.with_borrow_mut(|tools| match tools {
        Some(tools) => tools(request),
        None => Err(Error::Denied(
            "no tool is open in this test; see `testing::invoke_with`".to_owned(),
        )),
    })
}

/// The definitions of other tools: none, because a test has only their answers.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn tools() -> Vec<crate::ToolDefinition> {
    Vec::new()
}

/// Sets the answers of the interpreters in this test. [`execute::compile`](crate::execute::compile) returns the
/// source itself there, so the answering function finds it among the program's modules.
pub fn execute_with(interpreter: impl FnMut(&Program) -> Result<Report, Error> + 'static) {
    INTERPRETER.set(Some(Box::new(interpreter)));
}

#[cfg(not(target_family = "wasm"))]
fn no_interpreter() -> Error {
    Error::Denied("no interpreter is open in this test; see `testing::execute_with`".to_owned())
}

#[cfg(not(target_family = "wasm"))]
pub(crate) fn execute(program: &Program) -> Result<Report, Error> {
    INTERPRETER.with_borrow_mut(|interpreter| match interpreter {
        Some(interpreter) => interpreter(program),
        None => Err(no_interpreter()),
    })
}

#[cfg(not(target_family = "wasm"))]
pub(crate) fn compile(name: &str, source: &str) -> Result<Result<Compiled, Exception>, Error> {
    INTERPRETER.with_borrow(|interpreter| match interpreter {
        Some(_) => Ok(Ok(Compiled {
            name: name.to_owned(),
            data: source.as_bytes().to_vec(),
        })),
        None => Err(no_interpreter()),
    })
}

/// Sets the answers of the network in this test, in place of the hosts that the operator opens.
pub fn answer_with(network: impl FnMut(&Request) -> Result<Response, Error> + 'static) {
    NETWORK.set(Some(Box::new(network)));
}

#[cfg(not(target_family = "wasm"))]
pub(crate) fn answer(request: &Request) -> Result<Response, Error> {
    NETWORK.with_borrow_mut(|network| match network {
        Some(network) => network(request),
        None => Err(Error::Denied(
            "no host is open in this test; see `testing::answer_with`".to_owned(),
        )),
    })
}

/// Binds a file to a slot for this test, as an operator would in the configuration.
pub fn bind(slot: &str, path: &str, bytes: impl Into<Vec<u8>>) {
    DATA.with_borrow_mut(|slots| {
        slots
            .entry(slot.to_owned())
            .or_default()
            .insert(path.to_owned(), bytes.into())
    });
}

/// Removes and returns the lines that were logged in this test.
pub fn logged() -> Vec<(Level, String)> {
    LOGGED.with_borrow_mut(std::mem::take)
}

/// Runs a tool plugin's `init` with this configuration.
pub fn init<P: ToolPlugin>(config: Value) -> Result<(), Error> {
    P::init(&config.to_string())
}

/// Calls a tool by its name with arguments, as the host would; the seed of the call is 0.
pub fn call<P: ToolPlugin>(name: &str, arguments: Value) -> Result<Observation, Error> {
    P::call(name, &arguments.to_string(), &context())
}

/// The context of the calls that [`call`] makes.
pub fn context() -> CallContext {
    CallContext {
        call_id: "test/0/0".to_owned(),
        attempt: 0,
        trajectory_id: "test".to_owned(),
        turn: 0,
        seed: 0,
        budget_ms: 1_000,
        extra: Vec::new(),
    }
}

/// The text parts of an observation, structured ones as their JSON.
pub fn text(observation: &Observation) -> String {
    let part = |content: &Content| match content {
        Content::Text(text) | Content::Structured(text) => text.clone(),
        Content::Image(blob) | Content::Audio(blob) | Content::File(blob) => {
            format!("[{}, {} bytes]", blob.media_type, blob.data.len())
        }
    };
    observation.content.iter().map(part).collect()
}

/// Runs a reward's `init` with this configuration.
pub fn init_reward<P: RewardPlugin>(config: Value) -> Result<(), Error> {
    P::init(&config.to_string())
}

/// Grades one trajectory as the host would: a group of one.
pub fn grade<P: RewardPlugin>(task: &Task, trajectory: Trajectory) -> Result<Score, Error> {
    let grading = Grading {
        split: "test".to_owned(),
        step: 0,
        steps: 0,
        seed: 0,
    };
    let mut scores = P::grade(task, &[trajectory], &grading)?;
    match (scores.pop(), scores.is_empty()) {
        (Some(score), true) => score,
        _ => Err(Error::Internal(
            "a group of one got no score, or several".to_owned(),
        )),
    }
}

impl Score {
    /// The value of a term.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.terms
            .iter()
            .find(|term| term.name == name)
            .map(|term| term.value)
    }
}

/// A task with this reference.
pub fn task(reference: Value) -> Task {
    Task {
        id: "task".to_owned(),
        source: "test".to_owned(),
        prompt: vec![Message {
            role: Role::User,
            content: vec![Content::Text("?".to_owned())],
        }],
        reference: reference.to_string(),
        extra: Vec::new(),
    }
}

/// A trajectory without events; it ends as `max-turns` until [`Trajectory::answered`].
pub fn trajectory() -> Trajectory {
    Trajectory {
        id: "test".to_owned(),
        tools: Vec::new(),
        events: Vec::new(),
        answer: None,
        finish: Finish::MaxTurns,
        final_state: None,
        verdict: None,
        extra: Vec::new(),
    }
}

fn turn(visible: &str) -> ModelTurn {
    ModelTurn {
        text: visible.to_owned(),
        reasoning: None,
        visible: visible.to_owned(),
        calls: Vec::new(),
        malformed: Vec::new(),
        tokens: 1,
    }
}

/// Builders for trajectories in tests.
impl Trajectory {
    /// Adds a turn that calls a tool, and the outcome of the call.
    #[must_use]
    pub fn called(mut self, name: &str, arguments: Value, ended: Ended) -> Self {
        let call_id = format!("test/{}/0", self.turns().count());
        let call = ToolCall {
            call_id: call_id.clone(),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        };
        self.events.push(Event::Turn(ModelTurn {
            calls: vec![call],
            ..turn("")
        }));
        let failed = ended != Ended::Ok;
        let observation = Some(Observation {
            failed,
            ..Observation::text("observed")
        });
        self.events.push(Event::Outcome(CallResult {
            call_id,
            ended,
            observation,
            step_reward: None,
        }));
        self
    }

    /// Adds a turn with a call that could not be parsed.
    #[must_use]
    pub fn malformed(mut self, text: &str, diagnostic: &str) -> Self {
        let malformed = MalformedCall {
            text: text.to_owned(),
            diagnostic: diagnostic.to_owned(),
        };
        self.events.push(Event::Turn(ModelTurn {
            malformed: vec![malformed],
            ..turn("")
        }));
        self
    }

    /// Adds a turn of text only.
    #[must_use]
    pub fn said(mut self, text: &str) -> Self {
        self.events.push(Event::Turn(turn(text)));
        self
    }

    /// Adds a last turn that gives the answer.
    #[must_use]
    pub fn answered(mut self, answer: &str) -> Self {
        self.events.push(Event::Turn(turn(answer)));
        self.answer = Some(answer.to_owned());
        self.finish = Finish::Answered;
        self
    }
}

#[cfg_attr(target_family = "wasm", allow(dead_code))]
pub(crate) fn log(level: Level, message: &str) {
    LOGGED.with_borrow_mut(|lines| lines.push((level, message.to_owned())));
}

#[cfg_attr(target_family = "wasm", allow(dead_code))]
pub(crate) fn entries(slot: &str) -> Result<Vec<Entry>, Error> {
    DATA.with_borrow(|slots| {
        let files = slots.get(slot).ok_or_else(|| unbound(slot))?;
        Ok(files
            .iter()
            .map(|(path, bytes)| Entry {
                path: path.clone(),
                size: bytes.len() as u64,
            })
            .collect())
    })
}

#[cfg_attr(target_family = "wasm", allow(dead_code))]
pub(crate) fn read(slot: &str, path: &str, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
    DATA.with_borrow(|slots| {
        let files = slots.get(slot).ok_or_else(|| unbound(slot))?;
        let bytes = files
            .get(path)
            .ok_or_else(|| Error::NotFound(format!("data `{slot}` has no file {path}")))?;
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let end = start.saturating_add(length as usize).min(bytes.len());
        Ok(bytes[start..end].to_vec())
    })
}

#[cfg_attr(target_family = "wasm", allow(dead_code))]
fn unbound(slot: &str) -> Error {
    Error::NotFound(format!("no data is bound to `{slot}`"))
}
