//! The files and folders that a run reads while it trains: tasks, and the weights and recorded answers of models. Their
//! content belongs to the identity of the run.

use std::collections::BTreeMap;
use std::path::Path;

use rlf_train::run::{Input, RunError};

use crate::config::RunConfig;

/// The inputs of a run with this configuration as they are now, by the key that names them. What is not there any more is
/// left out: a run whose checkpoints have all weights does not need those that it began with.
pub(crate) fn read(config: &RunConfig) -> Result<BTreeMap<String, Input>, RunError> {
    let RunConfig { tasks, model, .. } = config;
    let models = config.asked_models();
    let lora = model.lora.as_ref();
    let mut named: Vec<(String, Option<&Path>)> = vec![
        ("tasks.train".into(), tasks.train.as_deref()),
        ("tasks.validation".into(), tasks.validation.as_deref()),
        ("tasks.test".into(), tasks.test.as_deref()),
        (
            "tasks.demonstrations".into(),
            tasks.demonstrations.as_deref(),
        ),
        ("model.checkpoint".into(), model.checkpoint.as_deref()),
        (
            "model.lora.adapter".into(),
            lora.and_then(|lora| lora.adapter.as_deref()),
        ),
    ];
    for (name, model) in &models {
        let policy = model.policy.as_ref();
        let checkpoint = policy.and_then(|policy| policy.checkpoint.as_deref());
        let adapter = policy.and_then(|policy| policy.adapter.as_deref());
        named.push((format!("models.{name}.policy.checkpoint"), checkpoint));
        named.push((format!("models.{name}.policy.adapter"), adapter));
        named.push((format!("models.{name}.replay"), model.replay.as_deref()));
    }
    let there = named
        .into_iter()
        .filter_map(|(key, path)| Some((key, path?)));
    there
        .filter(|(_, path)| path.is_file() || path.is_dir())
        .map(|(key, path)| Ok((key, Input::read(path)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_files_and_folders_that_a_run_reads_count_by_their_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["base", "start", "judge", "taste"] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join("config.json"), name).unwrap();
        }
        for name in ["train", "validation", "test", "demonstrations", "answers"] {
            fs::write(path(name), name).unwrap();
        }
        let text = "
            output = 'run'
            [model]
            checkpoint = 'base'
            lora = {rank = 2, adapter = 'start'}
            [rewards]
            success = 'reward.reward >= 1'
            stack = []
            [rl]
            steps = 1
            [tasks]
            train = 'train'
            validation = 'validation'
            test = 'test'
            demonstrations = 'demonstrations'
            [models]
            judge.policy = {checkpoint = 'judge', adapter = 'taste'}
            old.replay = 'answers'
            gone.replay = 'not there'
            asked.endpoint = {url = 'http://127.0.0.1:1/v1', model = 'a'}
            unused.replay = 'train'
            [plugins.reward]
            models = ['judge', 'old', 'gone', 'asked']";
        fs::write(path("run.toml"), text).unwrap();
        let config = RunConfig::load(&path("run.toml"), &[]).unwrap();
        let inputs = read(&config).unwrap();
        let named: Vec<(&str, &str)> = inputs
            .iter()
            .map(|(key, input)| {
                (
                    key.as_str(),
                    input.path.file_name().unwrap().to_str().unwrap(),
                )
            })
            .collect();
        let expected = [
            ("model.checkpoint", "base"),
            ("model.lora.adapter", "start"),
            ("models.judge.policy.adapter", "taste"),
            ("models.judge.policy.checkpoint", "judge"),
            ("models.old.replay", "answers"),
            ("tasks.demonstrations", "demonstrations"),
            ("tasks.test", "test"),
            ("tasks.train", "train"),
            ("tasks.validation", "validation"),
        ];
        assert_eq!(named, expected);
    }
}
