//! Reading configuration and data once, before any call.
//!
//! An `init` function takes the operator's `[config]` table as any `Deserialize` type (or nothing)
//! and returns a state, which tools and rewards borrow as a `&State` parameter:
//!
//! ```
//! use rlf_plugin::{data, plugin, tool};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Config {
//!     greeting: String,
//! }
//!
//! struct Poem(String);
//!
//! fn init(config: Config) -> Result<Poem, String> {
//!     Ok(Poem(format!("{}, world", config.greeting)))
//! }
//!
//! /// Recites.
//! #[tool(pure)]
//! fn recite(poem: &Poem) -> String {
//!     poem.0.clone()
//! }
//!
//! plugin!(init: init, tools: [recite]);
//!
//! # fn main() {
//! use rlf_plugin::testing;
//! use serde_json::json;
//!
//! testing::init::<Plugin>(json!({ "greeting": "Hello" })).unwrap();
//! let said = testing::call::<Plugin>("recite", json!({})).unwrap();
//! assert_eq!(testing::text(&said), "Hello, world");
//! # }
//! ```
//!
//! The host takes a snapshot of the memory that `init` leaves and starts every call from it: build indexes here. A
//! call cannot change the state for a later one. `init` must not print, open files or ask for the time. Handles do
//! not survive a snapshot, so the host would then run `init` before every call instead.

use std::any::{Any, type_name};
use std::cell::RefCell;
use std::fmt::Display;
use std::rc::Rc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::Error;

thread_local! {
    // A guest has one thread; a native test has one plugin per test thread.
    static STATE: RefCell<Option<Rc<dyn Any>>> = const { RefCell::new(None) };
}

/// A function that can follow `init:` in [`plugin!`](crate::plugin): `fn(Config) -> Result<State, E>`, or `fn() ->
/// Result<State, E>` for a plugin without configuration.
pub trait Init<Parameters> {
    /// The state that calls borrow.
    type State: Any;

    /// Parses the configuration and runs the function.
    fn run(self, config: &str) -> Result<Self::State, Error>;
}

impl<F, S, E> Init<()> for F
where
    F: FnOnce() -> Result<S, E>,
    S: Any,
    E: Display,
{
    type State = S;

    fn run(self, config: &str) -> Result<S, Error> {
        refuse_configuration(config)?;
        self().map_err(crate::internal)
    }
}

impl<F, C, S, E> Init<(C,)> for F
where
    F: FnOnce(C) -> Result<S, E>,
    C: DeserializeOwned,
    S: Any,
    E: Display,
{
    type State = S;

    fn run(self, config: &str) -> Result<S, Error> {
        let config = serde_json::from_str(config)
            .map_err(|error| Error::InvalidArguments(format!("configuration: {error}")))?;
        self(config).map_err(crate::internal)
    }
}

/// Runs an `init` function and keeps its state for later calls.
#[doc(hidden)]
pub fn initialise<P, I: Init<P>>(init: I, config: &str) -> Result<(), Error> {
    let state: Rc<dyn Any> = Rc::new(init.run(config)?);
    STATE.with_borrow_mut(|kept| *kept = Some(state));
    Ok(())
}

/// Like [`initialise`], with a state that lives as long as the plugin: sessions outlive the call that opens them, so
/// they cannot borrow from a shorter-lived value.
#[doc(hidden)]
pub fn initialise_environment<E, P, I>(init: I, config: &str) -> Result<(), Error>
where
    E: Any,
    I: Init<P, State = E>,
{
    let shared: &'static E = Box::leak(Box::new(init.run(config)?));
    STATE.with_borrow_mut(|kept| *kept = Some(Rc::new(shared)));
    Ok(())
}

/// The value that `init` returned, which all sessions share.
#[doc(hidden)]
pub fn shared<E: Any>() -> Result<&'static E, Error> {
    state::<&'static E>().map(|shared| *shared)
}

/// Replaces `init` in a plugin that has none: any key of a configuration is an error.
#[doc(hidden)]
pub fn refuse_configuration(config: &str) -> Result<(), Error> {
    let invalid = |text: String| Err(Error::InvalidArguments(format!("configuration: {text}")));
    match serde_json::from_str::<Map<String, Value>>(config) {
        Ok(table) => match table.keys().next() {
            None => Ok(()),
            Some(key) => invalid(format!(
                "unknown key `{key}`: this plugin has no configuration"
            )),
        },
        Err(error) => invalid(error.to_string()),
    }
}

/// The state that `init` returned.
#[doc(hidden)]
pub fn state<S: Any>() -> Result<Rc<S>, Error> {
    STATE.with_borrow(Clone::clone).and_then(|state| state.downcast::<S>().ok()).ok_or_else(|| {
        Error::Internal(format!(
            "a call needs the state {}, and `init` has not left one: name an `init` function that \
             returns it in plugin!",
            type_name::<S>()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_configuration_is_the_operators_mistake_and_says_which_key() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Config {
            #[allow(dead_code)]
            size: u32,
        }
        let init = |config: Config| Ok::<_, String>(config);
        let error = Init::run(init, r#"{"sise": 3}"#).unwrap_err();
        assert!(
            matches!(&error, Error::InvalidArguments(text) if text.contains("unknown field `sise`")),
            "{error:?}"
        );
        let error = refuse_configuration(r#"{"size": 3}"#).unwrap_err();
        assert!(
            matches!(&error, Error::InvalidArguments(text) if text.contains("unknown key `size`")),
            "{error:?}"
        );
        assert_eq!(refuse_configuration("{}"), Ok(()));
    }

    #[test]
    fn a_state_that_init_did_not_leave_is_named() {
        initialise(|| Ok::<_, String>(7_u8), "{}").unwrap();
        assert_eq!(state::<u8>().map(|state| *state), Ok(7));
        assert!(matches!(state::<String>(), Err(Error::Internal(text)) if text.contains("String")));
    }
}
