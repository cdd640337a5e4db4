//! Programs run as their own interpreter would run them, within limits, and leave nothing behind. Most of it is shown by a
//! toy interpreter (`tests/guests/toy`) whose commands have one effect each; what real programs do is `cargo xtask conformance`'s.

use std::fs;
use std::path::Path;

use rlf_tests::{Ended, Host};
use serde_json::{Value, json};

/// Runs lines of commands with these options.
fn run(program: &str, options: &[&str]) -> Ended {
    let host = Host::with_test_plugins();
    let plugins = host.plugins().display().to_string();
    let mut arguments = vec!["run", "--lang", "toy", "--plugins", &plugins];
    arguments.extend(options);
    arguments.push("-");
    host.run_fed(program, arguments)
}

#[test]
fn a_program_prints_what_it_prints_and_exits_as_it_exits() {
    let ended = run("print one\nwarn two\nprint three\n", &[]);
    assert_eq!(
        (ended.code(), ended.stdout.as_str(), ended.stderr.as_str()),
        (Some(0), "one\nthree\n", "two\n")
    );
    for (program, code) in [
        ("exit 7", 7),
        ("leave 9", 9),
        ("exit -1", 255),
        ("raise x", 1),
    ] {
        let ended = run(program, &[]);
        assert_eq!(ended.code(), Some(code), "{ended}");
        assert_eq!(ended.stdout, "", "{ended}");
    }
    assert_eq!(
        run("raise of one's own", &[]).stderr,
        "Error: of one's own\n"
    );
}

#[test]
fn a_file_is_run_with_its_arguments_and_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.any");
    fs::write(&script, "arguments\nstdin\n").unwrap();
    let script = script.display().to_string();
    let host = Host::with_test_plugins();
    let plugins = host.plugins().display().to_string();
    let options = ["run", "--lang", "toy", "--plugins", &plugins];
    let given = [&*script, "--flag", "-x", "value"];
    let ended = host.run_fed("two\nlines", options.iter().chain(&given));
    assert_eq!(
        ended.succeeded().stdout,
        format!("{script}|--flag|-x|value\ntwo\nlines")
    );
}

#[test]
fn what_was_printed_before_a_limit_stays() {
    for (program, said) in [
        ("print before\nloop\nprint after", "(cpu_ms = 200, used "),
        (
            "print before\nsleep 5000\nprint after",
            "(wall_ms = 200, used 5000, in virtual time)",
        ),
    ] {
        let ended = run(program, &["--time-ms", "200"]);
        assert_eq!(
            (ended.code(), ended.stdout.as_str()),
            (Some(124), "before\n"),
            "{ended}"
        );
        assert!(ended.stderr.starts_with("stopped: the program "), "{ended}");
        assert!(ended.stderr.contains(said), "{ended}");
    }
}

#[test]
fn memory_ends_at_its_limit() {
    let ended = run(
        "print before\ngrow 200\nprint after",
        &["--memory", "32MiB"],
    );
    assert_eq!(
        (ended.code(), ended.stdout.as_str()),
        (Some(137), "before\n"),
        "{ended}"
    );
    assert!(ended.stderr.contains("memory_bytes = 33554432"), "{ended}");
    let enough = run("grow 20\nprint after", &["--memory", "32MiB"]);
    assert_eq!(enough.succeeded().stdout, "after\n");
}

#[test]
fn a_flood_ends_at_the_hard_limit() {
    let ended = run("flood 100", &["--output", "64KiB"]);
    assert_eq!(ended.code(), Some(137), "{ended}");
    // All that was printed up to there is shown.
    assert_eq!(ended.stdout.len(), 65 << 10);
    assert!(
        ended.stderr.contains("output_stop_bytes = 65536"),
        "{}",
        ended.stderr
    );
    assert_eq!(run("flood 100", &[]).succeeded().stdout.len(), 100 << 10);
}

#[test]
fn files_come_and_go_and_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("given.txt"), "from outside").unwrap();
    let program = "read given.txt\nread other.txt\nwrite left.txt from inside\nread missing.txt";
    let ended = run(
        program,
        &[
            "--file",
            &at("given.txt"),
            "--file",
            &format!("{}=other.txt", at("given.txt")),
            "--fetch",
            &format!("left.txt={}", at("taken.txt")),
            "--fetch",
            &format!("nothing.txt={}", at("nothing.txt")),
        ],
    );
    assert_eq!(
        ended.succeeded().stdout,
        "from outside\nfrom outside\nentity not found\n"
    );
    assert_eq!(fs::read_to_string(at("taken.txt")).unwrap(), "from inside");
    assert!(!Path::new(&at("nothing.txt")).exists());

    let out = run("print x", &["--file", &format!("{}=../x", at("given.txt"))]);
    assert_eq!(out.code(), Some(125), "{out}");
    assert!(out.stderr.contains("it leads out"), "{out}");
    let much = run("print x", &["--file", &at("given.txt"), "--files", "10"]);
    assert_eq!(much.code(), Some(125), "{much}");
    assert!(much.stderr.contains("--files allows more"), "{much}");
}

