//! Plugins ask the run's own weights of earlier moments: which ones follows from the steps alone, in a resumed run and in
//! an evaluation, too.

use std::fs;
use std::path::Path;

use rlf_tests::{Experiment, RunFolder, without_times};
use rustix::process::Signal;
use serde_json::Value;

/// A reward that asks both models, and looks at nothing but the length of what they say.
const CRITIC: &str = r"
import { askModels } from 'rlf';

/** @reward */
export function critic(task, trajectory) {
  const said = `Right or wrong: ${(trajectory.answer ?? 'nothing').slice(0, 20)}`;
  const models = ['first', 'opponent'];
  const answers = askModels(models.map((model) => ({ messages: said, model, maxTokens: 12 })));
  const [first, opponent] = answers.map(({ text }) => text.length);
  return { liked: ((first + 3 * opponent) % 11) / 10 };
}
";

/// A small run that both models grade: the initial policy, and the policy of every second step of RL.
fn criticised() -> Experiment {
    let experiment = Experiment::calling();
    let folder = experiment.path("critic");
    fs::create_dir(&folder).expect("can be made");
    experiment.write("critic/critic.js", CRITIC);
    experiment.write("critic/plugin.toml", "gates = ['model']\n");
    let path = folder.display();
    let grants = experiment.write(
        "grants.toml",
        format!("[plugins.critic]\npath = '{path}'\n"),
    );
    let grant = ["grant", "critic", "--gate", "model", "--config"];
    let grant = grant.into_iter().chain(grants.to_str());
    experiment.host().plugin(grant).succeeded();
    let granted = fs::read_to_string(&grants).expect("is there");
    let granted: toml::Table = granted.parse().expect("is TOML");
    let hash = granted["plugins"]["critic"]["hash"].as_str();
    let hash = hash.expect("has a hash");
    experiment.with_toml(&format!(
        "rewards.stack = [
            {{plugin = 'exact-match', weights = {{em = 1.0}}}},
            {{plugin = 'critic', weights = {{liked = 0.5}}}},
        ]
        [plugins.critic]
        path = '{path}'
        hash = '{hash}'
        grants = ['model']
        models = ['first', 'opponent']
        limits.wall_ms = 60000
        [models.first]
        policy = {{of_run = 'start', max_tokens = 12, context = 128}}
        [models.opponent]
        policy = {{of_run = 'rl', refresh_every = 2, max_tokens = 12, context = 128}}"
    ))
}

/// A folder of frozen weights.
fn frozen(run: &RunFolder, moment: &str) -> Vec<u8> {
    weights(&run.path().join("frozen").join(moment))
}

fn weights(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("model.safetensors")).expect("there are weights")
}

fn moments(run: &RunFolder) -> Vec<String> {
    let entries = fs::read_dir(run.path().join("frozen")).expect("is there");
    let names = entries.map(|entry| entry.expect("can be read").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.into_string().expect("a plain name"))
        .collect();
    names.sort();
    names
}

/// The records of a run: all but times, and how many of the answers had been recorded before.
fn records(run: &RunFolder) -> Vec<Value> {
    let trajectories = run.trajectories().into_values().flatten();
    let lines = run.metrics().into_iter().chain(trajectories);
    let without = |line: Value| {
        let mut line = without_times(line);
        let fields = line.as_object_mut().expect("an object");
        fields.retain(|key, _| !key.starts_with("model/"));
        line
    };
    lines.map(without).collect()
}

