//! A JavaScript file is a plugin: its functions are tools or rewards, run in the sandbox, with nothing to build.

use std::fs;
use std::path::Path;
use std::process::Command;

use rlf_tests::{PluginFolder, skip};
use serde_json::{Value, json};

/// The plugins that the SDK's own tests run in Node.
const SDK_PLUGINS: &str = "sdk/javascript/test/plugins";

/// Copies one of the SDK's plugins.
fn copy(plugins: &PluginFolder, name: &str, to: &str) {
    let text = fs::read_to_string(plugins.host.root().join(SDK_PLUGINS).join(name));
    plugins.write(to, &text.expect("can be read"));
}

fn text(outcome: &Value) -> &Value {
    &outcome["observation"]["content"][0]["text"]
}

#[test]
fn functions_are_tools_with_the_schema_of_their_comments() {
    let plugins = PluginFolder::new(&[]);
    copy(&plugins, "dice.js", "dice/dice.js");
    plugins.write(
        "dice/plugin.toml",
        "data = [\"words\"]\n[config]\nowner = \"Ann\"\n",
    );
    let words = plugins.path().join("dice/words.txt");
    fs::write(&words, "red fox").expect("can be written");
    let words = format!("words={}", words.display());
    let bound = ["--data", &*words];
    let inspected = plugins
        .plugin(&["inspect", "dice", "--json", "--data", &words])
        .succeeded()
        .json();
    assert_eq!(inspected["kind"], "tool");
    assert_eq!(
        inspected["description"],
        "Dice, and what is done with them."
    );
    let roll = &inspected["tools"][1];
    assert_eq!(roll["name"], "roll", "{inspected}");
    assert_eq!(roll["input-schema"]["required"], json!(["count"]));
    let owner = plugins.call("dice", "owner", &json!({"polite": true}), &bound);
    assert_eq!(text(&owner), "It belongs to Ann.");
    let refused = plugins.call("dice", "roll", &json!({"count": 0}), &bound);
    assert_eq!(
        (&refused["ended"], text(&refused)),
        (&json!("failed"), &json!("roll 1 to 100 dice"))
    );
    let wrong = plugins.call("dice", "roll", &json!({"count": "two"}), &bound);
    assert_eq!(wrong["ended"], "invalid-arguments");
    let many = plugins.call("dice", "many", &json!({"counts": [1, 2]}), &bound);
    assert_eq!(
        many["observation"]["content"][0]["structured"],
        json!({"sum": 3, "order": "high"})
    );
    let shown = plugins.call("dice", "show", &json!({}), &bound);
    assert_eq!(text(&shown), "words.txt: red fox");
    assert_eq!(
        shown["observation"]["content"].as_array().map(Vec::len),
        Some(2)
    );
    let crashed = plugins.call("dice", "crash", &json!({}), &bound);
    assert_eq!(crashed["ended"], "trap");
    let printed = crashed["printed"]["stderr"].as_str().unwrap_or_default();
    assert!(printed.contains("at crash (/dice.js:"), "{crashed}");
}

const STATES: &str = "
import { words } from './words.mjs';
let calls = 0;

/** @tool */
export function count() {
  calls += 1;
  return [calls, words.length, Math.random()];
}

/** @tool */
export function spin() {
  for (;;) ;
}

/** @tool */
export function hoard() {
  const all = [];
  for (;;) all.push(new Uint8Array(1 << 20).fill(1));
}

/** @tool */
export function wait() {
  return new Promise(() => {});
}

/** @tool */
export function half() {
  return ['\\ud800'];
}

/** @tool */
export function leave() {
  process.exit(3);
}

/** @tool */
export async function sleep() {
  await new Promise((resolve) => { setTimeout(resolve, 3_000); });
  return process.argv.length + Object.keys(process.env).length;
}
";

#[test]
fn every_call_is_a_fresh_copy_with_its_seed_and_ends_within_its_limits() {
    let plugins = PluginFolder::new(&[]);
    plugins.write("states/states.js", STATES);
    plugins.write("states/words.mjs", "export const words = ['red', 'fox'];");
    plugins.write("states/states.test.js", "not JavaScript");
    let ended = |tool: &str| plugins.call("states", tool, &json!({}), &[]);
    let counted = |seed: &str| {
        let outcome = plugins.call("states", "count", &json!({}), &["--seed", seed]);
        outcome["observation"]["content"][0]["structured"].clone()
    };
    let (first, again, other) = (counted("1"), counted("1"), counted("2"));
    assert_eq!((&first[0], &first[1]), (&json!(1), &json!(2)));
    assert_eq!(first, again);
    assert_ne!(first[2], other[2]);
    for (tool, end) in [
        ("spin", "timeout"),
        ("hoard", "denied"),
        ("wait", "trap"),
        ("leave", "trap"),
    ] {
        let outcome = ended(tool);
        assert_eq!(outcome["ended"], end, "{outcome}");
    }
    let waited = ended("wait");
    assert!(
        waited["detail"]
            .as_str()
            .is_some_and(|why| why.contains("nobody settles")),
        "{waited}"
    );
    assert_eq!(text(&ended("sleep")), "1");
    let half = ended("half");
    assert_eq!(
        half["observation"]["content"][0]["structured"],
        json!(["\u{fffd}"])
    );
}

