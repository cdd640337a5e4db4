//! Runs the programs of `conformance/` natively. `rlf-bench conformance` runs them in the component.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;

use crate::{
    engine::{Ended, Engine, Program},
    files::normalize,
    host::native::printed,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Case {
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    stdin: String,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    fetch: Vec<String>,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    #[expect(dead_code, reason = "its recorder reads it")]
    native: Option<bool>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    modules: BTreeMap<String, String>,
    #[serde(default)]
    sandbox: Expected,
    expected: Expected,
}

/// The limits that the engine itself keeps; `rlf-bench conformance` runs the programs that the host has to stop.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Limits {
    wall_ms: u64,
    #[serde(rename = "output-bytes")]
    _output_bytes: u64,
    file_bytes: u64,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Expected {
    #[serde(rename = "because")]
    _because: Option<String>,
    exit_code: Option<i32>,
    stdout: Option<String>,
    stderr: Option<String>,
    #[serde(rename = "ended")]
    _ended: Option<String>,
    stdout_begins: Option<String>,
    stdout_ends: Option<String>,
    files: Option<BTreeMap<String, String>>,
}

#[test]
fn programs_do_what_node_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/programs");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".js").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 40);
    let failures: Vec<String> = names
        .iter()
        .filter_map(|name| check(&folder, name))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn check(folder: &Path, name: &str) -> Option<String> {
    let read = |end: &str| fs::read_to_string(folder.join(format!("{name}.{end}"))).unwrap();
    let case: Case =
        toml::from_str(&read("toml")).unwrap_or_else(|error| panic!("{name}.toml: {error}"));
    if case.limits.wall_ms > 0 {
        return None;
    }
    let engine = Engine::new().unwrap();
    let state = engine.state();
    state.seed(case.seed);
    state.files.borrow_mut().limit(case.limits.file_bytes);
    state.stdin.replace(case.stdin.into_bytes());
    for (path, text) in &case.files {
        state
            .files
            .borrow_mut()
            .place(&normalize("/", path), text.as_bytes())
            .unwrap();
    }
    state.files.borrow_mut().expect(&case.fetch);
    for (name, source) in &case.modules {
        let compiled = engine.compile(name, source).unwrap();
        state.compiled.borrow_mut().insert(name.clone(), compiled);
    }
    let ended = engine.execute(&Program {
        code: &read("js"),
        arguments: case.arguments,
    });
    let (stdout, stderr) = printed();
    let code = match ended {
        Ended::Completed => 0,
        Ended::Exited(code) => code,
        Ended::Raised(_) | Ended::Rejected(_) => 1,
    };
    let differs = |what: &str, sandbox: Option<String>, expected: Option<String>, found: String| {
        let wanted = sandbox.or(expected).filter(|wanted| *wanted != found)?;
        Some(format!(
            "{name}: {what} is\n{found}\n  instead of\n{wanted}"
        ))
    };
    let (sandbox, expected) = (case.sandbox, case.expected);
    let begins = |wanted: &String| stdout.starts_with(wanted);
    let ends = |wanted: &String| stdout.ends_with(wanted);
    if !expected.stdout_begins.as_ref().is_none_or(begins) {
        return Some(format!("{name}: stdout begins otherwise"));
    }
    if !expected.stdout_ends.as_ref().is_none_or(ends) {
        return Some(format!("{name}: stdout ends otherwise"));
    }
    if let Some(wanted) = &expected.files {
        let files = state.files.borrow();
        let found: BTreeMap<String, String> = case
            .fetch
            .iter()
            .filter_map(|path| {
                let data = files.read(&normalize("/", path)).ok()?;
                Some((path.clone(), String::from_utf8_lossy(data).into_owned()))
            })
            .collect();
        if found != *wanted {
            return Some(format!(
                "{name}: files are\n{found:?}\n  instead of\n{wanted:?}"
            ));
        }
    }
    let number = |code: Option<i32>| code.map(|code| code.to_string());
    differs("stdout", sandbox.stdout, expected.stdout, stdout)
        .or_else(|| differs("stderr", sandbox.stderr, expected.stderr, stderr))
        .or_else(|| {
            differs(
                "exit code",
                number(sandbox.exit_code),
                number(expected.exit_code),
                code.to_string(),
            )
        })
}
