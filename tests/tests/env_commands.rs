//! `rlf-host env` and `rlf-host data`: an author tries an environment and sees its promises kept; published rows become
//! tasks.

use std::fs;

use rlf_tests::{Ended, Host};
use serde_json::{Value, json};

/// Starts `rlf-host env` on the plugins that were built.
fn env(host: &Host, arguments: &[&str], commands: &str) -> Ended {
    let plugins = host.plugins().to_str().expect("a plain name");
    let mut all = vec!["env", "--plugins", plugins];
    all.extend(arguments);
    host.run_fed(commands, all)
}

/// The environments that come with the project, as one: loaded once for all tests.
const WORLDS: &str = "plugins/environments";

#[test]
fn the_environments_that_come_with_the_project_keep_their_promises() {
    let arguments = ["check", WORLDS, "--inputs", "4", "--json"];
    let report = env(&Host::new(), &arguments, "").succeeded().json();
    let findings = |what: &str| report[what].as_array().expect("a list").clone();
    let scenarios = findings("scenarios");
    assert!(scenarios.len() >= 30, "{}", scenarios.len());
    assert!(findings("tools").len() >= 60);
    for finding in scenarios.iter().chain(&findings("tools")) {
        assert_eq!(finding["problems"], json!([]), "{finding}");
    }
}

#[test]
fn an_environment_is_played_by_hand_from_a_pipe() {
    let commands = "\
list
ToolShed-find_tools {}
state
nothing
";
    let played = env(
        &Host::new(),
        &["try", WORLDS, "--scenario", &some_scenario("ToolShed")],
        commands,
    );
    assert_eq!(played.code(), Some(1), "{played}");
    assert!(played.stdout.contains("ToolShed-find_tools {"), "{played}");
    assert!(
        played
            .stderr
            .contains("there is no tool or command `nothing`"),
        "{played}"
    );
    let undone = env(
        &Host::new(),
        &["try", WORLDS, "--scenario", &some_scenario("Gym")],
        "Gym-set_places {\"class_id\": \"none\", \"places\": 3}\nundo\nundo\n",
    );
    assert!(undone.stdout.contains("undone: Gym-set_places"), "{undone}");
    assert!(
        undone.stderr.contains("there is nothing to undo"),
        "{undone}"
    );
}

/// A scenario of one server alone.
fn some_scenario(server: &str) -> String {
    let text = fs::read_to_string(Host::new().root().join(WORLDS).join("scenarios.json"));
    let scenarios: Value = serde_json::from_str(&text.expect("is there")).expect("is JSON");
    let of_server = |scenario: &&Value| {
        let servers = scenario["task"]["servers"]
            .as_object()
            .expect("it names some");
        servers.len() == 1 && servers.contains_key(server)
    };
    let scenario = scenarios.as_array().expect("a list").iter().find(of_server);
    scenario.expect("every server has one")["id"]
        .as_str()
        .expect("it has a name")
        .to_owned()
}

#[test]
fn what_is_no_environment_is_said_with_its_place() {
    let host = Host::new();
    env(&host, &["check", "calculator"], "")
        .refused_with(&["`calculator` is a tool, and no environment"]);
    env(&host, &["try", "configs"], "").refused_with(&[
        "configs is neither a Python file nor a folder of them",
        "there is no environment of that name in",
    ]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("Broken.py");
    fs::write(&file, "import nothing_of_the_kind\n").expect("can be written");
    env(&host, &["check", file.to_str().expect("a plain name")], "")
        .refused_with(&["Broken.py:1", "nothing_of_the_kind"]);
}

#[test]
fn ftrls_rows_become_tasks_and_what_no_format_fits_is_said_with_its_line() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let row = json!({
        "messages": [{"role": "user", "content": "How tall is the tower?"}],
        "tools": json!([{"type": "function", "function": {
            "name": "height", "description": "Height of a tower.",
            "parameters": {"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]},
        }}]).to_string(),
        "codes": json!({"height": "def height(of):\n    return 'It is 324 m.'\n"}).to_string(),
        "unsolved_set": json!({"height": ["324"]}).to_string(),
        "answer": "324 m",
    });
    fs::write(at("rows.jsonl"), format!("{row}\n")).expect("can be written");
    let imported = host.run([
        "data",
        "import",
        &at("rows.jsonl"),
        "--output",
        &at("tasks.jsonl"),
    ]);
    assert_eq!(
        imported.succeeded().stdout,
        format!(
            "1 tasks in {}\n       1 of ftrl, in functions\n",
            at("tasks.jsonl")
        )
    );
    let task: Value = serde_json::from_str(
        fs::read_to_string(at("tasks.jsonl"))
            .expect("was written")
            .trim(),
    )
    .expect("is JSON");
    assert_eq!(task["environment"], "functions");
    assert_eq!(task["reference"]["unsolved"], json!({"height": ["324"]}));
    assert_eq!(task["setup"]["scoping"], "clean");

    fs::write(at("bad.jsonl"), format!("{row}\n{{\"what\": 1}}\n")).expect("can be written");
    host.run([
        "data",
        "import",
        &at("bad.jsonl"),
        "--output",
        &at("none.jsonl"),
    ])
    .refused_with(&["bad.jsonl:2", "no known format"]);
    assert!(!folder.path().join("none.jsonl").exists());
    let skipped = host.run([
        "data",
        "import",
        &at("bad.jsonl"),
        "--output",
        &at("one.jsonl"),
        "--skip-bad",
    ]);
    assert!(
        skipped.succeeded().stdout.ends_with("1 rows left out\n"),
        "{skipped}"
    );
}

#[test]
fn the_published_samples_import_whole() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (data, file, rows) in [
        ("ftrl-sample", "sample.jsonl", "40 tasks"),
        ("tau-retail", "tasks_train_dev.json", "520 tasks"),
    ] {
        let Some(data) = host.shared_data(data) else {
            eprintln!("SKIPPED: no ../shared/data/{data} beside the repository");
            continue;
        };
        let output = folder.path().join("out.jsonl").display().to_string();
        let file = data.join(file).display().to_string();
        let imported = host.run(["data", "import", &file, "--output", &output]);
        assert!(imported.succeeded().stdout.starts_with(rows), "{imported}");
    }
}
