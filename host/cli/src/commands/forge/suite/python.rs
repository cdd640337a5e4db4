//! Reading environments in Python: the tools of each server are called in the sandbox, to see what they do.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use rlf_forge::tasks::sandboxed::{Effort, Observed, observe};
use rlf_forge::tasks::{Folder, Suite};
use rlf_plugins::python_environment::SCENARIOS_FILE;

use super::{Read, observed};
use crate::arguments::{GroupOptions, PluginBindings};
use crate::commands::env::find;
use crate::display::{printable, progress_bar};
use crate::operator::Operator;
use crate::warning::warn;

/// Observes the servers at a path: a folder of Python files, or one file. What the folder of tasks knows of the same
/// files is not observed again. A server that cannot be observed is left out with a warning.
pub(super) fn read(
    forge: &GroupOptions,
    path: &Path,
    before: Option<&Folder>,
) -> anyhow::Result<Read> {
    let operator = Operator::load(forge.config.as_deref())?;
    let plugins = &forge.plugins.plugins;
    let found = find(plugins, &operator, path, &PluginBindings::NONE)?;
    let runtime = crate::commands::runtime()?;
    let folder = if path.is_dir() {
        path
    } else {
        path.parent().unwrap_or(Path::new("."))
    };
    let scenarios = folder.join(SCENARIOS_FILE);
    let known = before.map_or_else(Vec::new, |before| known(before, &scenarios));
    let servers = found.servers.as_deref().unwrap_or_default();
    let bar = progress_bar(servers.len());
    let mut files = BTreeMap::new();
    let mut observed = Vec::new();
    for server in servers {
        bar.set_message(server.clone());
        let file = if path.is_dir() {
            path.join(format!("{server}.py"))
        } else {
            path.to_owned()
        };
        let source =
            std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let is_it = |one: &&Observed| one.described.name == *server && one.is_of(&source);
        let seen = match known.iter().find(is_it) {
            Some(seen) => Ok(seen.clone()),
            None => runtime.block_on(observe(
                &found.environments,
                &found.name,
                server,
                &source,
                Effort::default(),
            )),
        };
        match seen {
            Ok(seen) => {
                files.insert(server.clone(), file);
                observed.push(seen);
            }
            Err(error) => bar.suspend(|| {
                warn(&format!(
                    "{server} is left out: {}",
                    printable(&error.to_string())
                ));
            }),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    for one in observed.iter().flat_map(|server| &server.left_out) {
        warn(&format!(
            "{} is left out: {}",
            printable(&one.tool),
            one.why
        ));
    }
    if scenarios.is_file() {
        files.insert("scenarios".to_owned(), scenarios);
    }
    let suite = Suite::from_observed(observed.clone(), found.environments, found.name, runtime)?;
    Ok(Read {
        suite,
        files,
        observed,
    })
}

/// The records that a folder of tasks has of servers, if they begin in the same scenarios.
fn known(folder: &Folder, scenarios: &Path) -> Vec<Observed> {
    let copy = folder.environments().join(SCENARIOS_FILE);
    if std::fs::read(copy).ok() == std::fs::read(scenarios).ok() {
        observed(folder).unwrap_or_default()
    } else {
        Vec::new()
    }
}
