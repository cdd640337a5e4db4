//! Components that were built once against contract 0.1.0 still work, byte for byte unchanged.

use std::fs;
use std::path::Path;

use rlf_tests::Host;
use serde_json::json;
use tempfile::TempDir;

/// A plugin directory with one frozen component, as its author would have shipped it.
fn delivered(component: &str, manifest: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary folder");
    let folder = directory.path().join("frozen");
    fs::create_dir(&folder).expect("can be made");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    fs::copy(fixtures.join(component), folder.join("frozen.wasm")).expect("the fixture is there");
    fs::write(folder.join("plugin.toml"), manifest).expect("can be written");
    fs::write(directory.path().join("words.txt"), "well,\nthen\n").expect("can be written");
    directory
}

#[test]
fn the_frozen_tool_is_initialised_with_config_and_data_and_called() {
    let directory = delivered(
        "frozen-0.1.0.wasm",
        "kind = \"tool\"\ncomponent = \"frozen.wasm\"\ndata = [\"words\"]\n",
    );
    let words = directory.path().join("words.txt");
    let call = |arguments: &str, seed: &str| {
        Host::new().run([
            "plugin",
            "call",
            "frozen",
            "shout",
            arguments,
            "--plugins",
            directory.path().to_str().expect("a plain name"),
            "--data",
            &format!("words={}", words.display()),
            "--plugin-config",
            r#"{"suffix": "!!"}"#,
            "--seed",
            seed,
            "--json",
        ])
    };
    let shouted = call(r#"{"text": "hi"}"#, "1");
    let shouted = shouted.succeeded().json();
    let text = shouted["observation"]["content"][0]["text"]
        .as_str()
        .expect("is text");
    // `<first file of words, trimmed> HI<suffix> <seed>`
    let seed = text
        .strip_prefix("well,\nthen HI!! ")
        .unwrap_or_else(|| panic!("unexpected: {text}"));
    seed.parse::<u64>().expect("the call's seed is a number");

    let again = call(r#"{"text": "hi"}"#, "1").succeeded().json();
    assert_eq!(again["observation"], shouted["observation"]);
    let other = call(r#"{"text": "hi"}"#, "2").succeeded().json();
    assert_ne!(other["observation"], shouted["observation"]);

    let empty = call(r#"{"text": ""}"#, "1");
    assert_eq!(empty.code(), Some(1), "{empty}");
    let empty = empty.json();
    assert_eq!(empty["ended"], "failed");
    assert_eq!(
        empty["observation"],
        json!({"content": [{"text": "nothing to shout"}], "failed": true})
    );
}

#[test]
fn the_frozen_tool_refuses_a_config_that_it_does_not_know() {
    let directory = delivered(
        "frozen-0.1.0.wasm",
        "kind = \"tool\"\ncomponent = \"frozen.wasm\"\ndata = [\"words\"]\n",
    );
    let folder = directory.path().join("frozen");
    let words = directory.path().join("words.txt");
    Host::new()
        .run([
            "plugin",
            "check",
            folder.to_str().expect("a plain name"),
            "--data",
            &format!("words={}", words.display()),
            "--plugin-config",
            r#"{"sufix": "!"}"#,
        ])
        .refused_with(&["sufix"]);
}

#[test]
fn the_frozen_reward_grades() {
    let directory = delivered(
        "frozen-reward-0.1.0.wasm",
        "kind = \"reward\"\ncomponent = \"frozen.wasm\"\n",
    );
    let grade = |further: &[&str]| {
        let plugins = directory.path().to_str().expect("a plain name");
        let fixed = ["plugin", "grade", "frozen", "--plugins", plugins, "--json"];
        Host::new().run(fixed.iter().chain(further))
    };
    let right = grade(&["--reference", r#"["no", "yes"]"#, "--answer", "yes"]);
    assert_eq!(
        right.succeeded().json(),
        json!({
            "terms": {"agrees": 1.0, "turns": 1.0, "calls": 0.0},
            "metrics": {"step": 0.0},
            "per_event": [],
            "printed": {"stdout": "", "stderr": ""},
        })
    );
    let wrong = grade(&["--reference", "no", "--answer", "yes"]);
    assert_eq!(wrong.succeeded().json()["terms"]["agrees"], 0.0);
    grade(&["--reference", "no"]).refused_with(&["`frozen` gives no score", "no answer"]);
}

#[test]
fn the_frozen_reward_loads() {
    let directory = delivered(
        "frozen-reward-0.1.0.wasm",
        "kind = \"reward\"\ncomponent = \"frozen.wasm\"\n",
    );
    let folder = directory.path().join("frozen");
    let checked = Host::new().run([
        "plugin",
        "check",
        folder.to_str().expect("a plain name"),
        "--json",
    ]);
    let checked = checked.succeeded().json();
    assert_eq!(checked["plugin"]["kind"], "reward");
    let exports = checked["plugin"]["exports"].as_array().expect("is a list");
    for interface in ["rlf:plugin/lifecycle@0.1.0", "rlf:plugin/reward@0.1.0"] {
        assert!(exports.contains(&json!(interface)), "{exports:?}");
    }
}
