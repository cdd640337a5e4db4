//! `rlf-host plugin grant`: writes an operator's pin and gates into a configuration.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use console::style;
use rlf_plugins::registry::PluginOnDisk;
use serde_json::json;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

/// Pins `plugin` to its present component in the configuration at `file`, and opens `gates` to it. The rest of the
/// file, comments included, is unchanged. A file that does not exist is made.
pub(super) fn run(
    file: &Path,
    plugin: &str,
    found: &PluginOnDisk,
    gates: &[String],
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let asked: Vec<&str> = (found.manifest.gates.iter())
        .map(|gate| gate.as_str())
        .collect();
    refuse_unasked(plugin, &asked, gates)?;
    let text = if file.exists() {
        rlf_config::read(file)?
    } else {
        String::new()
    };
    let mut document: DocumentMut = text
        .parse()
        .with_context(|| format!("{} is not TOML", file.display()))?;
    let entry = entry(&mut document, file, plugin)?;
    let granted = grant(entry, &found.component.hash, gates);
    rlf_files::write(file, document.to_string().as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))?;

    let not_granted: Vec<&str> = asked
        .into_iter()
        .filter(|gate| granted.gates.iter().all(|open| open != gate))
        .collect();
    if as_json {
        let report = json!({
            "plugin": plugin,
            "file": file,
            "component": found.files.code(),
            "hash": found.component.hash,
            "hash_before": granted.hash_before,
            "granted": granted.gates,
            "closed": granted.closed,
            "still_to_be_written": granted.to_write,
            "asked_not_granted": not_granted,
            "data": found.manifest.data,
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print(file, plugin, found, &granted, &not_granted);
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if the plugin does not ask for one of the gates.
fn refuse_unasked(plugin: &str, asked: &[&str], gates: &[String]) -> anyhow::Result<()> {
    let Some(other) = gates.iter().find(|gate| !asked.contains(&gate.as_str())) else {
        return Ok(());
    };
    let asked = if asked.is_empty() {
        "none".to_owned()
    } else {
        asked.join(", ")
    };
    bail!("`{plugin}` does not ask for the gate `{other}`; it asks for: {asked}");
}

/// The table `[plugins.<plugin>]`, which is added if it is missing.
fn entry<'a>(
    document: &'a mut DocumentMut,
    file: &Path,
    plugin: &str,
) -> anyhow::Result<&'a mut dyn TableLike> {
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let plugins = document
        .entry("plugins")
        .or_insert(Item::Table(implicit))
        .as_table_mut()
        .with_context(|| format!("{}: `plugins` is not a table", file.display()))?;
    plugins
        .entry(plugin)
        .or_insert(Item::Table(Table::new()))
        .as_table_like_mut()
        .with_context(|| format!("{}: `plugins.{plugin}` is not a table", file.display()))
}

/// The change of an entry.
struct Granted {
    hash_before: Option<String>,
    /// All gates that are open now.
    gates: Vec<String>,
    /// Gates that were open to the previous component, and are not open now.
    closed: Vec<String>,
    /// Keys that the operator must add before the open gates are of use, each with an example.
    to_write: Vec<&'static str>,
}

/// Writes the hash of the component and its gates into the entry.
fn grant(entry: &mut dyn TableLike, hash: &str, gates: &[String]) -> Granted {
    let hash_before = entry.get("hash").and_then(Item::as_str).map(str::to_owned);
    entry.insert("hash", value(hash));
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
    let mut open = gates.to_vec();
    if hash_before.as_deref() == Some(hash) {
        open.splice(..0, open_before.iter().cloned());
    }
    let mut seen = BTreeSet::new();
    open.retain(|gate| seen.insert(gate.clone()));
    if open.is_empty() {
        entry.remove("grants");
    } else if open != open_before {
        entry.insert("grants", value(open.iter().collect::<Array>()));
    }
    Granted {
        hash_before,
        closed: (open_before.into_iter())
            .filter(|gate| !open.contains(gate))
            .collect(),
        to_write: EXAMPLES
            .into_iter()
            .filter(|(gate, key, _)| {
                open.iter().any(|open| open == gate) && entry.get(key).is_none()
            })
            .map(|(_, _, example)| example)
            .collect(),
        gates: open,
    }
}

/// The gates that need a key besides being open: the gate, the key, and an example.
const EXAMPLES: [(&str, &str, &str); 4] = [
    (
        "tools",
        "tools",
        "`tools = [\"calculate\"]`: the tools that it may call",
    ),
    (
        "execute",
        "execute",
        "`execute = [\"python\"]`: the interpreters that it may run programs in",
    ),
    (
        "model",
        "models",
        "`models = [\"judge\"]`: the models that it may ask, each with a table such as [models.judge]",
    ),
    (
        "http",
        "http",
        "`http.hosts.\"api.example.com\" = {}`: the hosts that it may reach",
    ),
];

/// Prints the change for people. `not_granted` are the gates that it asks for and that are not open.
fn print(file: &Path, plugin: &str, found: &PluginOnDisk, granted: &Granted, not_granted: &[&str]) {
    let hash = &found.component.hash;
    say!(
        "{} [plugins.{plugin}] in {} is about {}",
        style("granted").green().bold(),
        file.display(),
        found.files.code().display()
    );
    match &granted.hash_before {
        Some(before) if before == hash => say!("hash    {before}, as before"),
        Some(before) => say!("hash    was {before}\n        is  {hash}"),
        None => say!("hash    {hash}"),
    }
    if !granted.gates.is_empty() {
        say!("gates   {}", granted.gates.join(", "));
    }
    if !granted.closed.is_empty() {
        say!(
            "closed, because they were open to another component: {}",
            granted.closed.join(", ")
        );
    }
    for what in &granted.to_write {
        say!("still to be written in [plugins.{plugin}]: {what}");
    }
    if !not_granted.is_empty() {
        say!(
            "not opened here, though it asks for: {}",
            not_granted.join(", ")
        );
    }
    if !found.manifest.data.is_empty() {
        let slots = found.manifest.data.join(", ");
        say!("data slots it wants filled: {slots}");
    }
}
