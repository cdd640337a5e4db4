//! The words of tasks, rewritten by a language model.
//!
//! A task has the words of the grammar and has passed all checks. A model is shown what the words mean, and writes each turn
//! anew. Its text passes the same checks as the grammar's, and some more, because a model can invent what a grammar cannot.
//! Where it is asked for, a model then solves the task from the new text alone. A text that fails goes back with what was
//! found. After the last round, the task keeps the words of the grammar, and counts as such.
//!
//! Each answer is on disk the moment it arrives, and so is the end of each task. So nothing is asked twice, and whatever
//! stops a run, the same run goes on from there. The results are in the order in which they arrived, which may differ
//! from run to run. The tasks do not depend on it.
//!
//! | looking for | module |
//! |---|---|
//! | rewriting: [`Rewriter::rewrite`] | this one |
//! | the shipped prompts | [`PROMPTS`] |
//! | the question: what the words mean | `question`, `meaning` |
//! | the checks of a text | `accept`, `faults` |
//! | the results in the tasks | `apply` |
//! | a model as solver | `solver` |
//! | an estimate before a model is asked | `estimate`: [`Estimate`] |

mod accept;
mod apply;
mod estimate;
mod faults;
mod meaning;
mod question;
mod solver;
mod tally;

pub use estimate::Estimate;
pub use question::PROMPTS;
pub use solver::Unsolved;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use futures_util::{StreamExt as _, stream};
use rlf_endpoint::Spent;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::accept::accept;
use self::faults::{Fault, listed};
use self::question::{Reworded, again, question};
use self::tally::Tally;
use super::make::Maker;
use super::record::TaskRecord;
use super::stage_file::{FileError, Hashes, StageFile};
use crate::ask::prompts::{PromptError, Prompts};
use crate::ask::{
    Account, Answers, AskError, AskObserver, Asker, Limits, Model, Question, Unusable,
};
use crate::graph::GraphError;
use crate::verify::Unserved;

/// Number of consecutive failures of the endpoint after which no further question is asked.
const MAX_FAILURES: u32 = 8;

/// The limits of rewriting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewriteOptions {
    /// Maximum number of times that a text goes back to the model with the list of its faults. Default of the program:
    /// 2.
    pub rounds: u32,
    /// Number of attempts of a model to solve a task from its new text. 0 asks for none, and is the default of the
    /// program.
    pub attempts: u32,
    /// Number of attempts of the model that must reach the goal.
    pub min_passes: u32,
    /// Tokens and time of all questions.
    pub limits: Limits,
    /// Number of tasks that are rewritten at once, at least 1.
    pub concurrent: usize,
}

/// Rewrites the words of tasks.
pub struct Rewriter<'a> {
    /// Everything that the tasks were made from.
    pub maker: &'a Maker<'a>,
    /// The model that writes, and solves.
    pub model: &'a dyn Model,
    /// The prompts: [`PROMPTS`].
    pub prompts: &'a Prompts,
    /// The options of rewriting.
    pub options: RewriteOptions,
    /// The observer of the questions and answers.
    pub observer: &'a dyn AskObserver,
}

impl fmt::Debug for Rewriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rewriter")
            .field("model", &self.model.identity())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The reason why rewriting cannot go on. What is on disk stays there.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// A prompt is wrong.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The tool graph cannot be built.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The file of results cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// An answer cannot be read from disk or written to it.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The machine did not serve every request.
    #[error(transparent)]
    Unserved(#[from] Unserved),
}

/// The end of a task's rewriting, as a line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ended {
    /// Hash of everything that it depends on.
    identity: String,
    /// Tokens and time of its questions.
    spent: Spent,
    /// The words of each turn, or none if no text passed.
    turns: Vec<String>,
    /// The faults of the last text, if none passed: the kind, and the words that the model was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<(String, String)>,
}

