//! The interpreters behave as recorded, and published rows with functions load and answer: the output of `cargo xtask
//! conformance`, for the builds among the plugins.

use std::fs;

use rlf_tests::{Host, data, skip};

fn conforms(language: &str) {
    let host = Host::new();
    if !host.plugins().join(language).is_dir() {
        // A build is missing if the machine cannot make it; `cargo xtask plugins` says why.
        skip(
            &format!("{language} is not among the built plugins"),
            "`cargo xtask plugins` says why",
        );
        return;
    }
    let programs = host
        .root()
        .join("plugins")
        .join(language)
        .join("conformance");
    let plugins = host.plugins().display().to_string();
    let programs = programs.display().to_string();
    let ended = host.run_bench([
        "conformance",
        "--programs",
        &programs,
        "--plugins",
        &plugins,
    ]);
    let table = &ended.succeeded().stdout;
    assert!(table.contains("programs that did as recorded"), "{table}");
}

#[test]
fn python_does_as_recorded() {
    assert!(Host::new().plugins().join("python").is_dir());
    conforms("python");
}

#[test]
fn javascript_does_as_recorded() {
    conforms("javascript");
}

#[test]
fn published_rows_with_functions_load_and_answer_as_cpython_does() {
    let host = Host::new();
    let Some(rows) = data("ftrl-sample/sample.jsonl") else {
        return;
    };
    // Five of the forty: `cargo xtask conformance` runs them all, which takes minutes.
    let text = fs::read_to_string(rows).unwrap();
    let sample: Vec<&str> = text.lines().step_by(8).collect();
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("sample.jsonl");
    fs::write(&rows, sample.join("\n")).unwrap();
    let rows = rows.display().to_string();
    let plugins = host.plugins().display().to_string();
    let ended = host.run_bench(["conformance", "--functions", &rows, "--plugins", &plugins]);
    let table = &ended.succeeded().stdout;
    assert!(table.contains("rows with functions that loaded"), "{table}");
    assert!(table.contains("5 of 5"), "{table}");
}
