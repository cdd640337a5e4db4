//! Tasks read from JSON lines. Training goes through them epoch by epoch, in shuffled order.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _};
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::split::Split;
use rlf_dialogue::task::{NumberedTask, Task};
use rlf_import::read_tasks;
use rlf_rollout::shown_tools::ShownTools;
use rlf_rollout::task_environment::rehearse;
use rlf_rollout::user;
use rlf_rollout::{EpisodeContext, RolloutError};

use super::epochs::Epochs;
use super::{TaskSource, named_tools};
use crate::config::TasksConfig;
use crate::demonstrations::gold::GoldDemonstration;
use crate::demonstrations::{DemonstrationSet, SftDemonstration};
use crate::error::{ConfigurationError, RunFailure, TasksError};
use crate::reporter::RunReporter;
use crate::text::Corpus;

/// Maximum number of tasks of a split whose environments are opened before a run begins.
const MAX_OPENED: usize = 256;

/// Number of tasks that are rendered at once before a run begins.
const AT_ONCE: usize = 16;

/// The tasks of a run's files, and the conversations to imitate if the configuration names a file of them.
pub(crate) struct Files {
    seed: u64,
    train: Vec<Arc<Task>>,
    validation: Vec<Arc<Task>>,
    test: Vec<Arc<Task>>,
    demonstrations: Arc<[Arc<rlf_import::Demonstration>]>,
    epochs: Epochs,
}

/// Reads conversations to imitate, in any format that `data import` reads for SFT.
fn read_demonstrations(path: &Path) -> Result<Vec<Arc<rlf_import::Demonstration>>, TasksError> {
    let rows = rlf_import::read(path, &rlf_import::Options::default())?;
    rows.into_iter()
        .map(|row| match row {
            rlf_import::Imported::Demonstration(demonstration) => Ok(Arc::new(demonstration)),
            rlf_import::Imported::Task(task) => Err(TasksError::NotAConversation {
                path: path.to_owned(),
                id: task.id,
            }),
        })
        .collect()
}

impl Files {
    /// Reads all files that the configuration names.
    pub(crate) fn open(
        config: &TasksConfig,
        seed: u64,
        validation_tasks: usize,
        reporter: &dyn RunReporter,
    ) -> Result<Self, RunFailure> {
        let read = |path: &Path| -> Result<Vec<Arc<Task>>, TasksError> {
            let mut tasks = read_tasks(path)?;
            if let Some(system) = &config.system {
                for task in &mut tasks {
                    if task
                        .prompt
                        .first()
                        .is_none_or(|first| first.role != Role::System)
                    {
                        task.prompt
                            .insert(0, Message::text(Role::System, system.clone()));
                    }
                }
            }
            Ok(tasks.into_iter().map(Arc::new).collect())
        };
        let train = config.train.as_deref();
        let train =
            train.ok_or_else(|| ConfigurationError::value("tasks", "[tasks] needs `train`"))?;
        let mut train = read(train)?;
        let validation = if let Some(path) = &config.validation {
            read(path)?
        } else {
            // Validation tasks are held out of training, unless nothing would be left to train on.
            let held = validation_tasks.min(train.len() / 5).max(1);
            let held_out: Vec<_> = train.iter().take(held).cloned().collect();
            if train.len() > held {
                train.drain(..held);
            } else if config.test.is_none() {
                reporter.warn(
                    "[tasks] train holds one task, so what is measured is what was trained on; name other tasks as \
                     `tasks.test`",
                );
            }
            held_out
        };
        let test = match &config.test {
            Some(path) => read(path)?,
            None => validation.clone(),
        };
        Ok(Self {
            seed,
            epochs: Epochs::new(seed, "tasks", train.len()),
            train,
            validation,
            test,
            demonstrations: match &config.demonstrations {
                Some(path) => read_demonstrations(path)?.into(),
                None => Arc::default(),
            },
        })
    }

