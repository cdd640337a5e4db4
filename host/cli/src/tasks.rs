//! Where tasks come from: the generator, or files.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use rlf_dialogue::config::AnswerRule;
use rlf_dialogue::dataset::read_tasks;
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::episode::Episode;
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::ToolCall;
use rlf_forge::{DemonstratedTurn, FactsWorld, LOOKUP, Stage};
use rlf_policy::{Key, Purpose};
use rlf_rollout::Scene;
use rlf_rollout::demonstrate::Demonstrator;
use rlf_rollout::shown_tools::ShownTools;
use rlf_rollout::user;
use rlf_rollout::world::rehearse;
use serde_json::json;

use crate::assemble::warn;
use crate::config::TasksConfig;
use crate::gold::{Gold, Trial, answering, calling};

/// Name of the generator's table within a run, as `data.<slot> = "run:facts.csv"` binds it.
pub(crate) const FACTS_TABLE: &str = "facts.csv";

/// Tasks by split and number.
pub(crate) enum TaskSource {
    /// Generated, without end in training.
    Facts(Box<FactsWorld>),
    /// Read from files; training goes through them epoch by epoch, shuffled.
    Files(Files),
}

pub(crate) struct Files {
    seed: u64,
    train: Vec<Arc<Task>>,
    validation: Vec<Arc<Task>>,
    test: Vec<Arc<Task>>,
    demonstrations: Vec<Arc<rlf_import::Demonstration>>,
}

/// Most tasks of a split whose worlds are opened before a run begins.
const MOST_WORLDS: usize = 256;

/// A task with its number, which keys its randomness.
pub(crate) type Numbered = (u64, Arc<Task>);

/// Reads conversations to imitate, in any format that `data import` knows for SFT.
fn read_demonstrations(path: &Path) -> anyhow::Result<Vec<Arc<rlf_import::Demonstration>>> {
    let rows = rlf_import::read(path, &rlf_import::Options::default())?;
    rows.into_iter()
        .map(|row| match row {
            rlf_import::Imported::Demonstration(demonstration) => Ok(Arc::new(demonstration)),
            rlf_import::Imported::Task(task) => bail!(
                "[tasks] demonstrations = {}: the row with id {:?} is a task and no conversation",
                path.display(),
                task.id
            ),
        })
        .collect()
}

/// Reads a split's name from the command line.
pub(crate) fn split(name: &str) -> anyhow::Result<Split> {
    match name {
        "train" => Ok(Split::Train),
        "validation" => Ok(Split::Validation),
        "test" => Ok(Split::Test),
        _ => bail!("there is no split `{name}`; write train, validation or test"),
    }
}