#[test]
fn a_run_that_is_killed_asks_the_same_weights_again_and_so_does_an_evaluation() {
    let experiment = criticised();
    let whole = experiment.train("whole", &[]);
    assert_eq!(
        moments(&whole),
        ["rl-000000", "rl-000002", "rl-000004", "start"]
    );
    for (moment, checkpoint) in [
        ("rl-000000", "sft-000060"),
        ("rl-000002", "rl-000002"),
        ("rl-000004", "rl-000004"),
    ] {
        let trained = weights(&whole.checkpoint(checkpoint));
        assert!(frozen(&whole, moment) == trained, "{moment}");
    }
    assert!(frozen(&whole, "start") != frozen(&whole, "rl-000000"));
    let asked = |model: &str| -> f64 {
        let key = format!("model/{model}/questions");
        let steps = whole.steps("rl");
        steps.iter().filter_map(|step| step[&key].as_f64()).sum()
    };
    assert!(asked("first") > 0.0 && asked("opponent") > 0.0);

    for (name, moment) in [
        ("sft", "sft 50/60"),
        ("between", "after SFT"),
        ("rl", "rl  1/4"),
        ("later", "rl  3/4"),
    ] {
        let killed = {
            let mut running = experiment.start(name, &[]);
            running.until(moment).signal(Signal::KILL);
            running.wait()
        };
        assert_eq!(killed.signal(), Some(9), "it was over before: {killed}");
        // Without records, the same answers come from the same weights.
        let records_folder = experiment.path(name).join("models");
        fs::remove_dir_all(records_folder).expect("answers were recorded");
        let resumed = experiment.train(name, &["--resume"]);
        assert_eq!(records(&whole), records(&resumed), "{name}");
        assert!(whole.weights() == resumed.weights(), "{name}");
    }

    // The newest checkpoint asks the weights that the last evaluation of the run asked.
    fs::remove_dir_all(whole.path().join("models")).expect("answers were recorded");
    let host = experiment.host();
    let plugins = host.plugins().to_str().expect("a plain name");
    let measured = host.run(["eval", whole.as_str(), "--plugins", plugins, "--json"]);
    let metrics = whole.metrics();
    let last = metrics.last().expect("there is a line");
    assert_eq!(
        measured.succeeded().json()["terms"],
        last["eval/terms"],
        "{measured}"
    );
}

#[test]
fn a_run_that_trains_adapters_keeps_these_alone_and_asks_them_again_when_it_is_killed() {
    // No model needs the weights of the start once RL has begun, so they are removed.
    let experiment = criticised()
        .with("model.lora.rank", 2)
        .with("rl.optimizer.learning_rate", 1e-2)
        .with("models.first.policy.of_run", "rl")
        .with("checkpoint.keep_last", 1);
    let whole = experiment.train("whole", &[]);
    let frozen = |moment: &str| {
        let folder = whole.path().join("frozen").join(moment);
        assert!(!folder.join("model.safetensors").exists(), "{moment}");
        fs::read(folder.join("adapter_model.safetensors")).expect("there are adapters")
    };
    assert!(frozen("rl-000002") != frozen("rl-000000"));
    assert!(!moments(&whole).contains(&"start".to_owned()));
    let killed = {
        let mut running = experiment.start("killed", &[]);
        running.until("rl  3/4").signal(Signal::KILL);
        running.wait()
    };
    assert_eq!(killed.signal(), Some(9), "it was over before: {killed}");
    let records_folder = experiment.path("killed").join("models");
    fs::remove_dir_all(records_folder).expect("answers were recorded");
    let resumed = experiment.train("killed", &["--resume"]);
    assert_eq!(records(&whole), records(&resumed));
}

#[test]
fn a_step_asks_the_weights_that_belong_to_the_policy_that_plays_it() {
    let experiment = criticised()
        .with("rl.staleness", 1)
        .with("checkpoint.every", 1);
    let whole = experiment.train("whole", &[]);
    let killed = {
        let mut running = experiment.start("killed", &[]);
        running.until("rl  3/4").signal(Signal::KILL);
        running.wait()
    };
    assert_eq!(killed.signal(), Some(9), "it was over before: {killed}");
    // Without records, the same answers come from the same weights.
    let records_folder = experiment.path("killed").join("models");
    fs::remove_dir_all(records_folder).expect("answers were recorded");
    let resumed = experiment.train("killed", &["--resume"]);
    assert_eq!(records(&whole), records(&resumed));
    assert!(whole.weights() == resumed.weights());
}

#[test]
fn without_a_run_the_key_and_the_folder_are_named() {
    let experiment = criticised();
    let output = experiment.path("none").display().to_string();
    let experiment = experiment.with("output", output.as_str());
    let config = experiment.write("config.toml", experiment.text());
    let grade = ["grade", "critic", "--answer", "a", "--reference", "a"];
    let config = ["--config", config.to_str().expect("a plain name")];
    let graded = experiment.host().plugin(grade.into_iter().chain(config));
    assert_eq!(graded.code(), Some(1), "{graded}");
    for part in [
        "models.first.policy.of_run",
        "there is no run in",
        output.as_str(),
    ] {
        assert!(graded.stderr.contains(part), "{graded}");
    }
    let settings = "models.first.policy = {checkpoint = 'a'}";
    let both = experiment.with_toml(settings).try_train("run", &[]);
    both.refused_with(&["models.first.policy.of_run", "keep one of"]);
}
