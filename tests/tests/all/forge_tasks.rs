//! `rlf-host forge tasks`, `stats` and `export`: tasks that the sandboxed environment carries out as they say.

use std::fs;
use std::path::Path;

use rlf_tests::{Ended, Host};
use serde_json::{Value, json};

const EXAMPLES: &str = "plugins/specified/examples";

/// `forge tasks` in the examples, with further arguments.
fn arguments<'a>(host: &'a Host, output: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let plugins = host.plugins().to_str().expect("a plain name");
    let output = output.to_str().expect("a plain name");
    let mut all = vec![
        "forge",
        "--plugins",
        plugins,
        "tasks",
        EXAMPLES,
        "--seed",
        "3",
        "--output",
        output,
    ];
    all.extend(more);
    all
}

fn make(host: &Host, output: &Path, more: &[&str]) -> Ended {
    host.run(arguments(host, output, more))
}

fn lines(file: impl AsRef<Path>) -> Vec<Value> {
    let file = file.as_ref();
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    lines.collect()
}

#[test]
fn tasks_are_replayed_in_the_sandbox_and_their_rows_import_again() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("tasks");
    let report = make(
        &host,
        &output,
        &[
            "--count", "40", "--format", "tasks", "--format", "verl", "--json",
        ],
    )
    .succeeded()
    .json();
    assert_eq!(
        (&report["statistics"]["tasks"], &report["replayed"]),
        (&json!(40), &json!(true))
    );
    assert_eq!(
        lines(output.join("stages/5-replays.jsonl")).len(),
        lines(output.join("stages/4-checks.jsonl"))
            .iter()
            .filter(|line| line["made"].is_object())
            .count()
    );

    // Imported as EnvFactory's rows, their gold calls lead to their final states in the sandbox.
    let config = folder.path().join("servers.toml");
    let specifications = output.join("environments");
    fs::write(
        &config,
        format!(
            "[plugins.servers]\nplugin = \"specified\"\ndata.specifications = {:?}\n",
            specifications.to_str().expect("a plain name")
        ),
    )
    .expect("the file");
    for (format, split) in [
        ("verl", "train"),
        ("tasks", "train"),
        ("verl", "test"),
        ("tasks", "validation"),
    ] {
        let rows = output.join(format).join(format!("{split}.jsonl"));
        let count = lines(rows.clone()).len();
        let imported = folder.path().join("imported.jsonl");
        let text = |path: &Path| path.to_str().expect("a plain name").to_owned();
        let ended = host.run([
            "data",
            "import",
            &text(&rows),
            "--output",
            &text(&imported),
            "--environment",
            "servers",
            "--replay",
            "--config",
            &text(&config),
            "--plugins",
            &text(host.plugins()),
        ]);
        let ended = ended.succeeded();
        assert!(!ended.stderr.contains("warning"), "{ended}");
        assert_eq!(lines(imported).len(), count);
    }
}

#[test]
fn a_task_that_the_real_environment_does_otherwise_is_rejected() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    make(&host, folder.path(), &["--count", "12"]).succeeded();
    let before = lines(folder.path().join("tasks.jsonl"));
    let victim = before[3]["candidate"].clone();
    // A result that the environment does not give.
    let file = folder.path().join("stages/2-trajectories.jsonl");
    let mut trajectories = lines(file.clone());
    for line in &mut trajectories {
        if line["candidate"] == victim {
            line["made"]["calls"][0]["result"] = json!({ "nothing": 1 });
        }
    }
    let text: Vec<String> = trajectories.iter().map(ToString::to_string).collect();
    fs::write(&file, text.join("\n") + "\n").expect("the file");
    make(
        &host,
        folder.path(),
        &["--count", "12", "--from", "replays"],
    )
    .succeeded();
    let rejected = lines(folder.path().join("rejected.jsonl"));
    let found = rejected
        .iter()
        .find(|one| one["candidate"] == victim)
        .expect("it was rejected");
    assert_eq!(
        (&found["stage"], &found["reason"]),
        (&json!("replays"), &json!("diverged"))
    );
    assert!(
        found["detail"]
            .as_str()
            .is_some_and(|detail| detail.starts_with("turn 1: ")),
        "{found}"
    );
    let after = lines(folder.path().join("tasks.jsonl"));
    assert_eq!(
        after.len(),
        before.len(),
        "another candidate takes its place"
    );
    assert!(after.iter().all(|task| task["candidate"] != victim));
}

