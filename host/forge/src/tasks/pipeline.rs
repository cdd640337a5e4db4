//! The stages in order, on disk: `rlf-host forge tasks`.
//!
//! A folder of tasks has these files. Each stage reads what the stage before it made, and has one line for each
//! candidate. A run that was stopped goes on where it was, and gives the same files as one that was not.
//!
//! | file | has |
//! |---|---|
//! | `manifest.json` | the options and the hashes of the environments |
//! | `environments/` | the environments, so that the folder can be used alone |
//! | `stages/1-chains.jsonl` to `stages/5-replays.jsonl` | the stages |
//! | `tasks.jsonl` | the tasks that were kept |
//! | `rejected.jsonl` | the candidates that were rejected, each with its stage and reason |

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::assemble::assemble;
use super::check::{Checked, Seen, Strictness, check};
use super::make::{Candidate, Maker, Trajectory};
use super::options::TaskOptions;
use super::record::TaskRecord;
use super::rejection::{Reason, Rejected, Rejection, Stage};
use super::stage_file::{FileError, StageFile};
use super::suite::Suite;
use super::text::{Query, Templates, query};
use crate::graph::GraphError;

/// Candidates that go through the stages together.
const BATCH: u64 = 256;
/// Candidates after which a run gives up if not one in a hundred is kept.
const MAX_FRUITLESS: u64 = 20_000;

/// Tasks cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The tool graph cannot be built.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The folder was made with other options or environments.
    #[error(
        "{folder} was made with other {what}; name another folder with --output, or make it anew with --restart"
    )]
    OtherManifest {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        what: &'static str,
    },
    /// Too few candidates pass.
    #[error(
        "only {kept} of {candidates} candidates were kept, most were rejected as {most}; give other environments, or allow more calls and turns"
    )]
    Fruitless {
        /// Number of tasks that were kept.
        kept: usize,
        /// Number of candidates.
        candidates: u64,
        /// The most frequent reason.
        most: &'static str,
    },
    /// The real environment cannot be played at all.
    #[error("the replay in the sandbox failed: {0}")]
    Replay(String),
}

/// What a folder of tasks was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the form of records.
    pub schema: u32,
    /// How tasks were made.
    pub options: TaskOptions,
    /// Hash and domain of each environment.
    pub environments: BTreeMap<String, (String, String)>,
    /// Whether the tasks were replayed in the sandbox.
    pub replayed: bool,
}

impl Manifest {
    /// The manifest of tasks that are made with these options in these environments.
    pub fn new(suite: &Suite, options: &TaskOptions, replayed: bool) -> Self {
        let environments = suite.environments().iter().map(|environment| {
            let known = (environment.hash.clone(), environment.domain.clone());
            (environment.name.clone(), known)
        });
        Self {
            schema: super::record::SCHEMA,
            options: options.clone(),
            environments: environments.collect(),
            replayed,
        }
    }
}

/// Where a folder of tasks has its files.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at a path, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The manifest.
    pub fn manifest(&self) -> PathBuf {
        self.0.join("manifest.json")
    }

    /// The environments.
    pub fn environments(&self) -> PathBuf {
        self.0.join("environments")
    }

    /// The file of a stage.
    pub fn stage(&self, stage: Stage) -> PathBuf {
        let number = stage as usize + 1;
        self.0
            .join("stages")
            .join(format!("{number}-{}.jsonl", stage.as_str()))
    }

    /// The tasks that were kept.
    pub fn tasks(&self) -> PathBuf {
        self.0.join("tasks.jsonl")
    }

    /// The candidates that were rejected.
    pub fn rejected(&self) -> PathBuf {
        self.0.join("rejected.jsonl")
    }

    /// Deletes the files of a stage and of all after it.
    pub fn forget(&self, from: Stage) -> Result<(), FileError> {
        let stages = Stage::ALL.into_iter().filter(|stage| *stage >= from);
        let files = stages.map(|stage| self.stage(stage));
        for file in files.chain([self.tasks(), self.rejected()]) {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(FileError::io(&file)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The tasks of a folder.
    pub fn read_tasks(&self) -> Result<Vec<TaskRecord>, FileError> {
        read_lines(&self.tasks())
    }

    /// The rejected candidates of a folder.
    pub fn read_rejected(&self) -> Result<Vec<Rejected>, FileError> {
        read_lines(&self.rejected())
    }

    /// Begins a folder, or goes on with one that was made from the same.
    pub fn begin(&self, manifest: &Manifest) -> Result<(), PipelineError> {
        let file = self.manifest();
        match fs::read(&file) {
            Ok(bytes) => {
                let there: Manifest =
                    rlf_json::from_slice(&bytes).map_err(|source| FileError::Line {
                        path: file,
                        line: 1,
                        source,
                    })?;
                let what = if there.environments != manifest.environments {
                    "environments"
                } else if there != *manifest {
                    "options"
                } else {
                    return Ok(());
                };
                Err(PipelineError::OtherManifest {
                    folder: self.0.clone(),
                    what,
                })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let stages = self.0.join("stages");
                fs::create_dir_all(&stages).map_err(FileError::io(&stages))?;
                let text = serde_json::to_vec_pretty(manifest).unwrap_or_default();
                rlf_files::write(&file, &text).map_err(FileError::io(&file))?;
                Ok(())
            }
            Err(error) => Err(FileError::io(&file)(error).into()),
        }
    }
}

fn read_lines<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>, FileError> {
    let bytes = fs::read(path).map_err(FileError::io(path))?;
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    lines
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| {
            rlf_json::from_slice(line).map_err(|source| FileError::Line {
                path: path.to_owned(),
                line: number + 1,
                source,
            })
        })
        .collect()
}

/// Replays tasks in the real environment. Each result says how a task diverged.
pub type Replayer<'a> = dyn FnMut(&[TaskRecord]) -> Result<Vec<Result<(), String>>, String> + 'a;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of tasks that were kept so far, at most as many as are wanted.
    pub kept: usize,
    /// Number of tasks that are wanted.
    pub wanted: usize,
    /// Number of candidates so far.
    pub candidates: u64,
}

