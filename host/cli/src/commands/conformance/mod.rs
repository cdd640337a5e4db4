//! `rlf-host conformance`: programs whose behaviour is known, in the interpreters that are built.

mod functions;
mod programs;

use std::process::ExitCode;

use anyhow::{Context, bail};
use rlf_plugins::interpreter::Interpreters;
use rlf_plugins::registry::Registry;
use rlf_sandbox::{Sandbox, SandboxConfig};

use crate::arguments::Conformance;

/// How many of what did as expected, and what to say of those that did not.
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

    /// A line of the table, and the failures below it.
    fn told(&self, what: &str) -> bool {
        let all = self.right + self.wrong.len();
        say!("{what:<64}{:>5} of {all}", self.right);
        for wrong in &self.wrong {
            say!("  {}", wrong.replace('\n', "\n  "));
        }
        self.wrong.is_empty() && all > 0
    }
}

pub(crate) fn run(options: &Conformance) -> anyhow::Result<ExitCode> {
    let sandbox = crate::assemble::sandbox(&SandboxConfig::default())?;
    let runtime = crate::commands::runtime()?;
    let mut good = true;
    for folder in &options.programs {
        let language = options.lang.clone();
        let language = match language {
            Some(language) => language,
            None => folder
                .parent()
                .and_then(|plugin| Some(plugin.file_name()?.to_str()?.to_owned()))
                .with_context(|| {
                    format!(
                        "{}: say with --lang whose programs they are",
                        folder.display()
                    )
                })?,
        };
        let interpreters = interpreters(options, &language, &sandbox)?;
        let interpreter = interpreters.get(&language).with_context(|| {
            format!(
                "no plugin of {} runs {language}",
                options.plugins.plugins.display()
            )
        })?;
        let version = &interpreter.language().version;
        let version = version.split_whitespace().next().unwrap_or_default();
        for (kind, tally) in runtime.block_on(programs::run(interpreter, folder))? {
            good &= tally.told(&format!(
                "{language} {version}: {kind} that did as recorded"
            ));
        }
    }
    for file in &options.functions {
        good &= functions::run(&options.plugins.plugins, file, &sandbox, &runtime)?;
    }
    if options.programs.is_empty() && options.functions.is_empty() {
        bail!("name a folder with --programs, or rows with functions with --functions");
    }
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The interpreter of a language alone, which is mostly called like it.
fn interpreters(
    options: &Conformance,
    language: &str,
    sandbox: &Sandbox,
) -> anyhow::Result<Interpreters> {
    let registry = Registry::load_where(
        &options.plugins.plugins,
        &std::collections::BTreeMap::new(),
        sandbox,
        |name| name == language,
    );
    if let Some(problem) = registry.problems().first() {
        bail!("{problem}");
    }
    Ok(Interpreters::new(&registry))
}
