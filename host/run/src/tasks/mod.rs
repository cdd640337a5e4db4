//! Where tasks come from. A [`TaskSource`] has tasks by split and number; [`open`] chooses the one that a configuration
//! names: [`Files`], or the generated questions of [`Countries`].

mod countries;
mod epochs;
mod files;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_forge::countries::CountryTasks;
use rlf_rollout::EpisodeContext;
use rlf_rollout::shown_tools::ShownTools;

use crate::config::TasksConfig;
use crate::demonstrations::DemonstrationSet;
use crate::reporter::RunReporter;
use crate::text::Corpus;

pub use countries::Countries;
pub use files::Files;

/// A task with its number within the split, which keys its randomness.
pub type IndexedTask = (u64, Arc<Task>);

/// Tasks by split and number. Every method is a function of its arguments alone, so that a resumed run trains on the
/// tasks that the interrupted one would have trained on.
pub trait TaskSource: Send + Sync {
    /// The training tasks of an RL step.
    fn practice(&self, step: u64, count: usize) -> Vec<IndexedTask>;

    /// The first `count` tasks of a split; fewer if it has no more.
    fn first(&self, split: Split, count: usize) -> Vec<IndexedTask>;

    /// One task: by its number within the split, or by its id.
    fn find(&self, split: Split, which: &str) -> anyhow::Result<IndexedTask>;

    /// The tasks of all splits; none if they are generated without end.
    fn rows(&self) -> Vec<IndexedTask>;

    /// The tools that some task may use; None if one may use all that are loaded.
    fn tools(&self) -> Option<BTreeSet<String>>;

    /// The environments that some task lives in.
    fn environments(&self) -> BTreeSet<String>;

    /// Text to train a tokenizer on.
    fn corpus(&self) -> Corpus<'_>;

    /// Refuses tasks that cannot be played, before a run begins with them.
    fn check(&self, context: &EpisodeContext) -> anyhow::Result<()>;

    /// The demonstrations of SFT. An error names the task whose gold calls or answer the model of `dialogue` could not
    /// write; it is an error too if there is no demonstration.
    fn demonstrations(
        &self,
        dialogue: &Arc<Dialogue>,
        shown: &ShownTools,
    ) -> anyhow::Result<Arc<dyn DemonstrationSet>>;

    /// Writes the data that plugins read, if the source makes some, into the data folder of a new run.
    fn write_data(&self, _folder: &Path) -> anyhow::Result<()> {
        Ok(())
    }

    /// Refuses the data folder of an existing run if the source would have made other data.
    fn check_data(&self, _folder: &Path) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Opens the task source that a configuration names.
pub fn open(
    config: &TasksConfig,
    seed: u64,
    validation_tasks: usize,
    reporter: &dyn RunReporter,
) -> anyhow::Result<Arc<dyn TaskSource>> {
    if let Some(facts) = &config.facts {
        let countries = CountryTasks::generate(seed, facts).context("[tasks.facts]")?;
        return Ok(Arc::new(Countries::new(countries)));
    }
    let files = Files::open(config, seed, validation_tasks, reporter)?;
    Ok(Arc::new(files))
}

/// Reads the name of a split.
pub fn split_from_name(name: &str) -> anyhow::Result<Split> {
    match name {
        "train" => Ok(Split::Train),
        "validation" => Ok(Split::Validation),
        "test" => Ok(Split::Test),
        _ => bail!("there is no split `{name}`; write train, validation or test"),
    }
}

/// The tools that a task names; none of its own for a task of an environment that names none.
fn named_tools(task: &Task) -> Option<Vec<String>> {
    match (&task.tools, &task.environment) {
        (None, Some(_)) => Some(Vec::new()),
        (tools, _) => tools.clone(),
    }
}
