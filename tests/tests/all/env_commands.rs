//! `rlf-host env` and `rlf-host data`: an author tries an environment and checks its promises; published rows become
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

/// The environments that come with the project, as one environment that is loaded once for all tests.
const ENVIRONMENTS: &str = "plugins/environments";

#[test]
fn the_environments_that_come_with_the_project_keep_their_promises() {
    let arguments = ["check", ENVIRONMENTS, "--inputs", "4", "--json"];
    let report = env(&Host::new(), &arguments, "").succeeded().json();
    let findings = |what: &str| report[what].as_array().expect("a list").clone();
    let scenarios = findings("scenarios");
    assert!(scenarios.len() >= 30, "{}", scenarios.len());
    assert!(findings("tools").len() >= 60);
    for finding in scenarios.iter().chain(&findings("tools")) {
        assert_eq!(finding["problems"], json!([]), "{finding}");
    }
}

/// The environment class of docs/environments.md.
fn guess() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let docs = Host::new().root().join("docs/environments.md");
    let docs = fs::read_to_string(docs).expect("can be read");
    let class = docs
        .split("```")
        .find(|example| example.contains("class Guess:"))
        .and_then(|example| example.strip_prefix("python\n"))
        .expect("the page has the class");
    fs::write(folder.path().join("Guess.py"), class).expect("can be written");
    folder
}

#[test]
fn an_environment_class_of_trl_is_played_unchanged() {
    let folder = guess();
    let file = folder.path().join("Guess.py");
    let task = r#"{"servers": {"Guess": {"low": 5, "high": 5}}}"#;
    let arguments = ["try", file.to_str().expect("a plain name"), "--task", task];
    let commands = "guess {\"no\": 1}\nguess {\"number\": 1}\nverify {}\nguess {\"number\": 5}\nverify {}\nundo\nverify {}\n";
    let played = env(&Host::new(), &arguments, commands);
    let lines: Vec<&str> = played.succeeded().stdout.lines().collect();
    let expected = [
        "user: Guess a number from 5 to 5.",
        "failed {'error': \"Guess.guess() got an unexpected keyword argument 'no'\"}",
        "too low",
        "no success, score 0: get_reward of Guess: 0",
        "right",
        "  ~ Guess.is_found: false -> true",
        "success, score 1: get_reward of Guess: 1",
        "  ~ Guess.is_found: true -> false",
        "undone: guess {\"number\":5}",
        "no success, score 0: get_reward of Guess: 0",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_folder_with_too_many_tools_is_refused_and_a_task_can_name_some_of_its_servers() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path().join("halls");
    fs::create_dir(&folder).expect("can be made");
    for name in ["Left", "Right"] {
        let method = |number| format!("    def {name}_{number}(self):\n        return {number}\n");
        let methods: String = (0..130).map(method).collect();
        let class = format!("class {name}:\n    def reset(self):\n        pass\n{methods}");
        let file = folder.join(format!("{name}.py"));
        fs::write(file, class).expect("can be written");
    }
    let path = folder.to_str().expect("a plain name");
    let refused = env(&Host::new(), &["try", path], "list\n");
    let advice =
        "it offers 260 tools; at most 256 are taken: let the task name some of its servers";
    assert!(refused.stderr.contains(advice), "{refused}");
    let task = r#"{"servers": {"Left": {}}}"#;
    let played = env(&Host::new(), &["try", path, "--task", task], "list\n");
    let listed = played.succeeded().stdout.lines().count();
    assert_eq!(listed, 130, "{played}");
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
        &[
            "try",
            ENVIRONMENTS,
            "--scenario",
            &some_scenario("ToolShed"),
        ],
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
        &["try", ENVIRONMENTS, "--scenario", &some_scenario("Gym")],
        "Gym-set_places {\"class_id\": \"none\", \"places\": 3}\nundo\nundo\n",
    );
    assert!(undone.stdout.contains("undone: Gym-set_places"), "{undone}");
    assert!(
        undone.stderr.contains("there is nothing to undo"),
        "{undone}"
    );
}

#[test]
fn an_empty_result_and_a_state_that_did_not_change_are_said_in_words() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("Counter.py");
    let server = "
from mcp.server.fastmcp import FastMCP


