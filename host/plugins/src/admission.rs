//! Checks a plugin's requests against its grants, before any of its code is compiled or run.

use std::collections::BTreeSet;

use rlf_sandbox::{CONTRACT, ComponentInfo};

use crate::gates::AVAILABLE;
use crate::grants::PluginGrants;
use crate::manifest::{GateName, PluginKind, PluginManifest};
use crate::problem::{LoadRefusal, ProblemKind};

/// A plugin that may be loaded, with the grants that hold for this component.
#[derive(Debug, PartialEq)]
pub(crate) struct Admitted {
    pub(crate) kind: PluginKind,
    pub(crate) grants: PluginGrants,
    pub(crate) notices: Vec<String>,
}

/// Decides whether a component may be loaded under the name `alias`.
pub(crate) fn admit(
    alias: &str,
    manifest: &PluginManifest,
    grants: &PluginGrants,
    component: &ComponentInfo,
) -> Result<Admitted, LoadRefusal> {
    grants.check().map_err(|error| {
        LoadRefusal::new(
            ProblemKind::Grants,
            format!("[plugins.{alias}]: {error}"),
            error.mend(),
        )
    })?;
    let kind = kind(manifest, component)?;
    let mut notices = Vec::new();
    let trusted = grants.trusts(&component.hash);
    let mut grants = grants.clone();
    if !trusted {
        // A changed component is not trusted until the operator renews the pin.
        grants.gates.clear();
        grants.http = None;
        grants.tools.clear();
        grants.execute.clear();
        grants.data.clear();
        grants.files = None;
        grants.unsandboxed_host_directory = None;
        notices.push(changed(alias, &grants, component));
    }
    gates(alias, manifest, &grants, component, trusted)?;
    data(alias, manifest, &grants, component, trusted)?;
    for gate in grants.gates.difference(&manifest.gates) {
        notices.push(format!(
            "`{}` is granted, but the plugin does not ask for it",
            gate.as_str()
        ));
    }
    grants.gates.retain(|gate| manifest.gates.contains(gate));
    Ok(Admitted {
        kind,
        grants,
        notices,
    })
}

fn changed(alias: &str, grants: &PluginGrants, component: &ComponentInfo) -> String {
    format!(
        "the component changed (its hash is {}, [plugins.{alias}] pins {}), so its data, files and \
         grants are withdrawn",
        component.hash,
        grants.hash.as_deref().unwrap_or_default(),
    )
}

/// The kind of the component, by its exports. The manifest must not contradict them.
fn kind(manifest: &PluginManifest, component: &ComponentInfo) -> Result<PluginKind, LoadRefusal> {
    let exported: Vec<(PluginKind, &str)> = PluginKind::ALL
        .into_iter()
        .filter_map(|kind| Some((kind, component.exported_version(kind.interface())?)))
        .collect();
    let (kind, version) = match (manifest.kind, exported.as_slice()) {
        (_, []) => {
            let wanted: Vec<&str> = PluginKind::ALL.map(PluginKind::interface).to_vec();
            return Err(LoadRefusal::new(
                ProblemKind::Component,
                format!("the component exports none of {}", wanted.join(", ")),
                "build it with the SDK, for one of the worlds of rlf:plugin",
            ));
        }
        (None, [only]) => *only,
        (None, several) => {
            let kinds: Vec<&str> = several.iter().map(|(kind, _)| kind.as_str()).collect();
            return Err(LoadRefusal::new(
                ProblemKind::Component,
                format!(
                    "the component is several things at once: {}",
                    kinds.join(", ")
                ),
                "say which with `kind = \"…\"` in plugin.toml",
            ));
        }
        (Some(said), exported) => match exported.iter().find(|(kind, _)| *kind == said) {
            Some(found) => *found,
            None => {
                return Err(LoadRefusal::new(
                    ProblemKind::Manifest,
                    format!(
                        "plugin.toml says `kind = \"{}\"`, but the component exports {}",
                        said.as_str(),
                        exported
                            .iter()
                            .map(|(kind, _)| kind.interface())
                            .collect::<Vec<_>>()
                            .join(", ")
                    ),
                    "correct `kind`, or leave it out",
                ));
            }
        },
    };
    if version != CONTRACT {
        return Err(LoadRefusal::new(
            ProblemKind::Component,
            format!(
                "the component was built for version {version} of rlf:plugin, this host speaks {CONTRACT}"
            ),
            format!("build it against {CONTRACT}"),
        ));
    }
    Ok(kind)
}

