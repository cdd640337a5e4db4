//! A run: everything between a configuration and a trained policy.
//!
//! A [`RunConfig`] is a configuration file with every default written out. [`train()`] carries it out: it assembles
//! [`RunParts`] (tokenizer, dialogue, plugins, tasks, rewards), trains by SFT and then by RL, evaluates at set steps, and
//! writes metrics, checkpoints and trajectories into the run's folder. [`SavedRun`] opens that folder again, to evaluate
//! the policy or to play single tasks.
//!
//! The crate must not know how results are printed: it prints nothing and ends no process. It reports to a
//! [`RunReporter`] while it works. Its errors name keys of the configuration, and no options of a program.
//!
//! | looking for | module |
//! |---|---|
//! | the configuration and its defaults, settings in addition to the file | [`config`], [`user`] for `[user]` |
//! | training, resuming, the order of a run | `train`: [`train()`](train()) |
//! | continued SFT, as a control for RL | `control` |
//! | evaluating a run, playing one of its tasks | `saved`: [`SavedRun`] |
//! | playing a step of a run again, and comparing it with its record | [`replay`]: [`Replay`] |
//! | the weights of a run's policy, those of a checkpoint | `weights`, `checkpoint_model` |
//! | the model of a run as a folder for other programs | `export`: [`export()`](export()) |
//! | measuring a model behind an endpoint | `measured`: [`MeasuredEndpoint`] |
//! | the memory and the time that a run needs, before anything is loaded | [`plan`]: [`Plan`] |
//! | the parts of a run and how they are made | `parts`: [`RunParts`] |
//! | the tokenizer, the chat template and the ids that end a turn | `text` |
//! | the task files and weights that belong to a run's identity | `inputs` |
//! | the source of tasks | [`tasks`]: files, or the questions about countries of the quickstart |
//! | whether the tools that `[shown_tools]` names exist | `shown_tools` |
//! | demonstrations, gold calls, playing them | [`demonstrations`] |
//! | the tasks of an RL step, playing them, and playing them ahead of the updates | `rollouts` |
//! | the external engine that samples turns, and its weights | `external_engine` |
//! | evaluations during training | `observer` |
//! | requests to stop a run | `interruption`: [`Interruption`] |
//! | models that plugins ask | `models`, with policies in `frozen_policy` and `frozen_engine`, and the run's own weights in `own_weights` |
//! | directories of plugins, the sandbox and its cache | [`plugins`] |
//! | the folder of a new run, the run that it replaces, and the places in a run's folder | [`folder`] |
//! | the metrics and trajectories that a run wrote | `history`: [`RunHistory`] |
//! | counts of how plugins' calls end | `health`: [`PluginHealth`] |
//! | reports to the caller | `reporter`: [`RunReporter`] |
//! | the reasons why a run fails | `error`: [`RunFailure`] and the enums in it; `folder`: [`FolderError`] |
//!
//! Besides the files of [`rlf_train::run`], the folder of a run has these:
//!
//! ```text
//! RUN/data/                    what plugins read (`run:` bindings), and the prompt of simulated users
//! RUN/plugin-directories.json  the directories of plugins that the run began with
//! RUN/outputs/                 files that calls left behind
//! RUN/engine/                  the weights that an external engine loads
//! RUN/control/                 the control of the run, which is a run itself
//! RUN/.starting                only until a new run has started
//! ```
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use rlf_run::{PluginSources, RunConfig, RunEnd, Silent, TrainOptions, runtime, train};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = RunConfig::load(Path::new("configs/quickstart.toml"), &["rl.steps=20".into()])?;
//! let options = TrainOptions::new(PluginSources::new("target/plugins"));
//! let end = runtime()?.block_on(train(config, &options, Arc::new(Silent)))?;
//! assert_eq!(end, RunEnd::Finished);
//! # Ok(()) }
//! ```

mod checkpoint_model;
pub mod config;
mod control;
pub mod demonstrations;
mod error;
mod export;
mod external_engine;
pub mod folder;
mod frozen_engine;
mod frozen_policy;
mod health;
mod history;
mod inputs;
mod interruption;
mod measured;
mod models;
mod observer;
mod own_weights;
mod parts;
pub mod plan;
pub mod plugins;
pub mod replay;
mod reporter;
mod rollouts;
mod saved;
mod shown_tools;
pub mod tasks;
mod text;
mod train;
pub mod user;
mod weights;

pub use config::RunConfig;
pub use error::{
    ConfigurationError, ControlError, GoldError, PluginsError, RunFailure, SavedRunError,
    TasksError,
};
pub use export::export;
pub use folder::FolderError;
pub use health::PluginHealth;
pub use history::RunHistory;
pub use interruption::Interruption;
pub use measured::{MeasuredEndpoint, Measurement};
pub use models::open_models;
pub use parts::RunParts;
pub use plan::{Plan, PlanOptions, PlannedMachine};
pub use plugins::PluginSources;
pub use replay::Replay;
pub use reporter::{Moment, RunReporter, RunSummary, Silent};
pub use saved::SavedRun;
pub use text::Corpus;
pub use train::{RunEnd, RunStart, TrainOptions, train};

// Types of other crates that nearly every caller needs.
pub use rlf_dialogue::split::Split;
pub use rlf_policy::SamplingParams;
pub use rlf_rollout::evaluate::Evaluation;
pub use rlf_train::metrics::MetricsLine;
pub use rlf_train::phase::Phase;

/// A runtime that trajectories can run on: two threads, because guests and the decoder have threads of their own.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("rlf-rollout")
        .enable_all()
        .build()
}
