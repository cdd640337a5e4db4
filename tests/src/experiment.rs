//! A training run small enough for a test: `configs/quickstart.toml`, with fewer of everything.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toml::{Table, Value};

use crate::host::Host;
use crate::process::{Ended, Running};
use crate::run_folder::RunFolder;

/// A configuration in its own folder, which also holds the runs made from it. Dropping it removes the folder.
#[derive(Debug)]
pub struct Experiment {
    host: Host,
    folder: TempDir,
    config: Table,
}

impl Experiment {
    /// The quickstart with only a few steps on a few tasks. The reward for well-formed calls gives even an untrained
    /// policy groups with advantages, so that its weights move.
    pub fn tiny() -> Self {
        let host = Host::new();
        let path = host.root().join("configs/quickstart.toml");
        let text = fs::read_to_string(&path).expect("the quickstart's configuration is there");
        let config = text
            .parse()
            .expect("the quickstart's configuration is TOML");
        let experiment = Self {
            host,
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            config,
        };
        experiment
            .with("seed", 1)
            .with("sft.steps", 4)
            .with("sft.batch_size", 8)
            .with("rl.steps", 4)
            .with("rl.prompts_per_step", 2)
            .with("rl.group_size", 4)
            .with("rl.refill", 0)
            .with("rl.optimizer.schedule", "constant")
            .with("eval.tasks", 4)
            .with("eval.samples", 2)
            .with("eval.validation_tasks", 2)
            .with("eval.every", 2)
            .with("tasks.facts.generated", 300)
            .with("checkpoint.every", 2)
            .with("checkpoint.keep_last", 100)
            .with("checkpoint.trajectories_every", 1)
            .with_toml(
                "rewards.stack = [
                    {plugin = 'exact-match', weights = {em = 1.0}},
                    {plugin = 'format', weights = {well_formed = 0.5, answered = 0.25}},
                ]",
            )
    }

    /// [`Experiment::tiny`], trained on look-ups only, just long enough that the policy makes calls. It takes some
    /// seconds.
    pub fn calling() -> Self {
        Self::tiny()
            .with("sft.steps", 60)
            .with("sft.batch_size", 16)
            .with("sft.optimizer.warmup_steps", 5)
            .with("sft.optimizer.learning_rate", 5e-3)
            .with("checkpoint.every", 2)
            .with_toml(
                "tasks.facts.sft = {lookup = 1.0}
                tasks.facts.rl = {lookup = 1.0}
                tasks.facts.eval = {lookup = 1.0, chain = 1.0}",
            )
    }

    /// Sets one setting to another value.
    #[must_use]
    pub fn with(self, key: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.with_toml(&format!("{key} = {value}"))
    }

    /// Sets several settings, given as TOML text.
    #[must_use]
    pub fn with_toml(mut self, settings: &str) -> Self {
        let settings: Table = settings.parse().expect("a test's settings are TOML");
        merge(&mut self.config, settings);
        self
    }

    /// Removes a table of settings.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        assert!(self.config.remove(key).is_some(), "there is no `{key}`");
        self
    }

    /// The host that it runs on.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// A path in its folder, which need not exist.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into its folder.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("a file can be written");
        path
    }

    /// The text of its configuration.
    pub fn text(&self) -> String {
        toml::to_string(&self.config).expect("a configuration is TOML")
    }

    /// Starts training into the folder `run` of this experiment, with further arguments.
    pub fn start(&self, run: &str, further: &[&str]) -> Running {
        let config = self.write("config.toml", self.text());
        let (plugins, run) = (self.host.plugins(), self.path(run));
        let own: [&Path; 6] = [
            "train".as_ref(),
            &config,
            "--plugins".as_ref(),
            plugins,
            "--run".as_ref(),
            &run,
        ];
        let further = further.iter().map(AsRef::as_ref);
        self.host.start(own.into_iter().chain(further))
    }

    /// Trains into the folder `run`, with further arguments. The run may fail.
    pub fn try_train(&self, run: &str, further: &[&str]) -> Ended {
        self.start(run, further).wait()
    }

    /// Trains into the folder `run`; fails the test if that fails.
    #[track_caller]
    pub fn train(&self, run: &str, further: &[&str]) -> RunFolder {
        self.try_train(run, further).succeeded();
        self.run(run)
    }

    /// The contents of the folder `run`.
    pub fn run(&self, run: &str) -> RunFolder {
        RunFolder::at(self.path(run))
    }
}

/// Merges settings into others: tables are merged, every other value is replaced.
fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(into)), Value::Table(from)) => merge(into, from),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}