impl TaskSource {
    pub(crate) fn open(
        config: &TasksConfig,
        seed: u64,
        validation_tasks: usize,
    ) -> anyhow::Result<Self> {
        if let Some(facts) = &config.facts {
            let world = FactsWorld::generate(seed, facts).context("[tasks.facts]")?;
            return Ok(Self::Facts(Box::new(world)));
        }
        let read = |path: &Path| -> anyhow::Result<Vec<Arc<Task>>> {
            let mut tasks = read_tasks(path)?;
            if tasks.is_empty() {
                bail!("{} holds no task", path.display());
            }
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
        let train = config.train.as_deref().context("[tasks] needs `train`")?;
        let mut train = read(train)?;
        let validation = if let Some(path) = &config.validation {
            read(path)?
        } else {
            // Held out, unless that would leave nothing to train on.
            let held = validation_tasks.min(train.len() / 5).max(1);
            let held_out: Vec<_> = train.iter().take(held).cloned().collect();
            if train.len() > held {
                train.drain(..held);
            } else if config.test.is_none() {
                warn(
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
        Ok(Self::Files(Files {
            seed,
            train,
            validation,
            test,
            demonstrations: match &config.demonstrations {
                Some(path) => read_demonstrations(path)?,
                None => Vec::new(),
            },
        }))
    }

    /// Refuses tasks that cannot be played, before a run begins with them: rows are opened and rendered once, those that live
    /// in an environment up to a number.
    pub(crate) fn check(&self, scene: &Scene) -> anyhow::Result<()> {
        let files = match self {
            Self::Files(files) => files,
            Self::Facts(world) => {
                // All of them use the same tools.
                let task = world.task(Split::Train, Stage::Rl, 0);
                let offered = scene.tools.definitions(task.tools.as_deref());
                let offered = offered.context("[tasks.facts] asks what only tools can answer")?;
                Episode::start(&scene.dialogue, String::new(), &task, offered)
                    .context("[tasks.facts]")?;
                return Ok(());
            }
        };
        // On a thread of its own: this one may belong to an async runtime.
        std::thread::scope(|threads| {
            let checked = threads.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .build()
                    .context("cannot look at the tasks")?;
                runtime.block_on(files.rehearse(scene))
            });
            checked.join().unwrap_or_else(|_| {
                bail!("looking at the tasks failed; this is a bug, please report it")
            })
        })
    }

    /// The environments that some task lives in.
    pub(crate) fn environments(&self) -> BTreeSet<String> {
        match self {
            Self::Facts(_) => BTreeSet::new(),
            Self::Files(files) => [&files.train, &files.validation, &files.test]
                .into_iter()
                .flatten()
                .filter_map(|task| task.environment.clone())
                .collect(),
        }
    }

    /// The first `count` tasks of a split; fewer where a file has no more.
    pub(crate) fn first(&self, split: Split, count: usize) -> Vec<Numbered> {
        match self {
            Self::Facts(world) => (0..count as u64)
                .map(|number| (number, Arc::new(world.task(split, Stage::Eval, number))))
                .collect(),
            Self::Files(files) => {
                let tasks = files.of(split);
                (0..).zip(tasks.iter().take(count).cloned()).collect()
            }
        }
    }

    /// The tools that some task may use; None where one may use whatever is loaded.
    pub(crate) fn tools(&self) -> Option<BTreeSet<String>> {
        let named = |task: &Task| match (&task.tools, &task.environment) {
            (None, Some(_)) => Some(Vec::new()),
            (tools, _) => tools.clone(),
        };
        match self {
            Self::Facts(world) => named(&world.task(Split::Train, Stage::Rl, 0))
                .map(|tools| tools.into_iter().collect()),
            Self::Files(files) => [&files.train, &files.validation, &files.test]
                .into_iter()
                .flatten()
                .map(|task| named(task))
                .try_fold(BTreeSet::new(), |mut all, tools| {
                    all.extend(tools?);
                    Some(all)
                }),
        }
    }

    /// The training tasks of an RL step, a function of the step alone.
    pub(crate) fn practice(&self, step: u64, count: usize) -> Vec<Numbered> {
        let numbers = step * count as u64..(step + 1) * count as u64;
        match self {
            Self::Facts(world) => numbers
                .map(|number| {
                    (
                        number,
                        Arc::new(world.task(Split::Train, Stage::Rl, number)),
                    )
                })
                .collect(),
            Self::Files(files) => numbers
                .map(|number| (number, files.shuffled(number)))
                .collect(),
        }
    }

    /// One task: by its number within the split, or by its id.
    pub(crate) fn find(&self, split: Split, which: &str) -> anyhow::Result<Numbered> {
        match (self, which.parse::<u64>()) {
            (Self::Facts(world), Ok(number)) => {
                Ok((number, Arc::new(world.task(split, Stage::Eval, number))))
            }
            (Self::Facts(world), Err(_)) => (0..10_000)
                .map(|number| (number, world.task(split, Stage::Eval, number)))
                .find(|(_, task)| task.id == which)
                .map(|(number, task)| (number, Arc::new(task)))
                .with_context(|| {
                    format!("no task `{which}` among the first 10,000 of this split; ids look like `{}`", world.task(split, Stage::Eval, 0).id)
                }),
            (Self::Files(files), Ok(number)) => {
                let tasks = files.of(split);
                let task = tasks.get(number as usize).with_context(|| {
                    format!("there is no task {number}: the split has {}, from 0", tasks.len())
                })?;
                Ok((number, task.clone()))
            }
            (Self::Files(files), Err(_)) => (0..)
                .zip(files.of(split))
                .find(|(_, task)| task.id == which)
                .map(|(number, task)| (number, task.clone()))
                .with_context(|| format!("no task of this split has the id `{which}`")),
        }
    }

    /// What SFT goes through, in the order of files. An error names the task whose gold calls or answer the model of
    /// `dialogue` could not write; so does there being nothing.
    pub(crate) fn demonstrations(
        self: &Arc<Self>,
        dialogue: &Arc<Dialogue>,
        shown: &ShownTools,
    ) -> anyhow::Result<DemonstrationSet> {
        let mut gold = Vec::new();
        if let Self::Facts(_) = &**self {
            Trial::new(dialogue, std::iter::once(LOOKUP))?
                .say(&calling(several_lookups()))
                .context("[sft] of [tasks.facts] demonstrates several calls in one turn; use another `template`")?;
        }
        if let Self::Files(files) = &**self
            && files.demonstrations.is_empty()
        {
            for task in &files.train {
                let showing = shown.of(Split::Train, task)?;
                let written = Gold::of(task, dialogue, &showing).with_context(|| {
                    format!(
                        "[sft] demonstrates the gold calls of [tasks], and those of the row with id {:?} cannot be written; \
                         mend or remove the row, or name other demonstrations as `tasks.demonstrations`",
                        task.id
                    )
                })?;
                gold.extend(written);
            }
            if gold.is_empty() && files.train.iter().any(|task| user::is_wanted(task)) {
                bail!(
                    "[sft] needs demonstrations, and the gold calls of tasks whose user a model plays are none: nobody knows what \
                     that user would say; name a file as `tasks.demonstrations`, or remove [sft]"
                );
            }
            if gold.is_empty() {
                bail!(
                    "[sft] needs demonstrations: name a file of them as `tasks.demonstrations`, or tasks whose references have \
                     gold calls, or remove [sft]"
                );
            }
        }
        Ok(DemonstrationSet {
            tasks: self.clone(),
            gold,
            answer: dialogue.config().answer,
        })
    }

    /// Text to train a tokenizer on.
    pub(crate) fn corpus(&self) -> Box<dyn Iterator<Item = String> + Send + '_> {
        /// Enough for every piece that recurs; more changes nothing but the time.
        const EXERCISES: u64 = 2000;
        match self {
            Self::Facts(world) => Box::new(world.tokenizer_corpus(EXERCISES)),
            Self::Files(files) => Box::new(files.train.iter().flat_map(|task| {
                let world = task.environment.iter();
                let prompt = task.prompt.iter().map(Message::plain_text);
                // What is said there is not known before it is opened, and much of it is in here.
                prompt.chain(world.map(|_| format!("{} {}", task.setup, task.reference)))
            })),
        }
    }
}

impl Files {
    /// See [`TaskSource::check`].
    async fn rehearse(&self, scene: &Scene) -> anyhow::Result<()> {
        for split in [Split::Train, Split::Validation, Split::Test] {
            let tasks = self.of(split);
            let worlds = tasks
                .iter()
                .filter(|task| task.environment.is_some())
                .count();
            let every = worlds.div_ceil(MOST_WORLDS).max(1);
            let mut seen = 0;
            for task in tasks {
                if task.environment.is_some() {
                    seen += 1;
                    if seen % every != 0 && seen != 1 {
                        continue;
                    }
                }
                let rehearsed = rehearse(scene, task, split).await;
                rehearsed.with_context(|| {
                    format!(
                        "[tasks], {} split: the row with id {:?}",
                        split.as_str(),
                        task.id
                    )
                })?;
            }
        }
        Ok(())
    }

