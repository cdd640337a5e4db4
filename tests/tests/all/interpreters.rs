//! Programs run as their own interpreter would run them, within limits, and leave nothing behind. Most tests use a
//! toy interpreter (`tests/guests/toy`) whose commands have one effect each. `cargo xtask conformance` tests real
//! programs.

use std::fs;
use std::path::Path;

use rlf_interpreters::interpreter::{Interpreters, ProgramOptions};
use rlf_interpreters::program::{Compiled, File, Program, ProgramError};
use rlf_plugins::registry::Registry;
use rlf_run::plugins::KINDS;
use rlf_sandbox::{Sandbox, SandboxConfig};
use rlf_tests::{Ended, Host};
use rustix::process::Signal;
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
        ("print before\nloop\nprint after", "(time_ms = 200, used "),
        (
            "print before\nsleep 5000\nprint after",
            "(time_ms = 200, used 5000, in virtual time); --time-ms allows more",
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
    assert!(
        ended.stderr.ends_with("; --memory allows more\n"),
        "{ended}"
    );
    let enough = run("grow 20\nprint after", &["--memory", "32MiB"]);
    assert_eq!(enough.succeeded().stdout, "after\n");
}

#[test]
fn a_flood_ends_at_the_hard_limit() {
    let ended = run("flood 100", &["--output", "64KiB"]);
    assert_eq!(ended.code(), Some(137), "{ended}");
    // Everything that was printed before the limit is shown.
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
    refused(&["--lang", "toy", "tests"], &["tests is a folder"]);
    refused(&["tests"], &["tests is a folder"]);
    // Options that clap refuses get the same exit code, because a program can exit with 2.
    refused(&["--no-such-option", "-"], &["--no-such-option", "--help"]);
    refused(
        &["--lang", "toy", "--memory", "5GiB", "-"],
        &["--memory", "4GiB at the most"],
    );
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("large"), vec![b'\n'; (64 << 20) + 1]).unwrap();
    refused(
        &["--lang", "toy", &at("large")],
        &["more than 67108864 bytes", "--files allows more"],
    );
    fs::write(at("larger"), vec![b'\n'; 17 << 20]).unwrap();
    refused(
        &["--lang", "toy", &at("larger")],
        &["16777216 are allowed", "--files allows more"],
    );
    fs::write(at("off.toml"), "[plugins.toy]\nenabled = false\n").unwrap();
    refused(
        &["--lang", "toy", "--config", &at("off.toml"), "-"],
        &["[plugins.toy]", "enabled = false"],
    );
}

#[test]
fn help_is_no_failure() {
    let host = Host::with_test_plugins();
    assert!(
        host.run(["run", "--help"])
            .succeeded()
            .stdout
            .contains("125")
    );
    // For other commands the exit code of a wrong option stays 2.
    assert_eq!(host.run(["plugin", "--no-such-option"]).code(), Some(2));
}

/// A program that runs for much longer than any test, in a file.
fn endless(command: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("endless.any");
    fs::write(&script, format!("print before\n{command}\n")).unwrap();
    let script = script.display().to_string();
    (folder, script)
}

#[test]
fn ctrl_c_ends_a_program() {
    let (_folder, script) = endless("loop");
    let host = Host::with_test_plugins();
    let plugins = host.plugins().display().to_string();
    let options = ["--plugins", &plugins, "--time-ms", "600000"];
    let mut running = host.start(
        ["run", "--lang", "toy"]
            .iter()
            .chain(&options)
            .chain(&[&*script]),
    );
    running.until("before").signal(Signal::INT);
    let ended = running.wait();
    assert_eq!(ended.code(), Some(130), "{ended}");
    assert_eq!(ended.stderr, "stopped: interrupted\n");
}

#[test]
fn a_program_that_nobody_reads_is_ended() {
    let (_folder, script) = endless("flood 100000000");
    let host = Host::with_test_plugins();
    let plugins = host.plugins().display().to_string();
    let options = [
        "--plugins",
        &plugins,
        "--time-ms",
        "600000",
        "--output",
        "100GiB",
    ];
    let ended = host.run_unread(
        ["run", "--lang", "toy"]
            .iter()
            .chain(&options)
            .chain(&[&*script]),
    );
    assert_eq!(
        ended.stderr,
        "stopped: nobody reads what it prints any more\nstatus 141\n"
    );
}

