//! `rlf-bench conformance`: runs programs with known behaviour in the built interpreters.

mod functions;
mod programs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use rlf_interpreters::interpreter::{Interpreter, Interpreters};
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::registry::Registry;
use rlf_run::plugins::KINDS;
use rlf_sandbox::Sandbox;

use crate::arguments::Conformance;

/// Number of cases that passed, and a line for each that failed.
#[derive(Default)]
struct Tally {
    right: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn count(&mut self, name: &str, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.right += 1,
            Err(why) => self.wrong.push(format!("{name}: {why}")),
        }
    }

    /// Prints a row of the table with the failures below it, and returns whether all passed.
    fn print(&self, what: &str) -> bool {
        let all = self.right + self.wrong.len();
        println!("{what:<64}{:>5} of {all}", self.right);
        for wrong in &self.wrong {
            println!("  {}", wrong.replace('\n', "\n  "));
        }
        self.wrong.is_empty() && all > 0
    }
}

pub(crate) fn run(options: &Conformance) -> anyhow::Result<ExitCode> {
    if options.programs.is_empty() && options.functions.is_empty() {
        bail!("name a folder with --programs, or rows with functions with --functions");
    }
    let sandbox = crate::user_sandbox()?;
    let runtime = rlf_run::runtime()?;
    let mut good = true;
    for folder in &options.programs {
        let language = match &options.lang {
            Some(language) => language.clone(),
            None => folder
                .canonicalize()
                .ok()
                .and_then(|path| Some(path.parent()?.file_name()?.to_str()?.to_owned()))
                .with_context(|| {
                    format!(
                        "{}: say with --lang whose programs they are",
                        folder.display()
                    )
                })?,
        };
        for interpreter in interpreters(options, &language, &sandbox)? {
            let version = &interpreter.language().version;
            let version = version.split_whitespace().next().unwrap_or_default();
            for (kind, tally) in runtime.block_on(programs::run(&interpreter, folder))? {
                good &= tally.print(&format!(
                    "{language} {version}: {kind} that did as recorded"
                ));
            }
        }
    }
    for file in &options.functions {
        good &= functions::run(&options.plugins.plugins, file, &sandbox, &runtime)?;
    }
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The interpreters of a language to test: the named builds, or the plugin with the name of the language.
fn interpreters(
    options: &Conformance,
    language: &str,
    sandbox: &Sandbox,
) -> anyhow::Result<Vec<Interpreter>> {
    if options.builds.is_empty() {
        return Ok(vec![interpreter(
            &options.plugins.plugins,
            language,
            None,
            sandbox,
        )?]);
    }
    let empty = tempfile::tempdir().context("cannot make a temporary folder")?;
    let builds = options.builds.iter();
    builds
        .map(|build| interpreter(empty.path(), language, Some(build), sandbox))
        .collect()
}

fn interpreter(
    directory: &Path,
    language: &str,
    build: Option<&PathBuf>,
    sandbox: &Sandbox,
) -> anyhow::Result<Interpreter> {
    let grants = PluginGrants {
        path: build.cloned(),
        ..PluginGrants::default()
    };
    let grants_by_name = BTreeMap::from([(language.to_owned(), grants)]);
    let registry = Registry::load_where(directory, &grants_by_name, KINDS, sandbox, |name| {
        name == language
    });
    if let Some(problem) = registry.problems().first() {
        bail!("{problem}");
    }
    let interpreters = Interpreters::new(&registry);
    let found = interpreters.get(language).cloned();
    found.with_context(|| {
        let place = build.map_or(directory, PathBuf::as_path);
        format!("{} runs no {language}", place.display())
    })
}
