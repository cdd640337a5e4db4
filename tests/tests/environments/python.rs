//! The Python environments that come with the project, in the interpreter.

use crate::KINDS;
use std::collections::BTreeMap;

use rlf_dialogue::tool::{Ended, Fault};
use rlf_environments::environments::{EnvironmentConfig, Environments};
use rlf_environments::session::EnvironmentSession;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::registry::Registry;
use rlf_sandbox::{InitMode, Sandbox, SandboxConfig};
use serde_json::json;
use xtask::guests::Family;
use xtask::project::Project;

use crate::test_host::{call, observed};

/// Notes that it was called, then takes all available memory.
const GLUTTON: &str = "
from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel


class Scenario(BaseModel):
    calls: int = 0


Scenario_Schema = [Scenario]


class Glutton:
    def __init__(self):
        self.state = Scenario()

    def load_scenario(self, scenario: dict) -> None:
        self.state = Scenario(**scenario)

    def save_scenario(self) -> dict:
        return self.state.model_dump()


api = Glutton()
mcp = FastMCP(name='error')


@mcp.tool()
def load_scenario(scenario: dict) -> str:
    api.load_scenario(scenario)
    return 'ok'


@mcp.tool()
def save_scenario() -> dict:
    return api.save_scenario()


@mcp.tool()
def count() -> int:
    api.state.calls += 1
    return api.state.calls


@mcp.tool()
def feast() -> str:
    api.state.calls += 1
    return str(len(bytearray(1 << 30)))


@mcp.tool()
def nest() -> str:
    return str(eval('-' * 20000 + '1'))


@mcp.tool()
def grow() -> int:
    api.state.calls += 2 ** 64
    return api.state.calls
";

/// Prints and reads the file system while it is imported.
const CURIOUS: &str = "
import glob, logging, os, pathlib, sys, tempfile, traceback, warnings
from mcp.server.fastmcp import FastMCP

print('printed')
print('an error', file=sys.stderr)
logging.warning('shown')
warnings.warn('shown too')
os.write(1, b'written')
try:
    import nothing_by_this_name
except ImportError:
    traceback.print_exc()
there = [pathlib.Path('/data').exists(), os.listdir('/'), glob.glob('*'), sys.stdout.isatty(), tempfile.gettempdir()]
mcp = FastMCP(name='Curious')


@mcp.tool()
def look() -> str:
    name = os.path.join(tempfile.gettempdir(), 'note')
    before = os.path.exists(name)
    with open(name, 'w') as note:
        note.write('kept')
    return f'{there} {before} {os.path.exists(name)} {os.listdir(tempfile.gettempdir())}'
";

/// Creates a file while it is imported.
const LOGGING: &str = "
from mcp.server.fastmcp import FastMCP


def note(text):
    with open('log.txt', 'a') as log:
        log.write(text)


note('imported')
mcp = FastMCP(name='Logging')
";

/// The interpreter with a folder of servers, as the environment `servers`.
pub(crate) fn load_environments(servers: &str) -> (Registry, Environments) {
    let project = Project::find().expect("tests run inside a checkout");
    let plugins = xtask::plugins::ready(&project, Family::FirstParty)
        .unwrap_or_else(|error| panic!("{error:#}"));
    let text = format!("[servers]\nplugin = 'python'\nenvironment.servers = '{servers}'\n");
    let grants_by_name: BTreeMap<String, PluginGrants> =
        rlf_config::parse(&text, "grants.toml").expect("the grants are well written");
    let sandbox = Sandbox::new(&SandboxConfig {
        sessions: Some(4),
        cache: Some(rlf_tests::component_cache(&project)),
        ..SandboxConfig::default()
    })
    .expect("the machine can hold a small sandbox");
    let registry = Registry::load_where(&plugins, &grants_by_name, KINDS, &sandbox, |name| {
        name == "servers"
    });
    assert_eq!(registry.problems(), []);
    let environments = Environments::new(&registry, &sandbox, &EnvironmentConfig::default());
    (registry, environments)
}