    fn split(&self, split: Split) -> &[Arc<Task>] {
        match split {
            Split::Train => &self.train,
            Split::Validation => &self.validation,
            Split::Test => &self.test,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Task>> {
        [&self.train, &self.validation, &self.test]
            .into_iter()
            .flatten()
    }

    /// Renders the tasks of all splits once. Of the tasks with an environment, at most [`MAX_OPENED`] a split are opened
    /// and rendered. If several fail, only the first error is returned.
    async fn rehearse_tasks(&self, context: &EpisodeContext) -> Result<(), TasksError> {
        for split in Split::ALL {
            let tasks = self.split(split);
            let opened = tasks
                .iter()
                .filter(|task| task.environment.is_some())
                .count();
            let every = opened.div_ceil(MAX_OPENED).max(1);
            let mut seen: usize = 0;
            let chosen = tasks.iter().filter(|task| {
                if task.environment.is_none() {
                    return true;
                }
                seen += 1;
                (seen - 1).is_multiple_of(every)
            });
            let rehearsals = chosen.map(|task| async move {
                let rehearsed = rehearse(context, task, split).await;
                rehearsed.map_err(|source| TasksError::Row {
                    split,
                    id: task.id.clone(),
                    source,
                })
            });
            let mut rehearsed = futures_util::stream::iter(rehearsals).buffered(AT_ONCE);
            while rehearsed.try_next().await?.is_some() {}
        }
        Ok(())
    }

    /// The gold calls of the training tasks that have some.
    fn gold(
        &self,
        dialogue: &Arc<Dialogue>,
        shown: &ShownTools,
    ) -> Result<Vec<GoldDemonstration>, RunFailure> {
        let mut gold = Vec::new();
        for task in &self.train {
            let tool_view = shown
                .for_task(Split::Train, task)
                .map_err(RolloutError::Shown)?;
            let written = GoldDemonstration::from_task(task, dialogue, &tool_view);
            gold.extend(written.map_err(|source| TasksError::Gold {
                id: task.id.clone(),
                source,
            })?);
        }
        if gold.is_empty() && self.train.iter().any(|task| user::is_played_by_model(task)) {
            return Err(TasksError::UsersUnknown.into());
        }
        if gold.is_empty() {
            return Err(TasksError::NoDemonstrations.into());
        }
        Ok(gold)
    }
}

impl TaskSource for Files {
    fn training_tasks(&self, numbers: Range<u64>) -> Vec<NumberedTask> {
        numbers
            .map(|number| NumberedTask {
                number,
                task: self.train[self.epochs.index(number)].clone(),
            })
            .collect()
    }

    fn all_training_tasks(&self) -> Option<&[Arc<Task>]> {
        Some(&self.train)
    }

    fn first(&self, split: Split, count: usize) -> Vec<NumberedTask> {
        let tasks = self.split(split).iter().take(count).cloned();
        let numbered = (0..).zip(tasks);
        numbered
            .map(|(number, task)| NumberedTask { number, task })
            .collect()
    }

    fn find(&self, split: Split, which: &str) -> Result<NumberedTask, TasksError> {
        let mut tasks = self.first(split, usize::MAX).into_iter();
        let count = tasks.len();
        let (found, problem) = match which.parse() {
            Ok(number) => (
                tasks.nth(number),
                format!("there is no task {number}: the split has {count}, from 0"),
            ),
            Err(_) => (
                tasks.find(|numbered| numbered.task.id == which),
                format!("no task of this split has the id `{which}`"),
            ),
        };
        found.ok_or(TasksError::NotFound(problem))
    }

    fn all_tasks(&self) -> Vec<Arc<Task>> {
        self.all().cloned().collect()
    }

    fn tools(&self) -> Option<BTreeSet<String>> {
        self.all()
            .map(|task| named_tools(task))
            .try_fold(BTreeSet::new(), |mut all, tools| {
                all.extend(tools?);
                Some(all)
            })
    }

    fn environments(&self) -> BTreeSet<String> {
        self.all()
            .filter_map(|task| task.environment.clone())
            .collect()
    }

    fn corpus(&self) -> Corpus<'_> {
        Box::new(self.train.iter().flat_map(|task| {
            let environment = task.environment.iter();
            let prompt = task.prompt.iter().map(Message::plain_text);
            // The environment's first messages are unknown before it is opened, but setup and reference contain much of
            // their text.
            prompt.chain(environment.map(|_| format!("{} {}", task.setup, task.reference)))
        }))
    }

    fn check(&self, context: &EpisodeContext) -> Result<(), RunFailure> {
        // Runs on its own thread, because the caller may be in an async runtime.
        std::thread::scope(|threads| {
            let checked = threads.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .map_err(RunFailure::io("cannot start checking the tasks"))?;
                Ok(runtime.block_on(self.rehearse_tasks(context))?)
            });
            checked
                .join()
                .unwrap_or(Err(RunFailure::Bug("checking the tasks failed".into())))
        })
    }

    fn demonstrations(
        &self,
        dialogue: &Arc<Dialogue>,
        shown: &ShownTools,
    ) -> Result<Arc<dyn DemonstrationSet>, RunFailure> {
        let epochs = |size| Epochs::new(self.seed, "demonstrations", size);
        if self.demonstrations.is_empty() {
            let gold = self.gold(dialogue, shown)?;
            return Ok(Arc::new(GoldCalls {
                epochs: epochs(gold.len()),
                gold,
            }));
        }
        Ok(Arc::new(Conversations {
            epochs: epochs(self.demonstrations.len()),
            conversations: self.demonstrations.clone(),
        }))
    }
}

/// Demonstrations from the gold calls of training tasks.
struct GoldCalls {
    gold: Vec<GoldDemonstration>,
    epochs: Epochs,
}

impl DemonstrationSet for GoldCalls {
    fn per_epoch(&self) -> u64 {
        self.gold.len() as u64
    }

    fn get(&self, number: u64) -> Result<SftDemonstration, TasksError> {
        let gold = &self.gold[self.epochs.index(number)];
        Ok(SftDemonstration::Played(
            gold.task.clone(),
            Box::new(gold.play()),
        ))
    }
}

/// Demonstrations from the conversations of a data set.
struct Conversations {
    conversations: Arc<[Arc<rlf_import::Demonstration>]>,
    epochs: Epochs,
}

impl DemonstrationSet for Conversations {
    fn per_epoch(&self) -> u64 {
        self.conversations.len() as u64
    }

    fn get(&self, number: u64) -> Result<SftDemonstration, TasksError> {
        let written = self.conversations[self.epochs.index(number)].clone();
        Ok(SftDemonstration::Written(written))
    }
}
