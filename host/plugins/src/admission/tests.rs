//! Tests of admission.

use super::*;
use proptest::prelude::*;

/// The decision about a plugin with a component of its own.
fn admit(
    alias: &str,
    manifest: &PluginManifest,
    grants: &PluginGrants,
    component: &ComponentInfo,
) -> Result<Admitted, LoadRefusal> {
    super::admit(alias, manifest, grants, component, None)
}

fn component(imports: &[&str], exports: &[&str]) -> ComponentInfo {
    ComponentInfo {
        hash: "ab".repeat(32),
        size: 1,
        imports: imports.iter().map(|name| (*name).into()).collect(),
        exports: exports.iter().map(|name| (*name).into()).collect(),
    }
}

fn tool(imports: &[&str]) -> ComponentInfo {
    component(
        imports,
        &["rlf:plugin/lifecycle@0.1.0", "rlf:plugin/tool@0.1.0"],
    )
}

fn manifest(text: &str) -> PluginManifest {
    PluginManifest::parse(text, "p/plugin.toml").unwrap()
}

fn grants(text: &str) -> PluginGrants {
    rlf_config::parse(text, "c.toml").unwrap()
}

fn refusal(manifest_text: &str, grants_text: &str, component: &ComponentInfo) -> String {
    let refused = admit(
        "p",
        &manifest(manifest_text),
        &grants(grants_text),
        component,
    );
    let LoadRefusal { what, mend, .. } = refused.unwrap_err();
    format!("{what}; {mend}")
}

const HASH: &str = "abababababababababababababababababababababababababababababababab";

#[test]
fn the_kind_is_what_the_component_exports() {
    let admitted = admit("p", &manifest(""), &grants(""), &tool(&[])).unwrap();
    assert_eq!(
        (admitted.kind, admitted.notices.len()),
        (PluginKind::Tool, 0)
    );
    let both = component(&[], &["rlf:plugin/tool@0.1.0", "rlf:plugin/reward@0.1.0"]);
    assert_eq!(
        refusal("", "", &both),
        "the component is several things at once: tool, reward; say which with `kind = \"…\"` \
         in plugin.toml"
    );
    let said = admit("p", &manifest("kind = \"reward\""), &grants(""), &both).unwrap();
    assert_eq!(said.kind, PluginKind::Reward);
    assert_eq!(
        refusal("kind = \"reward\"", "", &tool(&[])),
        "plugin.toml says `kind = \"reward\"`, but the component exports rlf:plugin/tool; \
         correct `kind`, or leave it out"
    );
    assert_eq!(
        refusal("", "", &component(&[], &["run"])),
        "the component exports none of rlf:plugin/tool, rlf:plugin/reward, rlf:plugin/interpreter, rlf:plugin/environment; \
         build it with the SDK, for one of the worlds of rlf:plugin"
    );
}

#[test]
fn another_version_of_the_contract_is_refused_with_both_named() {
    assert_eq!(
        refusal("", "", &component(&[], &["rlf:plugin/tool@0.2.0"])),
        "the component was built for version 0.2.0 of rlf:plugin, this host speaks 0.1.0; \
         build it against 0.1.0"
    );
}

#[test]
fn every_missing_grant_is_named_at_once() {
    let both = tool(&[
        "rlf:plugin/model@0.1.0",
        "rlf:plugin/http@0.1.0",
        "rlf:plugin/data@0.1.0",
    ]);
    assert_eq!(
        refusal("", "", &both),
        "the component uses `model`, `http`, which its plugin.toml does not ask for; if that \
         is meant, its author writes `gates = [\"model\", \"http\"]` in plugin.toml and you \
         grant it"
    );
    assert_eq!(
        refusal("gates = [\"http\", \"model\"]", "", &both),
        format!(
            "it asks for `model`, `http`, which nobody granted; if you trust it, write in the \
             configuration: [plugins.p] hash = \"{HASH}\", grants = [\"model\", \"http\"]"
        )
    );
    assert_eq!(
        refusal(
            "gates = [\"http\", \"model\"]",
            "grants = [\"model\", \"http\"]",
            &both
        ),
        format!(
            "[plugins.p] grants `model`, `http`, but does not pin the component; bind the grant to \
             this component: hash = \"{HASH}\""
        )
    );
    let granted = format!("hash = \"{HASH}\"\ngrants = [\"model\", \"http\"]");
    let asks = manifest("gates = [\"http\", \"model\"]");
    assert!(admit("p", &asks, &grants(&granted), &both).is_ok());
}

#[test]
fn a_slot_that_is_not_bound_says_what_to_write() {
    assert_eq!(
        refusal("data = [\"corpus\", \"stop-words\"]", "", &tool(&[])),
        "it needs data that is not bound: `corpus`, `stop-words`; write in the configuration: \
         [plugins.p] data.corpus = \"path/to/corpus\", data.stop-words = \"path/to/stop-words\""
    );
    assert_eq!(
        refusal("data = [\"corpus\"]", "data.corpsu = \"x\"", &tool(&[])),
        "[plugins.p] binds data that the plugin has no slot for: `corpsu`; its slots are: corpus"
    );
    assert!(
        admit(
            "p",
            &manifest("data = [\"a\"]"),
            &grants("data.a = \"x\""),
            &tool(&[])
        )
        .is_ok()
    );
}

