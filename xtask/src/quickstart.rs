//! `cargo xtask quickstart`: from a fresh checkout to a policy that learned to use tools.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};

use crate::{
    guests, host,
    machine::{self, Need},
    plugins,
    project::Project,
    steps::{self, Steps, say},
};

const CONFIG: &str = "configs/quickstart.toml";

/// How `rlf-host train` ends that was asked by Ctrl-C to save and stop.
const STOPPED: i32 = 75;

/// Builds, trains, and says what to type next. `extra` goes to `rlf-host train`.
pub fn run(project: &Project, extra: &[String]) -> Result<()> {
    say(&format!(
        "This will\n\
         \x20 1. make ready   the target {} for plugins, by rustup where it is missing; nothing else is installed\n\
         \x20 2. build        the host in release (about 10 minutes on 2 cores the first time) and the plugins\n\
         \x20 3. train        {CONFIG}: SFT, then GRPO, on the CPU (at most 5 minutes)\n\
         What is done already is not done again.",
        guests::TARGET
    ));
    let mut steps = Steps::new();
    let outcome = take(project, &mut steps, extra);
    say(&format!("\n{}", steps.summary()));
    let run = outcome?;
    let binary = project.binary();
    let (binary, run) = (project.shown(&binary), project.shown(&run));
    println!(
        "\nWhat next:\n\
         \x20 {binary} report {run}     one page with curves, settings and trajectories\n\
         \x20 {binary} rollout {run}    a task played turn by turn\n\
         \x20 {binary} eval {run}       success by kind of task, greedy and sampled\n\
         \x20 {binary} plugin call calculator calculate '{{\"expression\": \"(2+3)*4\"}}'\n\
         \x20 {binary} train {CONFIG} --plugins target/plugins --overwrite    the same again\n\
         \x20 cargo xtask test"
    );
    Ok(())
}

fn take(project: &Project, steps: &mut Steps, extra: &[String]) -> Result<PathBuf> {
    let run = run_folder(project, extra)?;
    steps.take("make ready", || {
        machine::make_ready(project, &[Need::Wasm, Need::Native])
    })?;
    host::build(project, steps)?;
    steps.take("build the plugins", || plugins::build(project))?;
    let mut train = project.command(project.binary());
    train.args(["train", CONFIG, "--plugins", "target/plugins"]);
    // A run that is there already is gone on with: from its checkpoint, or not at all where it has ended.
    let decided = ["--resume", "--overwrite"]
        .iter()
        .any(|flag| extra.iter().any(|e| e == flag));
    if project.root().join(&run).is_dir() && !decided {
        train.arg("--resume");
    }
    train.args(extra);
    steps.take("train", || {
        // Ctrl-C reaches both: the child finishes its step and saves, and this waits for it.
        ctrlc::set_handler(|| {}).context("Ctrl-C cannot be handed on")?;
        match steps::status(&mut train)?.code() {
            Some(0) => Ok(()),
            Some(STOPPED) => {
                bail!("stopped and saved; `cargo xtask quickstart` goes on from there")
            }
            _ => bail!(
                "training failed, rlf-host says above why; to start again from nothing, \
                 `cargo xtask quickstart --overwrite`"
            ),
        }
    })?;
    Ok(run)
}

/// The run that the configuration, or `--run`, names.
fn run_folder(project: &Project, extra: &[String]) -> Result<PathBuf> {
    let mut words = extra.iter();
    while let Some(word) = words.next() {
        if let Some(folder) = word.strip_prefix("--run=") {
            return Ok(folder.into());
        }
        if word == "--run" {
            return words.next().map(Into::into).context("--run needs a folder");
        }
    }
    let path = project.root().join(CONFIG);
    let text = fs::read_to_string(&path).with_context(|| format!("{CONFIG} cannot be read"))?;
    let config: toml::Table =
        toml::from_str(&text).with_context(|| format!("{CONFIG} is no TOML"))?;
    match config.get("output").and_then(toml::Value::as_str) {
        Some(folder) => Ok(folder.into()),
        None => bail!("{CONFIG} has no `output`: name the run's folder there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(config: &str) -> (tempfile::TempDir, Project) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("configs")).unwrap();
        fs::write(root.path().join(CONFIG), config).unwrap();
        let project = Project::at(root.path());
        (root, project)
    }

    #[test]
    fn the_run_is_the_configured_one_unless_another_is_named() {
        let (_root, project) = project("output = \"runs/q\"\n[model]\n");
        let folder = |extra: &[&str]| {
            let extra: Vec<_> = extra.iter().map(|&word| word.to_owned()).collect();
            run_folder(&project, &extra).unwrap()
        };
        assert_eq!(folder(&[]), PathBuf::from("runs/q"));
        assert_eq!(folder(&["--run", "x"]), PathBuf::from("x"));
        assert_eq!(folder(&["--seed", "1", "--run=y"]), PathBuf::from("y"));
    }

    #[test]
    fn a_configuration_without_a_run_says_what_to_add() {
        let (_root, project) = project("seed = 1");
        let error = run_folder(&project, &[]).unwrap_err().to_string();
        assert!(error.contains("`output`"), "{error}");
    }
}
