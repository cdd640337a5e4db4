//! Hostile plugins and a neighbour in one sandbox, and the facts that must hold after every attack.

use crate::KINDS;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::{CallOutcome, Ended, Fault, ToolCall};
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::registry::Registry;
use rlf_plugins::turn::TurnContext;
use rlf_sandbox::{ComponentInfo, InUse, Sandbox, SandboxConfig};
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
use serde_json::{Value, json};
use tempfile::TempDir;
use xtask::guests::Family;
use xtask::project::Project;

use rlf_stub_plugins::{ANY_OBJECT, Beside, StubTool, tools_beside};

/// The neighbour's time limit; alone it takes a hundredth of a millisecond.
const NEIGHBOUR: &str = "[calculator]\nlimits.wall_ms = 5000\n";

/// The plugins to load.
pub(crate) struct Plan {
    folder: TempDir,
    grants_by_name: String,
    instances: u32,
    project: Project,
}

impl Plan {
    /// The neighbour alone.
    pub(crate) fn new() -> Self {
        let project = Project::find().expect("tests run inside a checkout");
        let plan = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            grants_by_name: NEIGHBOUR.to_owned(),
            instances: 32,
            project,
        };
        plan.copied(Family::FirstParty, "calculator", "calculator", None)
    }

    fn copied(self, family: Family, guest: &str, name: &str, manifest: Option<&str>) -> Self {
        let built = xtask::plugins::ready(&self.project, family)
            .unwrap_or_else(|error| panic!("{error:#}"))
            .join(guest);
        let folder = self.folder.path().join(name);
        fs::create_dir(&folder).expect("can be made");
        let copy =
            |from: PathBuf, to: &str| fs::copy(from, folder.join(to)).expect("can be copied");
        copy(built.join(format!("{guest}.wasm")), &format!("{name}.wasm"));
        match manifest {
            Some(text) => fs::write(folder.join("plugin.toml"), text).expect("can be written"),
            None => _ = copy(built.join("plugin.toml"), "plugin.toml"),
        }
        self
    }

    /// Adds a guest of `tests/guests`.
    pub(crate) fn guest(self, name: &str) -> Self {
        self.copied(Family::Test, name, name, None)
    }

    /// Adds a guest of `tests/guests` under another name and manifest.
    pub(crate) fn guest_as(self, guest: &str, name: &str, manifest: &str) -> Self {
        self.copied(Family::Test, guest, name, Some(manifest))
    }

    /// Adds a component that has no source folder.
    pub(crate) fn component(self, name: &str, bytes: &[u8]) -> Self {
        let path = self.folder.path().join(format!("{name}.wasm"));
        fs::write(path, bytes).expect("can be written");
        self
    }

    /// Adds tools in WAT with further imports or module code: the `name` and body of each.
    pub(crate) fn stub(
        self,
        name: &str,
        beside: &Beside,
        tools: &[(&'static str, &'static str)],
    ) -> Self {
        let tools: Vec<StubTool> = tools
            .iter()
            .map(|(name, body)| StubTool {
                name,
                schema: ANY_OBJECT,
                hints: 0,
                body,
            })
            .collect();
        self.component(name, &tools_beside(beside, &tools))
    }

    /// Adds the guest `agent` of `tests/guests`, which may call these tools.
    pub(crate) fn agent(self, tools: &[&str], more: &str) -> Self {
        let plan = self.guest("agent");
        let bytes = fs::read(plan.folder().join("agent/agent.wasm")).expect("was copied");
        let info = ComponentInfo::read(&bytes).expect("is a component");
        plan.grants(&format!(
            "[agent]\nhash = \"{}\"\ngrants = [\"tools\"]\ntools = {tools:?}\n{more}",
            info.hash
        ))
    }

    /// Adds grants: tables by the plugin's name.
    pub(crate) fn grants(mut self, text: &str) -> Self {
        self.grants_by_name.push_str(text);
        self
    }

    pub(crate) fn instances(mut self, instances: u32) -> Self {
        self.instances = instances;
        self
    }

    /// The directory of plugins.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Loads everything; some plugins may be refused.
    pub(crate) fn try_open(self) -> TestHost {
        let sandbox = Sandbox::new(&SandboxConfig {
            instances: Some(self.instances),
            workers: Some(2),
            cache: Some(rlf_tests::component_cache(&self.project)),
            ..SandboxConfig::default()
        })
        .expect("the machine can hold a small sandbox");
        let grants_by_name: BTreeMap<String, PluginGrants> =
            rlf_config::parse(&self.grants_by_name, "grants.toml")
                .expect("the grants are well written");
        let registry = Registry::load(self.folder.path(), &grants_by_name, KINDS, &sandbox);
        let tools = ToolManager::new(&registry, &ToolManagerConfig::default())
            .expect("the settings are the defaults");
        TestHost {
            sandbox,
            registry,
            tools,
            _folder: self.folder,
        }
    }

    /// Loads everything; fails the test if a plugin is refused.
    pub(crate) fn open(self) -> TestHost {
        let host = self.try_open();
        assert_eq!(host.registry.problems(), []);
        host
    }
}

