//! Calls made from inside a call, through the gates `tools` and `execute`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rlf_dialogue::tool::{CallOutcome, ToolCall, ToolDefinition};
use rlf_sandbox::{BoxFuture, Caller, Stopped};

use crate::bindings::code::{Compiled, Exception, Program, Report};
use crate::bindings::types::Error;
use crate::turn::TurnContext;

/// The tools and interpreters that a plugin can reach from inside a call, by the names in its grants. `rlf-tools`
/// implements it.
pub trait NestedCalls: fmt::Debug + Send + Sync {
    /// The definitions of these tools, in this order.
    fn definitions(&self, names: &[String]) -> Vec<ToolDefinition>;

    /// Maximum size of a tool's arguments, in bytes. `None` if there is no such tool.
    fn arguments_bytes(&self, name: &str) -> Option<u64>;

    /// Makes a call for a guest.
    fn call<'a>(
        &'a self,
        call: ToolCall,
        turn: &'a TurnContext,
        caller: Caller,
    ) -> BoxFuture<'a, CallOutcome>;

    /// The interpreter of a language, among these plugins.
    fn interpreter(&self, plugins: &[String], language: &str) -> Option<Arc<dyn ProgramRunner>>;
}

/// An answer to a plugin, or the end of its own call after an infrastructure failure.
pub type ProgramAnswer<T> = Result<Result<T, Error>, Stopped>;

/// Runs programs for plugins that are granted `execute`. `rlf-interpreters` implements it.
pub trait ProgramRunner: Send + Sync {
    /// Compiles a module for programs to import. The innermost error describes the mistake in the source.
    fn compile<'a>(
        &'a self,
        name: &'a str,
        source: &'a str,
    ) -> BoxFuture<'a, ProgramAnswer<Result<Compiled, Exception>>>;

    /// Runs a program until it ends or the deadline passes. `label` names it in logs.
    fn run(
        &self,
        program: Program,
        label: String,
        deadline: Instant,
    ) -> BoxFuture<'_, ProgramAnswer<Report>>;
}

/// The means by which a call makes other calls. The sandbox receives it with the call.
pub struct Nesting {
    pub(super) calls: Arc<dyn NestedCalls>,
    pub(super) turn: TurnContext,
    call_id: String,
    made: AtomicU32,
    /// Interpreters that were looked up, by language.
    found: Mutex<BTreeMap<String, Arc<dyn ProgramRunner>>>,
}

impl Nesting {
    /// Creates the context in which the call `call_id` can make other calls. The calls that it makes derive their seeds
    /// from `turn.seed`.
    pub fn new(calls: Arc<dyn NestedCalls>, turn: TurnContext, call_id: &str) -> Arc<Self> {
        Arc::new(Self {
            calls,
            turn,
            call_id: call_id.to_owned(),
            made: AtomicU32::new(0),
            found: Mutex::default(),
        })
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
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        if number < max {
            return Ok(format!("{}/{number}", self.call_id));
        }
        self.made.store(max, Ordering::Relaxed);
        Err(Error::Exhausted(format!(
            "a call makes {max} others at the most (nested_calls)"
        )))
    }
}

impl fmt::Debug for Nesting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nesting")
            .field("call_id", &self.call_id)
            .finish_non_exhaustive()
    }
}
