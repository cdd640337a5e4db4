//! Training with an interpreter as a tool and hidden tests as the reward: `configs/mbpp-code.toml` on rows in MBPP's
//! form. The policy is random here, and its success is reported as it is.

use std::fs;

use rlf_tests::Experiment;
use serde_json::json;

#[test]
fn the_recipe_runs_on_problems_with_tests_with_any_qwen3_checkpoint() {
    let made = Experiment::tiny()
        .with("model.init.max_position_embeddings", 4096)
        .with("sft.steps", 1)
        .with("rl.steps", 1)
        .with("eval.every", 0);
    let host = made.host();
    let checkpoint = made.train("made", &[]).checkpoint("rl-000001");
    let run = made.run("run");

    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("mbpp-code.toml");
    fs::copy(host.root().join("configs/mbpp-code.toml"), &config).unwrap();
    let config = config.display().to_string();
    let operators = [
        "+", "*", "-", "**", "//", "%", "|", "&", "^", "<<", "<", "==",
    ];
    let row = |(number, operator): (usize, &&str)| {
        let name = format!("combine_{number}");
        json!({
            "task_id": number,
            "text": format!("Write a function {name} that combines two numbers by {operator}."),
            "code": format!("def {name}(a, b):\n    return a {operator} b"),
            "test_setup_code": "",
            "test_list": [format!("assert {name}(2, 3) == 2 {operator} 3"), format!("assert {name}(7, 5) == 7 {operator} 5")],
            "challenge_test_list": [],
        })
        .to_string()
    };
    let rows: Vec<String> = operators.iter().enumerate().map(row).collect();
    fs::write(folder.path().join("tasks.jsonl"), rows.join("\n")).unwrap();

    // The configuration grants nothing by itself: the message says what to type.
    let plugins = host.plugins().display().to_string();
    let checkpoint = fs::canonicalize(checkpoint).unwrap();
    let checkpoint = format!("model.checkpoint={}", checkpoint.display());
    let arguments = [
        "train",
        &config,
        "--plugins",
        &plugins,
        "--run",
        run.as_str(),
        "--set",
        &checkpoint,
        "--set",
        "tasks.train=tasks.jsonl",
        "--set",
        "device=cpu",
        "--set",
        "dialogue.max_tokens_per_turn=32",
        "--set",
        "dialogue.max_turns=2",
        "--set",
        "rl.steps=1",
        "--set",
        "rl.prompts_per_step=2",
        "--set",
        "rl.group_size=2",
        "--set",
        "rl.mini_batches=1",
        "--set",
        "eval.tasks=2",
        "--set",
        "eval.samples=2",
    ];
    host.run(arguments)
        .refused_with(&["reward-code-tests", "execute", "which nobody granted"]);
    host.plugin([
        "grant",
        "reward-code-tests",
        "--gate",
        "execute",
        "--config",
        &config,
    ])
    .succeeded();
    let trained = host.run(arguments);
    assert!(
        trained.succeeded().stdout.contains("tools python\n"),
        "{trained}"
    );
    let metrics = run.metrics();
    let last = metrics.last().expect("there is a line");
    assert_eq!(last["eval/tasks"], 2);
    assert_eq!(last["eval/sampled"], 0.0, "a random policy solves nothing");
    assert_eq!(last["eval/excluded"], 0.0);
    let step = &run.steps("rl")[0];
    assert!(step["reward/reward-code-tests.rate"].is_number(), "{step}");
    assert_eq!(step["excluded"], 0.0, "{step}");

    // The reward's score for an answer that solves the task.
    let reference = rows[0].clone();
    let grade = |answer: &str| {
        let ended = host.plugin([
            "grade",
            "reward-code-tests",
            "--answer",
            answer,
            "--reference",
            &reference,
            "--json",
            "--config",
            &config,
        ]);
        ended.succeeded().stdout.clone()
    };
    let right = grade("```python\ndef combine_0(a, b):\n    return sum([a, b])\n```");
    let half = grade("```python\ndef combine_0(a, b):\n    return 5\n```");
    for (said, rate) in [(right, 1.0), (half, 0.5)] {
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["terms"]["rate"], rate, "{said}");
    }
}
