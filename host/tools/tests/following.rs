//! A plugin is replaced on disk while calls run. Calls under way end on the old component, later calls use the new one
//! if the operator allows it, and every outcome says which component served.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rlf_dialogue::tool::{CallOutcome, Ended, ToolCall};
use rlf_plugins::follower::FileWatch;
use rlf_plugins::registry::Registry;
use rlf_plugins::turn::TurnContext;
use rlf_tools::ToolLoader;
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
use serde_json::json;
use tempfile::TempDir;

use rlf_stub_plugins::{ANY_OBJECT, ECHO, SEED, SPIN, StubTool, sandbox, tools};

/// A plugin with a tool `run` that never ends, and with the tool `say`.
fn plugin(say: &'static str) -> Vec<u8> {
    plugin_called("say", say)
}

fn plugin_called(name: &'static str, say: &'static str) -> Vec<u8> {
    let tool = |name, body| StubTool {
        name,
        schema: ANY_OBJECT,
        hints: 0,
        body,
    };
    tools(&[tool(name, say), tool("run", SPIN)])
}

/// Replaces a file that is in use: writes a new one beside it and renames it.
fn replace(path: &Path, bytes: &[u8]) {
    let beside = path.with_extension("new");
    fs::write(&beside, bytes).unwrap();
    fs::rename(beside, path).unwrap();
}

fn hash(bytes: &[u8]) -> String {
    rlf_sandbox::ComponentInfo::read(bytes).unwrap().hash
}

async fn call(manager: &ToolManager, name: &str) -> CallOutcome {
    let call = ToolCall {
        call_id: "t/0/0".into(),
        name: name.into(),
        arguments: json!({}),
    };
    let context = TurnContext {
        trajectory_id: "t".into(),
        turn: 0,
        seed: 1,
    };
    manager.invoke(vec![call], &context).await.remove(0)
}

struct Followed {
    folder: TempDir,
    manager: ToolManager,
    watch: FileWatch,
}

impl Followed {
    fn new(bytes: &[u8], grants: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("p.wasm"), bytes).unwrap();
        let grants_by_name: BTreeMap<_, _> = rlf_config::parse(grants, "c.toml").unwrap();
        let sandbox = sandbox();
        let registry = Registry::load(folder.path(), &grants_by_name, &[&ToolLoader], &sandbox);
        assert!(registry.problems().is_empty(), "{:?}", registry.problems());
        let manager = ToolManager::new(&registry, &ToolManagerConfig::default()).unwrap();
        Self {
            watch: FileWatch::new(&registry, &sandbox),
            folder,
            manager,
        }
    }

    fn replace(&self, bytes: &[u8]) {
        replace(&self.folder.path().join("p.wasm"), bytes);
    }

    /// Returns the reports after the files have looked the same twice.
    fn check(&mut self) -> Vec<String> {
        assert_eq!(self.watch.check(), [], "seen once, it may be half written");
        let changes = self.watch.check();
        assert_eq!(self.watch.check(), [], "said once");
        changes.into_iter().map(|change| change.what).collect()
    }
}

#[tokio::test]
async fn later_calls_are_served_by_the_new_component_and_those_under_way_by_the_old() {
    let (old, new) = (plugin(ECHO), plugin(SEED));
    let mut followed = Followed::new(&old, "[p.limits]\ncpu_ms = 1500\n");
    assert_eq!(followed.watch.check(), []);
    let before = call(&followed.manager, "say").await;
    assert_eq!(
        (before.ended, before.component.as_str()),
        (Ended::Ok, hash(&old).as_str())
    );

    let manager = followed.manager.clone();
    let under_way = tokio::spawn(async move { call(&manager, "run").await });
    tokio::task::yield_now().await;
    followed.replace(&new);
    let said = followed.check();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains(&hash(&new)), "{said:?}");
    let after = call(&followed.manager, "say").await;
    assert_eq!(after.component, hash(&new));
    assert_ne!(after.observation, before.observation);
    let under_way = under_way.await.unwrap();
    assert_eq!(
        (under_way.ended, under_way.component),
        (Ended::Timeout, hash(&old))
    );
}

#[tokio::test]
async fn what_the_operators_pin_does_not_allow_never_serves() {
    let old = plugin(ECHO);
    let mut followed = Followed::new(&old, &format!("[p]\nhash = \"{}\"\n", hash(&old)));
    followed.replace(&plugin(SEED));
    let said = followed.check();
    assert!(
        said[0].contains("[plugins.p] pins another component"),
        "{said:?}"
    );
    assert_eq!(call(&followed.manager, "say").await.component, hash(&old));
}

#[tokio::test]
async fn what_does_not_load_or_offers_other_tools_never_serves() {
    let old = plugin(ECHO);
    let mut followed = Followed::new(&old, "");
    let others = tools(&[StubTool {
        name: "say",
        schema: ANY_OBJECT,
        hints: 0,
        body: ECHO,
    }]);
    for (bytes, why) in [
        (others, "other tools"),
        (b"no component".to_vec(), "not WebAssembly"),
        (old[..old.len() / 2].to_vec(), "damaged"),
    ] {
        followed.replace(&bytes);
        let said = followed.check();
        assert!(said[0].contains(why), "{said:?}");
        assert_eq!(call(&followed.manager, "say").await.component, hash(&old));
    }
    // The definitions look the same to a model, but the operator's name now belongs to another of the plugin's tools.
    let renamed = plugin_called("talk", ECHO);
    let mut renaming = Followed::new(&old, "[p.rename]\nsay = \"talk\"\n");
    renaming.replace(&renamed);
    assert_eq!(renaming.check().len(), 1);
    assert_eq!(call(&renaming.manager, "talk").await.component, hash(&old));
    fs::remove_file(followed.folder.path().join("p.wasm")).unwrap();
    assert_eq!(followed.check().len(), 1);
    assert_eq!(call(&followed.manager, "say").await.ended, Ended::Ok);
    // Putting the old file back is not reported.
    followed.replace(&old);
    assert_eq!(followed.check(), Vec::<String>::new());
}
