//! A stand-in for the host in native tests: bound data, the log, and the answers of tools, interpreters, models
//! and hosts.
//!
//! Everything here is per thread, and each test has its own thread. [`testing`](crate::testing) sets it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::Error;
#[cfg(not(target_family = "wasm"))]
use crate::bindings::execute::rlf::plugin::code::{Compiled, Exception};
use crate::bindings::execute::rlf::plugin::code::{Program, Report};
use crate::bindings::http::rlf::plugin::http::{Request, Response};
use crate::bindings::lifecycle::rlf::plugin::data::Entry;
use crate::bindings::lifecycle::rlf::plugin::log::Level;
use crate::bindings::model::rlf::plugin::model::{Answer, Question};
use crate::bindings::tools::rlf::plugin::tools::{
    Request as ToolRequest, Response as ToolResponse,
};

type Slots = BTreeMap<String, BTreeMap<String, Vec<u8>>>;

thread_local! {
    static DATA: RefCell<Slots> = const { RefCell::new(Slots::new()) };
    static LOGGED: RefCell<Vec<(Level, String)>> = const { RefCell::new(Vec::new()) };
    static NETWORK: RefCell<Option<Network>> = const { RefCell::new(None) };
    static INTERPRETER: RefCell<Option<Interpreter>> = const { RefCell::new(None) };
    static MODELS: RefCell<Option<Models>> = const { RefCell::new(None) };
    static TOOLS: RefCell<Option<Tools>> = const { RefCell::new(None) };
}

type Interpreter = Box<dyn FnMut(&Program) -> Result<Report, Error>>;
type Network = Box<dyn FnMut(&Request) -> Result<Response, Error>>;
type Models = Box<dyn FnMut(&Question) -> Result<Answer, Error>>;
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

/// Sets the answers of language models in this test.
pub fn answer_questions_with(models: impl FnMut(&Question) -> Result<Answer, Error> + 'static) {
    MODELS.set(Some(Box::new(models)));
}

#[cfg(not(target_family = "wasm"))]
pub(crate) fn ask(question: &Question) -> Result<Answer, Error> {
    MODELS.with_borrow_mut(|models| match models {
        Some(models) => models(question),
        None => Err(Error::Denied(
            "no model is open in this test; see `testing::answer_questions_with`".to_owned(),
        )),
    })
}

/// The descriptions of models: none, because a test has only their answers.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn models() -> Vec<crate::model::Description> {
    Vec::new()
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
