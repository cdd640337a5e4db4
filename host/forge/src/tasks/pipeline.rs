//! The stages in order, on disk: `rlf-host forge tasks`.
//!
//! Each stage reads what the stage before it made, and has one line for each candidate. A run that was stopped goes on
//! where it was, and gives the same files as one that was not. Only the lines of `6-texts.jsonl` are in the order in which
//! a language model answered. [`Folder`] has the files.

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::Range;

use rayon::prelude::*;
use serde::Serialize;

use super::assemble::assemble;
use super::check::{Checked, Seen, check};
use super::error::PipelineError;
use super::folder::{Folder, write_lines};
use super::make::{Candidate, Maker, Trajectory};
use super::record::TaskRecord;
use super::rejection::{Reason, Rejected, Rejection, Stage};
use super::replay::Divergence;
use super::stage_file::{FileError, Hashes, StageFile};
use super::text::{Query, Templates, query};
use crate::graph::GraphError;

/// Number of candidates that go through the stages together.
const BATCH: u64 = 256;
/// Number of candidates after which a run gives up if not one in a hundred is kept.
const MAX_FRUITLESS: u64 = 20_000;

/// Replays tasks in the real environment, and gives a result for each. After a
/// [general](Divergence::is_general) error, it may leave out the tasks behind it.
pub type Replayer<'a> = dyn FnMut(&[TaskRecord]) -> Vec<Result<(), Divergence>> + 'a;

/// Rewrites the words of tasks before they are written to disk.
pub type WordsOf<'a> =
    dyn FnMut(&mut [TaskRecord]) -> Result<(), Box<dyn Error + Send + Sync>> + 'a;

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of tasks that were kept so far, at most as many as are wanted.
    pub kept: usize,
    /// Number of tasks that are wanted.
    pub wanted: usize,
    /// Number of candidates so far.
    pub candidates: u64,
}

/// The tasks of a run, and the candidates that it rejected.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// The tasks, in the order of their candidates.
    pub tasks: Vec<TaskRecord>,
    /// The candidates that were rejected.
    pub rejected: Vec<Rejected>,
    /// Number of candidates that were tried.
    pub candidates: u64,
}

/// The files of all stages.
struct Stages {
    chains: StageFile<Candidate>,
    trajectories: StageFile<Trajectory>,
    queries: StageFile<Query>,
    checks: StageFile<Checked>,
    /// True if the task was replayed, false if the run leaves the replay out.
    replays: StageFile<bool>,
}

/// Makes tasks in a folder that has begun, until there are enough. If too few candidates pass, the tasks that were kept
/// are written, and the result is [`PipelineError::Fruitless`].
pub fn make(
    maker: &Maker<'_>,
    folder: &Folder,
    replay: Option<&mut Replayer<'_>>,
    progress: impl FnMut(Progress),
) -> Result<Made, PipelineError> {
    make_in_words(maker, folder, replay, None, progress)
}

/// Makes tasks as [`make`] does, and rewrites their words at the end.
pub fn make_in_words(
    maker: &Maker<'_>,
    folder: &Folder,
    replay: Option<&mut Replayer<'_>>,
    words: Option<&mut WordsOf<'_>>,
    progress: impl FnMut(Progress),
) -> Result<Made, PipelineError> {
    first(maker, folder, maker.options.count, replay, words, progress)
}

/// Makes the first tasks of those that the options ask for, without a replay: a sample of them.
pub fn sample(maker: &Maker<'_>, folder: &Folder, wanted: usize) -> Result<Made, PipelineError> {
    first(maker, folder, wanted, None, None, |_| {})
}

fn first(
    maker: &Maker<'_>,
    folder: &Folder,
    wanted: usize,
    mut replay: Option<&mut Replayer<'_>>,
    words: Option<&mut WordsOf<'_>>,
    mut progress: impl FnMut(Progress),
) -> Result<Made, PipelineError> {
    let mut stages = Stages::open(folder)?;
    let mut templates = Templates::default();
    let mut seen = Seen::default();
    let mut tasks: Vec<TaskRecord> = Vec::new();
    let mut candidates = 0;
    let is_fruitless = |kept: usize, candidates: u64| {
        candidates >= MAX_FRUITLESS && kept < candidates as usize / 100
    };
    while tasks.len() < wanted && !is_fruitless(tasks.len(), candidates) {
        let batch = candidates..candidates + BATCH;
        let checked = stages.batch(maker, batch.clone(), &mut templates, &mut seen)?;
        let kept = stages.replay(batch, checked, replay.as_deref_mut())?;
        candidates += BATCH;
        tasks.extend(kept);
        progress(Progress {
            kept: tasks.len().min(wanted),
            wanted,
            candidates,
        });
    }
    let fruitless = (tasks.len() < wanted).then(|| PipelineError::Fruitless {
        kept: tasks.len(),
        candidates,
        most: most_frequent(&stages.rejected(candidates)),
    });
    tasks.truncate(wanted);
    if let Some(rewrite) = words {
        rewrite(&mut tasks).map_err(PipelineError::Words)?;
    }
    // Candidates behind the last task that is needed are of no interest.
    let end = tasks.last().map_or(candidates, |task| task.candidate + 1);
    let made = Made {
        rejected: stages.rejected(end),
        tasks,
        candidates: end,
    };
    folder.write_tasks(&made.tasks)?;
    write_lines(&folder.rejected(), &made.rejected)?;
    fruitless.map_or(Ok(made), Err)
}

