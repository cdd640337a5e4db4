//! Training from the command line: the files that a run leaves, and that they depend only on the seed.

use std::fs;

use rlf_tests::{Experiment, RunFolder, without_times};
use serde_json::Value;

#[test]
fn a_run_writes_metrics_checkpoints_trajectories_and_a_report_that_read_well() {
    let experiment = Experiment::calling().with("rl.mini_batches", 1);
    let trained = experiment.try_train("run", &[]);
    let template = "template small.jinja: the model keeps reading its earlier turns exactly as it wrote them (the \
                    template would write some otherwise: call with other white space in its JSON)\n";
    assert!(trained.succeeded().stdout.contains(template), "{trained}");
    let run = experiment.run("run");

    let metrics = run.metrics();
    let mut last = 0.0;
    for line in &metrics {
        assert!(line["phase"] == "sft" || line["phase"] == "rl", "{line}");
        assert!(line["step"].is_u64(), "{line}");
        let elapsed = line["elapsed_s"].as_f64().expect("is a time");
        assert!(elapsed >= last, "time goes back: {line}");
        last = elapsed;
    }
    assert_eq!(run.step_numbers("sft"), (1..=60).collect::<Vec<_>>());
    assert_eq!(run.step_numbers("rl"), [1, 2, 3, 4]);
    evaluations_are_complete(&metrics);
    sft_learns(&run.steps("sft"));
    rl_moves_on_policy(&run.steps("rl"));
    trajectories_are_kept_with_their_calls(&run);
    checkpoints_are_read_by_eval_and_rollout(&experiment, &run);
    the_report_is_one_page_of_its_own(&experiment, &run);
}

fn evaluations_are_complete(metrics: &[Value]) {
    let evaluations: Vec<&Value> = metrics
        .iter()
        .filter(|line| line.get("split").is_some())
        .collect();
    let moments: Vec<String> = evaluations
        .iter()
        .map(|line| {
            let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", word("split"), word("moment"))
        })
        .collect();
    assert_eq!(
        moments,
        [
            "test: at the start",
            "validation: ",
            "test: after SFT",
            "validation: ",
            "validation: ",
            "test: after RL"
        ]
    );
    for line in evaluations {
        for key in ["eval/greedy", "eval/sampled"] {
            let rate = line[key].as_f64().expect("is a rate");
            assert!((0.0..=1.0).contains(&rate), "{line}");
        }
        let kinds = line["eval/sampled_by_kind"].as_object().expect("by kind");
        assert!(!kinds.is_empty(), "{line}");
        for kind in kinds.keys() {
            assert!(kind == "lookup" || kind == "chain", "{line}");
        }
        assert_eq!(line["eval/excluded"], 0.0, "{line}");
        assert_eq!(line["eval/pass_at_k"]["1"], line["eval/sampled"], "{line}");
    }
}

fn sft_learns(steps: &[Value]) {
    let loss = |line: &Value| line["loss"].as_f64().expect("is a number");
    let (first, last) = (loss(&steps[0]), loss(&steps[steps.len() - 1]));
    // ln(vocabulary) is about 6: the policy knows nothing at first.
    assert!(first > 5.0, "{first}");
    assert!(last < 2.0, "{last}");
}

fn rl_moves_on_policy(steps: &[Value]) {
    for line in steps {
        let number = |key: &str| {
            line[key]
                .as_f64()
                .unwrap_or_else(|| panic!("{key}: {line}"))
        };
        // One update per batch: sampled and trained log-probability are the same number.
        assert_eq!(number("ratio_deviation"), 0.0, "{line}");
        assert_eq!(number("clip_fraction"), 0.0, "{line}");
        assert_eq!(number("trajectories"), 8.0, "{line}");
        assert_eq!(number("excluded"), 0.0, "{line}");
        for key in [
            "reward/exact-match.em",
            "reward/format.well_formed",
            "response_tokens",
            "observation_tokens",
            "entropy",
            "kl",
            "decode_tokens_per_s",
            "train_tokens_per_s",
            "tool_wait_share",
        ] {
            number(key);
        }
    }
    let total = |key: &str| -> f64 { steps.iter().filter_map(|line| line[key].as_f64()).sum() };
    assert!(total("grad_norm") > 0.0, "the weights never moved");
    assert!(total("calls_per_trajectory") > 0.0, "nothing was called");
}

fn trajectories_are_kept_with_their_calls(run: &RunFolder) {
    let files = run.trajectories();
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        [
            "rl-000001.jsonl",
            "rl-000002.jsonl",
            "rl-000003.jsonl",
            "rl-000004.jsonl"
        ]
    );
    let mut outcomes = 0;
    for record in files.values().flatten() {
        let events = record["trajectory"]["events"].as_array().expect("a list");
        for outcome in events.iter().flat_map(all_outcomes) {
            outcomes += 1;
            assert!(outcome["component"].is_string(), "{outcome}");
            assert!(outcome["ended"].is_string(), "{outcome}");
        }
    }
    assert!(outcomes > 0, "no trajectory has a call");
}

