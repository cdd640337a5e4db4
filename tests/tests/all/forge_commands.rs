//! `rlf-host forge`: specifications are checked, played, exported and opened like any environment.

use std::fs;

use rlf_tests::{Ended, Host};
use serde_json::{Value, json};

const EXAMPLES: [&str; 3] = [
    "plugins/specified/examples/Clinic.toml",
    "plugins/specified/examples/LendingLibrary.toml",
    "plugins/specified/examples/Warehouse.toml",
];

fn run(host: &Host, command: &str, arguments: &[&str], fed: &str) -> Ended {
    let plugins = host.plugins().to_str().expect("a plain name");
    let mut all = vec![command, "--plugins", plugins];
    all.extend(arguments);
    host.run_fed(fed, all)
}

fn verify(host: &Host, files: &[&str]) -> (Option<i32>, Value) {
    let mut arguments = vec![
        "env", "verify", "--json", "--calls", "40", "--walks", "2", "--seeds", "2",
    ];
    arguments.extend(files);
    let ended = run(host, "forge", &arguments, "");
    let code = ended.code();
    (code, ended.json())
}

#[test]
fn the_examples_are_sound_and_every_operation_succeeds() {
    let (code, report) = verify(&Host::new(), &EXAMPLES);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["summary"]["sound"], 3);
    for verdict in report["environments"].as_array().expect("a list") {
        assert_eq!(
            (&verdict["sound"], &verdict["checks"]),
            (&json!(true), &json!([]))
        );
        assert_eq!(verdict["played"]["loaded"], 8);
        for operation in verdict["played"]["operations"].as_array().expect("a list") {
            assert!(operation["succeeded"].as_u64() > Some(0), "{operation}");
        }
    }
}

#[test]
fn an_environment_in_python_is_verified_the_same_way() {
    let (code, report) = verify(&Host::new(), &["plugins/environments/Library.py"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["summary"]["errors"], 0, "{report}");
    let played = &report["environments"][0]["played"];
    assert_eq!(played["loaded"], played["starts"], "{report}");
    assert!(played["calls"].as_u64() > Some(100), "{report}");
}

#[test]
fn environments_of_another_seed_do_not_replace_a_record() {
    let host = Host::new();
    let folder = composed(&host);
    let output = folder.path().to_str().expect("a plain name");
    let record = folder.path().join("composed.jsonl");
    let before = fs::read(&record).expect("a record");
    let other = [
        "env", "compose", "--seed", "9", "--count", "2", "--output", output,
    ];
    run(&host, "forge", &other, "").refused_with(&["composed.jsonl", "--seed 0", "--output"]);
    let words = [
        "env", "compose", "--words", "invented", "--count", "2", "--output", output,
    ];
    run(&host, "forge", &words, "").refused_with(&["composed.jsonl", "--words real", "--output"]);
    assert_eq!(fs::read(&record).expect("a record"), before);
}

/// An environment whose call needs longer than the operator's deadline, and less CPU time than its limit.
const SLOW: &str = r"
from mcp.server.fastmcp import FastMCP


class Slow:
    def load_scenario(self, scenario):
        pass

    def save_scenario(self):
        return {}


api = Slow()
mcp = FastMCP(name='Slow')


@mcp.tool()
def add() -> int:
    return sum(range(10 ** 9))
";

#[test]
fn a_machine_that_is_too_busy_says_nothing_about_an_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("a plain name").to_owned()
    };
    let environment = write("Slow.py", SLOW);
    let config = write(
        "operator.toml",
        "[plugins.Slow]\nretries = 0\n[plugins.Slow.programs]\ntime_ms = 60_000\ndeadline_ms = 4_000\n",
    );
    let verify = [
        "env",
        "verify",
        "--config",
        &config,
        "--calls",
        "2",
        "--walks",
        "1",
        &environment,
    ];
    run(&Host::new(), "forge", &verify, "").refused_with(&["the machine was too busy"]);
}

