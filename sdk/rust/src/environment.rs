//! Environments: they have a state, and a model acts in them through tools.
//!
//! A session is a value of a type that implements [`Environment`]. The host makes one per trajectory with `open`,
//! passes it the model's actions with `call` and `say`, and grades it with `verify`.
//!
//! Three promises let the host move, repeat and check a session.
//! [`testing::check_scenarios`](crate::testing::check_scenarios) tests them on the environment's own scenarios:
//!
//! - the seed given to `open` decides everything random, so the same calls give the same observations; use a
//!   generator whose position is part of the snapshot,
//! - a session rebuilt from its snapshot behaves exactly like the original,
//! - `state`, `snapshot` and `verify` change nothing.
//!
//! After a trap or a timeout the host rebuilds the session as it was before the call. An `Err` from `call` also
//! undoes the call's changes. The model sees only a short message about it, if any. Text that the model should read
//! and react to belongs in a failed observation, [`Step::failed`].
//!
//! ```
//! use rlf_plugin::environment::{self, Environment, Start, Step};
//! use rlf_plugin::serde_json::{self, Map, Value, json};
//! use rlf_plugin::{CallContext, Error, Hints, Verdict, internal, plugin};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Counter {
//!     count: i64,
//! }
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     /// How much to add
//!     by: i64,
//! }
//!
//! impl Environment for Counter {
//!     type Shared = ();
//!
//!     fn open((): &'static (), task: Value, _seed: u64) -> Result<(Self, Start), Error> {
//!         let count = task["start"].as_i64().unwrap_or_default();
//!         let tools = vec![environment::tool::<Add>("add", "Adds to the count.", Hints::empty())?];
//!         let messages = Vec::new();
//!         Ok((Self { count }, Start { messages, tools }))
//!     }
//!
//!     fn restore((): &'static (), snapshot: &[u8]) -> Result<Self, Error> {
//!         serde_json::from_slice(snapshot).map_err(internal)
//!     }
//!
//!     fn call(&mut self, name: &str, arguments: Map<String, Value>, _: &CallContext) -> Result<Step, Error> {
//!         match name {
//!             "add" => {
//!                 let Add { by } = environment::arguments(arguments)?;
//!                 let Some(count) = self.count.checked_add(by) else {
//!                     return Ok(Step::failed("the count would be too large; add less"));
//!                 };
//!                 self.count = count;
//!                 Ok(Step::observed(count))
//!             }
//!             _ => Err(environment::no_tool(name)),
//!         }
//!     }
//!
//!     fn state(&self) -> Value {
//!         json!({ "count": self.count })
//!     }
//!
//!     fn snapshot(&self) -> Result<Vec<u8>, Error> {
//!         serde_json::to_vec(self).map_err(internal)
//!     }
//!
//!     fn verify(&self, _answer: Option<&str>, reference: &Value) -> Result<Verdict, Error> {
//!         let success = *reference == self.state();
//!         let reason = format!("the count is {}", self.count);
//!         Ok(Verdict { success, score: f64::from(u8::from(success)), reason })
//!     }
//! }
//!
//! plugin!(environment: Counter);
//!
//! # fn main() {
//! use rlf_plugin::testing;
//!
//! let (mut counter, start) = testing::open::<Plugin>(json!({ "start": 1 }), 0).unwrap();
//! assert_eq!(start.tools[0].name, "add");
//! counter.call("add", json!({ "by": 2 })).unwrap();
//! assert!(counter.verify(None, &json!({ "count": 3 })).unwrap().success);
//! # }
//! ```

mod canonical;
mod step;

pub(crate) use canonical::canonical;

pub use crate::bindings::environment::exports::rlf::plugin::environment::{Start, Step};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{CallContext, Error, Hints, ToolDefinition, Verdict};

/// One session of an environment.
pub trait Environment: Sized + 'static {
    /// The value that `init` made; all sessions share it and cannot change it. `()` for a plugin without `init`.
    type Shared: 'static;

    /// Starts a task. `seed` decides everything random. The messages of the start precede the model's first turn.
    fn open(shared: &'static Self::Shared, task: Value, seed: u64) -> Result<(Self, Start), Error>;

    /// Rebuilds a session from a value that `snapshot` returned.
    fn restore(shared: &'static Self::Shared, snapshot: &[u8]) -> Result<Self, Error>;

    /// Handles a tool call by the model. An `Err` undoes its changes.
    fn call(
        &mut self,
        name: &str,
        arguments: Map<String, Value>,
        context: &CallContext,
    ) -> Result<Step, Error>;

    /// Handles a text by the model without a tool call. By default it ends the episode.
    fn say(&mut self, text: &str, context: &CallContext) -> Result<Step, Error> {
        let _ = (text, context);
        Ok(Step::terminated())
    }

    /// Canonical state: equal states give equal values. The order of keys does not matter, but that of lists does:
    /// sort a list whose order means nothing.
    fn state(&self) -> Value;

    /// All that `restore` needs besides the shared value: state, task, position of the random generator.
    fn snapshot(&self) -> Result<Vec<u8>, Error>;

    /// Grades the current state against the task's reference, which no session sees earlier. The score is in `0..=1`.
    fn verify(&self, answer: Option<&str>, reference: &Value) -> Result<Verdict, Error>;

    /// Short episodes that test the environment.
    fn scenarios(shared: &'static Self::Shared) -> Vec<Scenario> {
        let _ = shared;
        Vec::new()
    }
}

/// A short episode with a known end.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name in reports.
    pub id: String,
    /// The task that the session is opened with.
    pub task: Value,
    /// The seed that the session is opened with.
    pub seed: u64,
    /// Names and arguments of the calls, in order.
    pub calls: Vec<(String, Value)>,
    /// The state after the calls.
    pub expect: Value,
}

/// The definition of a tool whose arguments are this struct, as `#[tool]` makes it. A tool without arguments uses
/// [`NoArguments`](crate::tool::NoArguments). A tool that shows the state is not [`Hints::DETERMINISTIC`]: the same
/// call may show another result later.
pub fn tool<Args: JsonSchema>(
    name: &str,
    description: &str,
    hints: Hints,
) -> Result<ToolDefinition, Error> {
    crate::tool::define::<Args>(name, description, hints)
}

/// Reads a call's arguments; the error is `invalid-arguments` if they do not fit.
pub fn arguments<Args: DeserializeOwned>(arguments: Map<String, Value>) -> Result<Args, Error> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Error::InvalidArguments(error.to_string()))
}

/// The error for a call of a tool that the session does not offer.
pub fn no_tool(name: &str) -> Error {
    Error::NotFound(format!("no tool named `{name}`"))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Add {
        /// How much
        by: u8,
    }

    #[test]
    fn a_definition_has_the_schema_that_the_attribute_makes() {
        let made = tool::<Add>("add", "Adds.", Hints::IDEMPOTENT).unwrap();
        assert_eq!(
            (&*made.name, made.hints, &*made.input_schema),
            (
                "add",
                Hints::IDEMPOTENT,
                r#"{"type":"object","properties":{"by":{"type":"integer","minimum":0,"maximum":255,"description":"How much"}},"required":["by"]}"#
            )
        );
        assert!(tool::<u8>("add", "Adds.", Hints::empty()).is_err());
    }

    #[test]
    fn arguments_that_do_not_fit_are_the_callers_mistake() {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        assert_eq!(arguments(object(json!({ "by": 3 }))), Ok(Add { by: 3 }));
        let error = arguments::<Add>(object(json!({ "by": "three" }))).unwrap_err();
        assert!(matches!(&error, Error::InvalidArguments(text) if text.contains("three")));
    }
}
