//! A step of a run is played again and compared with what the run recorded, bit for bit. The run stays as it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rlf_tests::{Ended, Experiment, RunFolder};
use serde_json::{Value, json};

/// Exit codes of `rlf-host replay`.
const DIFFERS: i32 = 1;
const NOT_REPLAYED: i32 = 2;

fn replay_with(experiment: &Experiment, plugins: &Path, step: u64, further: &[&str]) -> Ended {
    let (run, step) = (experiment.path("run"), step.to_string());
    let own: [&Path; 6] = [
        "replay".as_ref(),
        &run,
        "--step".as_ref(),
        step.as_ref(),
        "--plugins".as_ref(),
        plugins,
    ];
    let further = further.iter().map(Path::new);
    experiment.host().run(own.into_iter().chain(further))
}

fn replay(experiment: &Experiment, step: u64, further: &[&str]) -> Ended {
    replay_with(experiment, experiment.host().plugins(), step, further)
}

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("can be listed") {
            let path = entry.expect("can be listed").path();
            if path.is_symlink() {
                let to = fs::read_link(&path).expect("is a link");
                found.insert(path, to.into_os_string().into_encoded_bytes());
            } else if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).expect("can be read");
                found.insert(path, bytes);
            }
        }
    }
    found
}

/// Changes the trajectories that a run kept of a step.
fn change(run: &RunFolder, step: u64, change: impl Fn(&mut [Value])) {
    let file = run.path().join(format!("trajectories/rl-{step:06}.jsonl"));
    let text = fs::read_to_string(&file).expect("was written");
    let lines = text.lines().map(serde_json::from_str);
    let mut records: Vec<Value> = lines.collect::<Result<_, _>>().expect("is JSON");
    change(&mut records);
    let lines = records.iter().map(|record| format!("{record}\n"));
    fs::write(&file, lines.collect::<String>()).expect("can be written");
}

/// The values of the first turn of a trajectory: `ids` or `log_probs`.
fn first_turn<'r>(record: &'r mut Value, key: &str) -> &'r mut Vec<Value> {
    let segments = record["trajectory"]["sequences"][0].as_array_mut();
    let segments = segments.expect("a sequence").iter_mut();
    let mut turns = segments.filter_map(|segment| segment.get_mut("model"));
    let turn = turns.next().expect("a turn of the model");
    let values = turn["sampled"][key].as_array_mut();
    values.expect("a list")
}

#[test]
fn every_step_is_the_same_again_and_the_run_stays_as_it_is() {
    // A KL term needs the weights that RL began with, too.
    let experiment = Experiment::calling().with("rl.kl_coefficient", 0.01);
    let run = experiment.train("run", &[]);
    let before = files(run.path());
    // There are checkpoints after SFT and after steps 2 and 4.
    for (step, first) in [(1, 1), (2, 1), (3, 3), (4, 3)] {
        let replayed = replay(&experiment, step, &[]);
        let same = format!("step {step} is the same: 8 trajectories with ");
        assert!(replayed.succeeded().stdout.contains(&same), "{replayed}");
        let steps = if first == step {
            format!("replaying step {step} from ")
        } else {
            format!("replaying steps {first} to {step} from ")
        };
        assert!(replayed.stdout.contains(&steps), "{replayed}");
    }
    assert!(files(run.path()) == before, "the run was changed");
}

#[test]
fn a_step_that_older_weights_played_is_the_same_again() {
    let experiment = Experiment::calling()
        .with("rl.staleness", 2)
        .with("sft.steps", 20);
    experiment.train("run", &[]);
    // From the end of SFT, and from the checkpoint after step 2, which holds the weights of two moments.
    for step in [2, 4] {
        let replayed = replay(&experiment, step, &[]);
        let same = format!("step {step} is the same: 8 trajectories with ");
        assert!(replayed.succeeded().stdout.contains(&same), "{replayed}");
    }
}

