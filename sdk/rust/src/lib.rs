//! Tools and rewards for rlf-host, written as plain functions, and environments as one trait.
//!
//! # Why
//!
//! A plugin is a WebAssembly component that exports the contract in `wit/`. Authors see only this crate: a tool is a
//! function with a typed, documented argument struct, a reward is a function from a task and a trajectory to named
//! terms, an environment is a type with one method for each event of a session. Name, description and JSON Schema
//! come from the code; a failed `Result` becomes an observation that the model can react to.
//!
//! ```
//! use rlf_plugin::{plugin, tool};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! pub struct Divide {
//!     /// What is divided.
//!     dividend: i64,
//!     /// What it is divided by.
//!     divisor: i64,
//! }
//!
//! /// Divides whole numbers, rounding towards zero.
//! #[tool(pure)]
//! fn divide(Divide { dividend, divisor }: Divide) -> Result<i64, String> {
//!     dividend.checked_div(divisor).ok_or_else(|| format!("cannot divide {dividend} by {divisor}"))
//! }
//!
//! plugin!(tools: [divide]);
//!
//! # fn main() {
//! use rlf_plugin::testing;
//! use serde_json::json;
//!
//! let observation = testing::call::<Plugin>("divide", json!({ "dividend": 7, "divisor": 0 })).unwrap();
//! assert!(observation.failed);
//! assert_eq!(testing::text(&observation), "cannot divide 7 by 0");
//! # }
//! ```
//!
//! # Where to find things
//!
//! | to | see |
//! |---|---|
//! | write a tool | [`tool`](mod@tool), [`IntoObservation`] |
//! | write a reward | [`reward`](mod@reward), [`Terms`]; the answers that a task accepts: [`accepted_answers`] |
//! | write an environment | [`environment`], [`Environment`] |
//! | read configuration and data once, before all calls | [`lifecycle`], [`data`] |
//! | write to the operator's log | [`log`] |
//! | ask hosts that the operator opens | [`http`] |
//! | call other tools | [`tools`] |
//! | ask a language model | [`model`] |
//! | run programs, such as a candidate's code | [`execute`] |
//! | test without WebAssembly | [`testing`] |
//!
//! # What it must not know
//!
//! Nothing of the host: neither wasmtime nor a model nor a path. The operator grants what a plugin may reach;
//! everything outside the contract is unknown here.

#[doc(hidden)]
pub mod bindings;
pub mod data;
pub mod environment;
pub mod execute;
pub mod http;
pub mod lifecycle;
pub mod log;
pub mod model;
mod observation;
mod plugin;
mod reference;
pub mod reward;
mod schema;
mod stand_in;
pub mod testing;
pub mod tool;
pub mod tools;

pub use bindings::lifecycle::rlf::plugin::types::{
    Blob, CallContext, Content, Ended, Error, Hints, Message, Metric, Observation, Role,
    ToolDefinition, Verdict,
};
pub use bindings::reward::exports::rlf::plugin::reward::{
    CallResult, Event, Finish, Grading, MalformedCall, ModelTurn, Score, Task, Term, ToolCall,
    Trajectory,
};
pub use environment::{Environment, Scenario, Start, Step};
pub use observation::{IntoObservation, Json};
pub use plugin::{EnvironmentPlugin, RewardPlugin, ToolPlugin};
#[doc(hidden)]
pub use plugin::{Environments, Rewards, Tools};
pub use reference::{ReferenceError, accepted_answers};
pub use reward::Terms;
pub use rlf_plugin_macros::{reward, tool};

pub use schemars;
pub use serde;
pub use serde_json;

use std::fmt::Display;

/// An `internal` error for logs: a fault of the plugin itself, not of its caller.
pub fn internal(reason: impl Display) -> Error {
    Error::Internal(reason.to_string())
}

/// The message of an error, without its kind.
pub fn error_message(error: &Error) -> &str {
    match error {
        Error::InvalidArguments(text)
        | Error::NotFound(text)
        | Error::Denied(text)
        | Error::Exhausted(text)
        | Error::Unavailable(text)
        | Error::Internal(text) => text,
        Error::Cancelled => "cancelled",
    }
}

/// The examples of the README, compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
