//! The tasks of a run. A [`TaskSource`] provides tasks by split and number; [`open`] opens the one that a configuration
//! names: files, or the generated questions about countries.

mod countries;
mod epochs;
mod files;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::split::Split;
use rlf_dialogue::task::{NumberedTask, Task};
use rlf_forge::countries::CountryTasks;
use rlf_rollout::EpisodeContext;
use rlf_rollout::shown_tools::ShownTools;

use crate::config::TasksConfig;
use crate::demonstrations::DemonstrationSet;
use crate::error::{RunFailure, TasksError};
use crate::reporter::RunReporter;
use crate::text::Corpus;

use countries::Countries;
use files::Files;

/// Provides tasks by split and number. Every method depends on its arguments alone, so that a resumed run trains on the
/// same tasks as an uninterrupted one.
pub trait TaskSource: Send + Sync {
    /// The training tasks with these numbers. RL takes them in order, epoch by epoch.
    fn training_tasks(&self, numbers: Range<u64>) -> Vec<NumberedTask>;

    /// All training tasks, for a curriculum. None if they are generated without end.
    fn all_training_tasks(&self) -> Option<&[Arc<Task>]> {
        None
    }

    /// The first `count` tasks of a split; fewer if it has no more.
    fn first(&self, split: Split, count: usize) -> Vec<NumberedTask>;

    /// Finds one task, by its number within the split or by its id.
    fn find(&self, split: Split, which: &str) -> Result<NumberedTask, TasksError>;

    /// The tasks of all splits; empty if they are generated without end.
    fn all_tasks(&self) -> Vec<Arc<Task>>;

    /// The tools that any task may use. None if some task may use all loaded tools.
    fn tools(&self) -> Option<BTreeSet<String>>;

    /// The environments that tasks run in.
    fn environments(&self) -> BTreeSet<String>;

    /// Text to train a tokenizer on.
    fn corpus(&self) -> Corpus<'_>;

    /// Returns an error if a task cannot be played. Called before a run begins.
    fn check(&self, context: &EpisodeContext) -> Result<(), RunFailure>;

    /// The demonstrations of SFT. An error names the task whose gold calls or answer the model of `dialogue` could not
    /// write. It is also an error if there are no demonstrations.
    fn demonstrations(
        &self,
        dialogue: &Arc<Dialogue>,
        shown: &ShownTools,
    ) -> Result<Arc<dyn DemonstrationSet>, RunFailure>;

    /// Writes the data that plugins read into the data folder of a new run, if the source makes any.
    fn write_data(&self, _folder: &Path) -> Result<(), RunFailure> {
        Ok(())
    }

    /// Returns an error if the data folder of an existing run differs from the data that the source would make.
    fn check_data(&self, _folder: &Path) -> Result<(), RunFailure> {
        Ok(())
    }
}

/// Opens the task source that a configuration names.
pub fn open(
    config: &TasksConfig,
    seed: u64,
    validation_tasks: usize,
    reporter: &dyn RunReporter,
) -> Result<Arc<dyn TaskSource>, RunFailure> {
    if let Some(facts) = &config.facts {
        let countries =
            CountryTasks::generate(seed, facts).map_err(RunFailure::table("tasks.facts"))?;
        return Ok(Arc::new(Countries::new(countries)));
    }
    let files = Files::open(config, seed, validation_tasks, reporter)?;
    Ok(Arc::new(files))
}

/// Parses the name of a split.
pub fn split_from_name(name: &str) -> Result<Split, TasksError> {
    match name {
        "train" => Ok(Split::Train),
        "validation" => Ok(Split::Validation),
        "test" => Ok(Split::Test),
        _ => Err(TasksError::NoSplit(name.to_owned())),
    }
}

/// The tools that a task names. A task of an environment that names none gets an empty list.
fn named_tools(task: &Task) -> Option<Vec<String>> {
    match (&task.tools, &task.environment) {
        (None, Some(_)) => Some(Vec::new()),
        (tools, _) => tools.clone(),
    }
}
