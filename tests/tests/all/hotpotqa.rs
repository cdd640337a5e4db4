//! Search-R1's task on real public data: `configs/hotpotqa-search.toml` with questions, corpus and checkpoint
//! given by path. The policy is random here, and its success is reported as it is.

use std::fs;

use rlf_tests::{Experiment, data};
use serde_json::{Value, json};

#[test]
fn the_recipe_runs_on_the_real_corpus_with_any_qwen3_checkpoint() {
    // A checkpoint of the quickstart's size, with enough context for passages.
    let made = Experiment::tiny()
        .with("model.init.max_position_embeddings", 4096)
        .with("sft.steps", 1)
        .with("rl.steps", 1)
        .with("eval.every", 0);
    let host = made.host();
    let Some(data) = data("hotpotqa") else {
        return;
    };
    let checkpoint = made.train("made", &[]).checkpoint("rl-000001");
    let run = made.run("run");
    let setting = |key: &str, value: &std::path::Path| {
        let value = fs::canonicalize(value).expect("is there");
        format!("{key}={}", value.display())
    };
    let trained = host.run([
        "train",
        "configs/hotpotqa-search.toml",
        "--plugins",
        host.plugins().to_str().expect("a plain name"),
        "--run",
        run.as_str(),
        "--set",
        &setting("model.checkpoint", &checkpoint),
        "--set",
        &setting("tasks.train", &data.join("questions.json")),
        "--set",
        &setting("plugins.search.data.corpus", &data.join("corpus.json")),
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
    ]);
    trained.succeeded();
    assert!(trained.stdout.contains("tools search\n"), "{trained}");

    let metrics = run.metrics();
    let last = metrics.last().expect("there is a line");
    assert_eq!(last["split"], "test");
    assert_eq!(last["eval/tasks"], 2);
    assert_eq!(last["eval/sampled"], 0.0, "a random policy answers nothing");
    assert_eq!(last["eval/excluded"], 0.0);
    let step = &run.steps("rl")[0];
    assert!(step["reward/exact-match.em"].is_number(), "{step}");
    assert!(step["reward/format.ok"].is_number(), "{step}");

    // Real questions, and the real corpus behind the tool.
    let files = run.trajectories();
    let record = &files["rl-000001.jsonl"][0];
    let question = record["question"].as_str().expect("is text");
    let questions = fs::read_to_string(data.join("questions.json")).expect("is there");
    assert!(questions.contains(question), "{question}");
    let corpus = fs::read_to_string(data.join("corpus.json")).expect("is there");
    let corpus: Value = serde_json::from_str(&corpus).expect("is JSON");
    let (title, passage) = corpus
        .as_object()
        .and_then(|corpus| corpus.iter().next())
        .expect("maps titles to passages");
    let sentence = passage[0].as_str().or(passage.as_str()).expect("has text");
    let found = host.plugin([
        "call",
        "search",
        "search",
        &json!({"query": sentence, "top_k": 1}).to_string(),
        "--data",
        &setting("corpus", &data.join("corpus.json")),
    ]);
    assert!(
        found
            .succeeded()
            .stdout
            .starts_with(&format!("[1] {title}\n")),
        "{found}"
    );
}
