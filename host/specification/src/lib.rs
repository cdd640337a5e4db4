//! Environments as data: a specification of entities, operations and rules, which can be checked before it runs.
//!
//! A [`Specification`] is read from TOML or JSON. [`check()`] finds what is wrong with it and compiles the rest to a
//! [`Program`], which generates initial states, carries out operations and says the state as canonical JSON. The same
//! program becomes an environment in Python with [`Program::to_python`].
//!
//! The crate is pure: no files, no clock, no randomness without a seed. It must not know sandboxes, plugins or models. No specification and no argument makes it panic, and the work of a call is bounded.
//!
//! | looking for | module |
//! |---|---|
//! | the parts of a specification: entities, operations, scenarios | [`model`] |
//! | findings and their kinds | [`finding`] |
//! | errors of generating and loading states | [`StateError`] |
//! | reading TOML and JSON, lines of places | [`read`](mod@read) |
//! | the static checks | `check` |
//! | days of the calendar | [`date`] |
//! | expressions in CEL: types, compilation, evaluation | `expression` |
//! | a compiled specification and its rules | [`program`] |
//! | generating initial states; carrying out operations | `generate`; `call` |
//! | states; their JSON form | [`state`]; `state_json` |
//! | JSON schemas of tools | `schema` |
//! | the export to Python | `python` |
//! | arguments for random walks; walks that look for faults | [`walk`]; [`play`] |
//!
//! ```
//! use rlf_specification::{Format, Size, check_text};
//! use serde_json::json;
//!
//! let text = r#"
//! name = "Doors"
//! description = "A house with doors."
//! scenarios = [{ size = "simple", counts = { door = 2 } }]
//!
//! [[entities]]
//! name = "door"
//! collection = "doors"
//! description = "A door"
//! key = { name = "door_id", prefix = "D" }
//! fields = [{ name = "open", type = "boolean", generate = { constant = false } }]
//!
//! [[operations]]
//! name = "open_door"
//! description = "Open a door."
//! parameters = [{ name = "door_id", type = { reference = "door" }, from_user = true, description = "Number on the door" }]
//! bindings = [{ find = { name = "door", entity = "door", key = "door_id", error = "there is no door {door_id}" } }]
//! preconditions = [{ require = "!door.open", error = "{door_id} is open already" }]
//! effects = [{ set = { entity = "door", key = "door_id", values = { open = "true" } } }]
//! result = { fields = [{ name = "door_id", type = { reference = "door" }, value = "door_id" }] }
//! "#;
//! let checked = check_text(text, Format::Toml);
//! let program = checked.program.expect("no finding is an error");
//! let mut state = program.open(Size::Simple, 0).unwrap();
//! let arguments = json!({ "door_id": "D1" });
//! let arguments = arguments.as_object().unwrap();
//! assert_eq!(program.call(&mut state, "open_door", arguments).unwrap(), json!({ "door_id": "D1" }));
//! let refused = program.call(&mut state, "open_door", arguments).unwrap_err();
//! assert_eq!(refused.to_string(), "D1 is open already");
//! ```

mod call;
mod check;
pub mod date;
mod error;
mod expression;
pub mod finding;
mod generate;
pub mod model;
mod names;
pub mod play;
pub mod program;
mod python;
pub mod read;
mod schema;
pub mod state;
mod state_json;
mod value;
pub mod walk;

pub use check::{Checked, check, check_text};
pub use error::{GeneratorError, StateError, WrongValue};
pub use finding::{Finding, Kind, Severity};
pub use model::{Size, Specification};
pub use names::{has_word, is_invisible, is_python_word, problem as name_problem};
pub use program::{Program, Refusal, UNDONE};
pub use read::{Format, read};
pub use state::State;