#[test]
fn rewards_grade_and_an_error_excludes() {
    let plugins = PluginFolder::new(&[]);
    copy(&plugins, "right.js", "right.js");
    let grade = |answer: &str| {
        plugins.plugin(&[
            "grade",
            "right",
            "--answer",
            answer,
            "--reference",
            "Paris",
            "--json",
        ])
    };
    assert_eq!(
        grade("Paris").succeeded().json()["terms"],
        json!({"right": 1.0, "calls": 0.0, "rank": 0.0})
    );
    assert_eq!(grade("Rome").succeeded().json()["terms"]["right"], 0.0);
    let crashed = grade("crash");
    assert_eq!(crashed.code(), Some(1), "{crashed}");
    for said in [
        "stderr | RangeError: no effort",
        "error: `right` gives no score",
    ] {
        assert!(crashed.stderr.contains(said), "no `{said}`: {crashed}");
    }
}

#[test]
fn a_file_that_cannot_be_a_plugin_is_refused_with_its_line() {
    let plugins = PluginFolder::new(&[]);
    for (source, said) in [
        (
            "export const a = ;",
            "wrong.js:1: SyntaxError: Unexpected token ';'",
        ),
        ("const a = 1;\n\nexport { b };\n", "wrong.js"),
        (
            "export const a = 1;\n\nnothing();",
            "wrong.js:3: ReferenceError: nothing is not defined",
        ),
        (
            "export const a = 1;",
            "wrong.js: TypeError: no exported function has @tool or @reward",
        ),
        (
            "\n/** @tool */\nfunction f() {}",
            "wrong.js:2: @tool is for a function that the file exports",
        ),
        (
            "import x from 'left-pad';",
            "Cannot find package 'left-pad'",
        ),
        (
            "/** @tool */\nexport function f() {}\n/** @reward */\nexport function g() {}",
            "put tools and rewards into files of their own",
        ),
    ] {
        plugins.write("wrong.js", source);
        let checked = plugins.check("wrong.js");
        checked.refused_with(&["plugin `wrong`", said]);
    }
    plugins.write("wrong.js", "/** @tool */\nexport function f() {}");
    plugins.write("gate/gate.js", "/** @tool */\nexport function f() {}");
    plugins.write("gate/plugin.toml", "gates = [\"http\"]\n");
    plugins
        .plugin(&["inspect", "gate"])
        .refused_with(&["it asks for `http`, which nobody granted"]);
}

#[test]
fn a_new_plugin_in_javascript_runs_as_it_is_and_so_do_its_tests() {
    let plugins = PluginFolder::new(&[]);
    let folder = plugins.name();
    let sdk = plugins.host.root().join("sdk/javascript");
    let sdk = sdk.to_str().expect("a plain name");
    let make = |name: &str, kind: &str| {
        plugins.host.run([
            "plugin",
            "new",
            name,
            "--lang",
            "javascript",
            "--kind",
            kind,
            "--in",
            folder,
            "--sdk",
            sdk,
        ])
    };
    make("words", "tool").succeeded();
    make("right", "reward").succeeded();
    plugins.check_new_plugins();
    make("leads", "agent").succeeded();
    plugins.check_new_agent("leads");
    make("shelf", "environment").refused_with(&["an environment is written in Python or in Rust"]);
    make("a-b", "tool").refused_with(&["cannot name a function: write \"a_b\""]);
    if Command::new("node").arg("--version").output().is_err() {
        skip(
            "there is no node for the tests of a new plugin",
            "install Node 20 or later",
        );
        return;
    }
    for name in ["words", "right", "leads"] {
        let folder = plugins.path().join(name);
        // What `npm install` would do.
        fs::create_dir(folder.join("node_modules")).expect("can be made");
        std::os::unix::fs::symlink(sdk, folder.join("node_modules/rlf")).expect("can be linked");
        assert!(passes(&folder), "{name}");
    }
}

/// True if the tests of a plugin pass in Node.
fn passes(folder: &Path) -> bool {
    let run = Command::new("node")
        .arg("--test")
        .current_dir(folder)
        .output();
    run.is_ok_and(|run| run.status.success())
}