    fn of(&self, split: Split) -> &[Arc<Task>] {
        match split {
            Split::Train => &self.train,
            Split::Validation => &self.validation,
            Split::Test => &self.test,
        }
    }

    /// The `number`-th training task over all epochs; each epoch has an order of its own.
    fn shuffled(&self, number: u64) -> Arc<Task> {
        self.train[self.shuffle("tasks", number, self.train.len())].clone()
    }

    /// Index of the `number`-th of `size` things over all epochs.
    fn shuffle(&self, what: &'static str, number: u64, size: usize) -> usize {
        let (epoch, within) = (number / size as u64, (number % size as u64) as usize);
        let mut order: Vec<usize> = (0..size).collect();
        Key::new(self.seed, Purpose::Order)
            .named(what)
            .at(epoch)
            .shuffle(&mut order);
        order[within]
    }
}

/// What shows how a task is solved.
pub(crate) enum Demonstration {
    /// A demonstrator that plays it against the real tools.
    Played(Arc<Task>, Box<dyn Demonstrator>),
    /// A conversation of a data set.
    Written(Arc<rlf_import::Demonstration>),
}

/// What shows how the tasks of a run are solved: demonstrations of the generator, or of a file, or the gold calls of
/// training tasks.
pub(crate) struct DemonstrationSet {
    tasks: Arc<TaskSource>,
    gold: Vec<Gold>,
    answer: AnswerRule,
}

impl DemonstrationSet {
    /// How many there are before they come again.
    pub(crate) fn different(&self) -> u64 {
        match &*self.tasks {
            TaskSource::Facts(_) => u64::MAX,
            TaskSource::Files(files) if files.demonstrations.is_empty() => self.gold.len() as u64,
            TaskSource::Files(files) => files.demonstrations.len() as u64,
        }
    }

