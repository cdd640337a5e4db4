//! What a call has to know of itself to make others, or to run programs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::bindings::types::Error;
use crate::interpreter::Interpreter;
use crate::tool_manager::{ToolManager, TurnContext};

/// What a call has to know of itself to make others. Handed to the sandbox with the call.
pub(crate) struct Nesting {
    pub(super) manager: ToolManager,
    pub(super) turn: TurnContext,
    call_id: String,
    made: AtomicU32,
    /// Interpreters that were asked for, by language.
    found: Mutex<BTreeMap<String, Interpreter>>,
}

impl Nesting {
    /// For a call with this id, whose own calls derive their seeds from `turn.seed`.
    pub(crate) fn new(manager: &ToolManager, turn: TurnContext, call_id: &str) -> Arc<Self> {
        Arc::new(Self {
            manager: manager.clone(),
            turn,
            call_id: call_id.to_owned(),
            made: AtomicU32::new(0),
            found: Mutex::default(),
        })
    }

    /// The interpreter of a language, among these plugins.
    pub(super) fn interpreter(&self, plugins: &[String], language: &str) -> Option<Interpreter> {
        // The same from the first asking to the last: what one compiled, another may not read.
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interpreter) = found.get(language) {
            return Some(interpreter.clone());
        }
        let interpreters = self.manager.interpreters();
        let interpreter = interpreters.of_plugins(plugins, language)?.pinned();
        found.insert(language.to_owned(), interpreter.clone());
        Some(interpreter)
    }

    /// Counts one more call or program, of `most`: its id, or the answer where there were so many already.
    pub(super) fn count(&self, most: u32) -> Result<String, Error> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        if number < most {
            return Ok(format!("{}/{number}", self.call_id));
        }
        self.made.store(most, Ordering::Relaxed);
        Err(Error::Exhausted(format!(
            "a call makes {most} others at the most (nested_calls)"
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
