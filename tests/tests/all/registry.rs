//! The promises of the registry: every valid plugin is loaded, each refusal gives its reason, and no plugin takes
//! another's place.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rlf_plugins::grants::PluginGrants;
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::problem::ProblemKind;
use rlf_plugins::registry::Registry;
use rlf_rewards::RewardLoader;
use rlf_stub_plugins::{ANY_OBJECT, ECHO, StubTool, sandbox};
use rlf_tools::ToolLoader;
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};

fn tool(name: &'static str, schema: &'static str) -> Vec<u8> {
    rlf_stub_plugins::tools(&[StubTool {
        name,
        schema,
        hints: 0,
        body: ECHO,
    }])
}

fn load(directory: &Path, grants_by_name: &str) -> Registry {
    let grants_by_name: BTreeMap<String, PluginGrants> =
        rlf_config::parse(grants_by_name, "test.toml").unwrap();
    Registry::load(
        directory,
        &grants_by_name,
        &[&ToolLoader, &RewardLoader],
        &sandbox(),
    )
}

fn names(registry: &Registry) -> Vec<&str> {
    registry
        .plugins()
        .iter()
        .map(|plugin| plugin.name())
        .collect()
}

#[test]
fn one_broken_plugin_does_not_stop_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("a-text.wasm"), "not wasm").unwrap();
    fs::write(at("b-module.wasm"), wat::parse_str("(module)").unwrap()).unwrap();
    fs::write(at("c-empty.wasm"), wat::parse_str("(component)").unwrap()).unwrap();
    let whole = tool("echo", ANY_OBJECT);
    fs::write(at("d-cut.wasm"), &whole[..whole.len() / 2]).unwrap();
    fs::write(at("e-schema.wasm"), tool("echo", r#"{"type":"array"}"#)).unwrap();
    fs::create_dir(at("f-manifest")).unwrap();
    fs::write(at("f-manifest/plugin.toml"), "kind = \"tol\"\n").unwrap();
    fs::write(at("good.wasm"), whole).unwrap();
    fs::write(at("reward.wasm"), rlf_stub_plugins::reward("1", 0)).unwrap();
    let registry = load(directory.path(), "");
    assert_eq!(names(&registry), ["good", "reward"]);
    assert_eq!(registry.plugin("good").unwrap().kind(), PluginKind::Tool);
    assert_eq!(
        registry.plugin("reward").unwrap().kind(),
        PluginKind::Reward
    );
    let problems: Vec<(&str, ProblemKind)> = registry
        .problems()
        .iter()
        .map(|p| (p.label(), p.kind))
        .collect();
    assert_eq!(
        problems,
        [
            ("a-text", ProblemKind::Component),
            ("b-module", ProblemKind::Component),
            ("c-empty", ProblemKind::Component),
            ("d-cut", ProblemKind::Component),
            ("e-schema", ProblemKind::Tools),
            ("f-manifest", ProblemKind::Manifest),
        ]
    );
    for problem in registry.problems() {
        assert!(!problem.what.is_empty(), "{problem}");
    }
}

#[test]
fn two_tools_of_one_name_are_both_refused_until_one_is_renamed() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["left.wasm", "right.wasm"] {
        fs::write(directory.path().join(name), tool("search", ANY_OBJECT)).unwrap();
    }
    let registry = load(directory.path(), "");
    let said: Vec<&str> = registry
        .problems()
        .iter()
        .map(|problem| problem.what.as_str())
        .collect();
    assert_eq!(
        said,
        ["the tool `search` is offered by 2 plugins: `left`, `right`"; 2]
    );
    assert_eq!(
        registry.problems()[1].mend,
        "give it another name: [plugins.right] rename.search = \"…\""
    );
    let manager = ToolManager::new(&registry, &ToolManagerConfig::default()).unwrap();
    assert!(manager.definitions(None).unwrap().is_empty());
    assert_eq!(
        manager
            .definitions(Some(&["search".into()]))
            .unwrap_err()
            .to_string(),
        "there is no tool `search`: the tool `search` is offered by 2 plugins: `left`, `right`"
    );

    let registry = load(directory.path(), "[right]\nrename.search = \"find\"\n");
    assert_eq!(registry.problems(), []);
    let manager = ToolManager::new(&registry, &ToolManagerConfig::default()).unwrap();
    let tools: Vec<String> = manager
        .definitions(None)
        .unwrap()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(tools, ["search", "find"]);
}

#[test]
fn one_component_serves_under_several_names_with_different_data() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("search");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("plugin.toml"), "data = [\"corpus\"]\n").unwrap();
    fs::write(folder.join("search.wasm"), tool("search", ANY_OBJECT)).unwrap();
    let data = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        fs::write(data.path().join(name), name).unwrap();
    }
    let data = data.path().display();
    let registry = load(
        directory.path(),
        &format!(
            "[first]\nplugin = \"search\"\ndata.corpus = \"{data}/one\"\n\
             [second]\nplugin = \"search\"\ndata.corpus = \"{data}/two\"\nrename.search = \"find\"\n"
        ),
    );
    assert_eq!(registry.problems(), []);
    assert_eq!(names(&registry), ["first", "second"]);
    let hash = |name: &str| registry.plugin(name).unwrap().data_hash().unwrap();
    assert_ne!(hash("first"), hash("second"));

    let unbound = load(directory.path(), "");
    assert_eq!(unbound.problems()[0].kind, ProblemKind::Data);
    assert!(
        unbound.problems()[0].to_string().ends_with(
            "it needs data that is not bound: `corpus`; write in the configuration: \
             [plugins.search] data.corpus = \"path/to/corpus\""
        ),
        "{}",
        unbound.problems()[0]
    );
}

#[test]
fn a_plugin_may_lie_elsewhere_when_the_operator_says_where() {
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = elsewhere.path().join("mine");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("mine.wasm"), tool("echo", ANY_OBJECT)).unwrap();
    fs::write(
        elsewhere.path().join("bare.wasm"),
        rlf_stub_plugins::reward("1", 0),
    )
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = elsewhere.path().display();
    let registry = load(
        directory.path(),
        &format!("[x]\npath = \"{path}/mine\"\n[y]\npath = \"{path}/bare.wasm\"\n"),
    );
    assert_eq!(registry.problems(), []);
    assert_eq!(names(&registry), ["x", "y"]);

    let one = Registry::load_one(
        &folder,
        &[],
        &PluginGrants::default(),
        &[&ToolLoader, &RewardLoader],
        &sandbox(),
    )
    .unwrap();
    assert_eq!(one.name(), "mine");
    let report = one.report();
    assert_eq!(
        (report.world, report.tools.len(), report.hash.len()),
        ("tool-plugin", 1, 64)
    );
    assert!(
        report
            .exports
            .iter()
            .any(|export| export == "rlf:plugin/tool@0.1.0")
    );
}

#[test]
fn a_directory_that_is_not_there_is_a_problem_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let registry = load(&directory.path().join("nowhere"), "");
    assert!(registry.plugins().is_empty());
    let said = registry.problems()[0].to_string();
    assert!(
        said.contains("nowhere") && said.contains("--plugins DIR"),
        "{said}"
    );
    assert!(
        registry
            .explain_missing("search", PluginKind::Tool)
            .contains("nowhere")
    );
}
