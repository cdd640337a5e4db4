//! For each family of environments one configuration trains from a fresh checkpoint and evaluates with the family's
//! own metric. The policies are random, and their success is reported as it is.

use std::fs;
use std::path::Path;

use rlf_tests::{Experiment, Host, RunFolder, data};
use serde_json::{Value, json};

const SMALL: [&str; 8] = [
    "device=cpu",
    "rl.steps=1",
    "rl.prompts_per_step=2",
    "rl.group_size=2",
    "rl.mini_batches=1",
    "eval.tasks=2",
    "eval.samples=2",
    "eval.every=0",
];

fn absolute(path: &Path) -> String {
    fs::canonicalize(path)
        .expect("is there")
        .display()
        .to_string()
}

/// Imports published rows into a file of tasks.
fn import(host: &Host, rows: &Path, into: &Path, most: &str) -> String {
    let (rows, output) = (absolute(rows), into.display().to_string());
    host.run([
        "data", "import", &rows, "--output", &output, "--limit", most,
    ])
    .succeeded();
    absolute(into)
}

#[test]
fn environments_in_python_are_learnt_from_gold_calls_and_end_states() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = folder.path().join("run");
    let run = run.to_str().expect("a plain name");
    let plugins = host.plugins().to_str().expect("a plain name");
    let mut arguments = vec![
        "train",
        "configs/environments.toml",
        "--run",
        run,
        "--plugins",
        plugins,
    ];
    let further = ["sft.steps=1", "sft.batch_size=2"];
    for setting in SMALL.iter().chain(&further) {
        arguments.extend(["--set", setting]);
    }
    let trained = host.run(arguments);
    trained.succeeded();
    let metrics = fs::read_to_string(Path::new(run).join("metrics.jsonl")).expect("was written");
    let lines: Vec<Value> = metrics
        .lines()
        .map(|line| serde_json::from_str(line).expect("is JSON"))
        .collect();
    let step = lines
        .iter()
        .find(|line| line["reward/reward-envfactory.trace"].is_number());
    let step = step.expect("a step of RL is graded by gold calls and states");
    assert!(step["sessions_opened"].as_f64() >= Some(4.0), "{step}");
    let last = lines.last().expect("there is one");
    assert_eq!(last["eval/excluded"], 0.0, "{last}");
    assert!(
        last["eval/terms"]["reward-verdict.score"].is_number(),
        "{last}"
    );
    let evaluated = host.run([
        "eval",
        run,
        "--plugins",
        plugins,
        "--tasks",
        "2",
        "--samples",
        "2",
    ]);
    assert!(
        evaluated.succeeded().stdout.contains("pass^2"),
        "{evaluated}"
    );
    let shown = host.run(["rollout", run, "--plugins", plugins, "--task", "0"]);
    assert!(shown.succeeded().stdout.contains("reference:"), "{shown}");
}

/// Trains a published family for one step from a checkpoint made here; returns its last line of metrics and its
/// trajectories.
fn published(config: &str, experiment: &Experiment, settings: &[String]) -> Value {
    let checkpoint = experiment.train("made", &[]).checkpoint("rl-000001");
    let run = shortly(config, experiment, "run", &checkpoint, settings);
    run.metrics().pop().expect("there is a line")
}

/// Trains a checkpoint for one step with a configuration, into the folder `name` of the experiment.
fn shortly(
    config: &str,
    experiment: &Experiment,
    name: &str,
    checkpoint: &Path,
    settings: &[String],
) -> RunFolder {
    let host = experiment.host();
    let run = experiment.run(name);
    let checkpoint = format!("model.checkpoint={}", absolute(checkpoint));
    let plugins = host.plugins().to_str().expect("a plain name");
    let mut arguments = vec!["train", config, "--run", run.as_str(), "--plugins", plugins];
    arguments.extend(["--set", &checkpoint]);
    let short = ["dialogue.max_tokens_per_turn=16", "dialogue.max_turns=2"];
    for setting in SMALL.iter().chain(&short) {
        arguments.extend(["--set", setting]);
    }
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    host.run(arguments).succeeded();
    run
}

fn experiment(context: i64) -> Experiment {
    Experiment::tiny()
        .with("model.init.max_position_embeddings", context)
        .with("sft.steps", 1)
        .with("rl.steps", 1)
        .with("eval.every", 0)
}

#[test]
fn tau_retail_is_judged_by_its_database_and_reports_pass_hat_k() {
    let made = experiment(16_384);
    let host = made.host();
    let Some(data) = data("tau-retail") else {
        return;
    };
    let tasks = import(
        host,
        &data.join("tasks_train_dev.json"),
        &made.path("tasks.jsonl"),
        "6",
    );
    let last = published(
        "configs/tau-retail.toml",
        &made,
        &[
            format!("tasks.train={tasks}"),
            format!("plugins.tau-retail.data.retail={}", absolute(&data)),
        ],
    );
    assert_eq!(last["eval/excluded"], 0.0, "{last}");
    assert_eq!(
        last["eval/pass_hat_k"]["2"], 0.0,
        "a random policy serves nobody: {last}"
    );
    assert_eq!(last["eval/terms"]["reward-verdict.success"], 0.0, "{last}");
    assert_eq!(last["users"], serde_json::json!({"mode": "solo"}), "{last}");
}

