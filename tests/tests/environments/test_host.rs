//! The environment of `tests/guests/counter`, loaded, and helpers that call its sessions.

use crate::KINDS;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::{CallOutcome, ToolCall};
use rlf_environments::environments::{EnvironmentConfig, Environments};
use rlf_environments::session::EnvironmentSession;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::registry::Registry;
use rlf_plugins::turn::TurnContext;
use rlf_sandbox::{Sandbox, SandboxConfig};
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
use serde_json::{Value, json};
use tempfile::TempDir;
use xtask::guests::Family;
use xtask::project::Project;

/// A sandbox with the environment, a tool and a reward.
pub(crate) struct TestHost {
    pub(crate) sandbox: Sandbox,
    pub(crate) registry: Registry,
    pub(crate) environments: Environments,
    pub(crate) tools: ToolManager,
    _folder: TempDir,
}

pub(crate) const GRANTS: &str =
    "[counter.limits]\ncpu_ms = 300\nmemory_bytes = 16777216\noutput_stop_bytes = 1048576\n";

/// A sandbox with room for this many live sessions. A session may be idle for this long.
pub(crate) fn host_for(sessions: u32, idle: Duration, grants_by_name: &str) -> TestHost {
    let project = Project::find().expect("tests run inside a checkout");
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (family, name) in [
        (Family::Test, "counter"),
        (Family::FirstParty, "calculator"),
        (Family::FirstParty, "reward-verdict"),
    ] {
        let built = xtask::plugins::ready(&project, family)
            .unwrap_or_else(|error| panic!("{error:#}"))
            .join(name);
        copy(&built, &folder.path().join(name));
    }
    let sandbox = Sandbox::new(&SandboxConfig {
        instances: Some(8),
        sessions: Some(sessions),
        workers: Some(2),
        cache: Some(rlf_tests::component_cache(&project)),
        ..SandboxConfig::default()
    })
    .expect("the machine can hold a small sandbox");
    let grants_by_name: BTreeMap<String, PluginGrants> =
        rlf_config::parse(grants_by_name, "grants.toml").expect("the grants are well written");
    let registry = Registry::load(folder.path(), &grants_by_name, KINDS, &sandbox);
    assert_eq!(registry.problems(), []);
    let environments = Environments::new(&registry, &sandbox, &EnvironmentConfig { idle });
    let tools = ToolManager::new(&registry, &ToolManagerConfig::default()).expect("the defaults");
    TestHost {
        sandbox,
        registry,
        environments,
        tools,
        _folder: folder,
    }
}

pub(crate) fn host() -> TestHost {
    // On a busy machine, the limit of CPU time shall still be the one that is reached.
    host_for(
        16,
        Duration::from_mins(10),
        &format!("{GRANTS}wall_ms = 120000\n"),
    )
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("can be made");
    for entry in fs::read_dir(from).expect("was built") {
        let path = entry.expect("can be listed").path();
        let name = path.file_name().expect("has a name");
        fs::copy(&path, to.join(name)).expect("can be copied");
    }
}

impl TestHost {
    /// Waits until the condition holds. Fails the test if it never does.
    pub(crate) async fn wait_until(&self, condition: impl Fn(&Self) -> bool) {
        let wait = async {
            while !condition(self) {
                tokio::task::yield_now().await;
            }
        };
        let done = tokio::time::timeout(Duration::from_secs(20), wait).await;
        assert!(done.is_ok(), "{:?}", self.sandbox.in_use());
    }

    pub(crate) async fn open(&self, task: Value) -> EnvironmentSession {
        self.open_seeded(task, 7).await
    }

    pub(crate) async fn open_seeded(&self, task: Value, seed: u64) -> EnvironmentSession {
        self.environments
            .open("counter", "test", &task, seed)
            .await
            .expect("the task is a good one")
    }
}

pub(crate) fn turn(number: u32) -> TurnContext {
    TurnContext {
        trajectory_id: "test".into(),
        turn: number,
        seed: 1,
    }
}

pub(crate) async fn call(
    session: &mut EnvironmentSession,
    name: &str,
    arguments: Value,
) -> CallOutcome {
    let call = ToolCall {
        call_id: "test/0/0".into(),
        name: name.into(),
        arguments,
    };
    session.call(call, &turn(0)).await
}

/// The text that the model would read.
pub(crate) fn observed(outcome: &CallOutcome) -> String {
    let observation = outcome.observation.as_ref();
    observation.map_or_else(String::new, |seen| plain_text(&seen.content))
}

pub(crate) async fn count(session: &EnvironmentSession) -> Value {
    state(session).await["count"].clone()
}

pub(crate) async fn state(session: &EnvironmentSession) -> Value {
    let text = session.state().await.expect("it has a state");
    serde_json::from_str(&text).expect("canonical JSON")
}

pub(crate) fn add(by: i64) -> Value {
    json!({ "by": by })
}