/// Two composed environments, in a folder.
fn composed(host: &Host) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().to_str().expect("a plain name");
    let compose = ["env", "compose", "--count", "2", "--output", output];
    run(host, "forge", &compose, "").succeeded();
    folder
}

#[test]
fn a_folder_is_verified_at_once_as_each_file_alone() {
    let host = Host::new();
    let folder = composed(&host);
    let whole = folder.path().to_str().expect("a plain name");
    let (code, report) = verify(&host, &[whole, EXAMPLES[1], "--jobs", "3"]);
    assert_eq!(code, Some(0), "{report}");
    let together = report["environments"].as_array().expect("a list");
    assert_eq!(together.len(), 3);
    let (first, example) = (&together[0], &together[2]);
    assert_eq!(example["file"], EXAMPLES[1]);
    let alone = |file: &Value| {
        let file = file.as_str().expect("a file");
        verify(&host, &[file]).1["environments"][0].clone()
    };
    assert_eq!(*first, alone(&first["file"]));
    assert_eq!(*example, alone(&example["file"]));
    let calls = together
        .iter()
        .map(|one| one["played"]["calls"].as_u64().expect("a number"));
    assert_eq!(report["summary"]["calls"], calls.sum::<u64>());
}

#[test]
fn one_bad_file_costs_no_verdict_on_another() {
    let host = Host::new();
    let folder = composed(&host);
    let broken = folder.path().join("AAA.toml");
    fs::write(&broken, "name = \"AAA\"\n").expect("the file");
    // Its name is that of another environment, so the two cannot be loaded together.
    let twin = folder.path().join("Twin.toml");
    fs::copy(host.root().join(EXAMPLES[1]), &twin).expect("the file");
    let whole = folder.path().to_str().expect("a plain name");
    let (code, report) = verify(&host, &[whole, EXAMPLES[1], "Nowhere.toml"]);
    assert_eq!(code, Some(1), "{report}");
    let of = |key: &str| report["summary"][key].as_u64();
    assert_eq!((of("sound"), of("unsound")), (Some(4), Some(1)), "{report}");
    assert_eq!(of("not_verified"), Some(1), "{report}");
    let all = report["environments"].as_array().expect("a list");
    assert_eq!(all[0]["checks"][0]["kind"], "unreadable");
    let problem = all.last().expect("some")["problem"].as_str();
    assert!(problem.is_some_and(|problem| problem.contains("there is no file")));
    let (_, report) = verify(&host, &["--no-play", EXAMPLES[1], "/nonexistent"]);
    let problem = report["environments"][1]["problem"].as_str();
    assert!(problem.is_some_and(|problem| problem.contains("there is no file")));
}

#[test]
fn what_was_verified_before_is_not_played_again_until_it_changes() {
    let host = Host::new();
    let folder = composed(&host);
    let whole = folder.path().to_str().expect("a plain name");
    let record = tempfile::tempdir().expect("a folder");
    let record = record.path().join("verified.jsonl");
    let record = record.to_str().expect("a plain name");
    let again = |more: &[&str]| {
        let mut arguments = vec![whole, "--record", record];
        arguments.extend(more);
        let (code, report) = verify(&host, &arguments);
        assert_eq!(code, Some(0), "{report}");
        report["summary"]["recorded"].as_u64().expect("a number")
    };
    assert_eq!(again(&[]), 0);
    assert_eq!(again(&[]), 2);
    assert_eq!(again(&["--seed", "1"]), 0);
    let file = fs::read_dir(folder.path())
        .expect("the folder")
        .map(|entry| entry.expect("a file").path())
        .find(|file| file.extension().is_some_and(|one| one == "toml"))
        .expect("an environment");
    let text = fs::read_to_string(&file).expect("the file");
    fs::write(&file, text + "\n").expect("the file");
    assert_eq!(again(&[]), 1);
}