#[test]
fn a_run_without_sft_is_replayed_from_its_first_weights() {
    let experiment = Experiment::tiny().without("sft").with("eval.every", 0);
    experiment.train("run", &[]);
    let replayed = replay(&experiment, 1, &["--json"]);
    let report: Value = replayed.succeeded().json();
    assert_eq!(report["same"], true, "{report}");
    assert_eq!(report["replay"]["compared"]["trajectories"], 8);
    assert_eq!(report["replay"]["compared"]["differences"], json!([]));
}

#[test]
fn a_changed_token_log_probability_or_reward_is_named() {
    let experiment = Experiment::tiny();
    let run = experiment.train("run", &[]);
    let other = |id: u64| if id == 40 { 41 } else { 40 };
    change(&run, 3, |records| {
        let id = &mut first_turn(&mut records[1], "ids")[0];
        *id = other(id.as_u64().expect("an id")).into();
        let number = &mut first_turn(&mut records[2], "log_probs")[0];
        *number = (number.as_f64().expect("a number") - 1.0).into();
        records[6]["score"]["reward"] = 7.5.into();
    });
    let replayed = replay(&experiment, 3, &[]);
    assert_eq!(replayed.status.code(), Some(DIFFERS), "{replayed}");
    for part in [
        "step 3 differs from what was recorded",
        ", sample 1: turn 1, token 1: recorded 4",
        ", sample 2: turn 1, token 1, log-probability: recorded -",
        ", sample 2: reward: recorded 7.5, replayed ",
        "so the reason is not known",
    ] {
        assert!(replayed.stdout.contains(part), "{part}: {replayed}");
    }

    // A later step is not played, because its weights follow from this one.
    let replayed = replay(&experiment, 4, &[]);
    assert_eq!(replayed.status.code(), Some(DIFFERS), "{replayed}");
    for part in [
        "step 3 differs from what was recorded",
        "step 4 was not played: its weights follow from step 3",
    ] {
        assert!(replayed.stdout.contains(part), "{part}: {replayed}");
    }
}

#[test]
fn a_step_without_trajectories_is_compared_by_its_metrics() {
    let experiment = Experiment::tiny().with("checkpoint.trajectories_every", 2);
    let run = experiment.train("run", &[]);
    let only =
        "kept no trajectories of step 1 (checkpoint.trajectories_every), so only its metrics";
    let replayed = replay(&experiment, 1, &[]);
    assert!(replayed.succeeded().stdout.contains(only), "{replayed}");

    let file = run.path().join("metrics.jsonl");
    let lines = run.metrics().into_iter().map(|mut line| {
        if line["phase"] == "rl" && line["step"] == 1 && line.get("split").is_none() {
            line["reward"] = 7.5.into();
        }
        format!("{line}\n")
    });
    fs::write(&file, lines.collect::<String>()).expect("can be written");
    let replayed = replay(&experiment, 1, &[]);
    assert_eq!(replayed.status.code(), Some(DIFFERS), "{replayed}");
    let differs = "metric `reward`: recorded 7.5, replayed ";
    assert!(replayed.stdout.contains(differs), "{replayed}");
}

#[test]
fn another_plugin_is_told() {
    let experiment = Experiment::tiny();
    experiment.train("run", &[]);
    let plugins = experiment.path("plugins");
    for name in ["calculator", "exact-match", "format", "lookup"] {
        let (from, to) = (experiment.host().plugins().join(name), plugins.join(name));
        fs::create_dir_all(&to).expect("can be made");
        for file in ["plugin.toml".to_owned(), format!("{name}.wasm")] {
            fs::copy(from.join(&file), to.join(&file)).expect("can be copied");
        }
    }
    // A custom section at the end changes only the hash.
    let component = plugins.join("calculator/calculator.wasm");
    let mut bytes = fs::read(&component).expect("was copied");
    bytes.extend([0, 2, 1, b'x']);
    fs::write(&component, bytes).expect("can be written");
    let replayed = replay_with(&experiment, &plugins, 1, &[]);
    let told = "changed since the run was made:\n  plugin calculator: was ";
    assert!(replayed.succeeded().stdout.contains(told), "{replayed}");
}

