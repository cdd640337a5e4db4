//! `rlf-host forge env verify`: checks specifications and plays environments.

mod specified;
mod verdict;

pub(super) use verdict::label;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use rlf_forge::verify::{Effort, Record, Start, verify};
use serde_json::json;

use self::specified::{Playable, Player, Prepared};
use self::verdict::{Verdict, Verdicts};
use super::interrupt;
use crate::arguments::{ForgeVerify, GroupOptions, PluginBindings};
use crate::commands::env::{Found, find, is_python, is_specification};
use crate::commands::specification::in_folder;
use crate::operator::Operator;

/// Verifies every environment, and prints the verdicts in the order of the command line. Succeeds if all are sound.
pub(super) fn run(options: &GroupOptions, settings: &ForgeVerify) -> anyhow::Result<ExitCode> {
    let operator = Operator::load(options.config.as_deref())?;
    let files = expanded(&settings.files)?;
    ensure!(
        settings.record.is_none() || !settings.no_play,
        "--record keeps what was played, and --no-play plays nothing; leave one of them out"
    );
    let added = &options.plugins.plugins;
    if settings.record.is_some() {
        interrupt::watch("the same command continues")?;
    }
    let mut record = settings.record.as_deref().map(Record::open).transpose()?;
    let component = record.as_ref().map(|_| specified::component(added));
    let component = component.transpose()?;
    let mut verdicts = Verdicts::new(files.len(), options.json);
    let mut playables: Vec<Playable> = Vec::new();
    let mut others: Vec<(usize, &Path)> = Vec::new();
    for (place, file) in files.iter().enumerate() {
        if !(file.is_file() && is_specification(file)) {
            others.push((place, file));
            continue;
        }
        let known = record.as_ref().zip(component.as_deref());
        match specified::prepare(place, file, settings, &operator, known) {
            Ok(Prepared::Done(verdict)) => verdicts.add(place, verdict),
            Ok(Prepared::ToPlay(playable)) => playables.push(playable),
            Err(error) => verdicts.add(place, Verdict::failed(file, &error)),
        }
    }
    let player = Player {
        added,
        operator: &operator,
        settings,
    };
    player.play(playables, |playable, report| {
        let verdict = match report {
            Ok(report) => {
                let verdict = Verdict::played(&playable.file, playable.findings, report);
                if let Some(record) = &mut record {
                    record.add(&playable.key, &verdict)?;
                }
                verdict
            }
            Err(error) => Verdict::failed(&playable.file, &error),
        };
        verdicts.add(playable.place, verdict);
        anyhow::Ok(())
    })?;
    for (place, file) in others {
        verdicts.begin(file);
        let verdict = other(added, &operator, settings, file);
        verdicts.add(
            place,
            verdict.unwrap_or_else(|error| Verdict::failed(file, &error)),
        );
    }
    verdicts.finish(settings.record.as_deref())
}

/// The files to verify: those of the command line, and the specifications of its folders.
fn expanded(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() && !is_python(path) && is_specification(path) {
            files.extend(in_folder(path)?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

/// Plays an environment in Python, or a component, from its scenarios.
fn other(
    added: &[PathBuf],
    operator: &Operator,
    settings: &ForgeVerify,
    file: &Path,
) -> anyhow::Result<Verdict> {
    if settings.no_play {
        let is_path = file.components().count() > 1 || file.extension().is_some();
        if is_path && !file.exists() {
            bail!("there is no file or folder {}", file.display());
        }
        bail!(
            "only specifications can be verified without playing them; leave out --no-play to verify {}",
            file.display()
        );
    }
    let found = find(added, operator, file, &PluginBindings::NONE)?;
    let report = crate::commands::runtime()?.block_on(async {
        let starts = starts(&found).await?;
        let effort = effort(settings);
        anyhow::Ok(verify(&found.environments, &found.name, &starts, effort).await?)
    })?;
    Ok(Verdict::played(file, Vec::new(), report))
}

fn effort(settings: &ForgeVerify) -> Effort {
    Effort {
        calls: settings.calls,
        walks: settings.walks,
        seed: settings.seed,
    }
}

/// The initial states of an environment that is not a specification: its scenarios, or else its servers as they begin.
async fn starts(found: &Found) -> anyhow::Result<Vec<Start>> {
    let scenarios = found.environments.scenarios(&found.name).await?;
    let mut all = Start::from_scenarios(scenarios);
    if all.is_empty() {
        let servers = found.servers.iter().flatten();
        all.extend(servers.map(|server| Start {
            name: server.clone(),
            task: json!({ "servers": { server.as_str(): null } }),
            seed: 0,
        }));
    }
    if all.is_empty() {
        bail!(
            "environment `{}` has no scenarios to start in; return some from its `scenarios`, or write scenarios.json beside its \
             Python files",
            found.name
        );
    }
    Ok(all)
}
