//! Reasons why a run could not begin or did not finish.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use rlf_config::ConfigError;
use rlf_dialogue::trajectory::NotTrainable;
use rlf_dialogue::{DialogueError, Split, TemplateError, TokenizerError, Unwritable};
use rlf_forge::countries::DemonstrationError;
use rlf_import::{ImportError, PlayError};
use rlf_models::ModelsError;
use rlf_plugins::counters::Unhealthy;
use rlf_policy::PolicyError;
use rlf_rollout::RolloutError;
use rlf_rollout::evaluate::Evaluation;
use rlf_sandbox::SandboxError;
use rlf_tools::tool_manager::ToolError;
use rlf_train::error::TrainError;
use rlf_train::phase::Phase;
use rlf_train::run::RunError;
use serde_json::Value;

use crate::folder::FolderError;

/// Reasons why a run could not begin or did not finish. An interruption is not an error: see [`RunEnd`](crate::RunEnd).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunFailure {
    /// The configuration cannot be read or used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// Plugins cannot be loaded, or trapped too often.
    #[error(transparent)]
    Plugins(#[from] PluginsError),
    /// A model that plugins may ask cannot be opened.
    #[error(transparent)]
    Models(#[from] ModelsError),
    /// A task or a demonstration cannot be read, played or found.
    #[error(transparent)]
    Tasks(#[from] TasksError),
    /// The policy's files or its device cannot be used, or it could not compute.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The tokenizer cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The chat template cannot be used.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The folder cannot hold a new run.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A problem of the run's folder: it holds no run, the run is in use, or it was started with other settings.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The folder lacks a file of a run, or the file is damaged.
    #[error(transparent)]
    Saved(#[from] SavedRunError),
    /// A training loop stopped.
    #[error(transparent)]
    Training(#[from] TrainError),
    /// The control of a run cannot be trained.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A rollout outside of training stopped.
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    /// Every trajectory of a measurement was excluded.
    #[error("no trajectory could be graded; the first was excluded: {reason}")]
    NothingGraded {
        /// The reason why the first was excluded.
        reason: String,
    },
    /// The file system, or the operating system, refused.
    #[error("{action}: {source}")]
    Io {
        /// The attempted action, with its paths.
        action: String,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The device does not have the memory that the policy needs in any case.
    #[error("the run needs at least {needed} GB on {device}, which has {memory} GB; {mend}")]
    TooLarge {
        /// Memory that the run needs, in GB (10^9 bytes).
        needed: String,
        /// Memory that the device has, in GB.
        memory: String,
        /// The device.
        device: String,
        /// The keys to change, and what each saves.
        mend: String,
    },
    /// A part of this program broke a promise.
    #[error("{0}; this is a bug, please report it")]
    Bug(String),
}

impl RunFailure {
    /// The error of an evaluation whose trajectories were all excluded.
    pub(crate) fn if_nothing_graded(evaluation: &Evaluation) -> Result<(), Self> {
        match &evaluation.excluded_because {
            Some(reason) if evaluation.excluded >= 1.0 => Err(Self::NothingGraded {
                reason: reason.clone(),
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        |source| Self::Io { action, source }
    }

    /// The failure of a part of the configuration: `table` is its key.
    pub(crate) fn table<E: Error + Send + Sync + 'static>(
        table: &'static str,
    ) -> impl FnOnce(E) -> Self {
        move |source| ConfigurationError::table(table)(source).into()
    }
}

/// Reasons why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// The file cannot be read, is not TOML, or has an unknown key or a value of the wrong type.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// A setting in addition to the file is wrong.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting, `key.path=value`.
        setting: String,
        /// The mistake, and what to write instead.
        problem: String,
    },
    /// Values of a file are out of range, or contradict each other.
    #[error("{origin}{}: {source}", at(*line))]
    Unusable {
        /// The file.
        origin: String,
        /// Line of the key or of its table, from 1. None if the file contains neither.
        line: Option<usize>,
        /// The mistake.
        source: Box<ConfigurationError>,
    },
    /// A table does not fit the rest of the run, such as plugins, tasks or the model.
    #[error("[{table}]: {source}")]
    Table {
        /// The key of the table.
        table: &'static str,
        /// The key of the wrong value, with that of the table, or the key of the table alone.
        key: String,
        /// The mistake.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A single value, or the lack of one.
    #[error("{problem}")]
    Value {
        /// The key, or that of its table.
        key: String,
        /// The mistake, which names the key, and what to write instead.
        problem: String,
    },
    /// The configuration cannot be written as TOML.
    #[error("cannot write the configuration: {0}")]
    NotToml(#[from] toml::ser::Error),
}

impl ConfigurationError {
    /// The error of the part of the configuration with the key `table`.
    pub(crate) fn table<E: Error + Send + Sync + 'static>(
        table: &'static str,
    ) -> impl FnOnce(E) -> Self {
        Self::in_table(table, |_| "")
    }

    /// The error of one key in the table `table`. `key` may begin with the table or stand below it.
    pub(crate) fn in_table<E: Error + Send + Sync + 'static>(
        table: &'static str,
        key: impl FnOnce(&E) -> &str,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Table {
            table,
            key: match key(&source) {
                "" => table.to_owned(),
                key if key.split('.').next() == Some(table) => key.to_owned(),
                key => format!("{table}.{key}"),
            },
            source: source.into(),
        }
    }

    /// The error of a single value, or of the lack of one. `problem` names the key.
    pub(crate) fn value(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Value {
            key: key.into(),
            problem: problem.into(),
        }
    }

    /// The error of a context that is longer than the positions of the model.
    pub(crate) fn long_context(context: u32, most: usize) -> Self {
        let problem = format!(
            "dialogue.context = {context} is more than the model's max_position_embeddings = {most}; lower it"
        );
        Self::value("dialogue.context", problem)
    }

    /// The key that is wrong, or its table, if the error is of a single one.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Value { key, .. } | Self::Table { key, .. } => Some(key),
            Self::Unusable { source, .. } => source.key(),
            Self::File(_) | Self::Setting { .. } | Self::NotToml(_) => None,
        }
    }
}

/// The place in a file, for a message.
fn at(line: Option<usize>) -> String {
    line.map_or_else(|| " cannot be used".to_owned(), |line| format!(":{line}"))
}

/// Reasons why plugins cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginsError {
    /// A directory of plugins does not exist.
    #[error(
        "there is no plugin directory {}; build the plugins with `cargo xtask plugins`, or name another",
        .0.display()
    )]
    NoDirectory(PathBuf),
    /// The sandbox cannot be set up.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A plugin trapped in too many of its calls.
    #[error(transparent)]
    Unhealthy(#[from] Unhealthy),
}

/// Reasons why tasks or demonstrations cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TasksError {
    /// A file, or one of its rows, cannot be read.
    #[error(transparent)]
    File(#[from] ImportError),
    /// A file of demonstrations holds a task.
    #[error(
        "[tasks] demonstrations = {}: the row with id {id:?} is a task and no conversation",
        path.display()
    )]
    NotAConversation {
        /// The file.
        path: PathBuf,
        /// The row.
        id: String,
    },
    /// A task cannot be played.
    #[error("[tasks], {} split: the row with id {id:?}: {source}", split.as_str())]
    Row {
        /// The task's split.
        split: Split,
        /// The task.
        id: String,
        /// The mistake.
        source: RolloutError,
    },
    /// No task has this number or id. The text says which ones exist.
    #[error("{0}")]
    NotFound(String),
    /// No split has this name.
    #[error("there is no split `{0}`; write train, validation or test")]
    NoSplit(String),
    /// The configuration makes other facts about countries than the run was trained on.
    #[error(
        "other facts follow from these settings than the run has in {}; go on with the seed and the [tasks.facts] that it \
         was begun with, and the rlf-host that began it",
        .0.display()
    )]
    OtherFacts(PathBuf),
    /// The tools that questions about countries need are missing.
    #[error("[tasks.facts] asks what only tools can answer: {0}")]
    NoFactTools(#[from] ToolError),
    /// The chat template cannot write a turn with several calls.
    #[error(
        "[sft] of [tasks.facts] demonstrates several calls in one turn; use another `template`: {0}"
    )]
    SeveralCalls(#[from] Unwritable),
    /// The generator of questions about countries has no demonstration of a task.
    #[error(transparent)]
    Generated(#[from] DemonstrationError),
    /// The gold calls or the answer of a task cannot be written as turns of the run's model.
    #[error(
        "[sft] demonstrates the gold calls of [tasks], and those of the row with id {id:?} cannot be written; mend or \
         remove the row, or name other demonstrations as `tasks.demonstrations`: {source}"
    )]
    Gold {
        /// The task.
        id: String,
        /// The mistake.
        source: GoldError,
    },
    /// There is nothing to demonstrate, because a model plays the users of all tasks with gold calls.
    #[error(
        "[sft] needs demonstrations, and the gold calls of tasks whose user a model plays are none: nobody knows what that \
         user would say; name a file as `tasks.demonstrations`, or remove [sft]"
    )]
    UsersUnknown,
    /// There is nothing to demonstrate.
    #[error(
        "[sft] needs demonstrations: name a file of them as `tasks.demonstrations`, or tasks whose references have gold \
         calls, or remove [sft]"
    )]
    NoDemonstrations,
    /// A demonstration from a file cannot be played.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// A demonstration has no tokens to learn.
    #[error(transparent)]
    NotTrainable(#[from] NotTrainable),
    /// A demonstration failed before training began.
    #[error("[sft] has nothing to learn from a demonstration that fails: {0}")]
    Rehearsal(#[source] Box<RunFailure>),
}

/// The beginning of a value: a row may be as long as its file.
fn shown(value: &Value) -> String {
    const MAX_SHOWN_CHARS: usize = 300;
    value.to_string().chars().take(MAX_SHOWN_CHARS).collect()
}

/// Reasons why the gold calls or the answer in a task's reference cannot be demonstrated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GoldError {
    /// The gold calls are not a list.
    #[error("its gold calls are not a list: {}", shown(.0))]
    NotAList(Value),
    /// A gold call has no name or no arguments.
    #[error(
        "its gold call {number} is not of the form {{\"name\": \"..\", \"arguments\": {{..}}}}: {}",
        shown(.call)
    )]
    NotACall {
        /// Number of the call, from 1.
        number: usize,
        /// The call.
        call: Value,
    },
    /// The answer, or a part of it, is neither text nor a number.
    #[error("its `{key}` contains a value that is not text: {}", shown(.value))]
    NotText {
        /// The key in the reference.
        key: &'static str,
        /// The value.
        value: Value,
    },
    /// The model could not write a gold call.
    #[error("gold call {number}: {source}")]
    Call {
        /// Number of the call, from 1.
        number: usize,
        /// The reason.
        source: Unwritable,
    },
    /// The model could not write the answer.
    #[error("its answer {answer:?}: {source}")]
    Answer {
        /// The answer.
        answer: String,
        /// The reason.
        source: Unwritable,
    },
    /// The configured rule does not read the answer from the turn that has it.
    #[error("its answer {answer:?} would not be read as that by `dialogue.answer`: {turn:?}")]
    Unread {
        /// The answer.
        answer: String,
        /// The text of the turn.
        turn: String,
    },
    /// No conversation can begin.
    #[error(transparent)]
    Dialogue(#[from] DialogueError),
}