#[test]
fn a_changed_component_loses_what_it_was_given_until_the_pin_is_renewed() {
    let old = "cd".repeat(32);
    let said = refusal(
        "data = [\"corpus\"]",
        &format!("hash = \"{old}\"\ndata.corpus = \"x\""),
        &tool(&[]),
    );
    assert_eq!(
        said,
        format!(
            "the component changed (its hash is {HASH}, [plugins.p] pins {old}), so its data, \
             files and grants are withdrawn; if the change is meant, renew the pin: hash = \"{HASH}\""
        )
    );
    // A plugin that needs nothing still loads, with nothing granted.
    let pinned = grants(&format!(
        "hash = \"{old}\"\ngrants = [\"model\"]\nfiles.bytes = 1\nunsandboxed_host_directory = \"x\"\n\
         programs.tools = [\"search\"]"
    ));
    let admitted = admit("p", &manifest(""), &pinned, &tool(&[])).unwrap();
    assert!(admitted.grants.gates.is_empty());
    assert_eq!(admitted.grants.files, None);
    assert!(admitted.grants.programs.tools.is_empty());
    assert_eq!(admitted.grants.unsandboxed_host_directory, None);
    assert!(admitted.notices[0].starts_with("the component changed"));
}

#[test]
fn the_machines_clock_and_entropy_are_asked_for_without_an_import_and_need_both_words() {
    let (asks, plain) = ("gates = [\"real-clock\", \"real-random\"]", tool(&[]));
    assert_eq!(
        refusal(asks, "", &plain),
        format!(
            "it asks for `real-clock`, `real-random`, which nobody granted; if you trust it, write in the \
             configuration: [plugins.p] hash = \"{HASH}\", grants = [\"real-clock\", \"real-random\"]"
        )
    );
    let granted = grants(&format!(
        "hash = \"{HASH}\"\ngrants = [\"real-clock\", \"real-random\"]"
    ));
    let admitted = admit("p", &manifest(asks), &granted, &plain).unwrap();
    assert_eq!(
        admitted.grants.gates,
        BTreeSet::from([GateName::RealClock, GateName::RealRandom])
    );
    // A plugin that does not ask gets neither.
    let admitted = admit("p", &manifest("gates = [\"real-clock\"]"), &granted, &plain).unwrap();
    assert_eq!(admitted.grants.gates, BTreeSet::from([GateName::RealClock]));
    assert_eq!(
        admitted.notices,
        ["`real-random` is granted, but the plugin does not ask for it"]
    );
    let unpinned = refusal(asks, "grants = [\"real-clock\", \"real-random\"]", &plain);
    assert!(
        unpinned.contains("bind the grant to this component"),
        "{unpinned}"
    );
    let changed = format!("hash = \"{}\"\ngrants = [\"real-clock\"]", "cd".repeat(32));
    let changed = refusal("gates = [\"real-clock\"]", &changed, &plain);
    assert!(changed.contains("the component changed"), "{changed}");
}

proptest! {
    // The reason is "asked for", then "granted", never another.
    #[test]
    fn a_component_loads_only_if_it_uses_no_gate_that_is_not_asked_for_and_granted(
        imported in 0_usize..16, asked in 0_usize..64, granted in 0_usize..64,
    ) {
        // For the last two gates, asking is using.
        let used = imported | asked & 0b11_0000;
        let pick = |bits: usize| -> BTreeSet<GateName> {
            GateName::ALL.into_iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, g)| g).collect()
        };
        let imports: Vec<String> =
            pick(imported).iter().map(|gate| format!("rlf:plugin/{}@0.1.0", gate.as_str())).collect();
        let component = tool(&imports.iter().map(String::as_str).collect::<Vec<_>>());
        let manifest = PluginManifest { gates: pick(asked), ..PluginManifest::default() };
        let grants = PluginGrants {
            gates: pick(granted),
            hash: Some(HASH.into()),
            ..PluginGrants::default()
        };
        match admit("p", &manifest, &grants, &component) {
            Ok(_) => {
                prop_assert_eq!(used & !asked, 0);
                prop_assert_eq!(used & !granted, 0);
            }
            Err(LoadRefusal { kind, what, .. }) => {
                // Only the second is the operator's to mend.
                let (expected, expected_kind) = if used & !asked != 0 {
                    ("does not ask for", ProblemKind::Manifest)
                } else {
                    ("nobody granted", ProblemKind::Gates)
                };
                prop_assert_eq!(kind, expected_kind);
                prop_assert!(what.contains(expected), "{}", what);
            }
        }
    }
}