#[test]
fn ftrls_rows_are_graded_by_solve_f1_in_their_own_functions() {
    let made = experiment(16_384);
    let host = made.host();
    let Some(data) = data("ftrl-sample") else {
        return;
    };
    let tasks = import(
        host,
        &data.join("sample.jsonl"),
        &made.path("tasks.jsonl"),
        "6",
    );
    let last = published(
        "configs/ftrl.toml",
        &made,
        &[format!("tasks.train={tasks}")],
    );
    assert_eq!(last["eval/excluded"], 0.0, "{last}");
    for term in ["solve_f1", "solve_p", "solve_r", "final"] {
        assert!(
            last["eval/terms"][format!("reward-ftrl.{term}")].is_number(),
            "{last}"
        );
    }
}

/// Questions, each with its own function and the call that answers it.
fn areas(protocol: &str) -> String {
    let function = json!({
        "name": "area",
        "description": "Area of a rectangle.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        },
        "source": "def area(a, b):\n    return a * b\n",
    });
    let task = |(number, (a, b)): (usize, (u64, u64))| {
        let answer = (a * b).to_string();
        let row = json!({
            "id": format!("{protocol}-{number}"),
            "source": "areas",
            "prompt": [{"role": "user", "content": format!("How large is {a} by {b}?")}],
            "environment": "functions",
            "setup": {"functions": [function]},
            "reference": {
                "answer": answer,
                "unsolved": {"area": [answer]},
                "calls": [{"name": "area", "arguments": {"a": a, "b": b}}],
            },
        });
        format!("{row}\n")
    };
    let sizes = [(3, 4), (2, 5), (6, 7), (8, 3), (5, 5), (9, 2)];
    sizes.into_iter().enumerate().map(task).collect()
}

#[test]
fn step_level_samples_of_a_run_are_trained_on_in_every_protocol() {
    let made = experiment(16_384);
    let host = made.host();
    let checkpoint = made.train("made", &[]).checkpoint("rl-000001");
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/dialogue");
    for (protocol, template) in [
        ("hermes", "templates/small.jinja"),
        ("llama-3.1", "tests/fixtures/bare-calls.jinja"),
    ] {
        let template = templates.join(template);
        let tasks = made.write(&format!("{protocol}.jsonl"), areas(protocol));
        let own = |more: &[&str]| -> Vec<String> {
            let tasks = format!("tasks.validation={}", absolute(&tasks));
            let template = format!("template={}", absolute(&template));
            let always = [
                template,
                format!("dialogue.protocol={protocol}"),
                "dialogue.max_tokens_per_turn=64".into(),
                tasks,
            ];
            let more = more.iter().map(|setting| (*setting).to_owned());
            always.into_iter().chain(more).collect()
        };
        // Gold calls are demonstrated until the policy makes calls, correct or not.
        let train = format!("tasks.train={}", absolute(&tasks));
        let run = shortly(
            "configs/ftrl.toml",
            &made,
            &format!("run-{protocol}"),
            &checkpoint,
            &own(&[
                &train,
                "sft.steps=40",
                "sft.batch_size=4",
                "sft.optimizer.learning_rate=5e-3",
                "rl.group_size=4",
            ]),
        );
        let samples = made.path(&format!("steps-{protocol}.jsonl"));
        let imported = host.run([
            "data",
            "import",
            &absolute(&tasks),
            "--steps-of",
            run.as_str(),
            "--output",
            samples.to_str().expect("a plain name"),
        ]);
        let told = &imported.succeeded().stdout;
        let written = fs::read_to_string(&samples).expect("was written");
        let rows = written
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("is JSON"));
        let begun: Vec<Value> = rows
            .filter(|row| row["extra"]["turns"].is_number())
            .collect();
        assert!(!begun.is_empty(), "{protocol}: {imported}");
        let begun_told = format!("and {} different ways that they had begun", begun.len());
        assert!(told.contains(&begun_told), "{protocol}: {imported}");
        for row in &begun {
            let last = row["prompt"].as_array().and_then(|prompt| prompt.last());
            assert_eq!(last.expect("there is one")["role"], "tool", "{row}");
            assert!(row["reference"]["calls"].is_null(), "{row}");
        }
        // The rows are read back as conversations that have begun, and their one turn is graded.
        let only: Vec<String> = begun.iter().map(Value::to_string).collect();
        let only = made.write(&format!("begun-{protocol}.jsonl"), only.join("\n"));
        let train = format!("tasks.train={}", absolute(&only));
        let policy = run.checkpoint("rl-000001");
        let stepped = shortly(
            "configs/ftrl.toml",
            &made,
            &format!("stepped-{protocol}"),
            &policy,
            &own(&[
                &train,
                "dialogue.max_turns=1",
                "dialogue.last_turn_calls=grade",
                "rewards.stack=[{plugin=\"reward-ftrl\",weights={step=1.0}}]",
            ]),
        );
        let step = &stepped.steps("rl")[0];
        assert_eq!(step["excluded"], 0.0, "{step}");
        assert!(step["reward/reward-ftrl.step"].is_number(), "{step}");
        for line in stepped.trajectories().values().flatten() {
            let task = line["task"].as_str().expect("is a text");
            assert!(begun.iter().any(|row| row["id"] == task), "{task}");
        }
    }
}