class Counter:
    def __init__(self):
        self.count = 0

    def load_scenario(self, scenario):
        self.count = scenario.get('count', 0)

    def save_scenario(self):
        return {'count': self.count}


api = Counter()
mcp = FastMCP(name='Counter')


@mcp.tool()
def look() -> str:
    return ''


@mcp.tool()
def add() -> str:
    api.count += 1
    return 'added'
";
    fs::write(&file, server).expect("can be written");
    let commands = "Counter-look {}\ndiff\nCounter-add {}\ndiff\nCounter-look {}\ndiff\n";
    let file = file.to_str().expect("a plain name");
    let played = env(&Host::new(), &["try", file], commands);
    let printed = played.succeeded().stdout.as_str();
    let lines: Vec<&str> = printed.lines().collect();
    let change = "  ~ Counter.count: 0 -> 1";
    let expected = [
        "(empty)",
        "(no change)",
        "added",
        change,
        change,
        "(empty)",
        "(no change)",
    ];
    assert!(lines.ends_with(&expected), "{played}");
}

#[test]
fn a_call_that_is_not_made_fails_a_pipe_and_one_that_fails_does_not() {
    let play = |line: &str| {
        let scenario = some_scenario("Gym");
        env(
            &Host::new(),
            &["try", ENVIRONMENTS, "--scenario", &scenario],
            line,
        )
    };
    let failed = play("Gym-set_places {\"class_id\": \"none\", \"places\": 3}\n");
    assert!(failed.succeeded().stdout.contains("failed "), "{failed}");
    let (open, close) = ("[".repeat(70), "]".repeat(70));
    let denied = play(&format!("Gym-set_places {{\"class_id\": {open}{close}}}\n"));
    assert_eq!(denied.code(), Some(1), "{denied}");
    let deep = "invalid-arguments: the arguments are nested more than 64 deep";
    assert!(denied.stdout.contains(deep), "{denied}");
}