#[test]
fn a_full_disk_loses_nothing_that_was_made() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, full) = (folder.path().join("whole"), folder.path().join("full"));
    let options = ["--count", "400", "--no-replay"];
    make(&host, &whole, &options).succeeded();
    let stopped = host.run_without_space(arguments(&host, &full, &options));
    assert_eq!(stopped.code(), Some(1), "{stopped}");
    assert!(
        stopped.stderr.contains(".jsonl") && !stopped.stderr.contains("panicked"),
        "{stopped}"
    );
    let chains = |folder: &Path| lines(folder.join("stages/1-chains.jsonl"));
    assert!(!chains(&full).is_empty());
    make(&host, &full, &options).succeeded();
    assert!(lines(full.join("tasks.jsonl")) == lines(whole.join("tasks.jsonl")));
}

#[test]
fn counts_are_a_page_and_a_text_and_rows_are_written_later() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().to_str().expect("a plain name");
    make(&host, folder.path(), &["--count", "20", "--no-replay"]).succeeded();
    let page = folder.path().join("stats.html");
    let text = host.run([
        "forge",
        "stats",
        output,
        "--html",
        page.to_str().expect("a plain name"),
    ]);
    text.succeeded();
    assert!(
        text.stdout.contains("20 tasks") && text.stdout.contains("rejected: "),
        "{text}"
    );
    let page = fs::read_to_string(page).expect("the page");
    assert!(
        page.contains("Implicitness")
            && page.contains("Rejected in checks")
            && !page.contains("http")
    );
    let counts = host
        .run(["forge", "stats", output, "--json"])
        .succeeded()
        .json();
    assert_eq!(counts["tasks"], 20);
    let written = host
        .run(["forge", "export", output, "--format", "alpaca", "--json"])
        .succeeded()
        .json();
    let rows: u64 = written
        .as_array()
        .expect("files")
        .iter()
        .filter_map(|file| file["rows"].as_u64())
        .sum();
    let turns =
        counts["turns"].as_u64().expect("a number") + counts["calls"].as_u64().expect("a number");
    assert_eq!(rows, turns);
}

#[test]
fn bad_input_says_what_to_do() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("tasks");
    for (more, says) in [
        (
            &["--scenarios", "gigantic"][..],
            "no environment has a scenario `gigantic`",
        ),
        (&["--refine", "2"], "not between 0 and 1"),
        (&["Cargo.toml"], "has errors"),
        (&["README.md"], "end in .toml or .json"),
        (
            &["plugins/specified/examples/Clinic.toml"],
            "two environments are called Clinic",
        ),
    ] {
        let ended = make(&host, &output, more);
        assert!(
            ended.code() != Some(0) && ended.stderr.contains(says),
            "{ended}"
        );
        assert!(!output.exists(), "nothing was written");
    }
    make(&host, &output, &["--count", "5", "--no-replay"]).succeeded();
    let other = make(&host, &output, &["--count", "6", "--no-replay"]);
    assert!(
        other.stderr.contains("made with other options") && other.stderr.contains("--restart"),
        "{other}"
    );
    make(
        &host,
        &output,
        &["--count", "6", "--no-replay", "--restart"],
    )
    .succeeded();
    let empty = host.run([
        "forge",
        "stats",
        folder.path().to_str().expect("a plain name"),
    ]);
    assert!(
        empty
            .stderr
            .contains("was not made by `rlf-host forge tasks`"),
        "{empty}"
    );
    let dry = make(&host, &folder.path().join("dry"), &["--dry-run"]);
    dry.succeeded();
    assert!(
        dry.stdout.contains("no token is paid for") && !folder.path().join("dry").exists(),
        "{dry}"
    );
}
