//! Playing specifications: many are loaded as one plugin, and several are played at once.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;

use anyhow::Context;
use rlf_forge::verify::{Record, Report, verify_program};
use rlf_specification::{Checked, Finding, Format, Program, check_text};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::effort;
use super::verdict::Verdict;
use crate::arguments::{ForgeVerify, PluginBindings};
use crate::commands::env::{Found, find};
use crate::operator::Operator;
use crate::plugins::sources;

/// Maximum number of specifications that are loaded at once.
const MAX_LOADED: usize = 100;

/// A specification without errors, which is to be played.
pub(super) struct Playable {
    /// Position of the specification among the files.
    pub(super) place: usize,
    pub(super) file: PathBuf,
    /// The warnings of the static checks.
    pub(super) findings: Vec<Finding>,
    /// The specification's key in the record. Empty without a record.
    pub(super) key: String,
    text: String,
    program: Arc<Program>,
}

impl Playable {
    fn name(&self) -> &str {
        &self.program.specification().name
    }

    /// The alias under which a configuration has settings for the environment.
    fn alias(&self) -> String {
        let stem = self.file.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }
}

/// A specification after the static checks.
pub(super) enum Prepared {
    /// There is a verdict already.
    Done(Verdict),
    ToPlay(Playable),
}

/// The BLAKE3 hash of the component that plays specifications.
pub(super) fn component(added: &[PathBuf]) -> anyhow::Result<String> {
    let found = sources(added)?.identify(&BTreeMap::new(), "specified")?;
    Ok(found.component.hash)
}

/// Checks a specification without playing it, and looks for it in the record. `component` is the hash of the component
/// that would play it.
pub(super) fn prepare(
    place: usize,
    file: &Path,
    settings: &ForgeVerify,
    operator: &Operator,
    record: Option<(&Record, &str)>,
) -> anyhow::Result<Prepared> {
    let text = rlf_files::read_text(file, rlf_files::MAX_TEXT_BYTES)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let format = Format::from_path(file).unwrap_or(Format::Toml);
    let Checked { program, findings } = check_text(&text, format);
    let Some(program) = program.filter(|_| !settings.no_play) else {
        let is_sound = findings.iter().all(|finding| !finding.is_error());
        return Ok(Prepared::Done(Verdict::checked(file, findings, is_sound)));
    };
    let how = format!(
        "{} calls, {} walks, {} seeds, seed {}",
        settings.calls, settings.walks, settings.seeds, settings.seed
    );
    let mut playable = Playable {
        place,
        file: file.to_owned(),
        findings,
        key: String::new(),
        text,
        program: Arc::new(program),
    };
    if let Some((record, component)) = record {
        let grants = operator.grants_by_name.get(&playable.alias());
        let limits = serde_json::to_string(&(
            grants.cloned().unwrap_or_default(),
            &operator.sandbox,
            &operator.environments,
        ))?;
        playable.key = Record::key(&[&playable.text, &how, component, &limits]);
        if let Some(verdict) = record.get::<Verdict>(&playable.key) {
            return Ok(Prepared::Done(verdict.recorded(file)));
        }
    }
    Ok(Prepared::ToPlay(playable))
}

/// The means of playing specifications.
pub(super) struct Player<'a> {
    pub(super) added: &'a [PathBuf],
    pub(super) operator: &'a Operator,
    pub(super) settings: &'a ForgeVerify,
}

impl Player<'_> {
    /// Plays specifications, and passes each to `done` with its report as soon as it has ended.
    pub(super) fn play(
        &self,
        playables: Vec<Playable>,
        mut done: impl FnMut(Playable, anyhow::Result<Report>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if playables.is_empty() {
            return Ok(());
        }
        let runtime = crate::commands::runtime()?;
        let mut batches = self.batches(playables);
        batches.reverse();
        while let Some(mut batch) = batches.pop() {
            let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
            let path = bound(&batch, folder.path())?;
            match find(self.added, self.operator, &path, &PluginBindings::NONE) {
                Ok(found) => runtime.block_on(self.at_once(Arc::new(found), batch, &mut done))?,
                // One of them stops the plugin. Alone, it takes no verdict away from the others.
                Err(_) if batch.len() > 1 => {
                    batches.extend(batch.into_iter().map(|one| vec![one]));
                }
                Err(error) => {
                    if let Some(one) = batch.pop() {
                        done(one, Err(error))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Groups specifications that can be loaded as one plugin: their names differ, and the operator has no settings for
    /// any of them. Loading takes seconds, and playing less than one.
    fn batches(&self, playables: Vec<Playable>) -> Vec<Vec<Playable>> {
        let is_alone = |one: &Playable| self.operator.grants_by_name.contains_key(&one.alias());
        let mut batches: Vec<Vec<Playable>> = Vec::new();
        for one in playables {
            let fits = |batch: &&mut Vec<Playable>| {
                let differs = |other: &Playable| other.name() != one.name() && !is_alone(other);
                batch.len() < MAX_LOADED && batch.iter().all(differs)
            };
            let batch = batches.iter_mut().find(fits).filter(|_| !is_alone(&one));
            match batch {
                Some(batch) => batch.push(one),
                None => batches.push(vec![one]),
            }
        }
        batches
    }

    /// Plays the specifications of one plugin, as many at once as there are jobs.
    async fn at_once(
        &self,
        found: Arc<Found>,
        batch: Vec<Playable>,
        done: &mut impl FnMut(Playable, anyhow::Result<Report>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let processors = || available_parallelism().map_or(1, usize::from);
        let jobs = self.settings.jobs.unwrap_or_else(processors);
        let places = Arc::new(Semaphore::new(jobs));
        let (seeds, effort) = (self.settings.seeds, effort(self.settings));
        let mut playing = JoinSet::new();
        for playable in batch {
            let (found, places) = (Arc::clone(&found), Arc::clone(&places));
            playing.spawn(async move {
                // The semaphore is never closed.
                let _place = places.acquire().await;
                let (environments, program) = (&found.environments, &playable.program);
                let report = verify_program(environments, &found.name, program, seeds, effort);
                let report = report.await;
                (playable, report)
            });
        }
        while let Some(played) = playing.join_next().await {
            let (playable, report) = played.context("a verification broke off")?;
            done(playable, report.map_err(Into::into))?;
        }
        Ok(())
    }
}

/// The path that a plugin is bound to: the file of a single specification, or a folder with copies of several.
fn bound(batch: &[Playable], folder: &Path) -> anyhow::Result<PathBuf> {
    if let [only] = batch {
        return Ok(only.file.clone());
    }
    let folder = folder.join("environments");
    fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for playable in batch {
        let extension = playable.file.extension().unwrap_or_default();
        let copy = folder.join(playable.name()).with_extension(extension);
        fs::write(&copy, &playable.text)
            .with_context(|| format!("cannot write {}", copy.display()))?;
    }
    Ok(folder)
}