/// A scenario with one server.
fn some_scenario(server: &str) -> String {
    let text = fs::read_to_string(Host::new().root().join(ENVIRONMENTS).join("scenarios.json"));
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
    let file = folder.path().join("Broken.toml");
    fs::write(&file, "name = \"Broken\"\nname = 1\n").expect("can be written");
    let path = folder.path().to_str().expect("a plain name");
    env(&host, &["check", path], "").refused_with(&["Broken.toml: line 2, /: "]);
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

/// Counts, and reports its state. Its second tool has a schema that no engine can check in linear time.
const COUNTER: &str = "
from decimal import Decimal
from typing import ClassVar, Optional

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field


class Node(BaseModel):
    model_config = {'regex_engine': 'python-re'}
    seen: ClassVar[int] = 0
    weight: Decimal = Decimal('0.5')
    code: str = Field(default='ab', pattern=r'^(?!x)\\w+$')
    below: Optional['Node'] = None


class Counter:
    count = 0

    def load_scenario(self, scenario):
        self.count = scenario.get('count', 0)

    def save_scenario(self):
        return {'count': self.count}


api = Counter()
mcp = FastMCP(name='Counter')


@mcp.tool()
def add(by: int) -> int:
    if by < 0:
        raise ValueError('it only grows')
    api.count += by
    return api.count


@mcp.tool()
def weigh(node: Node) -> str:
    Node.seen += 1
    weight = Decimal(0)
    while node is not None:
        weight, node = weight + node.weight, node.below
    return f'{weight} in {Node.seen}'
";

#[test]
fn an_environment_in_python_checks_arguments_as_its_own_code_does() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let servers = folder.path().join("servers");
    fs::create_dir(&servers).expect("can be made");
    fs::write(servers.join("Counter.py"), COUNTER).expect("can be written");
    let scenarios_file = servers.join("scenarios.json");
    let servers = servers.to_str().expect("a plain name");
    let snapshot = folder.path().join("snapshot").display().to_string();
    let commands = format!(
        "\
Counter-add {{\"by\": \" 2 \"}}
Counter-add {{\"by\": \"two\"}}
Counter-weigh {{\"node\": {{\"weight\": \"0.1\", \"below\": {{\"weight\": 2}}}}}}
snapshot {snapshot}
Counter-weigh {{\"node\": \"{{\\\"code\\\": \\\"xy\\\"}}\"}}
Counter-weigh {{\"node\": {{}}}}
restore {snapshot}
Counter-weigh {{\"node\": {{}}}}
"
    );
    let played = env(&Host::new(), &["try", servers], &commands);
    let told = &played.succeeded().stdout;
    for part in [
        "2\n  ~ Counter.count: 0 -> 2\nfailed Error executing tool add: 1 validation error for addArguments\nby\n  Input should \
         be a valid integer, unable to parse string as an integer",
        "\n2.1 in 1\n",
        "String should match pattern '^(?!x)\\w+$'",
    ] {
        assert!(told.contains(part), "{part}: {played}");
    }
    // The last two are the same call, made from the same state.
    assert_eq!(told.matches("\n0.5 in 2").count(), 2, "{played}");
    let scenarios = json!([
        {"id": "good", "task": {"servers": {"Counter": null}}, "calls": [["Counter-add", {"by": 1}]], "expect": {"Counter": {"count": 1}}},
        {"id": "lost", "task": {"servers": {"Count": null}}, "calls": []},
        {"id": "wrong", "task": {"servers": {"Counter": null}}, "calls": [["Counter-add", {"by": 1}]], "expect": {"Counter": {"count": 2}}},
    ]);
    fs::write(scenarios_file, scenarios.to_string()).expect("can be written");
    let checked = env(&Host::new(), &["check", servers, "--json"], "");
    assert_eq!(checked.code(), Some(1), "{checked}");
    let report: Value = checked.json();
    let problems = |at: usize| &report["scenarios"][at]["problems"];
    assert_eq!(problems(0), &json!([]), "{report}");
    let lost = problems(1)[0].as_str().expect("a text");
    assert!(lost.contains("there is no server 'Count'"), "{report}");
    let wrong =
        "it ends in another state than `expect`, from that to what it is: ~ Counter.count: 2 -> 1";
    assert_eq!(problems(2), &json!([wrong]), "{report}");
    assert_eq!(report["tools"][1]["name"], "Counter-weigh", "{report}");
    assert_eq!(report["tools"][1]["problems"], json!([]), "{report}");
}

#[test]
fn gold_calls_are_replayed_and_rows_that_cannot_be_right_are_told() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("Counter.py"), COUNTER).expect("can be written");
    let config = format!(
        "[plugins.servers]\nplugin = 'python'\nenvironment.servers = '{}'\n",
        at("Counter.py")
    );
    fs::write(at("servers.toml"), config).expect("can be written");
    let add = |by: i64| json!({"name": "Counter-add", "arguments": {"by": by}});
    let ends = |count: i64| json!({"Counter": {"count": count}});
    let row = |id: &str, calls: Value, state: Value| {
        json!({
            "id": id, "source": "counts", "prompt": [{"role": "user", "content": "Count."}], "environment": "servers",
            "setup": {"servers": {"Counter": {"count": 0}}}, "reference": {"calls": calls, "state": state},
        })
    };
    let mut open = row("open", json!([add(2)]), Value::Null);
    open["reference"]
        .as_object_mut()
        .expect("an object")
        .remove("state");
    let mut forbidden = row("forbidden", json!([add(2)]), ends(2));
    forbidden["tools"] = json!(["Counter-other"]);
    let mut unknown = row("unknown", json!([add(2)]), ends(2));
    unknown["setup"] = json!({"servers": {"Nowhere": null}});
    let mut misspelt = row("misspelt", json!([add(2)]), ends(2));
    misspelt["environment"] = json!("server");
    let with_more = json!({"name": "Counter-add", "arguments": {"by": 2, "bye": 2}});
    let rows = [
        open,
        row("more", json!([with_more]), ends(2)),
        misspelt,
        row("still", json!([]), ends(0)),
        row("tried", json!([add(-1), add(3)]), ends(3)),
        row("idle", json!([add(0)]), ends(0)),
        row("elsewhere", json!([add(2)]), ends(5)),
        forbidden,
        unknown,
    ];
    let lines = rows.map(|row| row.to_string());
    fs::write(at("tasks.jsonl"), lines.join("\n")).expect("can be written");
    let plugins = host.plugins().display().to_string();
    let replay = |output: &str, more: &[&str]| {
        let (input, output, config) = (at("tasks.jsonl"), at(output), at("servers.toml"));
        let mut arguments = vec![
            "data",
            "import",
            &input,
            "--output",
            &output,
            "--replay",
            "--config",
            &config,
            "--plugins",
            &plugins,
        ];
        arguments.extend(more);
        host.run(arguments)
    };
    let ids = |file: &str| -> Vec<(String, Value)> {
        let text = fs::read_to_string(at(file)).expect("was written");
        let rows = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("is JSON"));
        rows.map(|row| {
            (
                row["id"].as_str().expect("a text").to_owned(),
                row["reference"]["state"].clone(),
            )
        })
        .collect()
    };

    let all = replay("all.jsonl", &[]);
    assert_eq!(all.code(), Some(1), "{all}");
    for told in [
        "task \"elsewhere\": its gold calls do not lead where its row says (Counter: count",
        "task \"forbidden\": gold call 1 is to `Counter-add`, which its `tools` do not allow",
        "task \"unknown\"",
        "task \"misspelt\": there is no environment `server`; did you mean `servers`?",
        "task \"more\": gold call 1 to `Counter-add` has an argument `bye`, which the tool does not know; it takes by",
    ] {
        assert!(all.stderr.contains(told), "{all}");
    }
    assert!(!all.stderr.contains("\"tried\""), "{all}");
    assert!(
        all.stdout
            .contains("gold calls of 8 of 9 tasks were made; 5 of all are wrong\n"),
        "{all}"
    );
    assert!(
        all.stdout
            .contains("2 of all are solved where they begin, by doing nothing, for a reward that grades the state alone: still, idle\n"),
        "{all}"
    );
    assert_eq!(ids("all.jsonl").len(), 9);
    assert_eq!(ids("all.jsonl")[0], ("open".to_owned(), ends(2)));

    let without_config = host.run([
        "data",
        "import",
        &at("tasks.jsonl"),
        "--output",
        &at("none.jsonl"),
        "--replay",
        "--plugins",
        &plugins,
    ]);
    without_config.refused_with(&[
        "there is no environment `servers`; name the configuration that has the environment with --config",
    ]);
    let good = replay("good.jsonl", &["--skip-bad"]);
    assert!(
        good.succeeded().stdout.contains("5 rows left out"),
        "{good}"
    );
    let kept: Vec<String> = ids("good.jsonl").into_iter().map(|(id, _)| id).collect();
    assert_eq!(kept, ["open", "still", "tried", "idle"]);

    // An output that is not a regular file is written directly, and receives nothing else.
    let stdout = "/proc/self/fd/1";
    let piping = ["data", "import", &at("good.jsonl"), "--output", stdout];
    let good = fs::read_to_string(at("good.jsonl")).expect("is a text");
    let piped = host.run(piping);
    assert_eq!(piped.succeeded().stdout, good);
    assert!(
        piped.stderr.contains("4 tasks in /proc/self/fd/1"),
        "{piped}"
    );
    fs::write(at("behind.jsonl"), "first\n").expect("can be written");
    host.run_appending(at("behind.jsonl").as_ref(), piping)
        .succeeded();
    let behind = fs::read_to_string(at("behind.jsonl")).expect("is a text");
    assert_eq!(behind, format!("first\n{good}"));

    // Tasks are identified by their ids.
    let (once, twice) = (at("good.jsonl"), at("twice.jsonl"));
    let both = ["data", "import", &once, &once, "--output", &twice];
    host.run(both)
        .refused_with(&["two rows have the id \"open\""]);
    let skipped = host.run(both.iter().chain(&["--skip-bad"]));
    assert!(
        skipped.succeeded().stdout.contains("4 rows left out"),
        "{skipped}"
    );
    assert_eq!(ids("twice.jsonl").len(), 4);
}

#[test]
fn the_published_samples_import_whole() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (data, file, rows) in [
        ("ftrl-sample", "sample.jsonl", "40 tasks"),
        ("tau-retail", "tasks_train_dev.json", "520 tasks"),
    ] {
        let Some(data) = rlf_tests::data(data) else {
            continue;
        };
        let output = folder.path().join("out.jsonl").display().to_string();
        let file = data.join(file).display().to_string();
        let imported = host.run(["data", "import", &file, "--output", &output]);
        assert!(imported.succeeded().stdout.starts_with(rows), "{imported}");
    }
}