/// Reasons why the control of a run cannot be trained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The run has no SFT to continue.
    #[error("a control needs [sft] in the configuration")]
    NoSft,
    /// A phase of the run is not finished.
    #[error("a control compares RL with SFT, but the {0} phase has not been finished")]
    Unfinished(Phase),
}

/// Reasons why a run in a folder cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedRunError {
    /// The folder does not exist.
    #[error("there is no folder {}", .0.display())]
    NoFolder(PathBuf),
    /// The folder holds no run.
    #[error("{} is not a run: it has no {missing}", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// Name of the file that it lacks.
        missing: String,
    },
    /// A file was given instead of a folder.
    #[error("{} is a file; give the run's folder", .0.display())]
    IsAFile(PathBuf),
    /// The run has no weights yet.
    #[error("{} has no checkpoint yet; wait for its first, or train on", .0.display())]
    NoCheckpoint(PathBuf),
    /// The run recorded no such step of RL.
    #[error("{} has no step {step} of RL: {}", path.display(), recorded(*last))]
    NoStep {
        /// The folder.
        path: PathBuf,
        /// The step, from 1.
        step: u64,
        /// The last step that the run recorded.
        last: Option<u64>,
    },
    /// No checkpoint has the weights from which a step could be replayed.
    #[error(
        "{} has no checkpoint before step {step} of RL; put the last one of SFT back from a copy",
        path.display()
    )]
    NoStart {
        /// The folder.
        path: PathBuf,
        /// The step, from 1.
        step: u64,
    },
    /// The run's turns were sampled by an external engine.
    #[error(
        "{} cannot be replayed: the engine of [external_engine] sampled its turns, so they would not repeat, and \
         the replay would replace the weights in the engine; `rlf-host report` shows what was recorded",
        .0.display()
    )]
    SampledElsewhere(PathBuf),
    /// The folder for a model has files in it.
    #[error("{} is not empty; name a new folder", .0.display())]
    NotEmpty(PathBuf),
    /// The folder is a part of the run.
    #[error("{} is inside the run, which would then not be whole; choose another folder", .0.display())]
    InsideRun(PathBuf),
    /// The checkpoint names no sampling parameters.
    #[error("{} has no generation_config.json", .0.display())]
    NoGenerationConfig(PathBuf),
    /// A line of the metrics or of the trajectories is damaged.
    #[error("{}:{line} is not JSON: {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// The parser's error.
        source: serde_json::Error,
    },
}

/// The steps that a run recorded, for a message.
fn recorded(last: Option<u64>) -> String {
    match last {
        Some(last) => format!("it recorded steps 1 to {last}"),
        None => "it recorded none".to_owned(),
    }
}

impl SavedRunError {
    /// Refuses a path that is not the folder of a run, because it lacks `needed`, a file of every run.
    pub(crate) fn unless_run(run: &Path, needed: &Path) -> Result<(), Self> {
        if run.is_file() {
            return Err(Self::IsAFile(run.to_owned()));
        }
        if !run.exists() {
            return Err(Self::NoFolder(run.to_owned()));
        }
        if needed.exists() {
            return Ok(());
        }
        let missing = needed.file_name().unwrap_or_default().to_string_lossy();
        Err(Self::NotARun {
            path: run.to_owned(),
            missing: missing.into_owned(),
        })
    }
}
