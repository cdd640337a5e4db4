//! Reading environments in Python: the tools of each server are called in the sandbox, to see what they do.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use rlf_forge::tasks::Suite;
use rlf_forge::tasks::sandboxed::{Effort, observe};
use rlf_plugins::python_environment::SCENARIOS_FILE;

use super::Read;
use crate::arguments::{GroupOptions, PluginBindings};
use crate::commands::env::find;
use crate::display::{printable, progress_bar};
use crate::operator::Operator;
use crate::warning::warn;

/// Observes the servers at a path: a folder of Python files, or one file. A server that cannot be observed is left out
/// with a warning.
pub(super) fn read(forge: &GroupOptions, path: &Path) -> anyhow::Result<Read> {
    let operator = Operator::load(forge.config.as_deref())?;
    let plugins = &forge.plugins.plugins;
    let found = find(plugins, &operator, path, &PluginBindings::NONE)?;
    let runtime = crate::commands::runtime()?;
    let folder = if path.is_dir() {
        path
    } else {
        path.parent().unwrap_or(Path::new("."))
    };
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
        let seen = runtime.block_on(observe(
            &found.environments,
            &found.name,
            server,
            &source,
            Effort::default(),
        ));
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
    let scenarios = folder.join(SCENARIOS_FILE);
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
