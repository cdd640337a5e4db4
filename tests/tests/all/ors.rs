//! Training in an environment behind a URL that speaks ORS.

mod counting_server;

use rlf_tests::Experiment;
use serde_json::{Value, json};

#[test]
fn a_policy_trains_in_an_environment_of_an_ors_server() {
    let url = counting_server::start();
    let row = |split: &str, index: usize| {
        json!({
            "id": format!("{split}-{index}"), "source": "ors", "environment": "counting", "prompt": [],
            "setup": {"split": split, "index": index},
            "reference": {"calls": [{"name": "add", "arguments": {"by": 1}}]},
        })
        .to_string()
    };
    let rows: Vec<String> = (0..8).map(|index| row("train", index)).collect();
    let experiment = Experiment::tiny()
        .without("tasks")
        .without("rewards")
        .without("plugins")
        .with("sft.steps", 40)
        .with("sft.optimizer.warmup_steps", 5)
        .with("sft.optimizer.learning_rate", 5e-3)
        .with_toml(&format!(
            "tasks.train = 'rows.jsonl'
            tasks.validation = 'rows.jsonl'
            dialogue.answer = 'final-turn'
            ors.counting.url = '{url}'
            rewards.success = 'reward-verdict.success >= 1'
            rewards.stack = [{{plugin = 'reward-verdict', weights = {{score = 1.0}}}}]"
        ));
    experiment.write("rows.jsonl", rows.join("\n"));
    let run = experiment.train("run", &[]);
    let trajectories: Vec<Value> = run.trajectories().into_values().flatten().collect();
    let excluded = |played: &&Value| !played["trajectory"]["excluded"].is_null();
    assert_eq!(trajectories.iter().filter(excluded).count(), 0);
    let solved = |played: &Value| played["trajectory"]["verdict"]["score"] == 1.0;
    assert!(
        trajectories.iter().any(solved),
        "no reward of the environment has arrived"
    );
    let hashes = std::fs::read_to_string(run.path().join("plugins.json")).expect("is there");
    assert!(hashes.contains("ors.counting"), "{hashes}");

    // A task that the server does not have ends the command.
    experiment.write(
        "rows.jsonl",
        format!("{}\n{}", row("nope", 0), rows.join("\n")),
    );
    let refused = experiment.try_train("other", &[]);
    refused.refused_with(&["does not open the task", "status 400: Invalid split"]);

    let twice = experiment.with_toml(&format!("openenv.counting.url = '{url}'"));
    twice
        .try_train("twice", &[])
        .refused_with(&["[ors.counting] and [openenv.counting] have the same name; rename one"]);
}
