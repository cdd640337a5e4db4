//! A name gives no rights: grants and data belong to the component that they were given to.

use std::fs;

use rlf_dialogue::tool::Ended;
use serde_json::json;

use crate::test_host::{Plan, TestHost, observed};
use rlf_stub_plugins::{ANY_OBJECT, ECHO, StubTool, tools};

/// A foreign component with a tool of this name.
fn stranger(tool: &'static str) -> Vec<u8> {
    tools(&[StubTool {
        name: tool,
        schema: ANY_OBJECT,
        hints: 0,
        body: ECHO,
    }])
}

fn hash_of(plan: &Plan, path: &str) -> String {
    let bytes = fs::read(plan.folder().join(path)).expect("it is there");
    rlf_sandbox::ComponentInfo::read(&bytes)
        .expect("a component")
        .hash
}

/// Replaces the component in the folder of a plugin that was granted data, files and a gate.
fn replaced(manifest: &str, by: &[u8]) -> TestHost {
    let secret = tempfile::NamedTempFile::new().expect("a file");
    fs::write(secret.path(), "the operator's").expect("can be written");
    let plan = Plan::new().guest_as("misbehave", "trusted", manifest);
    let pin = hash_of(&plan, "trusted/trusted.wasm");
    fs::write(plan.folder().join("trusted/trusted.wasm"), by).expect("can be written");
    let grants = format!(
        "[trusted]\nhash = \"{pin}\"\ngrants = [\"http\"]\nfiles.bytes = 1000\ndata.corpus = {:?}\n",
        secret.path().display().to_string()
    );
    plan.grants(&grants).try_open()
}

#[tokio::test]
async fn a_component_in_the_place_of_a_granted_one_has_none_of_its_grants() {
    // A component that needs the data is refused, and the message names the pin.
    let host = replaced(
        "data = [\"corpus\"]\ngates = [\"http\"]\n",
        &stranger("use_files"),
    );
    let problem = host.problem("trusted");
    assert!(
        problem.contains("the component changed") && problem.contains("are withdrawn"),
        "{problem}"
    );
    host.beside_a_neighbour(async {}).await;

    // A component that asks for nothing runs, without any grants.
    let changed = {
        let plan = Plan::new().guest("misbehave");
        let mut bytes =
            fs::read(plan.folder().join("misbehave/misbehave.wasm")).expect("it is there");
        // One more custom section: the same program, another component.
        bytes.extend([0, 3, 1, b'x', 0]);
        bytes
    };
    let plan = Plan::new().guest_as("misbehave", "trusted", "");
    let pin = hash_of(&plan, "trusted/trusted.wasm");
    fs::write(plan.folder().join("trusted/trusted.wasm"), changed).expect("can be written");
    let grants = format!("[trusted]\nhash = \"{pin}\"\nfiles.bytes = 1000000\n");
    let host = plan.grants(&grants).open();
    let notices = host
        .registry
        .plugin("trusted")
        .expect("loaded")
        .notices()
        .join(" ");
    assert!(notices.contains("the component changed"), "{notices}");
    let outcome = host
        .attack_with("use_files", json!({"path": "/work"}))
        .await;
    assert_eq!(
        (outcome.ended, observed(&outcome).as_str()),
        (Ended::Ok, "NotFound"),
        "it still has files"
    );
}

#[tokio::test]
async fn two_plugins_that_claim_one_name_are_both_refused() {
    let plan = Plan::new()
        .guest("misbehave")
        .component("misbehave", &stranger("mine"));
    let pin = hash_of(&plan, "misbehave/misbehave.wasm");
    let grants = format!("[misbehave]\nhash = \"{pin}\"\nfiles.bytes = 1000000\n");
    let host = plan.grants(&grants).try_open();
    assert!(host.registry.plugin("misbehave").is_none());
    host.problem("misbehave");
    host.beside_a_neighbour(async {}).await;
}

#[tokio::test]
async fn a_strangers_tool_takes_no_calls_of_a_tool_of_that_name() {
    let host = Plan::new()
        .guest("misbehave")
        .component("stranger", &stranger("say"))
        .try_open();
    for plugin in ["misbehave", "stranger"] {
        let problem = host.problem(plugin);
        assert!(
            problem.contains("`say` is offered by 2 plugins"),
            "{problem}"
        );
    }
    let outcome = host.attack_with("say", json!({"text": "for whom?"})).await;
    assert_eq!(outcome.ended, Ended::InvalidArguments);
    // The other tools are still there.
    let outcome = host.attack_with("echo", json!({"text": "x"})).await;
    assert_eq!(outcome.ended, Ended::Ok);
}

#[tokio::test]
async fn an_alias_gives_its_grants_to_its_own_copy_alone() {
    let grants = "[granted]\nplugin = \"misbehave\"\nfiles.bytes = 1000000\n\
                  [bare]\nplugin = \"misbehave\"\n";
    let plan = Plan::new().guest("misbehave");
    let rename = |tool: String| format!("rename.{tool} = \"bare_{tool}\"\n");
    let renamed = tool_names()
        .into_iter()
        .map(rename)
        .collect::<Vec<_>>()
        .concat();
    let host = plan.grants(&format!("{grants}{renamed}")).open();
    let uses = |tool: &'static str| host.attack_with(tool, json!({"path": "/work"}));
    assert!(observed(&uses("use_files").await).starts_with("found []"));
    assert_eq!(observed(&uses("bare_use_files").await), "NotFound");
}

/// The names of the tools of `misbehave`.
fn tool_names() -> Vec<String> {
    let host = Plan::new().guest("misbehave").open();
    let plugin = host.registry.plugin("misbehave").expect("loaded");
    plugin
        .tools()
        .iter()
        .map(|tool| tool.own_name.clone())
        .collect()
}
