//! `rlf-host plugin grant`: writes an operator's pin and gates into a configuration.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use console::style;
use rlf_plugins::registry::PluginIdentity;
use serde_json::json;
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// Pins `plugin` to its present component in the configuration at `file`, and opens `gates` to it. The rest of the
/// file, comments included, is unchanged.
pub(super) fn run(
    file: &Path,
    plugin: &str,
    identity: &PluginIdentity,
    gates: &[String],
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let PluginIdentity {
        path,
        component,
        manifest,
    } = identity;
    let asked: Vec<&str> = manifest.gates.iter().map(|gate| gate.as_str()).collect();
    if let Some(other) = gates.iter().find(|gate| !asked.contains(&gate.as_str())) {
        let asked = if asked.is_empty() {
            "none".to_owned()
        } else {
            asked.join(", ")
        };
        bail!("`{plugin}` does not ask for the gate `{other}`; it asks for: {asked}");
    }
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut document: DocumentMut = text
        .parse()
        .with_context(|| format!("{} is not TOML", file.display()))?;
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let plugins = document
        .entry("plugins")
        .or_insert(Item::Table(implicit))
        .as_table_mut()
        .with_context(|| format!("{}: `plugins` is not a table", file.display()))?;
    let entry = plugins
        .entry(plugin)
        .or_insert(Item::Table(Table::new()))
        .as_table_like_mut()
        .with_context(|| format!("{}: `plugins.{plugin}` is not a table", file.display()))?;
    let before = entry.get("hash").and_then(Item::as_str).map(str::to_owned);
    entry.insert("hash", value(&component.hash));
    let open_before: Vec<String> = entry
        .get("grants")
        .and_then(Item::as_array)
        .map(|open| {
            open.iter()
                .filter_map(|gate| gate.as_str().map(str::to_owned))
                .collect()
        })
        .unwrap_or_default();
    // Gates opened to the previous component stay closed to this one unless they are named again.
    let same = before
        .as_ref()
        .is_some_and(|before| *before == component.hash);
    let mut open: Vec<String> = gates.to_vec();
    if same {
        open.splice(..0, open_before.iter().cloned());
    }
    let mut seen = BTreeSet::new();
    open.retain(|gate| seen.insert(gate.clone()));
    let gates = open;
    let closed: Vec<&String> = open_before
        .iter()
        .filter(|gate| !gates.contains(gate))
        .collect();
    if gates.is_empty() {
        entry.remove("grants");
    } else if gates != open_before {
        entry.insert("grants", value(gates.iter().collect::<Array>()));
    }
    let unsaid: Vec<&str> = [
        (
            "tools",
            "`tools = [\"calculate\"]`: the tools that it may call",
        ),
        (
            "execute",
            "`execute = [\"python\"]`: the interpreters that it may run programs in",
        ),
        (
            "http",
            "`http.hosts.\"api.example.com\" = {}`: the hosts that it may reach",
        ),
    ]
    .into_iter()
    .filter(|(gate, _)| gates.iter().any(|open| open == gate) && entry.get(gate).is_none())
    .map(|(_, what)| what)
    .collect();
    rlf_files::write(file, document.to_string().as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))?;

    let shut: Vec<&str> = asked
        .into_iter()
        .filter(|gate| gates.iter().all(|open| open != gate))
        .collect();
    if as_json {
        let report = json!({
            "plugin": plugin,
            "file": file,
            "component": path,
            "hash": component.hash,
            "hash_before": before,
            "granted": gates,
            "closed": closed,
            "still_to_be_written": unsaid,
            "asked_not_granted": shut,
            "data": manifest.data,
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{} [plugins.{plugin}] in {} is about {}",
        style("granted").green().bold(),
        file.display(),
        path.display()
    );
    match before {
        Some(before) if before == component.hash => say!("hash    {before}, as before"),
        Some(before) => say!("hash    was {before}\n        is  {}", component.hash),
        None => say!("hash    {}", component.hash),
    }
    if !gates.is_empty() {
        say!("gates   {}", gates.join(", "));
    }
    if !closed.is_empty() {
        let closed: Vec<&str> = closed.into_iter().map(String::as_str).collect();
        say!(
            "closed, because they were open to another component: {}",
            closed.join(", ")
        );
    }
    for what in unsaid {
        say!("still to be written in [plugins.{plugin}]: {what}");
    }
    if !shut.is_empty() {
        say!("not opened here, though it asks for: {}", shut.join(", "));
    }
    if !manifest.data.is_empty() {
        say!("data slots it wants filled: {}", manifest.data.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}
