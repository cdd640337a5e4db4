//! Checks a plugin's requests against its grants, before any of its code is compiled or run.

use std::collections::BTreeSet;

use rlf_sandbox::{CONTRACT, ComponentInfo};

use crate::grants::PluginGrants;
use crate::manifest::{GateName, PluginKind, PluginManifest};
use crate::problem::{LoadRefusal, ProblemKind};
use crate::script::Script;

/// A plugin that may be loaded, with the grants that hold for this component.
#[derive(Debug, PartialEq)]
pub(crate) struct Admitted {
    pub(crate) kind: PluginKind,
    pub(crate) grants: PluginGrants,
    /// The gates that it uses, all of them granted.
    pub(crate) gates: BTreeSet<GateName>,
    pub(crate) notices: Vec<String>,
}

/// Decides whether a component may be loaded under the name `alias`. `script` has the plugin's source files
/// if the component is the interpreter that runs them.
pub(crate) fn admit(
    alias: &str,
    manifest: &PluginManifest,
    grants: &PluginGrants,
    component: &ComponentInfo,
    script: Option<&Script>,
) -> Result<Admitted, LoadRefusal> {
    grants.check().map_err(|error| {
        LoadRefusal::new(
            ProblemKind::Grants,
            format!("[plugins.{alias}]: {error}"),
            error.mend(),
        )
    })?;
    let kind = match script {
        Some(script) => kind_of_script(alias, manifest, grants, script)?,
        None => kind(manifest, component)?,
    };
    let mut notices = Vec::new();
    let trusted = grants.trusts(&component.hash);
    let mut grants = grants.clone();
    if !trusted {
        // A changed component is not trusted until the operator renews the pin.
        grants.gates.clear();
        grants.http = None;
        grants.tools.clear();
        grants.execute.clear();
        grants.models.clear();
        grants.programs.tools.clear();
        grants.data.clear();
        grants.files = None;
        grants.unsandboxed_host_directory = None;
        notices.push(changed(alias, &grants, component));
    }
    let used = match script {
        // A source file imports no gate, so every gate that it asks for counts.
        Some(_) => manifest.gates.clone(),
        None => gates_of_component(manifest, component),
    };
    check_gates(alias, manifest, &grants, component, &used, trusted)?;
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
        gates: used,
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

/// The kind of a plugin that is a source file. Refuses requests and grants that a source file cannot use.
fn kind_of_script(
    alias: &str,
    manifest: &PluginManifest,
    grants: &PluginGrants,
    script: &Script,
) -> Result<PluginKind, LoadRefusal> {
    let Some(kind) = script.kind(manifest) else {
        return Err(LoadRefusal::new(
            ProblemKind::Manifest,
            format!(
                "a file in {} is a tool or a reward, and plugin.toml says something else",
                script.language
            ),
            "correct `kind`, or leave it out; an environment in Python is named in \
             `environment.servers` of an interpreter",
        ));
    };
    if grants.files.is_some() || grants.unsandboxed_host_directory.is_some() {
        return Err(LoadRefusal::new(
            ProblemKind::Grants,
            format!(
                "a plugin in {} has files of its own, in memory, for each call",
                script.language
            ),
            format!("leave `files` and `unsandboxed_host_directory` out of [plugins.{alias}]"),
        ));
    }
    Ok(kind)
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

/// The gates that a component uses: those that it imports, and those that need no import of their own.
fn gates_of_component(manifest: &PluginManifest, component: &ComponentInfo) -> BTreeSet<GateName> {
    let asked_alone = manifest.gates.iter().filter(|gate| gate.is_behind_wasi());
    component
        .imports
        .iter()
        .filter_map(|import| GateName::from_import(import))
        .chain(asked_alone.copied())
        .collect()
}

fn check_gates(
    alias: &str,
    manifest: &PluginManifest,
    grants: &PluginGrants,
    component: &ComponentInfo,
    used: &BTreeSet<GateName>,
    trusted: bool,
) -> Result<(), LoadRefusal> {
    let not_asked: Vec<GateName> = used.difference(&manifest.gates).copied().collect();
    let not_granted: Vec<GateName> = used.difference(&grants.gates).copied().collect();
    if !not_asked.is_empty() {
        return Err(LoadRefusal::new(
            ProblemKind::Manifest,
            format!(
                "the component uses {}, which its plugin.toml does not ask for",
                list(&not_asked)
            ),
            format!(
                "if that is meant, its author writes `gates = [{}]` in plugin.toml and you grant it",
                quoted(used)
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
                quoted(used)
            ),
        ));
    }
    if !grants.gates.is_empty() && grants.hash.is_none() {
        let gates = list(&grants.gates.iter().copied().collect::<Vec<_>>());
        return Err(LoadRefusal::new(
            ProblemKind::Grants,
            format!("[plugins.{alias}] grants {gates}, but does not pin the component"),
            format!(
                "bind the grant to this component: hash = \"{}\"",
                component.hash
            ),
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
mod tests;