    /// The `number`-th over all epochs, each of which has an order of its own.
    pub(crate) fn get(&self, number: u64) -> anyhow::Result<Demonstration> {
        let files = match &*self.tasks {
            TaskSource::Facts(world) => {
                let task = world.task(Split::Train, Stage::Sft, number);
                let demonstrator = Facts {
                    writer: world.demonstration(&task)?,
                    answer: self.answer,
                };
                return Ok(Demonstration::Played(
                    Arc::new(task),
                    Box::new(demonstrator),
                ));
            }
            TaskSource::Files(files) => files,
        };
        let pick = |size| files.shuffle("demonstrations", number, size);
        if files.demonstrations.is_empty() {
            let gold = &self.gold[pick(self.gold.len())];
            Ok(Demonstration::Played(
                gold.task.clone(),
                Box::new(gold.play()),
            ))
        } else {
            let written = files.demonstrations[pick(files.demonstrations.len())].clone();
            Ok(Demonstration::Written(written))
        }
    }
}

/// Of one turn, as some of the generator's demonstrations have them.
fn several_lookups() -> Vec<ToolCall> {
    let call = |key: &str| ToolCall {
        call_id: String::new(),
        name: LOOKUP.to_owned(),
        arguments: json!({"of": key}),
    };
    ["a", "b"].map(call).into()
}

/// The generator's demonstrator, writing as the run's model does.
struct Facts {
    writer: rlf_forge::Demonstrator,
    answer: AnswerRule,
}

impl Demonstrator for Facts {
    fn next_turn(&mut self, episode: &Episode, observations: &[String]) -> Result<String, String> {
        let turn = match self.writer.next_turn(observations) {
            Ok(Some(DemonstratedTurn::Act(calls))) => calling(calls),
            Ok(Some(DemonstratedTurn::Answer(answer))) => answering(&answer, self.answer),
            Ok(None) => return Err("the demonstration is over, but the episode is not".into()),
            Err(error) => return Err(error.to_string()),
        };
        episode.write_turn(&turn).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::open_tokenizer;
    use crate::config::Config;
    use rlf_dialogue::template::ChatTemplate;
    use rlf_forge::CALCULATE;

    fn quickstart() -> (Config, TaskSource) {
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/quickstart.toml");
        let config = Config::load(&config, &[]).unwrap();
        let tasks = TaskSource::open(&config.tasks, config.seed, 1).unwrap();
        (config, tasks)
    }

    /// That is what the coverage below is counted on.
    #[test]
    fn demonstrations_of_the_quickstart_are_written_as_the_generator_counts_them() {
        let (config, tasks) = quickstart();
        let tokenizer = Arc::new(open_tokenizer(&config, &tasks).unwrap());
        let template = ChatTemplate::small();
        let dialogue = Dialogue::new(tokenizer, template, config.dialogue.clone(), &[]).unwrap();
        let answer = dialogue.config().answer;
        let trial = Trial::new(&Arc::new(dialogue), [LOOKUP, CALCULATE].into_iter()).unwrap();
        let TaskSource::Facts(world) = &tasks else {
            panic!("the quickstart's tasks are generated");
        };
        for number in 0..300 {
            let task = world.task(Split::Train, Stage::Sft, number);
            let writer = || world.demonstration(&task).unwrap();
            let turn = writer().next_turn(&[]).unwrap().unwrap();
            let mut facts = Facts {
                writer: writer(),
                answer,
            };
            let written = facts.next_turn(trial.episode(), &[]);
            assert_eq!(written, Ok(turn.to_hermes()));
        }
        let calls = several_lookups();
        for (turn, message) in [
            (DemonstratedTurn::Act(calls.clone()), calling(calls)),
            (
                DemonstratedTurn::Answer("5.4".into()),
                answering("5.4", answer),
            ),
        ] {
            let written = trial.episode().write_turn(&message);
            assert_eq!(written.unwrap(), turn.to_hermes());
        }
    }

    #[test]
    fn every_token_of_a_held_out_quickstart_task_is_common_in_its_demonstrations() {
        let (config, tasks) = quickstart();
        let tokenizer = open_tokenizer(&config, &tasks).unwrap();
        let TaskSource::Facts(world) = &tasks else {
            panic!("the quickstart's tasks are generated");
        };
        let encode = |text: &str| tokenizer.encode_trusted(text);
        // A fraction of what training shows: 1,200 steps of 64.
        let coverage = world.token_coverage(&encode, 10_000, config.eval.tasks as u64, 10);
        assert!(coverage.tokens > 100, "{}", coverage.tokens);
        assert_eq!(coverage.rare, []);
    }
}