/// The outcomes of all calls of an event, in any of its fields.
fn all_outcomes(event: &Value) -> Vec<&Value> {
    match event {
        Value::Object(fields) if fields.contains_key("ended") => vec![event],
        Value::Object(fields) => fields.values().flat_map(all_outcomes).collect(),
        Value::Array(items) => items.iter().flat_map(all_outcomes).collect(),
        _ => Vec::new(),
    }
}

fn checkpoints_are_read_by_eval_and_rollout(experiment: &Experiment, run: &RunFolder) {
    let host = experiment.host();
    let plugins = host.plugins().to_str().expect("a plain name");
    let measured = host
        .run(["eval", run.as_str(), "--plugins", plugins, "--json"])
        .succeeded()
        .json();
    // The same weights on the same tasks give the last line of the metrics again.
    let metrics = run.metrics();
    let last = metrics.last().expect("there is a line");
    assert_eq!(measured["greedy"]["mean"], last["eval/greedy"]);
    assert_eq!(measured["sampled"]["mean"], last["eval/sampled"]);
    assert_eq!(measured["terms"], last["eval/terms"]);
    assert_eq!(measured["calls"], last["eval/calls"]);

    let shown = host.run(["eval", run.as_str(), "--plugins", plugins]);
    assert!(shown.succeeded().stdout.contains("pass@2"), "{shown}");

    let rollout = [
        "rollout",
        run.as_str(),
        "--plugins",
        plugins,
        "--task",
        "1",
        "--sample",
        "1",
    ];
    let shown = host.run(rollout);
    for part in [
        "what happened",
        "what training sees",
        "rewards",
        "reference",
    ] {
        assert!(
            shown.succeeded().stdout.contains(part),
            "no `{part}`: {shown}"
        );
    }
    let record = || {
        let printed = host.run(rollout.into_iter().chain(["--json"]));
        without_times(printed.succeeded().json())
    };
    let first = record();
    assert_eq!(first["trajectory"]["task"], first["task"]["id"]);
    assert!(first["score"]["reward"].is_number(), "{first}");
    assert_eq!(first, record());
    let (finish, answer) = (
        &first["trajectory"]["finish"],
        &first["trajectory"]["answer"],
    );
    let finish = finish.as_str().expect("is a word");
    let answer = answer
        .as_str()
        .map_or("none".to_owned(), |answer| format!("{answer:?}"));
    let end = format!("  finished: {finish}, answer {answer}\n");
    assert!(shown.stdout.contains(&end), "no `{end}`: {shown}");
}

fn the_report_is_one_page_of_its_own(experiment: &Experiment, run: &RunFolder) {
    let page = fs::read_to_string(run.path().join("report.html")).expect("is written");
    assert!(page.trim_start().starts_with("<!DOCTYPE html>"));
    // The page loads nothing from the network; the name of SVG's namespace is not an address.
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    for loads in ["http://", "https://", "src=\"", "<link", "@import", "url("] {
        assert!(!addresses.contains(loads), "`{loads}` in the page");
    }
    for part in [
        "<svg",
        "group_size",
        "well_formed",
        "A sample of trajectories",
        "<pre class=\"observation\">lookup ",
    ] {
        assert!(page.contains(part), "no `{part}` in the page");
    }
    // The newest step comes first, with the samples of each question together.
    let mut questions = 0;
    for samples in
        run.trajectories()["rl-000004.jsonl"].chunk_by(|one, next| one["task"] == next["task"])
    {
        let succeed = |record: &&Value| record["score"]["success"] == true;
        let (count, solved) = (samples.len(), samples.iter().filter(succeed).count());
        let heading = format!("<summary>step 4 · {count} samples, {solved} succeed · ");
        assert!(page.contains(&heading), "no `{heading}` in the page");
        assert_eq!(count, 4);
        questions += 1;
    }
    assert_eq!(questions, 2);
    let elsewhere = experiment.path("elsewhere.html");
    let output = elsewhere.to_str().expect("a plain name");
    let written = experiment
        .host()
        .run(["report", run.as_str(), "--output", output]);
    assert_eq!(written.succeeded().stdout.trim(), output);
    assert!(elsewhere.is_file());
}

