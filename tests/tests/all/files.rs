//! A plugin that uses its standard library for files finds no directory, or the scratch directory that the operator
//! grants: whole, private, bounded, and the same in every run.

use std::fs;

use rlf_tests::Host;
use serde_json::{Value, json};

/// The output of a tool of the guest `misbehave` under these grants.
fn said(tool: &str, grants: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("grants.toml");
    fs::write(&config, grants).expect("can be written");
    let outcome = Host::with_test_plugins()
        .plugin([
            "call",
            "misbehave",
            tool,
            &json!({"path": "/work"}).to_string(),
            "--json",
            "--config",
            config.to_str().expect("a plain name"),
        ])
        .succeeded()
        .json();
    let text: &Value = &outcome["observation"]["content"][0]["text"];
    text.as_str()
        .unwrap_or_else(|| panic!("no text: {outcome}"))
        .to_owned()
}

#[test]
fn without_a_grant_a_program_finds_no_files() {
    assert_eq!(said("use_files", ""), "NotFound");
    let abuse = said("abuse_files", "");
    assert!(!abuse.contains("ok"), "{abuse}");
}

#[test]
fn a_program_works_with_the_files_it_is_granted_and_finds_none_of_an_earlier_call() {
    let grants = "[plugins.misbehave.files]\n";
    let first = said("use_files", grants);
    let expected = "found []; and two; [\"b\", \"two.txt\"]; 11 bytes at 1704067200.";
    assert!(first.starts_with(expected), "{first}");
    // Another call in another process sees the same directory and the same times.
    assert_eq!(said("use_files", grants), first);
}

#[test]
fn too_much_is_an_ordinary_error_and_nothing_else_can_be_read() {
    let grants = "[plugins.misbehave.files]\nbytes = 1048576\nentries = 100\n";
    let said = said("abuse_files", grants);
    let expected = [
        "sparse: No space left on device",
        "resize: No space left on device",
        // Rust's C library for wasip2 reports every failure of a stream with this error.
        "endless: I/O error",
        "million: Quota exceeded",
        "above: ",
        "passwd: ",
    ];
    let parts: Vec<&str> = said.split("; ").collect();
    assert_eq!(parts.len(), expected.len(), "{said}");
    for (part, expected) in parts.iter().zip(expected) {
        assert!(
            part.starts_with(expected) && !part.ends_with("ok"),
            "{said}"
        );
    }
}

#[test]
fn what_a_call_leaves_is_kept_where_the_operator_wants_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("grants.toml");
    let text = "[plugins.misbehave.files]\noutputs = [\"/\"]\n";
    fs::write(&config, text).expect("can be written");
    let outputs = folder.path().join("kept");
    let call = |more: &[&str]| {
        let arguments = json!({"path": "/work"}).to_string();
        let config = config.to_str().expect("a plain name");
        let mut words = vec!["call", "misbehave", "use_files", &arguments];
        words.extend(["--json", "--config", config]);
        words.extend(more);
        let outcome = Host::with_test_plugins().plugin(words).succeeded().json();
        outcome["detail"].as_str().expect("says so").to_owned()
    };
    assert!(call(&[]).ends_with("which nobody keeps"));
    let said = call(&["--outputs", outputs.to_str().expect("a plain name")]);
    assert!(said.starts_with("kept "), "{said}");
    let calls: Vec<_> = fs::read_dir(&outputs)
        .expect("was made")
        .map(|entry| entry.expect("can be read").path())
        .collect();
    assert_eq!(calls.len(), 1, "{calls:?}");
    let left = fs::read_to_string(calls[0].join("left.txt")).expect("was left");
    assert_eq!(left, "left behind");
}
