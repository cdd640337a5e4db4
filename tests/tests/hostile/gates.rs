//! A component is really loaded if and only if each gate that it uses is requested by its author, granted by the
//! operator to this very component, and available.

use crate::KINDS;
use std::collections::BTreeSet;
use std::fs;
use std::sync::LazyLock;

use proptest::prelude::*;
use rlf_plugins::manifest::GateName;
use rlf_plugins::registry::Registry;
use rlf_sandbox::{Sandbox, SandboxConfig};

use rlf_stub_plugins::{ANY_OBJECT, Beside, ECHO, StubTool, tools_beside};

/// A tool that imports all these gates, and calls none of them.
fn component(gates: &BTreeSet<GateName>) -> Vec<u8> {
    let import =
        |gate: &GateName| format!("(import \"rlf:plugin/{}@0.1.0\" (instance))", gate.as_str());
    let imports = gates.iter().map(import).collect::<Vec<_>>().join(" ");
    let beside = Beside {
        component: Box::leak(imports.into_boxed_str()),
        ..Beside::default()
    };
    let tool = StubTool {
        name: "echo",
        schema: ANY_OBJECT,
        hints: 0,
        body: ECHO,
    };
    tools_beside(&beside, &[tool])
}

fn hash(bytes: &[u8]) -> String {
    rlf_sandbox::ComponentInfo::read(bytes)
        .expect("a component")
        .hash
}

static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| {
    let config = SandboxConfig {
        instances: Some(8),
        ..SandboxConfig::default()
    };
    Sandbox::new(&config).expect("the machine can hold a small sandbox")
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_component_is_loaded_if_and_only_if_its_gates_are_asked_for_and_granted(
        imported in prop_oneof![Just(0), Just(2), Just(8), 0_usize..16], asked in 0_usize..64, granted in 0_usize..64, pinned: bool,
    ) {
        let pick = |bits: usize| -> BTreeSet<GateName> {
            GateName::ALL.into_iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, gate)| gate).collect()
        };
        let (imported, asked, granted) = (pick(imported), pick(asked), pick(granted));
        let list = |gates: &BTreeSet<GateName>| {
            gates.iter().map(|gate| format!("{:?}", gate.as_str())).collect::<Vec<_>>().join(", ")
        };
        let bytes = component(&imported);
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("p")).unwrap();
        fs::write(folder.path().join("p/p.wasm"), &bytes).unwrap();
        fs::write(folder.path().join("p/plugin.toml"), format!("gates = [{}]\n", list(&asked))).unwrap();
        // The pin names this component, or another that was in this folder before.
        let pin = if pinned { hash(&bytes) } else { "cd".repeat(32) };
        let mut grants = format!("[p]\nhash = \"{pin}\"\ngrants = [{}]\n", list(&granted));
        if granted.contains(&GateName::Http) {
            grants.push_str("http.hosts.\"api.test\" = {}\n");
        }
        if granted.contains(&GateName::Tools) {
            grants.push_str("tools = [\"echo\"]\n");
        }
        let grants_by_name = rlf_config::parse(&grants, "c.toml").unwrap();
        let registry = Registry::load(folder.path(), &grants_by_name, KINDS, &SANDBOX);

        // The gates that this version implements.
        let there = BTreeSet::from([GateName::Tools, GateName::Http, GateName::RealClock, GateName::RealRandom]);
        // Every component imports a clock: here the request counts.
        let real = BTreeSet::from([GateName::RealClock, GateName::RealRandom]);
        let needed: BTreeSet<GateName> = asked.intersection(&real).chain(&imported).copied().collect();
        let may = imported.is_subset(&asked)
            && imported.is_subset(&there)
            && (needed.is_empty() || (pinned && needed.is_subset(&granted)));
        prop_assert_eq!(registry.plugin("p").is_some(), may, "{:?}", registry.problems());
        if !may {
            let said = registry.problems()[0].to_string();
            // Everything that is missing is named in one message.
            let missing: Vec<&GateName> = imported.difference(&asked).collect();
            prop_assert!(missing.iter().all(|gate| said.contains(&format!("`{}`", gate.as_str()))), "{}", said);
        }
    }
}