#[test]
fn sessions_begin_where_the_files_are_loaded() {
    let project = Project::find().expect("tests run inside a checkout");
    let servers = project.root().join("plugins/environments");
    let (registry, environments) = load_environments(&servers.display().to_string());
    let plugin = environments.plugin("servers").expect("was loaded");
    assert_eq!(*plugin.template().init(), InitMode::Snapshot);
    assert!(plugin.environment_hash().is_some());
    drop(registry);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_prints_and_looks_around_while_it_is_imported_keeps_the_snapshot() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("Curious.py"), CURIOUS).expect("can be written");
    let servers = folder.path().display().to_string();
    let (_registry, environments) = tokio::task::block_in_place(|| load_environments(&servers));
    let plugin = environments.plugin("servers").expect("was loaded");
    assert_eq!(*plugin.template().init(), InitMode::Snapshot);
    for _ in 0..2 {
        let task = json!({"servers": {"Curious": null}});
        let mut session = environments
            .open("servers", "test", &task, 7)
            .await
            .expect("the task is a good one");
        let look = call(&mut session, "Curious-look", json!({})).await;
        assert_eq!(
            observed(&look),
            "[False, ['tmp'], ['tmp'], False, '/tmp'] False True ['note']"
        );
    }
}

#[test]
fn what_a_file_opens_while_it_is_imported_is_reported_with_its_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("Logging.py"), LOGGING).expect("can be written");
    let (_registry, environments) = load_environments(&folder.path().display().to_string());
    let plugin = environments.plugin("servers").expect("was loaded");
    // The fast build of the interpreter keeps its files in its own memory, and so in the snapshot.
    if let InitMode::PerCall { reason } = plugin.template().init() {
        assert!(
            reason.starts_with("Logging.py:6 opens or changes files"),
            "{reason}"
        );
    }
}

/// A session of [`GLUTTON`] after this many calls. The other values keep it alive.
async fn glutton(calls: u64) -> (EnvironmentSession, tempfile::TempDir, Registry) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("Glutton.py"), GLUTTON).expect("can be written");
    let servers = folder.path().display().to_string();
    let (registry, environments) = tokio::task::block_in_place(|| load_environments(&servers));
    let task = json!({"servers": {"Glutton": {"calls": calls}}});
    let session = environments
        .open("servers", "test", &task, 7)
        .await
        .expect("the task is a good one");
    (session, folder, registry)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_with_a_number_that_would_be_rounded_is_refused() {
    let (mut session, _folder, _registry) = glutton(u64::MAX - 1).await;
    let grow = call(&mut session, "Glutton-grow", json!({})).await;
    assert_eq!(grow.ended, Ended::Trap, "{grow:?}");
    assert_eq!(grow.fault, Fault::Plugin, "{grow:?}");
    let detail = grow.detail.as_deref().unwrap_or_default();
    assert!(
        detail.contains("36893488147419103230 has more than 64 bits"),
        "{detail}"
    );
    assert!(
        observed(&grow).ends_with("; it has had no effect"),
        "{grow:?}"
    );
    let count = call(&mut session, "Glutton-count", json!({})).await;
    assert_eq!(observed(&count), u64::MAX.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_takes_all_memory_has_changed_nothing() {
    let (mut session, _folder, _registry) = glutton(4).await;
    let feast = call(&mut session, "Glutton-feast", json!({})).await;
    assert_eq!(feast.ended, Ended::Denied, "{feast:?}");
    assert_eq!(feast.fault, Fault::Model, "{feast:?}");
    assert!(
        observed(&feast).ends_with("; it has had no effect"),
        "{feast:?}"
    );
    let count = call(&mut session, "Glutton-count", json!({})).await;
    assert_eq!(observed(&count), "5", "{feast:?}");
    assert!(session.lost().is_none());
    // The parser's own limit has the same name in Python.
    for _ in 0..2 {
        let nest = call(&mut session, "Glutton-nest", json!({})).await;
        assert_eq!(nest.ended, Ended::Failed, "{nest:?}");
        let text = "Error executing tool nest: Parser stack overflowed";
        assert!(observed(&nest).starts_with(text), "{nest:?}");
    }
    call(&mut session, "Glutton-feast", json!({})).await;
    let why = session.lost().expect("the same call was stopped twice");
    assert!(why.contains("memory"), "{why}");
}
