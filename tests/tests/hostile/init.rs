//! An `init` that does forbidden things gets its plugin refused, or costs its plugin the snapshot. No other plugin is
//! affected.

use rlf_dialogue::tool::{Ended, Fault};
use serde_json::json;

use crate::test_host::{Plan, TestHost, assert_ended, observed};

fn host(grants: &str) -> TestHost {
    let grants = format!("[bad-init]\nlimits.init_ms = 500\n{grants}");
    Plan::new().guest("bad-init").grants(&grants).try_open()
}

#[tokio::test]
async fn a_call_that_panics_after_an_init_that_printed_says_why() {
    let host = host("config.does = \"print\"\n");
    for _ in 0..2 {
        let outcome = host
            .attack_with("print_and_panic", json!({"text": "the reason"}))
            .await;
        assert_ended(
            &outcome,
            Ended::Trap,
            Fault::Plugin,
            "the tool broke on this call",
        );
        // A dead handle from init would end the call before its panic.
        let detail = outcome.detail.unwrap();
        assert!(!detail.contains("unknown handle"), "{detail}");
        assert!(detail.contains("unreachable"), "{detail}");
        let outcome = host
            .attack_with("print_and_return", json!({"text": "said"}))
            .await;
        assert_eq!(
            (outcome.ended, observed(&outcome).as_str()),
            (Ended::Ok, "said"),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_call_opens_a_file_after_an_init_that_did() {
    let host = host("config.does = \"open\"\nfiles.bytes = 100000\n");
    for _ in 0..3 {
        let outcome = host.attack_with("read_and_open", json!({})).await;
        assert_eq!(
            observed(&outcome),
            "written by init; written by a call",
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn an_init_that_breaks_or_never_ends_refuses_its_plugin_in_one_line() {
    for (does, said) in [
        ("panic", "a panic in init"),
        ("exit", "exit(0)"),
        ("loop", "init_ms"),
        ("sleep", "init_ms"),
        ("grow", "memory_bytes"),
        ("fly", "unknown variant `fly`"),
        // Without a grant there is no such directory.
        ("open", "init"),
    ] {
        let host = host(&format!("config.does = \"{does}\"\n"));
        let problem = host.problem("bad-init");
        assert!(problem.contains(said), "{does}: {problem}");
        host.beside_a_neighbour(async {}).await;
    }
}
