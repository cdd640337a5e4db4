//! `rlf-host serve`: tools and rewards over HTTP, and the details that answers must not contain.

use std::fs;

use rlf_tests::{Host, Service};
use serde_json::{Value, json};

/// The first-party plugins without the one that takes a long time to compile.
const SMALL: &str = "[plugins.python]\nenabled = false\n";

#[test]
fn a_tool_is_called_and_how_it_ended_is_data() {
    let service = Service::start(&Host::new(), SMALL, &[]);
    let listed = service.get("/v1/tools").json();
    let tools = listed["tools"].as_array().expect("tools");
    let calculate = tools
        .iter()
        .find(|tool| tool["name"] == "calculate")
        .expect("calculate");
    assert_eq!(calculate["input-schema"]["type"], "object");
    let call = |arguments: Value| {
        service.posted("/v1/tools/calculate", &json!({ "arguments": arguments }))
    };
    let outcome = call(json!({"expression": "(2+3)*4"}));
    assert_eq!(
        (&outcome["ended"], &outcome["fault"]),
        (&json!("ok"), &json!("none"))
    );
    assert_eq!(
        outcome["observation"],
        json!({"content": [{"text": "20"}], "failed": false})
    );
    assert_eq!(call(json!({"expression": "1/0"}))["ended"], "failed");
    assert_eq!(call(json!({"wrong": 1}))["ended"], "invalid-arguments");
    let named = json!({"arguments": {"expression": "1"}, "seed": 3, "trajectory_id": "t7"});
    assert_eq!(
        service.posted("/v1/tools/calculate", &named)["call-id"],
        "t7/0/0"
    );
    let unknown = service.post("/v1/tools/calculat", &json!({"arguments": {}}));
    assert_eq!(unknown.status, 404);
    assert!(
        unknown.body.contains("did you mean `calculate`?"),
        "{unknown:?}"
    );
    assert_eq!(
        service
            .post("/v1/tools/calculate", &json!({"argument": {}}))
            .status,
        422
    );
}

#[test]
fn a_reward_grades_conversations_and_trajectories_in_order() {
    let service = Service::start(&Host::new(), SMALL, &[]);
    let said = |text: &str| json!([{"role": "user", "content": "where?"}, {"role": "assistant", "content": text}]);
    let request =
        json!({"task": {"reference": "Paris"}, "messages": [said("Paris"), said("Rome"), []]});
    let graded = service.posted("/v1/rewards/exact-match", &request);
    let terms: Vec<&Value> = graded["scores"]
        .as_array()
        .expect("scores")
        .iter()
        .map(|score| &score["terms"]["em"])
        .collect();
    assert_eq!(terms, [1.0, 0.0, 0.0], "{graded}");
    let trajectory = json!({
        "id": "a", "task": "t", "tools": [], "events": [], "sequences": [], "answer": "Paris",
        "finish": "answered", "excluded": null, "closed_turns": 0
    });
    let mut lost = trajectory.clone();
    lost["excluded"] = json!("the machine was too busy");
    let request = json!({"task": {"reference": "Paris"}, "trajectories": [lost, trajectory]});
    let graded = service.posted("/v1/rewards/exact-match", &request);
    assert_eq!(graded["scores"][0]["terms"], Value::Null, "{graded}");
    assert_eq!(graded["scores"][0]["error"], "the machine was too busy");
    assert_eq!(graded["scores"][1]["terms"]["em"], 1.0);
    for (path, body, status) in [
        (
            "/v1/rewards/exact-match",
            json!({"task": {"reference": 1}}),
            422,
        ),
        (
            "/v1/rewards/calculator",
            json!({"task": {"reference": 1}, "messages": []}),
            404,
        ),
    ] {
        assert_eq!(service.post(path, &body).status, status, "{path}");
    }
}

#[test]
fn what_leads_to_a_network_is_served_only_by_name() {
    let host = Host::with_test_plugins();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("c.toml");
    let file_name = file.display().to_string();
    fs::write(&file, "").expect("can be written");
    let refused = host.plugin(["--config", &file_name, "inspect", "fetch"]);
    let hash = (refused
        .stdout
        .split_whitespace()
        .chain(refused.stderr.split_whitespace()))
    .map(|word| word.trim_matches(|c: char| !c.is_ascii_hexdigit()))
    .find(|word| word.len() == 64)
    .unwrap_or_else(|| panic!("no hash: {refused}"))
    .to_owned();
    let granted = format!(
        "[plugins.fetch]\nhash = \"{hash}\"\ngrants = [\"http\"]\nhttp.hosts.\"example.com\" = {{}}\n"
    );
    let service = Service::start(&host, &granted, &[]);
    let tool = service.get("/v1/tools").json()["withheld"]
        .as_object()
        .expect("withheld")
        .keys()
        .next()
        .cloned();
    let tool = tool.expect("the tool of `fetch`");
    let path = format!("/v1/tools/{tool}");
    let withheld = service.post(&path, &json!({"arguments": {}}));
    assert_eq!(withheld.status, 403, "{withheld:?}");
    assert!(
        withheld.body.contains("it leads to a network"),
        "{withheld:?}"
    );
    assert!(
        withheld.body.contains("`fetch` in serve.allow"),
        "{withheld:?}"
    );
    drop(service);
    let service = Service::start(&host, &granted, &["--allow", "fetch"]);
    assert_eq!(
        service.posted(&path, &json!({"arguments": {}}))["ended"],
        "invalid-arguments"
    );
    fs::write(&file, &granted).expect("can be written");
    let refused = host.run([
        "serve",
        &file_name,
        "--plugins",
        &host.plugins().display().to_string(),
        "--allow",
        "fetchh",
    ]);
    assert!(refused.stderr.contains("did you mean"), "{refused}");
}

#[test]
fn what_is_installed_and_did_not_load_is_told_from_what_is_not_there() {
    let host = Host::with_test_plugins();
    let panics = "[plugins.bad-init.config]\ndoes = \"panic\"\n";
    let service = Service::start(&host, panics, &[]);
    let failed = service.get("/v1/tools").json()["failed"].take();
    assert_eq!(
        failed["bad-init"],
        "it was not loaded: its `init` failed; the log of the service says what to mend"
    );
    for (path, why) in [
        ("/v1/tools/bad-init", "its `init` failed"),
        ("/v1/rewards/verifier", "a gate that it is not granted"),
    ] {
        let answer = service.post(path, &json!({}));
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.body.contains(why), "{answer:?}");
    }
    let missing = service.post("/v1/rewards/nobody", &json!({}));
    assert_eq!(missing.status, 404);
    assert!(missing.body.contains("not loaded"), "{missing:?}");
    // The log contains the path, but no answer does.
    let plugins = host.plugins().display().to_string();
    assert!(!failed.to_string().contains(&plugins), "{failed}");
}

#[test]
fn plugins_that_nobody_named_and_that_lack_grants_are_one_warning() {
    let host = Host::new();
    let plugins = host.plugins().to_str().expect("a plain name");
    // The client leaves before it says anything.
    let ended = host.run_fed("", ["serve", "mcp", "--plugins", plugins]);
    let warnings = ended.succeeded().stderr.lines();
    let mut warnings = warnings.filter(|line| line.contains("for lack of grants or data"));
    let warning = warnings.next().expect("there is one");
    assert!(warning.contains("summarise"), "{warning}");
    assert_eq!(warnings.next(), None);
    assert!(!ended.stderr.contains("which nobody granted"), "{ended}");
}
