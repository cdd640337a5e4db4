//! `cargo xtask conformance`: what the interpreters that are built do, held against what they must do.

use std::{env, path::PathBuf};

use anyhow::{Context, Result, bail};

use crate::{
    host,
    machine::{self, Need},
    plugins,
    project::Project,
    steps::{Steps, say},
};

/// The environment variable that names the folder of data sets.
const DATA: &str = "RLF_DATA";
/// Problems with solutions and tests, in the folder of data sets.
const SOLUTIONS: &str = "mbpp/mbpp.jsonl";
/// Rows with functions, in the folder of data sets.
const FUNCTIONS: &str = "ftrl-sample/sample.jsonl";

/// Builds what is stale, and tries the programs of every interpreter in every build of it that there is; and the rows of
/// `data`, or of the folder that the environment variable RLF_DATA names, if it has them.
pub fn run(project: &Project, data: Option<PathBuf>) -> Result<()> {
    let data = data.or_else(|| env::var_os(DATA).map(PathBuf::from));
    let mut steps = Steps::new();
    steps.take("make ready", || {
        machine::make_ready(project, &[Need::Wasm, Need::Native])
    })?;
    host::build(project, &mut steps)?;
    steps.take("build the plugins", || plugins::build(project))?;
    let mut all_good = true;
    for language in ["python", "javascript"] {
        let programs = project
            .root()
            .join("plugins")
            .join(language)
            .join("conformance");
        if !programs.is_dir() {
            continue;
        }
        let builds = builds(project, language)?;
        if builds.is_empty() {
            say(&format!(
                "  {language}: not built on this machine, so not tried"
            ));
            continue;
        }
        let mut command = project.command(project.bench_binary());
        command.arg("conformance").arg("--programs").arg(programs);
        for build in builds {
            command.arg("--build").arg(build);
        }
        all_good &= command
            .status()
            .context("rlf-bench cannot be started")?
            .success();
    }
    let Some(data) = data else {
        say(&format!(
            "  rows with functions, solutions of problems: not tried; name the folder of data sets with --data DIR or {DATA}: \
             it holds {FUNCTIONS} and {SOLUTIONS}"
        ));
        return ended(all_good);
    };
    let functions = data.join(FUNCTIONS);
    if functions.is_file() {
        let mut command = project.command(project.bench_binary());
        command.arg("conformance").arg("--functions").arg(functions);
        all_good &= command
            .status()
            .context("rlf-bench cannot be started")?
            .success();
    } else {
        say(&format!(
            "  rows with functions: not tried, {} is not there",
            functions.display()
        ));
    }
    let solutions = data.join(SOLUTIONS);
    if solutions.is_file() {
        // A test, which prints its line of the table.
        let mut command = host::cargo(project, "test");
        command.args(["--test", "code_tests", "--", "mbpp", "--nocapture"]);
        all_good &= command
            .status()
            .context("cargo cannot be started")?
            .success();
    } else {
        say(&format!(
            "  solutions of problems: not tried, {} is not there",
            solutions.display()
        ));
    }
    ended(all_good)
}

fn ended(all_good: bool) -> Result<()> {
    if !all_good {
        bail!("something did otherwise than it must; what and how stands above");
    }
    Ok(())
}

/// Every build of a language that lies there; the plugin itself where none is kept apart.
pub fn builds(project: &Project, language: &str) -> Result<Vec<PathBuf>> {
    let folder = project.root().join("target/interpreters");
    let mut builds = Vec::new();
    if folder.is_dir() {
        for entry in folder
            .read_dir()
            .context("target/interpreters cannot be read")?
        {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let is_of_language = name.starts_with(&format!("{language}-"));
            if is_of_language && path.join(format!("{language}.wasm")).is_file() {
                builds.push(path);
            }
        }
    }
    builds.sort();
    let plugin = project.root().join("target/plugins").join(language);
    if builds.is_empty() && plugin.is_dir() {
        builds.push(plugin);
    }
    Ok(builds)
}
