//! `rlf-host forge tasks`, `stats` and `export`: tasks that the sandboxed environment carries out as they say.

use std::fs;
use std::path::Path;

use rlf_tests::{Ended, Host};
use serde_json::{Value, json};

const EXAMPLES: &str = "plugins/specified/examples";

const PYTHON: &str = "plugins/environments";

/// `forge tasks` in environments, with further arguments.
fn arguments<'a>(
    host: &'a Host,
    environments: &'a str,
    output: &'a Path,
    more: &[&'a str],
) -> Vec<&'a str> {
    let plugins = host.plugins().to_str().expect("a plain name");
    let output = output.to_str().expect("a plain name");
    let mut all = vec![
        "forge",
        "--plugins",
        plugins,
        "tasks",
        environments,
        "--seed",
        "3",
        "--output",
        output,
    ];
    all.extend(more);
    all
}

/// `forge tasks` in the examples.
fn make(host: &Host, output: &Path, more: &[&str]) -> Ended {
    host.run(arguments(host, EXAMPLES, output, more))
}

/// `forge tasks` in the environments written in Python.
fn make_in_python(host: &Host, output: &Path, more: &[&str]) -> Ended {
    host.run(arguments(host, PYTHON, output, more))
}

/// Copies some of the shipped Python files, and the scenarios that need no other file.
pub(crate) fn copy_servers(host: &Host, names: &[&str], to: &Path) {
    let from = host.root().join(PYTHON);
    fs::create_dir(to).expect("a folder");
    for name in names {
        let file = format!("{name}.py");
        fs::copy(from.join(&file), to.join(&file)).expect("a copy");
    }
    let scenarios = fs::read_to_string(from.join("scenarios.json")).expect("scenarios");
    let mut scenarios: Vec<Value> = serde_json::from_str(&scenarios).expect("a list");
    scenarios.retain(|scenario| {
        let servers = scenario["task"]["servers"].as_object().expect("servers");
        servers
            .keys()
            .all(|server| names.contains(&server.as_str()))
    });
    fs::write(to.join("scenarios.json"), json!(scenarios).to_string()).expect("the file");
}

/// Imports rows, and makes their gold calls in the environment `servers` of a configuration.
fn replay(host: &Host, rows: &Path, config: &Path, imported: &Path) {
    let text = |path: &Path| path.to_str().expect("a plain name").to_owned();
    let ended = host.run([
        "data",
        "import",
        &text(rows),
        "--output",
        &text(imported),
        "--environment",
        "servers",
        "--replay",
        "--config",
        &text(config),
        "--plugins",
        &text(host.plugins()),
    ]);
    let ended = ended.succeeded();
    assert!(!ended.stderr.contains("warning"), "{ended}");
    let told = "tasks were made; all are right\n";
    assert!(ended.stdout.contains(told), "{ended}");
    assert_eq!(lines(imported).len(), lines(rows).len());
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
        replay(&host, &rows, &config, &folder.path().join("imported.jsonl"));
    }
}

#[test]
fn a_later_export_repeats_the_settings_of_the_rows() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("tasks");
    let options = [
        "--count=16",
        "--format=tasks",
        "--max-servers=1",
        "--held-out-environments=0",
        "--held-out-tools=0",
    ];
    let settings = ["--practice", "0.34", "--environment", "shops"];
    make(&host, &output, &[&options[..], &settings[..]].concat()).succeeded();
    let rows =
        || ["train", "practice"].map(|part| fs::read(output.join(format!("tasks/{part}.jsonl"))));
    let [train, practice] = rows().map(|rows| rows.expect("rows"));

    let text = output.to_str().expect("a plain name");
    let export = ["forge", "export", text, "--format", "tasks"];
    host.run(export).succeeded();
    let again = rows().map(|rows| rows.expect("rows"));
    assert!(again == [train, practice]);

    // What the command line says, wins.
    host.run([&export[..], &["--practice", "0"]].concat())
        .succeeded();
    assert!(rows()[1].is_err());
    fs::write(output.join("rows.json"), "{}").expect("the file");
    let refused = host.run(export);
    assert!(
        refused.code() == Some(1) && refused.stderr.contains("rows.json"),
        "{refused}"
    );
}