/// A tool that looks up a fact, and adds entropy of the machine to it.
const RANDOM: &str = r"
import csv, io, os, rlf

@rlf.init
def load():
    global rows
    (text,) = rlf.data('table').values()
    rows = {row['name']: row for row in csv.DictReader(io.StringIO(text.decode()))}

@rlf.tool
def lookup(of: str, get: str) -> str:
    return rows.get(of, {}).get(get, 'nothing') + ' ' + os.urandom(8).hex()
";

#[test]
fn calls_that_do_not_repeat_take_their_recorded_outcomes() {
    let experiment = Experiment::calling();
    let table = experiment.path("table");
    fs::create_dir(&table).expect("can be made");
    experiment.write("table/table.py", RANDOM);
    let manifest = "data = [\"table\"]\ngates = [\"real-random\"]\n";
    experiment.write("table/plugin.toml", manifest);
    let path = table.display();
    let entry = format!("[plugins.table]\npath = '{path}'\n");
    let grants = experiment.write("grants.toml", entry);
    let name = grants.to_str().expect("a plain name");
    let grant = ["grant", "table", "--gate", "real-random", "--config", name];
    experiment.host().plugin(grant).succeeded();
    let granted = fs::read_to_string(&grants).expect("is there");
    let granted: toml::Table = granted.parse().expect("is TOML");
    let hash = granted["plugins"]["table"]["hash"].as_str();
    let hash = hash.expect("has a hash");
    let settings = format!(
        "plugins.lookup.enabled = false
        rewards.success = 'exact-match.f1 >= 0.5'
        plugins.table = {{path = '{path}', hash = '{hash}', grants = ['real-random'], data.table = 'run:facts.csv'}}"
    );
    let experiment = experiment.with_toml(&settings);
    let run = experiment.train("run", &[]);
    let records = &run.trajectories()["rl-000001.jsonl"];
    let is_called = records.iter().any(|record| {
        let events = record["trajectory"]["events"].as_array();
        let mut events = events.into_iter().flatten();
        events.any(|event| event["outcome"]["ended"] == "ok")
    });
    assert!(is_called, "the policy made no call");

    let replayed = replay(&experiment, 1, &[]);
    let told = "calls with recorded outcomes, which were not made again: ";
    assert!(replayed.succeeded().stdout.contains(told), "{replayed}");
    let replayed = replay(&experiment, 1, &["--outcomes", "again"]);
    assert_eq!(replayed.status.code(), Some(DIFFERS), "{replayed}");
    for part in [
        ": turn 1, call of `lookup`: recorded ok: ",
        "calls of tools that do not repeat: lookup",
    ] {
        assert!(replayed.stdout.contains(part), "{part}: {replayed}");
    }
}

#[test]
fn what_cannot_be_replayed_is_refused_with_the_reason() {
    let experiment = Experiment::tiny().with("eval.every", 0);
    let run = experiment.train("run", &[]);
    let refused = |step: u64, reason: &str| {
        let replayed = replay(&experiment, step, &[]);
        assert_eq!(replayed.status.code(), Some(NOT_REPLAYED), "{replayed}");
        assert!(replayed.stderr.contains(reason), "{replayed}");
    };
    refused(5, "has no step 5 of RL: it recorded steps 1 to 4");
    fs::remove_dir_all(run.checkpoint("sft-000004")).expect("is there");
    refused(
        2,
        "has no checkpoint before step 2 of RL; put the last one of SFT back",
    );
    let file = run.path().join("config.toml");
    let config = fs::read_to_string(&file).expect("is there");
    let engine = "\n[external_engine]\nurl = \"http://127.0.0.1:1\"\n";
    fs::write(&file, config + engine).expect("can be written");
    refused(4, "the engine of [external_engine] sampled its turns");
    fs::remove_file(file).expect("is there");
    refused(4, "is not a run: it has no config.toml");
}