#[test]
fn a_specification_is_checked_like_any_environment() {
    let report = run(
        &Host::new(),
        "env",
        &["check", EXAMPLES[1], "--inputs", "10", "--json"],
        "",
    )
    .succeeded()
    .json();
    for what in ["scenarios", "tools"] {
        for finding in report[what].as_array().expect("a list") {
            assert_eq!(finding["problems"], json!([]), "{finding}");
        }
    }
    let played = run(
        &Host::new(),
        "env",
        &["try", EXAMPLES[1], "--scenario", "LendingLibrary-simple"],
        "LendingLibrary-pay_fine {\"member_id\": \"M99\", \"cents\": 5}\n",
    );
    assert!(
        played
            .succeeded()
            .stdout
            .contains("failed no member M99; find_member gives the numbers"),
        "{played}"
    );
}

#[test]
fn broken_specifications_are_found_before_and_while_they_are_played() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = fs::read_to_string(Host::new().root().join(EXAMPLES[1])).expect("the example");
    let file = folder.path().join("LendingLibrary.toml");
    let path = file.to_str().expect("a plain name");
    for (from, to, place, kind) in [
        (
            "out < book.copies",
            "out < book.copy",
            "/operations/3/preconditions/2/require",
            "bad-expression",
        ),
        (
            "out < book.copies",
            "out < book.copies + 1",
            "LendingLibrary-lend_book",
            "breaks-rule",
        ),
        (
            "cents <= member.fine",
            "cents <= member.fine + 100",
            "LendingLibrary-pay_fine",
            "breaks-rule",
        ),
        (
            "!loan.renewed",
            "loan.renewed && loan_id == 'never'",
            "LendingLibrary-renew_loan",
            "never-succeeds",
        ),
        (
            "\"book.copies\" = { constant = 1 }",
            "\"book.copies\" = { constant = 0 }",
            "boundary, seed 0",
            "does-not-load",
        ),
        (
            "Move the due date of a loan",
            "Move the due date, as of Tin Soldiers, of a loan",
            "/operations/4/description",
            "leaking-description",
        ),
    ] {
        assert!(good.contains(from), "{from}");
        fs::write(&file, good.replace(from, to)).expect("the file");
        let (code, report) = verify(&Host::new(), &[path]);
        assert_eq!(code, Some(1), "{report}");
        let played = report["environments"][0]["played"]["findings"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let checks = report["environments"][0]["checks"]
            .as_array()
            .expect("a list");
        let found = checks
            .iter()
            .chain(&played)
            .any(|finding| finding["place"] == place && finding["kind"] == kind);
        assert!(found, "{to}: {report}");
    }
}

#[test]
fn an_export_is_an_environment_that_behaves_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("LendingLibrary.py");
    let path = file.to_str().expect("a plain name");
    let host = Host::new();
    run(
        &host,
        "forge",
        &["env", "export", EXAMPLES[1], "--python", path],
        "",
    )
    .succeeded();
    let report = run(
        &host,
        "forge",
        &["env", "export", "--json", EXAMPLES[1], "--python", path],
        "",
    );
    let report = report.succeeded().json();
    assert_eq!(
        (&report["environment"], &report["path"]),
        (&json!("LendingLibrary"), &json!(path))
    );
    let commands = "LendingLibrary-find_member {\"text\": \"\"}\nstate\n";
    let task = "{\"servers\": {\"LendingLibrary\": {\"today\": \"2024-03-01\", \"members\": {}, \"books\": {}, \"loans\": {}, \"next_loan\": 1}}}";
    let play = |what: &str| {
        run(
            &host,
            "env",
            &["try", what, "--json", "--task", task],
            commands,
        )
    };
    let state = |ended: &Ended| ended.stdout.lines().last().map(str::to_owned);
    assert_eq!(state(&play(path)), state(&play(EXAMPLES[1])));
    let misnamed = folder.path().join("library.py");
    let refused = run(
        &host,
        "forge",
        &[
            "env",
            "export",
            EXAMPLES[1],
            "--python",
            misnamed.to_str().expect("a plain name"),
        ],
        "",
    );
    assert_eq!(refused.code(), Some(1));
    assert!(
        refused
            .stderr
            .contains("has to be called LendingLibrary.py"),
        "{refused}"
    );
}

