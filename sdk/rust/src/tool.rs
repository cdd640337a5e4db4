//! Tools: a function, its arguments, its definition.
//!
//! `#[tool]` takes
//!
//! - the name from the function (`name = ".."` for another),
//! - the description from its doc comment,
//! - the JSON Schema from the struct that it takes by value ([`schemars::JsonSchema`]; the doc
//!   comments of the fields are their descriptions); a tool without such a parameter has no arguments,
//! - hints from `read_only`, `idempotent`, `deterministic`, `open_world`; `pure` is the first three.
//!
//! A parameter `&CallContext` receives the facts of the call (seed, turn, attempt); any other `&T` receives the state
//! that `init` returned. The return value is any [`IntoObservation`](crate::IntoObservation).
//!
//! If a definition depends on configuration or data, `refine = path` names a function that changes it once, after
//! `init`: `fn(ToolDefinition, &State) -> ToolDefinition`. With a refined schema the arguments are usually a
//! `serde_json::Map<String, Value>`.
//!
//! ```
//! use rlf_plugin::{ToolDefinition, plugin, tool};
//! use serde_json::{Map, Value, json};
//!
//! struct Colours(Vec<String>);
//!
//! fn init() -> Result<Colours, String> {
//!     Ok(Colours(vec!["red".into(), "green".into()]))
//! }
//!
//! fn with_known_colours(mut definition: ToolDefinition, colours: &Colours) -> ToolDefinition {
//!     definition.input_schema = json!({
//!         "type": "object",
//!         "properties": { "colour": { "enum": colours.0 } },
//!         "required": ["colour"],
//!     })
//!     .to_string();
//!     definition
//! }
//!
//! /// Mixes a colour.
//! #[tool(pure, refine = with_known_colours)]
//! fn mix(arguments: Map<String, Value>, _colours: &Colours) -> String {
//!     format!("mixed {}", arguments["colour"])
//! }
//!
//! plugin!(init: init, tools: [mix]);
//!
//! # fn main() {
//! use rlf_plugin::ToolPlugin;
//!
//! Plugin::init("{}").unwrap();
//! assert!(Plugin::list_tools()[0].input_schema.contains(r#"{"enum":["red","green"]}"#));
//! # }
//! ```

use std::any::Any;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{CallContext, Error, Hints, Observation, ToolDefinition};

/// A tool that `#[tool]` makes from a function.
pub trait Tool {
    /// The definition that the model reads. It depends only on component, configuration and data.
    fn definition() -> Result<ToolDefinition, Error>;

    /// Makes one call; `arguments` is a JSON object that fits the schema.
    fn call(arguments: &str, context: &CallContext) -> Result<Observation, Error>;
}

/// The two functions of one tool, so that tools of different types fit in one list.
#[doc(hidden)]
pub struct Entry {
    pub(crate) definition: fn() -> Result<ToolDefinition, Error>,
    pub(crate) call: fn(&str, &CallContext) -> Result<Observation, Error>,
}

impl Entry {
    /// The entry of a tool.
    pub const fn for_tool<T: Tool>() -> Self {
        Self {
            definition: T::definition,
            call: T::call,
        }
    }
}

/// The arguments of a tool that takes none.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct NoArguments {}

#[doc(hidden)]
pub fn define<A: JsonSchema>(
    name: &str,
    description: &str,
    hints: Hints,
) -> Result<ToolDefinition, Error> {
    Ok(ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: crate::schema::for_arguments::<A>()?.to_string(),
        output_schema: None,
        hints,
        extra: Vec::new(),
    })
}

#[doc(hidden)]
pub fn refine<S: Any>(
    refine: fn(ToolDefinition, &S) -> ToolDefinition,
    definition: ToolDefinition,
) -> Result<ToolDefinition, Error> {
    Ok(refine(definition, &*crate::lifecycle::state::<S>()?))
}

#[doc(hidden)]
#[allow(
    clippy::fn_params_excessive_bools,
    reason = "called by #[tool] only, which counts them"
)]
pub fn hints(read_only: bool, idempotent: bool, deterministic: bool, open_world: bool) -> Hints {
    let mut hints = Hints::empty();
    hints.set(Hints::READ_ONLY, read_only);
    hints.set(Hints::IDEMPOTENT, idempotent);
    hints.set(Hints::DETERMINISTIC, deterministic);
    hints.set(Hints::OPEN_WORLD, open_world);
    hints
}

#[doc(hidden)]
pub fn parse_arguments<A: DeserializeOwned>(arguments: &str) -> Result<A, Error> {
    serde_json::from_str(arguments).map_err(|error| Error::InvalidArguments(error.to_string()))
}
