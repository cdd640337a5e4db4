//! `cargo xtask conformance`: compares what the built interpreters do with what they must do.

use std::{env, path::PathBuf};

use anyhow::{Context, Result, bail};

use crate::{
    host,
    machine::{self, Need},
    plugins,
    project::Project,
    python,
    steps::{Steps, say},
};

/// The environment variable that names the folder of data sets.
const DATA: &str = "RLF_DATA";
/// Problems with solutions and tests, in the folder of data sets.
const SOLUTIONS: &str = "mbpp/mbpp.jsonl";
/// Rows with functions, in the folder of data sets.
const FUNCTIONS: &str = "ftrl-sample/sample.jsonl";

/// Builds stale plugins and runs the programs of every interpreter in every build of it that is present. Then runs
/// the rows of `data`, or of the folder in the environment variable RLF_DATA, if it has them.
pub fn run(project: &Project, data: Option<PathBuf>) -> Result<()> {
    let data = data.or_else(|| env::var_os(DATA).map(PathBuf::from));
    let mut steps = Steps::new();
    steps.take("make ready", || {
        machine::make_ready(project, &[Need::Wasm, Need::Native])
    })?;
    host::build(project, &mut steps)?;
    steps.take("build the plugins", || plugins::build(project))?;
    let mut all_good = true;
    let science = project.root().join(python::SCIENCE_COMPONENT);
    let science = science.parent().filter(|_| science.is_file());
    for (plugin, language, builds) in [
        ("python", "python", builds(project, "python")?),
        (
            python::SCIENCE,
            "python",
            science.into_iter().map(PathBuf::from).collect(),
        ),
        ("javascript", "javascript", builds(project, "javascript")?),
    ] {
        let programs = project
            .root()
            .join("plugins")
            .join(plugin)
            .join("conformance");
        if !programs.is_dir() {
            continue;
        }
        if builds.is_empty() {
            say(&format!(
                "  {plugin}: skipped, because it is not built on this machine"
            ));
            continue;
        }
        let mut command = project.command(project.bench_binary());
        command.arg("conformance").args(["--lang", language]);
        command.arg("--programs").arg(programs);
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
            "  rows with functions, solutions of problems: skipped; name the folder with {FUNCTIONS} and {SOLUTIONS} with \
             --data DIR or {DATA}"
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
            "  rows with functions: skipped, because {} does not exist",
            functions.display()
        ));
    }
    let solutions = data.join(SOLUTIONS);
    if solutions.is_file() {
        // A test that prints its line of the table.
        let mut command = host::cargo(project, "test");
        command.args(["--test", "code_tests", "--", "mbpp", "--nocapture"]);
        command.env("RLF_WHOLE_DATA", "1");
        all_good &= command
            .status()
            .context("cargo cannot be started")?
            .success();
    } else {
        say(&format!(
            "  solutions of problems: skipped, because {} does not exist",
            solutions.display()
        ));
    }
    ended(all_good)
}

fn ended(all_good: bool) -> Result<()> {
    if !all_good {
        bail!("some results differ from the expected ones; the differences are above");
    }
    Ok(())
}

/// Every build of a language in its folder; the plugin itself if no build is kept separately.
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
