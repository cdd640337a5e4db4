//! Language models that plugins may ask, through the gate `model`: endpoints, and whatever implements [`Source`]. A model may
//! also play the users of a run ([`Model::ask_for`]).
//!
//! An answer costs money or time, and the same question can get another answer tomorrow. So every model has budgets for a call, a trajectory and
//! a run; what is spent is in the metrics; and every answer is recorded, so that a run that is resumed gets the same
//! answers again, and one that replays a record asks nobody.
//!
//! It must not know tasks, rewards or training.
//!
//! | looking for | module |
//! |---|---|
//! | `[models.NAME]` of a configuration | `config`: [`ModelConfig`] |
//! | all models of a process | [`Models`] |
//! | a question, from its budgets to its answer | `model`: [`Model`] |
//! | an answer that must fit a JSON Schema, and retries | `schema_retries` |
//! | what answers: an endpoint, a policy | `source`: [`Source`] |
//! | the answers on disk | `record` |
//!
//! ```
//! use std::collections::BTreeMap;
//! use rlf_models::{ModelConfig, Models, ModelsError};
//!
//! let configs: BTreeMap<String, ModelConfig> = rlf_config::parse(
//!     r#"
//! [judge]
//! endpoint = { url = "http://127.0.0.1:8000/v1", model = "some-model", temperature = 0.0 }
//! price = { prompt = 0.15, completion = 0.6 }      # of a million tokens
//! trajectory = { questions = 8, tokens = 20_000 }
//! run = { tokens = 5_000_000 }
//! "#,
//!     "example.toml",
//! )?;
//! let models = Models::open::<ModelsError>(&configs, None, |_, _| unreachable!("there is no policy"))?;
//! assert_eq!(models.by_name().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod model;
mod models;
mod record;
mod schema_retries;
mod source;

pub use config::{FrozenPolicyConfig, ModelConfig, ModelConfigError, RunMoment, Structured};
pub use model::Model;
pub use models::{Models, ModelsError, Spending};
pub use source::{Source, SourceError};