/// The most frequent reason of the rejected candidates.
fn most_frequent(rejected: &[Rejected]) -> Reason {
    let mut counts: BTreeMap<Reason, usize> = BTreeMap::new();
    for one in rejected {
        *counts.entry(one.reason).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    // Nearly all candidates were rejected, so there is one.
    most.map_or(Reason::NothingDone, |(reason, _)| reason)
}

impl Stages {
    /// Opens the files, each with the hashes of the one before.
    fn open(folder: &Folder) -> Result<Self, FileError> {
        let chains = StageFile::open(folder.stage(Stage::Chains), &Hashes::default())?;
        let trajectories = StageFile::open_checked(
            folder.stage(Stage::Trajectories),
            &chains.hashes,
            Trajectory::check,
        )?;
        let queries = StageFile::open(folder.stage(Stage::Queries), &trajectories.hashes)?;
        let checks = StageFile::open(folder.stage(Stage::Checks), &queries.hashes)?;
        let replays = StageFile::open(folder.stage(Stage::Replays), &checks.hashes)?;
        Ok(Self {
            chains,
            trajectories,
            queries,
            checks,
            replays,
        })
    }

    /// Takes a batch of candidates through all stages but the last. Returns the tasks that passed.
    fn batch(
        &mut self,
        maker: &Maker<'_>,
        batch: Range<u64>,
        templates: &mut Templates,
        seen: &mut Seen,
    ) -> Result<Vec<TaskRecord>, PipelineError> {
        self.execute(maker, batch.clone())?;
        self.write_queries(maker, batch.clone(), templates)?;
        self.check(maker, batch, seen)
    }

    /// Samples and executes chains.
    fn execute(&mut self, maker: &Maker<'_>, batch: Range<u64>) -> Result<(), PipelineError> {
        let new: Vec<u64> = batch
            .clone()
            .filter(|number| self.chains.get(*number).is_none())
            .collect();
        let made = new
            .into_par_iter()
            .map(|number| Ok((number, maker.candidate(number)?)))
            .collect::<Result<Vec<_>, GraphError>>()?;
        self.chains.append(made, &Hashes::default())?;

        let new: Vec<&Candidate> = batch
            .filter(|number| self.trajectories.get(*number).is_none())
            .filter_map(|number| self.chains.get(number)?.as_ref().ok())
            .collect();
        let made = new
            .into_par_iter()
            .map(|candidate| Ok((candidate.number, maker.trajectory(candidate)?)))
            .collect::<Result<Vec<_>, GraphError>>()?;
        maker.suite.playable().check_served()?;
        Ok(self.trajectories.append(made, &self.chains.hashes)?)
    }

    /// Writes queries, one after the other, because each counts the templates of those before it.
    fn write_queries(
        &mut self,
        maker: &Maker<'_>,
        batch: Range<u64>,
        templates: &mut Templates,
    ) -> Result<(), PipelineError> {
        let mut made = Vec::new();
        for number in batch {
            let (Some(Ok(candidate)), Some(Ok(trajectory))) =
                (self.chains.get(number), self.trajectories.get(number))
            else {
                continue;
            };
            let there = self.queries.get(number);
            let written = match there {
                Some(there) => there.clone(),
                None => query(maker, candidate, trajectory, templates),
            };
            if let Ok(query) = &written {
                templates.count(query);
            }
            if there.is_none() {
                made.push((number, written));
            }
        }
        maker.suite.playable().check_served()?;
        Ok(self.queries.append(made, &self.trajectories.hashes)?)
    }

    /// Checks the tasks of a batch. Returns those that passed.
    fn check(
        &mut self,
        maker: &Maker<'_>,
        batch: Range<u64>,
        seen: &mut Seen,
    ) -> Result<Vec<TaskRecord>, PipelineError> {
        let ready: Vec<(&Candidate, &Trajectory, &Query)> = batch
            .filter_map(|number| {
                let candidate = self.chains.get(number)?.as_ref().ok()?;
                let trajectory = self.trajectories.get(number)?.as_ref().ok()?;
                let query = self.queries.get(number)?.as_ref().ok()?;
                Some((candidate, trajectory, query))
            })
            .collect();
        let checked = ready
            .into_par_iter()
            .map(|(candidate, trajectory, query)| {
                let number = candidate.number;
                let task = match assemble(maker, candidate, trajectory, query.clone()) {
                    Ok(task) => task,
                    Err(rejection) => return Ok((number, Err(rejection))),
                };
                let result = match self.checks.get(number) {
                    Some(there) => there.clone(),
                    None => check(
                        maker.suite,
                        &*maker.graph(task.servers.keys())?,
                        &task,
                        maker.options,
                    ),
                };
                Ok((number, result.map(|checked| (task, checked))))
            })
            .collect::<Result<Vec<_>, GraphError>>()?;
        maker.suite.playable().check_served()?;
        let mut made = Vec::new();
        let mut tasks = Vec::new();
        for (number, result) in checked {
            // Only a task that passed everything else can be the first of its kind.
            let result = result.and_then(|(task, checked)| {
                seen.add(&task)?;
                Ok((task, checked))
            });
            if self.checks.get(number).is_none() {
                let line = result.as_ref().map(|(_, checked)| checked.clone());
                made.push((number, line.map_err(Clone::clone)));
            }
            if let Ok((task, checked)) = result {
                tasks.push(finished(task, checked));
            }
        }
        self.checks.append(made, &self.queries.hashes)?;
        Ok(tasks)
    }

    /// Replays the tasks that were not replayed. Returns those that did the same.
    fn replay(
        &mut self,
        batch: Range<u64>,
        tasks: Vec<TaskRecord>,
        replay: Option<&mut Replayer<'_>>,
    ) -> Result<Vec<TaskRecord>, PipelineError> {
        let (there, new): (Vec<_>, Vec<_>) = tasks
            .into_iter()
            .partition(|task| self.replays.get(task.candidate).is_some());
        let is_replayed = replay.is_some();
        let results = match replay {
            Some(replay) => replay(&new),
            None => new.iter().map(|_| Ok(())).collect(),
        };
        let mut lines = Vec::with_capacity(new.len());
        let mut general = None;
        for (task, result) in new.iter().zip(results) {
            let result = match result {
                Ok(()) => Ok(is_replayed),
                Err(why) if why.is_general() => {
                    general = Some(why);
                    break;
                }
                Err(why) => Err(Rejection::new(Reason::Diverged, why.to_string())),
            };
            lines.push((task.candidate, result));
        }
        self.replays.append(lines, &self.checks.hashes)?;
        if let Some(why) = general {
            return Err(PipelineError::Replay(why));
        }
        let mut kept: Vec<TaskRecord> = there.into_iter().chain(new).collect();
        kept.retain(|task| {
            batch.contains(&task.candidate)
                && matches!(self.replays.get(task.candidate), Some(Ok(_)))
        });
        kept.sort_by_key(|task| task.candidate);
        Ok(kept)
    }

    /// The candidates before `end` that were rejected.
    fn rejected(&self, end: u64) -> Vec<Rejected> {
        fn of<T: Serialize + serde::de::DeserializeOwned>(
            file: &StageFile<T>,
            stage: Stage,
        ) -> impl Iterator<Item = Rejected> {
            file.results().filter_map(move |(candidate, result)| {
                let Rejection { reason, detail } = result.as_ref().err()?.clone();
                Some(Rejected {
                    candidate,
                    stage,
                    reason,
                    detail,
                })
            })
        }
        let mut all: Vec<Rejected> = of(&self.chains, Stage::Chains)
            .chain(of(&self.trajectories, Stage::Trajectories))
            .chain(of(&self.queries, Stage::Queries))
            .chain(of(&self.checks, Stage::Checks))
            .chain(of(&self.replays, Stage::Replays))
            .filter(|one| one.candidate < end)
            .collect();
        all.sort_by_key(|one| (one.candidate, one.stage));
        all
    }
}

/// A task with what the checks found out.
pub(super) fn finished(mut task: TaskRecord, checked: Checked) -> TaskRecord {
    for (number, (turn, origins)) in task.turns.iter_mut().zip(checked.origins).enumerate() {
        turn.context_only = checked.context_only.contains(&number);
        for (call, origins) in turn.calls.iter_mut().zip(origins) {
            call.origins = origins;
        }
    }
    task.measures = checked.measures;
    task
}