fn gates(
    alias: &str,
    manifest: &PluginManifest,
    grants: &PluginGrants,
    component: &ComponentInfo,
    trusted: bool,
) -> Result<(), LoadRefusal> {
    // The gates that it would use: those that it imports, and those that need no import of their own.
    let asked_alone = manifest.gates.iter().filter(|gate| gate.is_behind_wasi());
    let imported: BTreeSet<GateName> = component
        .imports
        .iter()
        .filter_map(|import| GateName::from_import(import))
        .chain(asked_alone.copied())
        .collect();
    let not_asked: Vec<GateName> = imported.difference(&manifest.gates).copied().collect();
    let not_granted: Vec<GateName> = imported.difference(&grants.gates).copied().collect();
    if !not_asked.is_empty() {
        return Err(LoadRefusal::new(
            ProblemKind::Gates,
            format!(
                "the component uses {}, which its plugin.toml does not ask for",
                list(&not_asked)
            ),
            format!(
                "if that is meant, its author writes `gates = [{}]` in plugin.toml and you grant it",
                quoted(&imported)
            ),
        ));
    }
    if !not_granted.is_empty() {
        let mut what = format!("it asks for {}, which nobody granted", list(&not_granted));
        if !trusted {
            what = format!("{what}: {}", changed(alias, grants, component));
        }
        return Err(LoadRefusal::new(
            ProblemKind::Gates,
            what,
            format!(
                "if you trust it, write in the configuration: [plugins.{alias}] hash = \"{}\", \
                 grants = [{}]",
                component.hash,
                quoted(&imported)
            ),
        ));
    }
    if !grants.gates.is_empty() && grants.hash.is_none() {
        return Err(LoadRefusal::new(
            ProblemKind::Grants,
            format!("[plugins.{alias}] grants {}, but to whatever lies there", {
                list(&grants.gates.iter().copied().collect::<Vec<_>>())
            }),
            format!(
                "bind the grant to this component: hash = \"{}\"",
                component.hash
            ),
        ));
    }
    // Gates that were granted, but that this version cannot open.
    let imported: Vec<GateName> = imported
        .into_iter()
        .filter(|gate| !AVAILABLE.contains(gate))
        .collect();
    if !imported.is_empty() {
        return Err(LoadRefusal::new(
            ProblemKind::Gates,
            format!(
                "it uses {}, which is not available in this version of rlf-host",
                list(&imported)
            ),
            "use a newer version, or leave the plugin out with `enabled = false`",
        ));
    }
    Ok(())
}

fn data(
    alias: &str,
    manifest: &PluginManifest,
    grants: &PluginGrants,
    component: &ComponentInfo,
    trusted: bool,
) -> Result<(), LoadRefusal> {
    let unknown: Vec<&str> = grants
        .data
        .keys()
        .map(String::as_str)
        .filter(|slot| manifest.data.iter().all(|asked| asked != slot))
        .collect();
    if !unknown.is_empty() {
        let mend = if manifest.data.is_empty() {
            "it asks for no data; leave the binding out".to_owned()
        } else {
            format!("its slots are: {}", manifest.data.join(", "))
        };
        return Err(LoadRefusal::new(
            ProblemKind::Grants,
            format!(
                "[plugins.{alias}] binds data that the plugin has no slot for: {}",
                { backquoted(&unknown) }
            ),
            mend,
        ));
    }
    let unbound: Vec<&str> = manifest
        .data
        .iter()
        .map(String::as_str)
        .filter(|slot| !grants.data.contains_key(*slot))
        .collect();
    if unbound.is_empty() {
        return Ok(());
    }
    if !trusted {
        return Err(LoadRefusal::new(
            ProblemKind::Data,
            changed(alias, grants, component),
            format!(
                "if the change is meant, renew the pin: hash = \"{}\"",
                component.hash
            ),
        ));
    }
    let bindings: Vec<String> = unbound
        .iter()
        .map(|slot| format!("data.{slot} = \"path/to/{slot}\""))
        .collect();
    Err(LoadRefusal::new(
        ProblemKind::Data,
        format!("it needs data that is not bound: {}", backquoted(&unbound)),
        format!(
            "write in the configuration: [plugins.{alias}] {}",
            bindings.join(", ")
        ),
    ))
}

fn list(gates: &[GateName]) -> String {
    backquoted(&gates.iter().map(|gate| gate.as_str()).collect::<Vec<_>>())
}

fn backquoted(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn quoted(gates: &BTreeSet<GateName>) -> String {
    gates
        .iter()
        .map(|gate| format!("\"{}\"", gate.as_str()))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
                "[plugins.p] grants `model`, `http`, but to whatever lies there; bind the grant to \
                 this component: hash = \"{HASH}\""
            )
        );
        let granted = format!("hash = \"{HASH}\"\ngrants = [\"model\", \"http\"]");
        assert_eq!(
            refusal("gates = [\"http\", \"model\"]", &granted, &both),
            "it uses `model`, which is not available in this version of rlf-host; use a \
             newer version, or leave the plugin out with `enabled = false`"
        );
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
            "hash = \"{old}\"\ngrants = [\"model\"]\nfiles.bytes = 1\nunsandboxed_host_directory = \"x\""
        ));
        let admitted = admit("p", &manifest(""), &pinned, &tool(&[])).unwrap();
        assert!(admitted.grants.gates.is_empty());
        assert_eq!(admitted.grants.files, None);
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
        // The reason is "asked for", then "granted", then "available", never another.
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
                    prop_assert!(pick(used).iter().all(|gate| AVAILABLE.contains(gate)));
                }
                Err(LoadRefusal { kind, what, .. }) => {
                    prop_assert_eq!(kind, ProblemKind::Gates);
                    let expected = if used & !asked != 0 {
                        "does not ask for"
                    } else if used & !granted != 0 {
                        "nobody granted"
                    } else {
                        "not available in this version"
                    };
                    prop_assert!(what.contains(expected), "{}", what);
                }
            }
        }
    }
}
