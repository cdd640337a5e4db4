//! `cargo xtask quickstart`: from a fresh checkout to a policy that learned to use tools.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::{Context, Result, bail};

use crate::{
    guests, host,
    machine::{self, Need},
    plugins,
    project::Project,
    steps::{self, Steps, say},
};

const CONFIG: &str = "configs/quickstart.toml";

/// Exit code of `rlf-host train` after Ctrl-C: it saved and stopped.
const STOPPED: i32 = 75;

/// Builds, trains, and prints the next commands. `extra` goes to `rlf-host train`.
pub fn run(project: &Project, extra: &[String]) -> Result<()> {
    say(&format!(
        "The steps are\n\
         \x20 1. make ready   rustup installs the target {} for plugins if it is missing; nothing else is installed\n\
         \x20 2. build        the host in release (8 minutes on 2 idle cores the first time) and the plugins that the run needs\n\
         \x20 3. train        {CONFIG}: SFT, then GRPO, on the CPU (about 5 minutes)\n\
         Finished work is not repeated.",
        guests::TARGET
    ));
    let mut steps = Steps::new();
    let outcome = take(project, &mut steps, extra);
    say(&format!("\n{}", steps.summary()));
    let run = outcome?;
    let binary = project.binary();
    let (binary, run) = (project.display(&binary), project.display(&run));
    println!(
        "\nWhat next:\n\
         \x20 {binary} report {run}     one page with curves, settings and trajectories\n\
         \x20 {binary} rollout {run}    one task, turn by turn\n\
         \x20 {binary} eval {run}       success by kind of task, greedy and sampled\n\
         \x20 {binary} plugin call calculator calculate '{{\"expression\": \"(2+3)*4\"}}'\n\
         \x20 {binary} train {CONFIG} --overwrite    train again\n\
         \x20 cargo xtask plugins    the other plugins: interpreters, environments, rewards\n\
         \x20 cargo xtask test       build everything and run all tests"
    );
    Ok(())
}

fn take(project: &Project, steps: &mut Steps, extra: &[String]) -> Result<PathBuf> {
    let run = run_folder(project, extra)?;
    steps.take("make ready", || {
        machine::make_ready(project, &[Need::Wasm, Need::Native])
    })?;
    let config = config(project)?;
    let names = plugins_of(&config);
    steps.take_both(
        ("build the host", || {
            let mut command = host::cargo_one(project, "build", &[], host::BINARY);
            if steps::status(&mut command)?.success() {
                return Ok(());
            }
            bail!("the host does not compile: see the first error above")
        }),
        ("build the plugins", || {
            plugins::build_named(project, &names)
        }),
    )?;
    let mut train = project.command(project.binary());
    train.args(["train", CONFIG, "--plugins", "target/plugins"]);
    // An existing run continues from its checkpoint; a finished one is not trained again.
    let decided = ["--resume", "--overwrite"]
        .iter()
        .any(|flag| extra.iter().any(|e| e == flag));
    if project.root().join(&run).is_dir() && !decided {
        train.arg("--resume");
    }
    train.args(extra);
    steps.take("train", || {
        // Ctrl-C reaches both processes: the child finishes its step and saves, and this one waits for it.
        ctrlc::set_handler(|| {}).context("the handler of Ctrl-C cannot be set")?;
        match steps::status(&mut train)?.code() {
            Some(0) => Ok(()),
            Some(STOPPED) => {
                bail!("stopped and saved; `cargo xtask quickstart` continues from there")
            }
            _ => bail!(
                "training failed, and rlf-host printed the reason above; `cargo xtask quickstart --overwrite` starts again from \
                 the beginning"
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
    let config = config(project)?;
    match config.get("output").and_then(toml::Value::as_str) {
        Some(folder) => Ok(folder.into()),
        None => bail!("{CONFIG} has no `output`: set it to the run's folder"),
    }
}

/// The configuration of the quickstart.
fn config(project: &Project) -> Result<toml::Table> {
    let path = project.root().join(CONFIG);
    let text = fs::read_to_string(&path).with_context(|| format!("{CONFIG} cannot be read"))?;
    toml::from_str(&text).with_context(|| format!("{CONFIG} is not TOML"))
}

/// The names of the plugins that the quickstart runs.
pub fn plugin_names(project: &Project) -> Result<BTreeSet<String>> {
    Ok(plugins_of(&config(project)?))
}

/// The names of the plugins that `config` uses: tools, and rewards.
fn plugins_of(config: &toml::Table) -> BTreeSet<String> {
    let tools = config.get("plugins").and_then(toml::Value::as_table);
    let rewards = config
        .get("rewards")
        .and_then(|rewards| rewards.get("stack"));
    let rewards = rewards
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten();
    let rewards = rewards.filter_map(|reward| reward.get("plugin")?.as_str());
    let tools = tools.into_iter().flat_map(toml::Table::keys);
    tools
        .map(String::as_str)
        .chain(rewards)
        .map(str::to_owned)
        .collect()
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
    fn the_plugins_of_a_configuration_are_its_tools_and_its_rewards() {
        let config = "[plugins.lookup]\nx = 1\n[plugins.calculator]\n[[rewards.stack]]\nplugin = \"format\"\n";
        let (_root, project) = project(config);
        let names: Vec<_> = plugin_names(&project).unwrap().into_iter().collect();
        assert_eq!(names, ["calculator", "format", "lookup"]);
    }

    #[test]
    fn a_configuration_without_a_run_says_what_to_add() {
        let (_root, project) = project("seed = 1");
        let error = run_folder(&project, &[]).unwrap_err().to_string();
        assert!(error.contains("`output`"), "{error}");
    }
}