/// The loaded plugins that attack, and their neighbour.
pub(crate) struct TestHost {
    pub(crate) sandbox: Sandbox,
    pub(crate) registry: Registry,
    pub(crate) tools: ToolManager,
    _folder: TempDir,
}

impl TestHost {
    /// Makes all these calls at once, and calls the neighbour repeatedly while they run. Asserts the facts that hold
    /// after every attack. Returns the outcomes of `calls`.
    pub(crate) async fn attack(&self, calls: Vec<ToolCall>) -> Vec<CallOutcome> {
        self.beside_a_neighbour(self.tools.invoke(calls, &turn()))
            .await
    }

    /// Makes one call as an attack.
    pub(crate) async fn attack_with(&self, tool: &str, arguments: Value) -> CallOutcome {
        self.attack(vec![call(tool, arguments)])
            .await
            .pop()
            .expect("one outcome for one call")
    }

    /// Runs an attack, and asserts the facts that must hold during and after it.
    pub(crate) async fn beside_a_neighbour<T>(&self, attack: impl Future<Output = T>) -> T {
        let over = Cell::new(false);
        let attack = async {
            let outcome = attack.await;
            over.set(true);
            outcome
        };
        let neighbour = async {
            let mut calls = 0;
            while !over.get() || calls < 3 {
                self.call_neighbour().await;
                calls += 1;
            }
        };
        let (outcome, ()) = tokio::join!(attack, neighbour);
        assert_eq!(
            self.sandbox.in_use(),
            InUse::default(),
            "something was not given back"
        );
        self.call_neighbour().await;
        outcome
    }

    /// Fails the test unless the neighbour's answer is right and arrives before its deadline.
    pub(crate) async fn call_neighbour(&self) {
        let call = call("calculate", json!({"expression": "(2+3)*4"}));
        let outcome = self.tools.invoke(vec![call], &turn()).await.remove(0);
        assert_eq!(
            (outcome.ended, observed(&outcome).as_str()),
            (Ended::Ok, "20"),
            "{outcome:?}"
        );
    }

    /// Waits until abandoned calls have returned everything that they held.
    pub(crate) async fn settle(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.sandbox.in_use() != InUse::default() && Instant::now() < deadline {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            self.sandbox.in_use(),
            InUse::default(),
            "something was not given back"
        );
    }

    /// The error of the plugin with this name.
    pub(crate) fn problem(&self, plugin: &str) -> String {
        let problems = self.registry.problems();
        let problem = problems.iter().find(|problem| problem.label() == plugin);
        let problem = problem.unwrap_or_else(|| panic!("`{plugin}` was loaded; {problems:?}"));
        let said = problem.to_string();
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    }
}

pub(crate) fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall {
        call_id: "t/0/0".into(),
        name: tool.into(),
        arguments,
    }
}

pub(crate) fn turn() -> TurnContext {
    TurnContext {
        trajectory_id: "t".into(),
        turn: 0,
        seed: 7,
    }
}

/// The text that the model is shown.
pub(crate) fn observed(outcome: &CallOutcome) -> String {
    outcome
        .observation
        .as_ref()
        .map(|observation| plain_text(&observation.content))
        .unwrap_or_default()
}

/// Fails the test unless the call ended like this, and the model sees one sentence that reveals nothing of the host.
pub(crate) fn assert_ended(outcome: &CallOutcome, ended: Ended, fault: Fault, told: &str) {
    assert_eq!(
        (outcome.ended, outcome.fault),
        (ended, fault),
        "{outcome:?}"
    );
    let text = observed(outcome);
    assert!(text.contains(told), "{outcome:?}");
    assert_eq!(text.lines().count(), 1, "{text}");
    for inside in ["wasm", "backtrace", "panicked", ".rs", "/", "0x", "thread"] {
        assert!(!text.contains(inside), "`{inside}` in {text}");
    }
}

/// The limit that the detail names: its key, its value and the amount used.
pub(crate) fn limit(outcome: &CallOutcome) -> (&str, u64, u64) {
    let detail = outcome.detail.as_deref().unwrap_or_default();
    let parsed = (|| {
        let (before, after) = detail.split_once(", used ")?;
        let (before, value) = before.rsplit_once(" = ")?;
        let name = before.rsplit(['(', ' ']).next()?;
        let used: String = after.chars().take_while(char::is_ascii_digit).collect();
        Some((name, value.parse().ok()?, used.parse().ok()?))
    })();
    parsed.unwrap_or_else(|| panic!("no limit in {detail:?}"))
}

/// Fails the test unless a limit of this name and value was reached, with at least this much used.
pub(crate) fn assert_limit(outcome: &CallOutcome, name: &str, value: u64) {
    let (named, allowed, used) = limit(outcome);
    assert_eq!((named, allowed), (name, value), "{outcome:?}");
    assert!(used >= value, "{outcome:?}");
}
