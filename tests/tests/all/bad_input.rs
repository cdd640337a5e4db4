//! Bad input ends with one message that says what is wrong, where, and how to mend it, with an exit code other than
//! 0, and with no half-written files.

use std::fs;
use std::path::{Path, PathBuf};

use rlf_tests::{Ended, Experiment};
use serde_json::{Value, json};

/// Fails the test unless the attempt was refused with these words and left no run behind.
#[track_caller]
fn refused_cleanly(experiment: &Experiment, attempt: &Ended, parts: &[&str]) {
    attempt.refused_with(parts);
    let run = experiment.path("run");
    assert!(
        !run.exists(),
        "left behind: {:?}: {attempt}",
        fs::read_dir(&run).map(|entries| entries
            .filter_map(|entry| Some(entry.ok()?.file_name()))
            .collect::<Vec<_>>())
    );
}

/// Trains from a configuration file with this text.
fn train(experiment: &Experiment, text: &str) -> Ended {
    let config = experiment.write("edited.toml", text);
    experiment.host().run([
        "train".as_ref(),
        config.as_os_str(),
        "--plugins".as_ref(),
        experiment.host().plugins().as_os_str(),
        "--run".as_ref(),
        experiment.path("run").as_os_str(),
    ])
}

/// Fails the test unless the attempt was refused with these words. Removes the files that it may have left.
#[track_caller]
fn refused_with(experiment: &Experiment, attempt: &Ended, parts: &[&str]) {
    attempt.refused_with(parts);
    let _ = fs::remove_dir_all(experiment.path("run"));
}

