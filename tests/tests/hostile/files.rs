//! No path leads out of a scratch directory or out of bound data, and neither grows beyond its grant.

use std::fs;
use std::os::unix::fs::symlink;

use rlf_dialogue::tool::Ended;
use serde_json::json;

use crate::test_host::{Plan, call, observed};

#[tokio::test]
async fn no_way_leads_out_of_a_scratch_directory() {
    let outside = fs::read("/etc/passwd").expect("there to be stolen");
    // The root is the call's own.
    let own_root = "[\"listed /\"], and its own file says \"mine\"";
    for (at, got) in [("/work", "nothing"), ("/", own_root)] {
        let grants = format!("[misbehave]\nfiles.at = \"{at}\"\n");
        let host = Plan::new().guest("misbehave").grants(&grants).open();
        let outcome = host
            .attack_with("escape_files", json!({ "path": at }))
            .await;
        assert_eq!(
            (outcome.ended, observed(&outcome).as_str()),
            (Ended::Ok, got),
            "at {at}"
        );
    }
    assert_eq!(fs::read("/etc/passwd").unwrap(), outside);
    assert!(!std::path::Path::new("/tmp/escaped").exists());
}

#[tokio::test]
async fn no_path_leads_out_of_bound_data() {
    let root = tempfile::tempdir().unwrap();
    let corpus = root.path().join("corpus");
    fs::create_dir_all(corpus.join("part")).unwrap();
    fs::write(root.path().join("secret.txt"), "the secret").unwrap();
    fs::write(corpus.join("part/one.txt"), "mine").unwrap();
    symlink("../secret.txt", corpus.join("link.txt")).unwrap();
    symlink("..", corpus.join("up")).unwrap();
    symlink("/etc", corpus.join("etc")).unwrap();
    symlink("part/one.txt", corpus.join("inner.txt")).unwrap();
    let grants = format!(
        "[reader]\ndata.corpus = {:?}\n",
        corpus.display().to_string()
    );
    let host = Plan::new()
        .guest_as("misbehave", "reader", "data = [\"corpus\"]\n")
        .grants(&grants)
        .open();
    let ways = [
        "../secret.txt",
        "part/../../secret.txt",
        "./part/../../secret.txt",
        "link.txt",
        "up/secret.txt",
        "etc/passwd",
        "/etc/passwd",
        "//etc/passwd",
        "part/one.txt/",
        "part/one.txt/.",
        "PART/ONE.TXT",
        "part/one.txt\u{0}",
        "part\\one.txt",
        "",
        ".",
        "..",
    ];
    let outcome = host
        .attack_with("read_data", json!({"slot": "corpus", "paths": ways}))
        .await;
    let seen = observed(&outcome);
    assert_eq!(seen.lines().count(), ways.len(), "{seen}");
    for line in seen.lines() {
        assert!(line.contains(" refused: "), "{line}");
    }
    let inside = json!({"slot": "corpus", "paths": ["part/one.txt"]});
    assert_eq!(
        observed(&host.attack_with("read_data", inside).await),
        "\"part/one.txt\": mine"
    );
    // No other name leads to it either.
    let other = json!({"slot": "../corpus", "paths": ["part/one.txt"]});
    assert!(observed(&host.attack_with("read_data", other).await).contains("refused"));
}

#[tokio::test]
async fn a_terabyte_and_a_million_files_are_ordinary_errors() {
    let grants = "[misbehave]\nfiles.bytes = 1048576\nfiles.entries = 100\n";
    let host = Plan::new().guest("misbehave").grants(grants).open();
    let calls = (0..4)
        .map(|_| call("abuse_files", json!({"path": "/work"})))
        .collect();
    for outcome in host.attack(calls).await {
        assert_eq!(outcome.ended, Ended::Ok, "{outcome:?}");
        let seen = observed(&outcome);
        for refused in [
            "sparse: No space left",
            "resize: No space left",
            "million: Quota exceeded",
        ] {
            assert!(seen.contains(refused), "{seen}");
        }
        assert!(!seen.contains(": ok"), "{seen}");
    }
    let other = host
        .attack_with("use_files", json!({"path": "/work"}))
        .await;
    assert!(
        observed(&other).starts_with("found []; and two"),
        "{other:?}"
    );
}