#[test]
fn output_that_cannot_be_written_is_told_and_is_not_the_programs_doing() {
    let host = Host::with_test_plugins();
    let plugins = host.plugins().display().to_string();
    let (_folder, script) = endless("print after");
    let program = ["run", "--lang", "toy", "--plugins", &plugins, &script];
    let ended = host.run_full(program);
    assert!(
        ended.stderr.contains("not all output could be written")
            && ended.stderr.ends_with("status 125\n"),
        "{ended}"
    );
    // What is printed without a program, too.
    for command in [&["data", "formats"][..], &["--help"]] {
        let ended = host.run_full(command);
        assert!(
            ended.stderr.contains("be written") && ended.stderr.ends_with("status 1\n"),
            "{ended}"
        );
    }
}

#[test]
fn who_waits_for_standard_input_is_told_so() {
    let (_folder, script) = endless("stdin");
    let host = Host::with_test_plugins();
    let plugins = host.plugins().display().to_string();
    let (ended, told) = host.run_with_late_input(
        "late",
        ["run", "--lang", "toy", "--plugins", &plugins, &script],
    );
    assert_eq!(
        told,
        "note: waiting for the end of standard input; `< /dev/null` gives the program none\n"
    );
    assert_eq!(ended.succeeded().stdout, "before\nlate");
}

#[test]
fn functions_of_a_configuration_are_no_reason_to_run_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("functions.toml");
    fs::write(
        &config,
        "[plugins.toy]\nfunctions = \"none\"\nprograms.time_ms = 150\n",
    )
    .unwrap();
    let config = config.display().to_string();
    let ended = run("print one\nloop", &["--config", &config]);
    assert_eq!(
        (ended.code(), ended.stdout.as_str()),
        (Some(124), "one\n"),
        "{ended}"
    );
    assert!(ended.stderr.contains("time_ms = 150"), "{ended}");
}

/// The limit of the example in docs/interpreters.md.
#[test]
fn a_program_in_python_runs_in_64_mebibytes() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("small.py").display().to_string();
    fs::write(&script, "print(sum(range(1000)))\n").unwrap();
    let host = Host::new();
    let plugins = host.plugins().display().to_string();
    let ended = host.run(["run", "--plugins", &plugins, "--memory", "64MiB", &script]);
    assert_eq!(ended.succeeded().stdout, "499500\n");
}

#[test]
fn a_program_whose_files_grow_too_large_continues_and_the_limit_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("large.py").display().to_string();
    fs::write(
        &script,
        "try:\n    open('a', 'wb').write(b'x' * 5_000_000)\nexcept OSError as error:\n    print(error.strerror)\n",
    )
    .unwrap();
    let host = Host::new();
    let plugins = host.plugins().display().to_string();
    let run = |files: &str| host.run(["run", "--plugins", &plugins, "--files", files, &script]);
    let ended = run("1MiB");
    // As SECURITY.md says in the row of `programs.file_bytes`. The fast build keeps files in its own memory.
    if ended.succeeded().stdout == "No space left on device\n" {
        assert_eq!(ended.stderr, "");
    } else {
        assert_eq!(ended.stdout, "I/O error\n");
        assert!(
            ended
                .stderr
                .starts_with("note: its files came to their limit (file_bytes = 1048576, ")
                && ended.stderr.ends_with("--files allows more\n"),
            "{ended}"
        );
    }
    assert_eq!(run("5MiB").succeeded().stderr, "");
}

#[test]
fn a_python_file_is_read_in_the_encoding_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("latin.py").display().to_string();
    let host = Host::new();
    let plugins = host.plugins().display().to_string();
    fs::write(
        &script,
        b"# -*- coding: latin-1 -*-\nprint('caf\xe9', len('\xe9'))\n",
    )
    .unwrap();
    let ended = host.run(["run", "--plugins", &plugins, &script]);
    assert_eq!(ended.succeeded().stdout, "café 1\n");
    fs::write(&script, b"print('caf\xe9')\n").unwrap();
    let ended = host.run(["run", "--plugins", &plugins, &script]);
    assert_eq!(ended.code(), Some(1), "{ended}");
    let said =
        format!("SyntaxError: Non-UTF-8 code starting with '\\xe9' in file {script} on line 1, ");
    assert!(ended.stderr.starts_with(&said), "{ended}");
}