#[test]
fn a_data_slot_that_does_not_exist_is_told_once() {
    let experiment = Experiment::tiny().with("plugins.lookup.data.wrong", "facts.csv");
    // No warning comes before the error.
    let refused = experiment.try_train("run", &[]);
    let mistake = "binds data that the plugin has no slot for: `wrong`; its slots are: table";
    refused_cleanly(&experiment, &refused, &[mistake, "[tasks.facts]"]);
    assert_eq!(refused.stderr.matches(mistake).count(), 1, "{refused}");
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_the_nearest_one() {
    let experiment = Experiment::tiny();
    let text = "seed = 1\nouput = \"run\"\n";
    refused_cleanly(
        &experiment,
        &train(&experiment, text),
        &["edited.toml:2:1: unknown key `ouput`", "`output`"],
    );
    let text = experiment.text().replace("group_size", "group_sise");
    let line = 1 + text
        .lines()
        .position(|line| line.starts_with("group_sise"))
        .expect("is in the text");
    refused_cleanly(
        &experiment,
        &train(&experiment, &text),
        &[&format!(
            "edited.toml:{line}:1: unknown key `group_sise`; did you mean `group_size`?"
        )],
    );
    let set = experiment.try_train("run", &["--set", "rl.stepz=1"]);
    refused_cleanly(
        &experiment,
        &set,
        &["--set rl.stepz=1: unknown key `stepz`; did you mean `steps`?"],
    );
}

#[test]
fn a_value_of_the_wrong_type_is_named_with_its_place() {
    let experiment = Experiment::tiny();
    let text = experiment
        .text()
        .replace("group_size = 4", "group_size = \"four\"");
    let line = 1 + text
        .lines()
        .position(|line| line.starts_with("group_size"))
        .expect("is in the text");
    refused_cleanly(
        &experiment,
        &train(&experiment, &text),
        &[&format!("edited.toml:{line}:"), "invalid type", "\"four\""],
    );
    refused_cleanly(
        &experiment,
        &train(&experiment, "seed = = 1\n"),
        &["edited.toml:1:"],
    );
}

#[test]
fn a_misspelt_term_of_turns_is_warned_of_and_training_goes_on() {
    let experiment = Experiment::tiny();
    let code = "import rlf\n\n@rlf.reward\ndef steps(trajectory):\n    return rlf.Terms(all=1.0).at_event(0, 'step', 1.0)\n";
    let plugin = experiment.write("steps.py", code);
    let plugin = plugin.display();
    let experiment = experiment.with_toml(&format!(
        "rl.algorithm = 'mt-grpo'
        plugins.steps.path = '{plugin}'
        rewards.stack = [
            {{plugin = 'exact-match', weights = {{em = 1.0}}}},
            {{plugin = 'format', weights = {{well_formed = 0.5, answered = 0.25}}}},
            {{plugin = 'steps', weight = 0.0, turns = {{stpe = 1.0}}}},
        ]"
    ));
    let trained = experiment.try_train("run", &[]);
    let warned = "weighs the per-event term `steps.stpe`, but plugin `steps` gave credit as `step`; did you mean `step`?";
    let warnings = trained.succeeded().stderr.matches(warned).count();
    assert_eq!(warnings, 1, "{trained}");
}

#[test]
fn settings_that_make_no_sense_are_refused_with_the_reason() {
    let experiment = Experiment::tiny();
    for (set, parts) in [
        (
            "rl.group_size=1",
            &["rl.group_size = 1", "one trajectory alone", "at least 2"][..],
        ),
        (
            "rl.top_p=0.9",
            &["rl.top_p = 0.9", "off-policy", "evaluation"],
        ),
        (
            "rl.top_k=20",
            &["rl.top_k = 20", "off-policy", "evaluation"],
        ),
        ("rl.temperature=0", &["rl.temperature = 0"]),
        (
            "rl.algorithm=mt-grpo",
            &["rewards of turns", "turns = { TERM = 1.0 }"],
        ),
        ("eval.samples=0", &["eval.samples"]),
    ] {
        let attempt = experiment.try_train("run", &["--set", set]);
        refused_cleanly(&experiment, &attempt, parts);
    }
    // These errors are found only after other files have been read.
    for (set, parts) in [
        (
            "dialogue.context=100000",
            &["dialogue.context = 100000", "512"][..],
        ),
        ("model.init.num_key_value_heads=3", &["num_key_value_heads"]),
        ("rewards.success=exact-math.em >= 1", &["exact-math"]),
        ("device=tpu", &["tpu", "cuda"]),
        (
            "shown_tools.train.hold_out=['lookpu']",
            &["shown_tools.train", "did you mean `lookup`"],
        ),
        (
            "shown_tools.test.rename_parameters={lookup={off='to'}}",
            &["shown_tools.test", "no parameter `off`", "of, get"],
        ),
    ] {
        let attempt = experiment.try_train("run", &["--set", set]);
        refused_with(&experiment, &attempt, parts);
    }
}

#[test]
fn what_is_missing_is_named() {
    let experiment = Experiment::tiny();
    let host = experiment.host();
    host.run(["train", "no/such/config.toml"])
        .refused_with(&["no/such/config.toml", "No such file"]);
    for command in ["eval", "rollout", "report"] {
        host.run([command, "no/such/run"])
            .refused_with(&["there is no folder no/such/run"]);
    }
    host.run(["plugin", "list", "--config", "no/such/config.toml"])
        .refused_with(&["no/such/config.toml"]);
    let resumed = experiment.try_train("run", &["--resume"]);
    let told = ["there is no run in ", "leave out --resume"];
    refused_with(&experiment, &resumed, &told);
    for command in ["train", "plan"] {
        host.run([command, "configs/quickstrat.toml"])
            .refused_with(&["configs/quickstrat.toml", "did you mean `quickstart`?"]);
    }
}

#[test]
fn a_plugin_directory_that_is_missing_or_empty_is_named_with_the_place_that_names_it() {
    let experiment = Experiment::tiny();
    let config = experiment.write("edited.toml", experiment.text());
    let (run, empty) = (experiment.path("run"), experiment.path("empty"));
    fs::create_dir(&empty).expect("can be made");
    let train = ["train", as_str(&config), "--run", as_str(&run)];
    for (folder, wrong) in [
        ("no/such/plugins", "there is no such folder"),
        ("README.md", "this is a file, not a folder"),
        (as_str(&empty), "this folder holds no plugin"),
    ] {
        let arguments = [&train[..], &["--plugins", folder]].concat();
        let attempt = experiment.host().run(arguments);
        let told = format!("--plugins {folder}: {wrong}");
        refused_with(&experiment, &attempt, &[&told]);
    }
    let attempt = experiment.host().run_with_shipped("no/such/plugins", train);
    let told = "RLF_PLUGINS names no/such/plugins, and there is no such folder";
    refused_with(&experiment, &attempt, &[told]);
}

#[test]
fn settings_of_a_misspelt_plugin_are_refused() {
    let experiment = Experiment::tiny().with("plugins.calculatr.retries", 0);
    let attempt = experiment.try_train("run", &[]);
    let parts = ["[plugins.calculatr]", "did you mean `calculator`?"];
    refused_with(&experiment, &attempt, &parts);
}

#[test]
fn a_reward_or_plugin_that_is_not_there_is_named() {
    let experiment = Experiment::tiny().with_toml(
        "rewards.stack = [{plugin = 'exact-mach'}]
        rewards.success = 'exact-mach.em >= 1'",
    );
    let attempt = experiment.try_train("run", &[]);
    refused_with(
        &experiment,
        &attempt,
        &["`exact-mach`", "did you mean `exact-match`?"],
    );
}

/// An experiment that starts from a checkpoint and reads its tasks from a file. The tests damage both.
struct FromFiles {
    experiment: Experiment,
    checkpoint: PathBuf,
    tasks: PathBuf,
}

impl FromFiles {
    fn new() -> Self {
        let made = Experiment::tiny()
            .with("rl.steps", 1)
            .with("sft.steps", 1)
            .with("eval.every", 0);
        let run = made.train("made", &[]);
        let checkpoint = made.path("checkpoint");
        fs::rename(run.checkpoint("rl-000001"), &checkpoint).expect("can be moved");
        let rows = ["1+1", "1+2", "2+2"].map(|question| row(question).to_string());
        let tasks = made.write("tasks.jsonl", rows.join("\n"));
        let experiment = made
            .without("model")
            .without("tokenizer")
            .without("tasks")
            .without("sft")
            .without("plugins")
            .with("model.checkpoint", as_str(&checkpoint))
            .with("tasks.train", as_str(&tasks));
        Self {
            experiment,
            checkpoint,
            tasks,
        }
    }

    fn refused(&self, parts: &[&str]) {
        let attempt = self.experiment.try_train("run", &[]);
        refused_with(&self.experiment, &attempt, parts);
    }

    /// Fails the test unless the run is refused while a file of the checkpoint has other content.
    fn refused_with_changed(
        &self,
        name: &str,
        change: impl FnOnce(Vec<u8>) -> Vec<u8>,
        parts: &[&str],
    ) {
        let path = self.checkpoint.join(name);
        let before = fs::read(&path).expect("is in the checkpoint");
        fs::write(&path, change(before.clone())).expect("can be written");
        self.refused(parts);
        fs::write(&path, before).expect("can be written");
    }
}

fn as_str(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

/// A correct row of tasks.
fn row(question: &str) -> Value {
    json!({
        "id": question,
        "source": "test",
        "prompt": [{"role": "user", "content": format!("What is {question}?")}],
        "tools": ["calculate"],
        "reference": {"answer": ["2"]},
        "environment": null,
        "extra": {},
    })
}

#[test]
fn a_checkpoint_or_tokenizer_that_is_damaged_or_does_not_fit_is_refused() {
    let files = FromFiles::new();
    let half = |mut bytes: Vec<u8>| {
        bytes.truncate(bytes.len() / 2);
        bytes
    };
    // The checkpoint of a run has digests, that of another program has none.
    files.refused_with_changed(
        "model.safetensors",
        half,
        &["model.safetensors", "BLAKE3SUMS"],
    );
    fs::remove_file(files.checkpoint.join("BLAKE3SUMS")).expect("a run wrote it");
    files.refused_with_changed(
        "model.safetensors",
        half,
        &["model.safetensors", "copy it again"],
    );
    files.refused_with_changed(
        "model.safetensors",
        |_| b"no weights".to_vec(),
        &["model.safetensors"],
    );
    files.refused_with_changed("tokenizer.json", half, &["tokenizer.json"]);
    files.refused_with_changed("config.json", half, &["config.json"]);
    files.refused_with_changed(
        "config.json",
        |bytes| {
            let mut config: Value = serde_json::from_slice(&bytes).expect("is JSON");
            config["hidden_size"] = json!(128);
            config.to_string().into_bytes()
        },
        &["model.safetensors", "expected shape", "config.json"],
    );
    // More tokens than the model has rows for.
    files.refused_with_changed(
        "tokenizer.json",
        |bytes| {
            let mut tokenizer: Value = serde_json::from_slice(&bytes).expect("is JSON");
            let added = tokenizer["added_tokens"].as_array_mut().expect("a list");
            let mut more = added[0].clone();
            more["id"] = json!(5000);
            more["content"] = json!("<|one-too-many|>");
            added.push(more);
            let vocabulary = tokenizer["model"]["vocab"].as_object_mut();
            vocabulary
                .expect("a map")
                .insert("<|one-too-many|>".into(), json!(5000));
            tokenizer.to_string().into_bytes()
        },
        &["tokenizer", "vocab"],
    );
    for name in ["model.safetensors", "tokenizer.json", "config.json"] {
        let path = files.checkpoint.join(name);
        let away = files.checkpoint.join("away");
        fs::rename(&path, &away).expect("can be moved");
        files.refused(&[name]);
        fs::rename(&away, &path).expect("can be moved");
    }
    // After all refusals the undamaged files still train, so each refusal had only its own cause.
    files.experiment.train("run", &[]);
}

#[test]
fn a_row_that_is_no_task_is_named_by_file_and_line() {
    let files = FromFiles::new();
    let without = |field: &str| {
        let mut row = row("1+1");
        row.as_object_mut().expect("a row").remove(field);
        row.to_string()
    };
    for (line, said) in [
        (without("reference"), "`reference` is missing"),
        (without("prompt"), "`prompt` is missing"),
        ("{\"id\": \"cut".to_owned(), "not JSON"),
        ("[1, 2]".to_owned(), "tasks.jsonl:2"),
    ] {
        fs::write(&files.tasks, format!("{}\n{line}\n", row("1+1"))).expect("can be written");
        files.refused(&["tasks.jsonl:2", said]);
    }
    fs::write(&files.tasks, "").expect("can be written");
    files.refused(&["tasks.jsonl", "no tasks in it"]);
    fs::remove_file(&files.tasks).expect("can be removed");
    files.refused(&["tasks.jsonl", "No such file"]);
}

#[test]
fn a_tool_that_a_task_names_and_no_plugin_has_is_refused_before_training() {
    let files = FromFiles::new();
    let mut wrong = row("1+2");
    wrong["tools"] = json!(["calculate", "calculator"]);
    fs::write(&files.tasks, format!("{}\n{wrong}\n", row("1+1"))).expect("can be written");
    files.refused(&["`calculator`", "did you mean `calculate`?"]);
}

#[test]
fn one_row_for_everything_is_warned_of() {
    let files = FromFiles::new();
    fs::write(&files.tasks, row("1+1").to_string()).expect("can be written");
    let trained = files.experiment.try_train("run", &[]);
    let warned = "[tasks] train holds one task, so what is measured is what was trained on";
    assert!(trained.succeeded().stderr.contains(warned), "{trained}");
}

#[test]
fn a_demonstration_that_fails_is_refused_before_the_run() {
    let experiment = Experiment::tiny();
    let cut = experiment.try_train("run", &["--set", "dialogue.max_turns=1"]);
    let parts = ["[sft]", "facts/train/sft/0", "raise dialogue.max_turns (1)"];
    refused_with(&experiment, &cut, &parts);

    // Damages the gold calls of the last row.
    let tasks = experiment.path("tasks.jsonl");
    let root = experiment.host().root().to_owned();
    let experiment = experiment
        .without("tasks")
        .without("plugins")
        .with("tasks.train", as_str(&tasks))
        .with("plugins.servers.plugin", "python")
        .with(
            "plugins.servers.environment.servers",
            as_str(&root.join("plugins/environments")),
        )
        .with("model.init.max_position_embeddings", 8192)
        .with("dialogue.context", 8192)
        .with("dialogue.answer", "final-turn")
        .with_toml(
            "rewards.success = 'reward-verdict.success >= 1'
            rewards.stack = [{plugin = 'reward-verdict'}]",
        );
    let rows = fs::read_to_string(root.join("plugins/environments/tasks/train.jsonl"));
    let rows = rows.expect("is there");
    let (last, before) = {
        let rows: Vec<&str> = rows.lines().take(8).collect();
        (rows[7], rows[..7].join("\n"))
    };
    let loan = r#""arguments":{"loan_id":"L7"}"#;
    for (gold, wrong, parts) in [
        (
            "Library-give_back",
            "Library-giveback",
            ["there is no tool \"Library-giveback\"", "train-7"],
        ),
        (
            loan,
            r#""arguments":{"loan_id":"L8"}"#,
            ["a call of Library-give_back ended as failed", "train-7"],
        ),
    ] {
        assert!(last.contains(gold), "{last}");
        let last = last.replace(gold, wrong);
        fs::write(&tasks, format!("{before}\n{last}")).expect("can be written");
        let attempt = experiment.try_train("run", &[]);
        refused_with(&experiment, &attempt, &parts);
    }
}

#[test]
fn a_full_disk_leaves_no_half_checkpoint_and_the_run_can_go_on() {
    let experiment = Experiment::tiny()
        .with("sft.steps", 2)
        .with("rl.steps", 1)
        .with("eval.every", 0);
    // This run puts the plugins in the cache, so that they need no space later.
    let whole = experiment.train("whole", &[]);
    let config = experiment.path("config.toml");
    let run = experiment.run("run");
    let plugins = as_str(experiment.host().plugins());
    let arguments = [
        "train",
        as_str(&config),
        "--plugins",
        plugins,
        "--run",
        run.as_str(),
    ];
    experiment
        .host()
        .run_without_space(arguments)
        .refused_with(&["model.safetensors", "disk full"]);
    let checkpoints = fs::read_dir(run.path().join("checkpoints")).expect("is a folder");
    assert_eq!(checkpoints.count(), 0, "something is half-written");

    whole.assert_same(&experiment.train("run", &["--resume"]));
}

#[test]
fn a_run_that_cannot_start_leaves_nothing_behind() {
    let experiment = Experiment::tiny();
    let config = experiment.write("edited.toml", experiment.text());
    let run = experiment.path("run");
    let mut arguments = vec!["train", as_str(&config), "--run", as_str(&run)];
    arguments.extend(["--plugins", "no/such/plugins"]);
    let attempt = experiment.host().run(arguments);
    refused_cleanly(&experiment, &attempt, &["no/such/plugins"]);
    for further in [
        &["--set", "dialogue.context=100000"][..],
        &["--set", "rewards.success=exact-math.em >= 1"],
        &["--resume"],
    ] {
        let attempt = experiment.try_train("run", further);
        refused_cleanly(&experiment, &attempt, &[]);
    }

    let files = FromFiles::new();
    fs::write(files.checkpoint.join("model.safetensors"), "no weights").expect("can be written");
    let attempt = files.experiment.try_train("run", &[]);
    refused_cleanly(&files.experiment, &attempt, &["model.safetensors"]);
}

#[test]
fn a_run_that_cannot_start_replaces_nothing() {
    let experiment = Experiment::tiny()
        .with("rl.steps", 1)
        .with("sft.steps", 1)
        .with("eval.every", 0);
    let run = experiment.train("run", &[]);
    let (weights, metrics) = (run.weights(), run.metrics());
    let table = fs::read(run.path().join("data/facts.csv")).expect("the run has its table");
    let edited = experiment.write("edited.toml", experiment.text());
    for further in [
        &["--overwrite", "--plugins", "no/such/plugins"][..],
        &[
            "--overwrite",
            "--set",
            "rewards.success=nothing.at-all >= 1",
        ],
        &["--overwrite", "--set", "dialogue.context=100000"],
        &["--resume", "--seed", "2"],
    ] {
        let mut arguments = vec!["train", as_str(&edited), "--run", run.as_str()];
        arguments.extend(further);
        if !further.contains(&"--plugins") {
            arguments.extend(["--plugins", as_str(experiment.host().plugins())]);
        }
        experiment.host().run(&arguments).refused();
        assert!(run.path().is_dir(), "{further:?} removed the run");
        assert!(run.weights() == weights, "{further:?} changed weights");
        assert_eq!(run.metrics(), metrics, "{further:?}");
        assert_eq!(
            fs::read(run.path().join("data/facts.csv")).ok().as_ref(),
            Some(&table),
            "{further:?} changed the run's data"
        );
    }
}