#[test]
fn nothing_of_one_run_is_left_for_the_next() {
    let first = run("write kept.txt x\nset name value\nrandom\nnow", &[]);
    let again = run("write kept.txt x\nset name value\nrandom\nnow", &[]);
    assert_eq!(first.succeeded().stdout, again.succeeded().stdout);
    assert_eq!(
        run("read kept.txt", &[]).succeeded().stdout,
        "entity not found\n"
    );
    let other = run("random", &["--seed", "1"]);
    assert!(
        !first.stdout.starts_with(&other.succeeded().stdout),
        "{other}"
    );
}

#[test]
fn a_program_that_breaks_its_interpreter_is_told_so() {
    let ended = run("print before\ntrap", &[]);
    assert_eq!(
        (ended.code(), ended.stdout.as_str()),
        (Some(137), "before\n"),
        "{ended}"
    );
    assert!(
        ended.stderr.starts_with("stopped: the program trapped"),
        "{ended}"
    );
}

#[test]
fn what_cannot_be_run_says_why() {
    let host = Host::with_test_plugins();
    let plugins = host.plugins().display().to_string();
    let refused = |arguments: &[&str], parts: &[&str]| {
        let ended = host.run_fed("", ["run", "--plugins", &plugins].iter().chain(arguments));
        assert_eq!(ended.code(), Some(125), "{ended}");
        for part in parts {
            assert!(ended.stderr.contains(part), "no `{part}`: {ended}");
        }
    };
    refused(&["--lang", "toys", "-"], &["runs toys", "there are: toy"]);
    refused(&["no-such-file.py"], &["cannot open no-such-file.py"]);
    refused(&["Cargo.toml"], &["names no language", "--lang"]);
    refused(
        &["--lang", "toy", "--config", "none.toml", "-"],
        &["none.toml"],
    );
}

/// Calls the tool that runs programs, as a model does.
fn call(program: &str, policy: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("toy.toml");
    fs::write(&config, policy).unwrap();
    let arguments = json!({ "code": program }).to_string();
    let config = config.display().to_string();
    let ended = Host::with_test_plugins().plugin([
        "call", "toy", "toy", &arguments, "--json", "--config", &config,
    ]);
    ended.json()
}

#[test]
fn a_model_reads_what_its_program_prints_and_what_stopped_it() {
    let text = |outcome: &Value| outcome["observation"]["content"][0]["text"].clone();
    let good = call("print one\nwarn two", "");
    assert_eq!(
        (&good["ended"], text(&good)),
        (&json!("ok"), json!("one\ntwo"))
    );
    let silent = call("set x 1", "");
    assert_eq!(text(&silent), "(the program printed nothing)");
    let failed = call("print one\nraise of its own", "");
    assert_eq!(
        (&failed["ended"], text(&failed)),
        (&json!("failed"), json!("one\nError: of its own"))
    );
    let policy = "[plugins.toy.programs]\ntime_ms = 150\n";
    let stopped = call("print one\nloop", policy);
    assert_eq!(stopped["ended"], "timeout");
    assert_eq!(stopped["fault"], "model");
    assert_eq!(
        text(&stopped),
        "one\nerror: the program was stopped after the 150 ms it may take; try a simpler one"
    );
    let broken = call("print one\ntrap", "");
    assert_eq!(
        (&broken["ended"], &broken["fault"]),
        (&json!("trap"), &json!("model"))
    );
    assert!(
        text(&broken)
            .as_str()
            .unwrap()
            .starts_with("one\nerror: the program broke the interpreter"),
        "{broken}"
    );
}

#[test]
fn functions_of_a_folder_are_tools() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(
        at("tools.json"),
        json!([{"type": "function", "function": {
            "name": "divide",
            "description": "Divides.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
        }}])
        .to_string(),
    )
    .unwrap();
    let source = "import json\n\nUNIT = 'm'\n\ndef divide(a, b):\n    return {'quotient': a / b, 'unit': UNIT}\n";
    fs::write(at("divide.py"), source).unwrap();
    let config = at("config.toml").display().to_string();
    fs::write(
        &config,
        "[plugins.maths]\nplugin = \"python\"\nfunctions = \".\"\n",
    )
    .unwrap();
    let host = Host::new();
    let call = |arguments: &str| {
        host.plugin([
            "call", "maths", "divide", arguments, "--json", "--config", &config,
        ])
        .json()
    };
    let good = call(r#"{"a": 3, "b": 2}"#);
    assert_eq!(
        good["observation"]["content"][0]["text"],
        r#"{"quotient": 1.5, "unit": "m"}"#
    );
    let failed = call(r#"{"a": 3, "b": 0}"#);
    assert_eq!(failed["ended"], "failed");
    assert_eq!(
        failed["observation"]["content"][0]["text"],
        "error: ZeroDivisionError: division by zero"
    );
    let wrong = call(r#"{"a": 3}"#);
    assert_eq!(wrong["ended"], "invalid-arguments");

    fs::write(at("divide.py"), "def divide(a, b:\n").unwrap();
    host.plugin(["call", "maths", "divide", "{}", "--config", &config])
        .refused_with(&[
            "divide.py: SyntaxError",
            "correct `functions` of [plugins.maths]",
        ]);
}