/// What a run made.
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
    replays: StageFile<bool>,
}

/// Makes tasks in a folder that has begun, until there are enough.
pub fn make(
    maker: &Maker<'_>,
    folder: &Folder,
    mut replay: Option<&mut Replayer<'_>>,
    mut progress: impl FnMut(Progress),
) -> Result<Made, PipelineError> {
    let mut stages = Stages {
        chains: StageFile::open(folder.stage(Stage::Chains))?,
        trajectories: StageFile::open(folder.stage(Stage::Trajectories))?,
        queries: StageFile::open(folder.stage(Stage::Queries))?,
        checks: StageFile::open(folder.stage(Stage::Checks))?,
        replays: StageFile::open(folder.stage(Stage::Replays))?,
    };
    let mut templates = Templates::default();
    let mut seen = Seen::default();
    let wanted = maker.options.count;
    let mut tasks: Vec<TaskRecord> = Vec::new();
    let mut candidates = 0;
    while tasks.len() < wanted {
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
        if candidates >= MAX_FRUITLESS && tasks.len() < candidates as usize / 100 {
            return Err(PipelineError::Fruitless {
                kept: tasks.len(),
                candidates,
                most: most_frequent(&stages.rejected(candidates)),
            });
        }
    }
    tasks.truncate(wanted);
    // Candidates behind the last task that is needed are of no interest.
    let end = tasks.last().map_or(candidates, |task| task.candidate + 1);
    let made = Made {
        rejected: stages.rejected(end),
        tasks,
        candidates: end,
    };
    write_lines(&folder.tasks(), &made.tasks)?;
    write_lines(&folder.rejected(), &made.rejected)?;
    Ok(made)
}

fn write_lines<T: Serialize>(path: &Path, rows: &[T]) -> Result<(), FileError> {
    let write = |out: &mut dyn std::io::Write| {
        for row in rows {
            serde_json::to_writer(&mut *out, row)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    };
    rlf_files::write_with(path, write).map_err(FileError::io(path))
}

fn most_frequent(rejected: &[Rejected]) -> &'static str {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for one in rejected {
        *counts.entry(one.reason.as_str()).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map_or("nothing", |(reason, _)| reason)
}

impl Stages {
    /// Takes a batch of candidates through all stages but the last. Returns the tasks that passed.
    fn batch(
        &mut self,
        maker: &Maker<'_>,
        batch: std::ops::Range<u64>,
        templates: &mut Templates,
        seen: &mut Seen,
    ) -> Result<Vec<TaskRecord>, PipelineError> {
        let new: Vec<u64> = batch
            .clone()
            .filter(|number| self.chains.get(*number).is_none())
            .collect();
        let made = new
            .into_par_iter()
            .map(|number| Ok((number, maker.candidate(number)?)))
            .collect::<Result<Vec<_>, GraphError>>()?;
        self.chains.append(made)?;

        let new: Vec<&Candidate> = batch
            .clone()
            .filter(|number| self.trajectories.get(*number).is_none())
            .filter_map(|number| self.chains.get(number)?.as_ref().ok())
            .collect();
        let made = new
            .into_par_iter()
            .map(|candidate| Ok((candidate.number, maker.trajectory(candidate)?)))
            .collect::<Result<Vec<_>, GraphError>>()?;
        self.trajectories.append(made)?;

        let mut made = Vec::new();
        for number in batch.clone() {
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
        self.queries.append(made)?;
        self.check(maker, batch, seen)
    }

    fn check(
        &mut self,
        maker: &Maker<'_>,
        batch: std::ops::Range<u64>,
        seen: &mut Seen,
    ) -> Result<Vec<TaskRecord>, PipelineError> {
        let strictness = Strictness {
            seed: maker.options.seed,
            attempts: maker.options.attempts,
            min_passes: maker.options.min_passes,
            keep_trivial: maker.options.keep_trivial,
        };
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
                        strictness,
                    ),
                };
                Ok((number, result.map(|checked| (task, checked))))
            })
            .collect::<Result<Vec<_>, GraphError>>()?;
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
        self.checks.append(made)?;
        Ok(tasks)
    }

    /// Replays the tasks that were not replayed. Returns those that did the same.
    fn replay(
        &mut self,
        batch: std::ops::Range<u64>,
        tasks: Vec<TaskRecord>,
        replay: Option<&mut Replayer<'_>>,
    ) -> Result<Vec<TaskRecord>, PipelineError> {
        let (there, new): (Vec<_>, Vec<_>) = tasks
            .into_iter()
            .partition(|task| self.replays.get(task.candidate).is_some());
        let results = match replay {
            Some(replay) => replay(&new).map_err(PipelineError::Replay)?,
            None => vec![Ok(()); new.len()],
        };
        let lines = new.iter().zip(results).map(|(task, result)| {
            let result = result.map_err(|why| Rejection::new(Reason::Diverged, why));
            (task.candidate, result.map(|()| true))
        });
        self.replays.append(lines.collect())?;
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
fn finished(mut task: TaskRecord, checked: Checked) -> TaskRecord {
    for (turn, origins) in task.turns.iter_mut().zip(checked.origins) {
        for (call, origins) in turn.calls.iter_mut().zip(origins) {
            call.origins = origins;
        }
    }
    task.measures = checked.measures;
    task
}
