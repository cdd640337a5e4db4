//! The shipped plugins are found from every folder, `--plugins` adds to them, and a run knows its own.

use std::fs;
use std::path::Path;

use rlf_tests::{Experiment, Host};

const SUM: &str = r#"{"expression": "6*7"}"#;

/// A folder of plugins with a shipped plugin under another name.
fn renamed(host: &Host, shipped: &str, name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (from, to) = (host.plugins().join(shipped), folder.path().join(name));
    fs::create_dir(&to).expect("can be made");
    fs::copy(from.join("plugin.toml"), to.join("plugin.toml")).expect("can be copied");
    let component = format!("{shipped}.wasm");
    fs::copy(from.join(component), to.join(format!("{name}.wasm"))).expect("can be copied");
    folder
}

/// `--plugins=DIR` as one word: as two, tests leave the shipped plugins out.
fn plugins(folder: &Path) -> String {
    format!("--plugins={}", folder.display())
}

#[test]
fn shipped_plugins_are_found_from_any_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let called = ["plugin", "call", "calculator", "calculate", SUM];
    let ended = Host::new().run_in(folder.path(), called);
    assert_eq!(ended.succeeded().stdout, "42\n");
}

#[test]
fn a_plugin_that_is_added_wins_over_a_shipped_one_of_its_name() {
    let host = Host::new();
    let added = renamed(&host, "exact-match", "calculator");
    let listed = host.run(["plugin", "list", &plugins(added.path())]);
    let kind = |name: &str| {
        let mut lines = listed.succeeded().stdout.lines();
        let line = lines.find(|line| line.split_whitespace().next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("no {name}: {listed}"));
        line.split_whitespace()
            .nth(1)
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(kind("calculator"), "reward");
    assert_eq!(kind("exact-match"), "reward");
    assert_eq!(kind("python"), "interpreter");
}

#[test]
fn a_tool_that_is_added_wins_over_a_shipped_one_of_its_name() {
    let host = Host::new();
    let added = renamed(&host, "calculator", "sums");
    let plugins = plugins(added.path());
    let ended = host.run(["plugin", "call", &plugins, "sums", "calculate", SUM]);
    assert_eq!(ended.succeeded().stdout, "42\n");
    let listed = host.run(["plugin", "list", &plugins]);
    let text = &listed.succeeded().stdout;
    assert!(!text.contains("is offered by 2 plugins"), "{listed}");
}

#[test]
fn a_run_knows_the_plugins_that_it_was_begun_with() {
    let experiment = Experiment::tiny().without("sft").with_toml(
        "rewards.success = 'mine.em >= 1'
        rewards.stack = [{plugin = 'mine', weights = {em = 1.0}}]",
    );
    let host = experiment.host();
    let added = renamed(host, "exact-match", "mine");
    let config = experiment.write("config.toml", experiment.text());
    let run = experiment.run("run");
    let words = [
        "train",
        &config.display().to_string(),
        "--run",
        run.as_str(),
        &plugins(added.path()),
    ];
    host.run(words).succeeded();
    host.run(["eval", run.as_str(), "--tasks", "1"]).succeeded();
    drop(added);
    host.run(["eval", run.as_str(), "--tasks", "1"])
        .refused_with(&["mine"]);
}