#[test]
fn composing_continues_where_it_was_stopped_and_overwrites_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().to_str().expect("a plain name");
    let host = Host::new();
    let compose = |count: &str| {
        let arguments = [
            "env", "compose", "--json", "--seed", "3", "--count", count, "--output", output,
        ];
        run(&host, "forge", &arguments, "")
    };
    let files = || -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(folder.path()).expect("the folder");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
        files.retain(|file| {
            file.extension()
                .is_some_and(|extension| extension == "toml")
        });
        files.sort();
        files
    };
    let first = compose("2");
    assert_eq!(first.stderr, "", "a pipe shows no progress");
    let report = first.succeeded().json();
    assert_eq!(
        (&report["written"], &report["kept"]),
        (&json!(2), &json!(0))
    );
    let before = files();
    assert_eq!(before.len(), 2);
    // As after an interruption: one file is there, the other is not.
    let lost = fs::read(&before[0]).expect("the file");
    fs::remove_file(&before[0]).expect("the file");
    let report = compose("3").succeeded().json();
    assert_eq!(
        (&report["written"], &report["kept"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(fs::read(&before[0]).expect("the file"), lost);
    assert_eq!(files().len(), 3);
    let record = fs::read_to_string(folder.path().join("composed.jsonl")).expect("the record");
    let lines: Vec<Value> = record
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.iter().filter(|line| line["seed"] == 3).count(), 3);

    fs::write(&before[1], "name = \"Mine\"\n").expect("the file");
    let refused = compose("3");
    assert_eq!(refused.code(), Some(1));
    let name = before[1]
        .file_name()
        .expect("a name")
        .to_str()
        .expect("a plain name");
    assert!(refused.stderr.contains(name), "{refused}");
    assert!(
        refused.stderr.contains("another folder with --output"),
        "{refused}"
    );
    let kept = fs::read_to_string(&before[1]).expect("the file");
    assert_eq!(kept, "name = \"Mine\"\n");
}

#[test]
fn a_graph_is_counted_and_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("graph.html");
    let host = Host::new();
    let mut arguments = vec!["graph", "--json", "--chains", "50", "--output"];
    arguments.push(page.to_str().expect("a plain name"));
    arguments.push("plugins/specified/examples");
    let report = run(&host, "forge", &arguments, "").succeeded().json();
    let counts = &report["counts"];
    assert_eq!(
        (&counts["tools"], &counts["servers"]),
        (&json!(23), &json!(3))
    );
    assert_eq!(counts["by_key"], 38);
    let chains = &report["chains"];
    assert_eq!(
        (&chains["sampled"], &chains["valid_topology"]),
        (&json!(50), &json!(50))
    );
    let html = fs::read_to_string(&page).expect("the page");
    assert!(
        html.contains("lend_book") && html.contains("<svg"),
        "{}",
        html.len()
    );

    let wrong = folder.path().join("Broken.toml");
    fs::write(&wrong, "name = 1\n").expect("the file");
    let refused = run(
        &host,
        "forge",
        &["graph", wrong.to_str().expect("a plain name")],
        "",
    );
    assert_eq!(refused.code(), Some(1));
    assert!(refused.stderr.contains("Broken.toml"), "{refused}");
    for (path, says) in [
        (
            "plugins/environments",
            "has no specifications, only environments in Python",
        ),
        (
            "plugins/environments/Library.py",
            "is an environment in Python",
        ),
    ] {
        run(&host, "forge", &["graph", path], "").refused_with(&[
            says,
            "takes specifications only, which end in .toml or .json",
        ]);
    }
}