/// The result of rewriting.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// Number of tasks with the words of the model.
    pub written: usize,
    /// Number of tasks that keep the words of the grammar because no text of the model passed, by the kind of fault of
    /// the last text.
    pub refused: BTreeMap<String, usize>,
    /// Number of tasks that keep the words of the grammar because the model gave no answer. The same run asks for them
    /// again.
    pub unanswered: usize,
    /// The reason why tasks have no answer.
    pub why: Option<String>,
    /// Tokens and time spent, those of results on disk included.
    pub spent: Spent,
}

/// Everything that a question needs, for one task.
struct Asked<'t> {
    task: &'t TaskRecord,
    question: Question,
    identity: String,
}

/// Shared by all tasks that are rewritten at once.
struct Running<'a> {
    asker: Asker<'a>,
    tally: &'a Tally<'a>,
    /// True if no further question is to be asked.
    stopped: AtomicBool,
    /// Number of consecutive failures of the endpoint.
    failures: AtomicU32,
    why: Mutex<Option<String>>,
}

impl Rewriter<'_> {
    /// Rewrites the words of tasks. `answers` keeps the model's answers, and the file the results.
    pub async fn rewrite(
        &self,
        tasks: &mut [TaskRecord],
        answers: Answers,
        file: PathBuf,
    ) -> Result<Report, RewriteError> {
        let mut file: StageFile<Ended> = StageFile::open(file, &Hashes::default())?;
        let tally = Tally::new(self.observer);
        let running = Running {
            asker: Asker {
                model: self.model,
                answers,
                account: Account::new(self.options.limits),
                attempts: self.options.rounds + 1,
                seed: self.maker.options.seed,
                observer: &tally,
            },
            tally: &tally,
            stopped: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            why: Mutex::default(),
        };
        let mut ends: HashMap<u64, Ended> = HashMap::new();
        let mut open = Vec::new();
        for task in &*tasks {
            let asked = self.asked(task)?;
            match file.get(task.candidate) {
                Some(Ok(ended)) if ended.identity == asked.identity => {
                    running.asker.account.add(&ended.spent);
                    ends.insert(task.candidate, ended.clone());
                }
                _ => open.push(asked),
            }
        }
        let concurrent = self.options.concurrent.max(1);
        let mut ended = stream::iter(open)
            .map(|asked| self.end(asked, &running))
            .buffer_unordered(concurrent);
        while let Some(result) = ended.next().await {
            let result = result?;
            self.maker.suite.playable().check_served()?;
            if let Some((candidate, end)) = result {
                file.append(vec![(candidate, Ok(end.clone()))], &Hashes::default())?;
                ends.insert(candidate, end);
            }
        }
        drop(ended);
        let mut report = self.apply(tasks, &ends)?;
        report.why = running
            .why
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        report.spent = running.asker.account.spent();
        Ok(report)
    }

    /// The question about a task, with a hash of everything that the result depends on.
    fn asked<'t>(&self, task: &'t TaskRecord) -> Result<Asked<'t>, PromptError> {
        let question = question(self.maker, self.prompts, task)?;
        let solve = if self.options.attempts > 0 {
            self.prompts
                .render("solve", &[("tools", ""), ("schema", "")])?
        } else {
            String::new()
        };
        let all = json!([
            self.model.identity(),
            self.maker.options.seed,
            question.messages,
            self.options.rounds,
            self.options.attempts,
            self.options.min_passes,
            solve,
        ]);
        let identity = blake3::hash(all.to_string().as_bytes()).to_hex();
        Ok(Asked {
            task,
            question,
            identity: identity[..16].to_owned(),
        })
    }

    /// Asks for the words of a task until they pass or the rounds are used up. None if there was no answer.
    async fn end(
        &self,
        asked: Asked<'_>,
        running: &Running<'_>,
    ) -> Result<Option<(u64, Ended)>, RewriteError> {
        let Asked {
            task,
            question,
            identity,
        } = asked;
        if running.stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let last = Mutex::new(Fault::form("no answer"));
        let result = self.texts(task, question, running, &last).await;
        let (turns, refused) = match result {
            Ok(Ok(turns)) => (turns, None),
            Ok(Err(why)) => {
                let last = last.into_inner().unwrap_or_else(PoisonError::into_inner);
                (Vec::new(), Some((last.kind.to_owned(), why.to_string())))
            }
            Err(RewriteError::Ask(error)) => return running.unanswered(error),
            Err(error) => return Err(error),
        };
        running.failures.store(0, Ordering::Relaxed);
        let ended = Ended {
            identity,
            spent: running.tally.spent(&task.id),
            turns,
            refused,
        };
        Ok(Some((task.candidate, ended)))
    }

    /// Asks for the words of each turn. Returns them, or the reason why the last text cannot be used. `last` is set to
    /// the faults of that text.
    async fn texts(
        &self,
        task: &TaskRecord,
        mut question: Question,
        running: &Running<'_>,
        last: &Mutex<Fault>,
    ) -> Result<Result<Vec<String>, Unusable>, RewriteError> {
        let graph = self.maker.graph(task.servers.keys())?;
        let remember = |faults: &[Fault]| {
            if let Some(first) = faults.first() {
                *last.lock().unwrap_or_else(PoisonError::into_inner) = first.clone();
            }
        };
        // Texts that the checks refuse and texts from which the model cannot solve the task count alike.
        let most = self.options.rounds + 1;
        let asked = AtomicU32::new(0);
        let mut round = 0;
        loop {
            let left = most.saturating_sub(asked.load(Ordering::Relaxed));
            let (answer, rewritten) = {
                let accepted = running.asker.text_within(&question, left, |answer| {
                    asked.fetch_add(1, Ordering::Relaxed);
                    let texts = Reworded::read(answer);
                    let found = texts.and_then(|texts| accept(self.maker, &graph, task, &texts));
                    found
                        .map(|rewritten| (answer.to_owned(), rewritten))
                        .map_err(|faults| {
                            remember(&faults);
                            Unusable::new(listed(&faults))
                        })
                });
                match accepted.await {
                    Err(AskError::Unusable { why, .. }) => return Ok(Err(why)),
                    found => found?,
                }
            };
            let unsolved = self.solved(&rewritten, running).await?;
            let Some(unsolved) = unsolved else {
                let turns = rewritten.turns.into_iter();
                return Ok(Ok(turns.map(|turn| turn.query).collect()));
            };
            let fault = Fault::unsolved(&unsolved);
            remember(std::slice::from_ref(&fault));
            let why = Unusable::new(listed(&[fault]));
            round += 1;
            if asked.load(Ordering::Relaxed) >= most {
                return Ok(Err(why));
            }
            question = again(&question, round, &answer, &why);
        }
    }

    /// Lets the model solve a task. None if enough attempts succeed, or if none is asked for. Otherwise the last
    /// failure.
    async fn solved(
        &self,
        task: &TaskRecord,
        running: &Running<'_>,
    ) -> Result<Option<Unsolved>, RewriteError> {
        let wanted = self.options.min_passes.min(self.options.attempts);
        let (mut passes, mut last) = (0, None);
        for attempt in 0..self.options.attempts {
            let left = self.options.attempts - attempt;
            if passes >= wanted || passes + left < wanted {
                break;
            }
            let suite = self.maker.suite;
            match solver::attempt(suite, self.prompts, &running.asker, task, attempt).await? {
                None => passes += 1,
                Some(failure) => last = Some(failure),
            }
        }
        Ok(last.filter(|_| passes < wanted))
    }
}

impl Running<'_> {
    /// Notes why there is no answer. After a limit is reached, or after too many failures, no further question is
    /// asked. An error of the disk ends everything.
    fn unanswered(&self, error: AskError) -> Result<Option<(u64, Ended)>, RewriteError> {
        let is_end = match &error {
            AskError::Disk { .. } => return Err(error.into()),
            AskError::OutOfTokens { .. } | AskError::OutOfTime { .. } => true,
            AskError::Endpoint { .. } | AskError::Unusable { .. } => {
                self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_FAILURES
            }
        };
        let mut why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        why.get_or_insert_with(|| error.to_string());
        if is_end {
            self.stopped.store(true, Ordering::Relaxed);
        }
        Ok(None)
    }
}