#[test]
fn tasks_are_made_in_environments_written_in_python() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    // Two of the twelve: preparing a Python file takes seconds.
    let servers = folder.path().join("servers");
    copy_servers(&host, &["ChessClub", "Library"], &servers);
    let servers = servers.to_str().expect("a plain name");
    let output = folder.path().join("tasks");
    let options = ["--count", "24", "--format", "tasks", "--json"];
    let make = |output: &Path| host.run(arguments(&host, servers, output, &options));
    let report = make(&output).succeeded().json();
    assert_eq!(
        (&report["statistics"]["tasks"], &report["replayed"]),
        (&json!(24), &json!(true))
    );
    // Its boards are drawn by chance, so no gold call could be compared.
    let left_out = report["left_out"].as_array().expect("a list");
    let drawn = json!({ "tool": "ChessClub-draw_pairings", "why": "chance" });
    assert!(left_out.contains(&drawn), "{left_out:?}");

    let tasks = lines(output.join("tasks.jsonl"));
    let (mut lookups, mut changes) = (0, 0);
    for task in &tasks {
        let offered = task["tools"].as_array().expect("tools");
        assert!(!offered.contains(&json!("ChessClub-draw_pairings")));
        for turn in task["turns"].as_array().expect("turns") {
            assert!(
                turn["query"]
                    .as_str()
                    .is_some_and(|query| !query.is_empty())
            );
            changes += usize::from(turn["goal"] != task["initial"]);
            for call in turn["calls"].as_array().expect("calls") {
                let origins = call["origins"].as_object().expect("origins");
                assert_eq!(
                    origins.len(),
                    call["arguments"].as_object().expect("arguments").len()
                );
                lookups += origins
                    .values()
                    .filter(|origin| origin["from"] == "result")
                    .count();
            }
        }
    }
    assert!(lookups >= 10 && changes >= 10, "{lookups}, {changes}");

    // The same seed gives the same bytes.
    let again = folder.path().join("again");
    make(&again).succeeded();
    for file in ["tasks.jsonl", "rejected.jsonl", "observed.json"] {
        let read = |folder: &Path| fs::read(folder.join(file)).expect("a file");
        assert!(read(&output) == read(&again), "{file}");
    }

    // What was observed of the same files is used again, and believed.
    let record = output.join("observed.json");
    let observed = fs::read_to_string(&record).expect("the record");
    let edited = observed.replace("\"why\":\"chance\"", "\"why\":\"broke\"");
    fs::write(&record, edited).expect("the record");
    let report = make(&output).succeeded().json();
    let left_out = report["left_out"].as_array().expect("a list");
    let believed = json!({ "tool": "ChessClub-draw_pairings", "why": "broke" });
    assert!(left_out.contains(&believed), "{left_out:?}");

    // The rows are tasks in the copied environments.
    let config = folder.path().join("servers.toml");
    let servers = output.join("environments");
    fs::write(
        &config,
        format!(
            "[plugins.servers]\nplugin = \"python\"\nenvironment.servers = {:?}\n\n[plugins.python]\n",
            servers.to_str().expect("a plain name")
        ),
    )
    .expect("the file");
    let rows = output.join("tasks/train.jsonl");
    replay(&host, &rows, &config, &folder.path().join("imported.jsonl"));

    // Counts and rows need no sandbox.
    let output = output.to_str().expect("a plain name");
    let counts = host.run(["forge", "stats", output, "--json"]);
    assert_eq!(counts.succeeded().json()["tasks"], 24);
    let written = host.run([
        "forge",
        "export",
        output,
        "--format",
        "demonstrations",
        "--json",
    ]);
    let written = written.succeeded().json();
    assert!(written[0]["rows"].as_u64().is_some_and(|rows| rows > 0));
}

#[test]
fn python_files_and_specifications_are_not_mixed() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("tasks");
    let ended = make_in_python(&host, &output, &[EXAMPLES]);
    assert!(
        ended.code() != Some(0) && ended.stderr.contains("put the files into one folder"),
        "{ended}"
    );
    let broken = folder.path().join("servers");
    fs::create_dir(&broken).expect("a folder");
    fs::copy(
        host.root().join(PYTHON).join("Library.py"),
        broken.join("Library.py"),
    )
    .expect("a copy");
    let scenario =
        json!([{ "id": "bad", "task": { "servers": { "Library": { "books": 3 } } }, "calls": [] }]);
    fs::write(broken.join("scenarios.json"), scenario.to_string()).expect("the file");
    let path = broken.to_str().expect("a plain name");
    let ended = host.run(arguments(&host, path, &output, &[]));
    assert!(
        ended.code() != Some(0) && ended.stderr.contains("no scenario of Library loads"),
        "{ended}"
    );
    assert!(!output.exists(), "nothing was written");
}

#[test]
fn an_edited_result_is_found_because_the_stages_after_it_are_made_again() {
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
        (&json!("checks"), &json!("diverged"))
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
    let stopped = host.run_without_space(arguments(&host, EXAMPLES, &full, &options));
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
        (&["--min-passes", "5"], "raise --attempts"),
        (&["--environment", "a\nb"], "no plugin can have this name"),
        (&["Cargo.toml"], "has errors"),
        (&["README.md"], "end in .toml or .json"),
        (&["nowhere"], "there is no file or folder nowhere"),
        (
            &["--linked-turns", "--max-turns", "1"],
            "raise --max-turns and --max-calls",
        ),
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
    let other = make(&host, &output, &["--count", "4", "--no-replay"]);
    assert!(
        other.stderr.contains("made with other options (--count)")
            && other.stderr.contains("--restart"),
        "{other}"
    );
    make(
        &host,
        &output,
        &["--count", "4", "--no-replay", "--restart"],
    )
    .succeeded();
    // A larger count continues the folder.
    make(&host, &output, &["--count", "6", "--no-replay"]).succeeded();
    assert_eq!(lines(output.join("tasks.jsonl")).len(), 6);
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
