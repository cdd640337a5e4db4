//! SECURITY.md has a row for every limit with its real default. It and docs/silent-errors.md name only code and tests
//! that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rlf_http::HttpRules;
use rlf_interpreters::language;
use rlf_plugins::programs::ProgramGrants;
use rlf_plugins::{arguments, files, manifest, offered_tools, schema};
use rlf_sandbox::{Limits, SandboxConfig, ScratchFiles};
use rlf_tools::tool_manager::ToolManagerConfig;
use serde::Serialize;
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The cells of every table row.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" | ").collect()).collect()
}

/// The texts between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// A default as the page writes it; none if it is not a plain value.
fn written(key: &str, value: &Value) -> Option<String> {
    let grouped = |number: u64| {
        let digits = number.to_string();
        let mut text = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        text
    };
    let key = key.to_lowercase();
    Some(match value {
        Value::Number(number) => match number.as_u64() {
            None | Some(0) => number.to_string(),
            Some(number) if key.ends_with("_ms") => format!("{} ms", grouped(number)),
            Some(number) if key.ends_with("bytes") => [(30, "GiB"), (20, "MiB"), (10, "KiB")]
                .into_iter()
                .find(|(shift, _)| number.is_multiple_of(1 << shift))
                .map_or_else(
                    || grouped(number),
                    |(shift, unit)| format!("{} {unit}", number >> shift),
                ),
            Some(number) => grouped(number),
        },
        Value::String(text) => text.clone(),
        _ => return None,
    })
}

#[test]
fn every_limit_has_a_row_with_its_default() {
    fn entries<T: Serialize>(table: &str, value: &T) -> Vec<(String, Value)> {
        let Ok(Value::Object(fields)) = serde_json::to_value(value) else {
            panic!("{table} is a table")
        };
        let fields = fields.into_iter();
        fields
            .map(|(key, value)| (format!("{table}.{key}"), value))
            .collect()
    }
    let mut expected = entries("limits", &Limits::default());
    expected.extend(entries("sandbox", &SandboxConfig::default()));
    expected.extend(entries("tools", &ToolManagerConfig::default()));
    expected.extend(entries("programs", &ProgramGrants::default()));
    expected.extend(entries("files", &ScratchFiles::default()));
    expected.extend(entries("http", &HttpRules::default()));
    for (name, value) in [
        ("MAX_SCHEMA_BYTES", schema::MAX_SCHEMA_BYTES as u64),
        ("MAX_SCHEMA_DEPTH", schema::MAX_SCHEMA_DEPTH as u64),
        ("MAX_SCHEMA_NODES", schema::MAX_SCHEMA_NODES as u64),
        ("MAX_PATTERN_BYTES", schema::MAX_PATTERN_BYTES as u64),
        ("MAX_UNFOLDED_DEPTH", schema::MAX_UNFOLDED_DEPTH as u64),
        ("MAX_STEPS", schema::MAX_STEPS),
        (
            "MAX_PLUGIN_SCHEMA_NODES",
            offered_tools::MAX_PLUGIN_SCHEMA_NODES as u64,
        ),
        (
            "MAX_PLUGIN_PATTERN_BYTES",
            offered_tools::MAX_PLUGIN_PATTERN_BYTES as u64,
        ),
        ("MAX_ARGUMENT_DEPTH", arguments::MAX_ARGUMENT_DEPTH as u64),
        (
            "MAX_EXPLANATION_CHARS",
            arguments::MAX_EXPLANATION_CHARS as u64,
        ),
        ("MAX_TOOLS", offered_tools::MAX_TOOLS as u64),
        ("MAX_LANGUAGES", language::MAX_LANGUAGES as u64),
        (
            "MAX_DESCRIPTION_BYTES",
            offered_tools::MAX_DESCRIPTION_BYTES as u64,
        ),
        ("MAX_MANIFEST_BYTES", manifest::MAX_MANIFEST_BYTES),
        ("MAX_COMPONENT_BYTES", files::MAX_COMPONENT_BYTES),
    ] {
        expected.push((name.to_owned(), json!(value)));
    }

    let page = page("SECURITY.md");
    let shown: BTreeMap<&str, &str> = rows(&page)
        .into_iter()
        .filter(|row| row.len() == 5 && row[0].starts_with('`'))
        .map(|row| (row[0].trim_matches('`'), row[1]))
        .collect();
    for (key, value) in &expected {
        let Some(default) = shown.get(key.as_str()) else {
            panic!("SECURITY.md has no row for `{key}`");
        };
        if let Some(written) = written(key, value) {
            assert_eq!(*default, written, "the default of `{key}` in SECURITY.md");
        }
    }
    let known: BTreeSet<&str> = expected.iter().map(|(key, _)| key.as_str()).collect();
    let unknown: Vec<&&str> = shown.keys().filter(|key| !known.contains(*key)).collect();
    assert!(
        unknown.is_empty(),
        "SECURITY.md has rows for what is no limit: {unknown:?}"
    );
}

/// The text of a file that a page names.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails unless the last two cells of every row name code (`file` or `file::item`) and tests (`file::test`) that exist.
/// `code_file` and `test_file` find the files. Returns the number of tests.
fn check_named(
    page: &str,
    code_file: impl Fn(&str) -> PathBuf,
    test_file: impl Fn(&str) -> PathBuf,
) -> usize {
    let mut tests = 0;
    for row in rows(page) {
        let [.., code, test] = row.as_slice() else {
            continue;
        };
        for named in quoted(code) {
            let (file, item) = named.split_once("::").unwrap_or((named, ""));
            assert!(code_file(file).is_file(), "no file {file}: {row:?}");
            if !item.is_empty() {
                let text = read(&code_file(file));
                let kinds = ["struct", "enum", "trait", "type", "const", "fn"];
                let is_there = |kind| text.contains(&format!("{kind} {item}"));
                assert!(kinds.into_iter().any(is_there), "{file} has no {item}");
            }
        }
        for named in quoted(test) {
            let (file, name) = named.split_once("::").expect("file::test");
            let text = read(&test_file(file));
            let test = format!("fn {name}(");
            assert!(text.contains(&test), "{file} has no test {name}");
            let before: Vec<&str> = text[..text.find(&test).unwrap()].lines().collect();
            // The test's attribute comes shortly before its name, perhaps with `async` or an allowed lint in between.
            let near = before.iter().rev().take(3);
            assert!(
                near.into_iter().any(|line| line.trim().ends_with("test]")),
                "{file}: {name} is no test"
            );
            tests += 1;
        }
    }
    tests
}

#[test]
fn code_and_tests_that_are_named_are_there() {
    let in_folder = |file: &str, is_path: bool, folder: &str| {
        let start = if is_path { root() } else { root().join(folder) };
        start.join(file)
    };
    let tests = check_named(
        &page("SECURITY.md"),
        |file| in_folder(file, file.starts_with("host/"), "host/sandbox/src"),
        |file| in_folder(file, file.contains('/'), "host/sandbox/tests/all"),
    );
    assert!(tests > 60, "the tables are not read: {tests}");
}

#[test]
fn code_and_tests_of_silent_errors_are_there() {
    let from_root = |file: &str| root().join(file);
    let tests = check_named(&page("docs/silent-errors.md"), from_root, from_root);
    assert!(tests > 60, "the tables are not read: {tests}");
}