#[test]
fn a_seed_gives_the_same_run_bit_for_bit_with_any_number_of_workers() {
    let experiment = Experiment::calling();
    let first = experiment.train("first", &["--set", "workers=1"]);
    let calls: f64 = first
        .steps("rl")
        .iter()
        .filter_map(|line| line["calls_per_trajectory"].as_f64())
        .sum();
    assert!(calls > 0.0, "a run without calls shows little");
    for (name, workers) in [("again", "1"), ("two", "2"), ("three", "3")] {
        let workers = format!("workers={workers}");
        let run = experiment.train(name, &["--set", &workers]);
        first.assert_same(&run);
    }
}

#[test]
fn another_seed_gives_another_run() {
    let experiment = Experiment::tiny();
    let one = experiment.train("one", &[]).weights();
    let two = experiment.train("two", &["--seed", "2"]).weights();
    for (name, bytes) in &one {
        assert!(*bytes != two[name], "{name} is the same");
    }
}

#[test]
fn remax_compares_a_trajectory_alone_with_a_greedy_one() {
    let alone = Experiment::tiny()
        .with("rl.algorithm", "remax")
        .with("rl.group_size", 1)
        .with("eval.every", 0);
    for line in alone.train("run", &[]).steps("rl") {
        assert_eq!(
            line["trajectories"], 2,
            "the greedy ones do not train: {line}"
        );
        let (reward, baseline) = (&line["reward"], &line["baseline"]);
        assert!(reward.is_f64() && baseline.is_f64(), "{line}");
    }
}

#[test]
fn ppo_trains_a_critic_beside_the_policy_and_the_run_is_read_like_any_other() {
    let experiment = Experiment::tiny()
        .with("rl.algorithm", "ppo")
        .with("rl.group_size", 1)
        .with("rl.kl_coefficient", 0.01)
        .with_toml("rl.adaptive_kl = {target = 0.01}")
        .with("eval.every", 0);
    let run = experiment.train("run", &[]);
    for line in run.steps("rl") {
        assert_eq!(line["ratio_deviation"], 0.0, "{line}");
        for key in ["value_loss", "kl_coefficient"] {
            assert!(line[key].is_f64(), "no {key}: {line}");
        }
        // It is null where all targets are equal.
        assert!(line.get("explained_variance").is_some(), "{line}");
    }
    let weights = run.weights();
    let mut names = weights.keys();
    assert!(names.any(|name| name.ends_with("/value_head.safetensors")));
    let plugins = experiment.host().plugins();
    let plugins = plugins.to_str().expect("a plain name");
    let measured = (experiment.host()).run(["eval", run.as_str(), "--plugins", plugins]);
    measured.succeeded();
}

#[test]
fn names_and_arguments_of_demonstrated_calls_can_have_weights_of_their_own() {
    let loss = |name: f64, arguments: f64| {
        let experiment = Experiment::tiny()
            .with("sft.steps", 1)
            .with("sft.tool_name_weight", name)
            .with("sft.arguments_weight", arguments)
            .with("rl.steps", 0)
            .with("eval.every", 0);
        let run = experiment.train("run", &[]);
        let loss = run.steps("sft")[0]["loss"].as_f64();
        loss.expect("SFT has a loss")
    };
    let plain = loss(1.0, 1.0);
    let weighed = [loss(5.0, 1.0), loss(1.0, 5.0), loss(0.0, 0.0)];
    assert!(
        weighed.iter().all(|loss| *loss != plain),
        "{plain} {weighed:?}"
    );
    let experiment = Experiment::tiny().with("sft.tool_name_weight", -1.0);
    let attempt = experiment.try_train("run", &[]);
    attempt.refused_with(&["sft.tool_name_weight", "must be from 0 to 1000"]);
}

#[test]
fn a_control_continues_sft_from_where_rl_began() {
    let experiment = Experiment::tiny().with("eval.every", 0);
    let run = experiment.train("run", &["--control"]);
    let control = experiment.run("run/control");
    assert!(control.steps("rl").is_empty());
    assert!(!control.steps("sft").is_empty());
    let metrics = control.metrics();
    let last = metrics.last().expect("there is a line");
    assert_eq!(last["split"], "test");
    assert_eq!(last["moment"], "control: SFT instead of RL");
    // The evaluation is stored beside the run and does not replace it.
    assert_eq!(run.step_numbers("rl"), [1, 2, 3, 4]);
}

#[test]
fn a_setting_on_the_command_line_wins_over_the_file() {
    let experiment = Experiment::tiny();
    let run = experiment.train(
        "run",
        &[
            "--set",
            "sft.steps=2",
            "--set",
            "rl.steps = 1",
            "--set",
            "rl.algorithm=reinforce++",
            "--set",
            "eval.every=0",
        ],
    );
    assert_eq!(run.step_numbers("sft"), [1, 2]);
    assert_eq!(run.step_numbers("rl"), [1]);
    let kept = fs::read_to_string(run.path().join("config.toml")).expect("is kept");
    assert!(kept.contains("algorithm = \"reinforce++\""), "{kept}");
}