#[test]
fn a_python_program_on_standard_input_is_called_so() {
    let host = Host::new();
    let plugins = host.plugins().display().to_string();
    let ended = host.run_fed(
        "import sys\nprint(sys.argv)\n1 / 0\n",
        ["run", "--plugins", &plugins, "-", "x"],
    );
    assert_eq!(
        (ended.code(), &*ended.stdout),
        (Some(1), "['-', 'x']\n"),
        "{ended}"
    );
    assert!(
        ended
            .stderr
            .contains("File \"<stdin>\", line 3, in <module>"),
        "{ended}"
    );
}

/// Calls the tool that runs programs, as a model would.
fn call(program: &str, grants: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("toy.toml");
    fs::write(&config, grants).unwrap();
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
    // `exit` with 0 is an ordinary end.
    let done = call("print one\nexit 0", "");
    assert_eq!((&done["ended"], text(&done)), (&json!("ok"), json!("one")));
    let left = call("print one\nexit 3", "");
    assert_eq!(
        (&left["ended"], text(&left)),
        (
            &json!("failed"),
            json!("one\n(the program left with code 3)")
        )
    );
    let silent = call("exit 3", "");
    assert_eq!(
        text(&silent),
        "(the program printed nothing and left with code 3)"
    );
    let grants = "[plugins.toy.programs]\ntime_ms = 150\n";
    let stopped = call("print one\nloop", grants);
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
    let source = "import json\n\nUNIT = 'm'\n\ndef divide(a, b):\n    print('dividing', a)\n    return {'quotient': a / b, 'unit': UNIT}\n";
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
    // The author sees it, and the model does not.
    assert_eq!(good["printed"]["stdout"], "dividing 3\n");
    let failed = call(r#"{"a": 3, "b": 0}"#);
    assert_eq!(failed["ended"], "failed");
    assert_eq!(
        failed["observation"]["content"][0]["text"],
        "error: ZeroDivisionError: division by zero"
    );
    let detail = failed["detail"].as_str().unwrap();
    assert!(
        detail.contains("File \"divide.py\", line 7, in divide")
            && !detail.contains("call_function"),
        "{detail}"
    );
    // A traceback line that contains the printed text is no reason to leave out the output.
    fs::write(
        at("divide.py"),
        "def divide(a, b): print('shown'); return a / b\n",
    )
    .unwrap();
    host.plugin([
        "call",
        "maths",
        "divide",
        r#"{"a": 3, "b": 0}"#,
        "--config",
        &config,
    ])
    .stderr
    .lines()
    .find(|line| *line == "stdout | shown")
    .unwrap();
    let wrong = call(r#"{"a": 3}"#);
    assert_eq!(wrong["ended"], "invalid-arguments");

    fs::write(at("divide.py"), "def divide(a, b:\n").unwrap();
    host.plugin(["call", "maths", "divide", "{}", "--config", &config])
        .refused_with(&[
            "divide.py: SyntaxError",
            "correct it, or leave `divide` out of tools.json",
        ]);
    // An error that every call would meet is reported before the first call.
    for (source, parts) in [
        (
            "def divides(a, b):\n    return a / b\n",
            [
                "divide.py has no function `divide`, which tools.json names; it defines: divides",
                "define `def divide(..)` there, or correct the name in tools.json",
            ],
        ),
        (
            "divide = 5\n",
            [
                "`divide` in ",
                "divide.py is no function, but of type int, which tools.json names; it defines no function at all",
            ],
        ),
        (
            "import numpy_of_nobody\ndef divide(a, b): pass\n",
            [
                "divide.py: importing it fails: ModuleNotFoundError: No module named 'numpy_of_nobody'",
                "leave `divide` out of tools.json",
            ],
        ),
        (
            "import os\nos._exit(0)\n",
            ["divide.py: importing it ends the program", "correct it"],
        ),
        (
            "while True: pass\n",
            [
                "divide.py: importing it was stopped: the program computed",
                "time_ms = 300",
            ],
        ),
    ] {
        fs::write(at("divide.py"), source).unwrap();
        fs::write(
            &config,
            "[plugins.maths]\nplugin = \"python\"\nfunctions = \".\"\nprograms.time_ms = 300\n",
        )
        .unwrap();
        host.plugin(["call", "maths", "divide", "{}", "--config", &config])
            .refused_with(&parts);
    }
}

#[test]
fn an_interpreter_with_packages_offers_a_tool_of_its_own() {
    let host = Host::with_test_plugins();
    let toy = host.plugins().join("toy/toy.wasm");
    let folder = tempfile::tempdir().unwrap();
    for (name, packages) in [("toy", ""), ("toy-more", "packages = [\"numpy\"]\n")] {
        let plugin = folder.path().join(name);
        fs::create_dir(&plugin).unwrap();
        fs::copy(&toy, plugin.join(format!("{name}.wasm"))).unwrap();
        fs::write(plugin.join("plugin.toml"), packages).unwrap();
    }
    let config = folder.path().join("host.toml");
    fs::write(&config, "[plugins.toy]\n[plugins.toy-more]\n").unwrap();
    let config = config.display().to_string();
    let plugins = folder.path().display().to_string();
    let call = |tool: &str| {
        let code = r#"{"code":"print import numpy"}"#;
        host.run([
            "plugin",
            "call",
            tool,
            tool,
            code,
            "--plugins",
            &plugins,
            "--config",
            &config,
        ])
    };
    // The tool of the one with packages has the plugin's name, not the language's.
    for tool in ["toy", "toy-more"] {
        let ended = call(tool);
        assert!(ended.succeeded().stdout.contains("import numpy"), "{ended}");
    }
    let inspected = host.run([
        "plugin",
        "inspect",
        "toy-more",
        "--plugins",
        &plugins,
        "--json",
    ]);
    let text = &inspected.succeeded().stdout;
    assert!(text.contains("It can import numpy."), "{inspected}");
    let alone = host.run_fed(
        "print one",
        ["run", "--lang", "toy-more", "--plugins", &plugins, "-"],
    );
    assert_eq!(alone.succeeded().stdout, "one\n", "{alone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_goes_to_the_interpreter_whose_packages_it_imports() {
    let toy = Host::with_test_plugins().plugins().join("toy/toy.wasm");
    let folder = tempfile::tempdir().unwrap();
    for (name, packages) in [("toy", ""), ("a-more", "packages = [\"numpy\"]\n")] {
        let plugin = folder.path().join(name);
        fs::create_dir(&plugin).unwrap();
        fs::copy(&toy, plugin.join(format!("{name}.wasm"))).unwrap();
        fs::write(plugin.join("plugin.toml"), packages).unwrap();
    }
    // One that is given too much refuses, so a refusal tells which of the two was asked.
    let grants_by_name =
        rlf_config::parse("[a-more.programs]\nfile_bytes = 1000\n", "grants").unwrap();
    let sandbox = Sandbox::new(&SandboxConfig::default()).unwrap();
    let registry = Registry::load(folder.path(), &grants_by_name, KINDS, &sandbox);
    assert_eq!(registry.problems(), []);
    let interpreters = Interpreters::new(&registry);
    let interpreter = interpreters.get("toy").unwrap();

    let program = |code: &str| Program {
        code: code.to_owned(),
        stdin: vec![b'x'; 2_000],
        ..Program::default()
    };
    let run = |program: Program| interpreter.run(program, ProgramOptions::default());
    let beside = File {
        path: "own.py".to_owned(),
        data: b"from numpy.linalg import solve\n".to_vec(),
    };
    assert!(run(program("print numpy")).await.is_ok());
    for program in [
        program("print x; import numpy as np"),
        Program {
            files: vec![beside],
            ..program("print own")
        },
    ] {
        let refused = run(program).await.unwrap_err();
        assert!(matches!(refused, ProgramError::Exhausted(_)), "{refused}");
    }

    // A module is compiled for both.
    for module in ["m", "numpy"] {
        let compiled = interpreter.compile(module, "source").await.unwrap();
        let program = Program {
            code: format!("import {module}"),
            modules: vec![compiled],
            ..Program::default()
        };
        let report = run(program).await.unwrap();
        assert_eq!(
            report.stdout.captured().text,
            "compiled source\n",
            "{module}"
        );
    }
    let foreign = Compiled {
        name: "m".to_owned(),
        data: b"compiled by another".to_vec(),
    };
    let refused = run(Program {
        code: "import m".to_owned(),
        modules: vec![foreign],
        ..Program::default()
    });
    let refused = refused.await.unwrap_err().to_string();
    assert!(
        refused.contains("was compiled by another interpreter"),
        "{refused}"
    );
}
