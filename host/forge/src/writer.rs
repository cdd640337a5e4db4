//! Environments written by a language model, from a description in a line.
//!
//! The stages are questions: a sketch, a plan of entities and operations, the text (a specification, or Python in
//! EnvFactory's form), and four scenarios. The result is a candidate. It is examined: static checks, the plan, and
//! verification by playing. What is found goes back to the model, which revises the candidate, for a number of rounds.
//!
//! Whatever the model says, only the examination decides. If a revision claims to have mended a fault that is found
//! again, the model is told so. A revision that leaves out planned operations has findings. The rounds end when a
//! candidate is sound, when rounds, tokens or time end, or when a revision makes no progress; the best candidate is
//! kept.
//!
//! Every answer and every round stays on disk. The same request goes on where it was stopped, without asking again.
//!
//! | looking for | module |
//! |---|---|
//! | writing one environment: [`Writer::write`] | this one |
//! | asking a model | [`crate::ask`] |
//! | the shipped prompts | `prompt_set`: [`PROMPTS`] |
//! | the stages | `stages`, with the answers' types in [`plan`] |
//! | the files of a candidate | `candidate`: [`Candidate`], [`Form`] |
//! | what is found in it | `examine`: [`Examination`], [`Opener`] |
//! | verify and revise | `rounds`: [`Round`], [`Stop`], `claims`: [`Claims`] |
//! | an estimate before a model is asked | `estimate`: [`estimate()`] |

mod candidate;
mod claims;
mod estimate;
mod examine;
mod place;
pub mod plan;
mod prompt_set;
mod rounds;
mod stages;

pub use candidate::{Candidate, Form, Source, StateScenario};
pub use claims::Claims;
pub use estimate::{Estimate, StageEstimate, estimate};
pub use examine::{Examination, Finding, NotOpened, Opener, Reached, Thoroughness};
pub use prompt_set::PROMPTS;
pub use rounds::{Round, Standstill, Stop};

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use rlf_endpoint::Spent;
use serde::Serialize;
use serde_json::{Value, json};

use self::rounds::Revised;
use self::stages::Drafted;
use crate::ask::prompts::{PromptError, Prompts};
use crate::ask::{AskError, AskObserver, Asker};

/// Folder of the answers, in the folder of an environment's work.
const ANSWERS: &str = "answers";
/// The request, in the folder of an environment's work.
const REQUEST: &str = "request.json";
/// The result, in the folder of an environment's work.
const REPORT: &str = "report.json";

/// An environment to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The environment in a line: `a library that lends tools`.
    pub description: String,
    /// The form to write it in.
    pub form: Form,
    /// Maximum number of revisions. Default of the program: 3.
    pub rounds: u32,
    /// Thoroughness of the examinations.
    pub thoroughness: Thoroughness,
}

impl Request {
    /// The folder of its work in the folder of the work on all environments: `WORDS-HASH`, by description and form.
    pub fn folder(&self, work: &Path) -> PathBuf {
        const WORDS: usize = 6;
        const BYTES: usize = 48;
        let lower = self.description.to_lowercase();
        let words = lower.split(|one: char| !one.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).take(WORDS).collect();
        let mut slug = words.join("-");
        slug.truncate(BYTES);
        let identity = json!([self.description, self.form]).to_string();
        let hash = blake3::hash(identity.as_bytes()).to_hex();
        let name = format!("{slug}-{}", &hash[..8]);
        work.join(name.trim_start_matches('-'))
    }

    /// The folder of the model's answers.
    pub fn answers(&self, work: &Path) -> PathBuf {
        self.folder(work).join(ANSWERS)
    }
}

/// Follows the writing of an environment.
pub trait WriteObserver: AskObserver {
    /// A candidate was examined.
    fn examined(&self, round: &Round) {
        let _ = round;
    }
}

impl WriteObserver for crate::ask::Silent {}

/// The reason why there is no candidate at all, or none can be kept. What is on disk stays there.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A prompt is wrong.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// A question before the first candidate has no answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// A file cannot be written or read.
    #[error("cannot read or write {}: {source}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process writes into the folder.
    #[error("another process writes into {}", .0.display())]
    InUse(PathBuf),
    /// A candidate cannot be played, and is not to blame for that.
    #[error("{} cannot be played: {why}", path.display())]
    Unplayable {
        /// The candidate.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Another environment of this name exists.
    #[error("{} is there and differs; move it away to have {}", path.display(), candidate.display())]
    Taken {
        /// The file of that environment.
        path: PathBuf,
        /// The sound environment that was written.
        candidate: PathBuf,
    },
}

/// The result of writing an environment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Written {
    /// Name of the environment.
    pub name: String,
    /// Its form.
    pub form: Form,
    /// True if it is sound, and so in the folder of environments.
    pub sound: bool,
    /// The environment, or the best candidate if none is sound.
    pub file: PathBuf,
    /// The reason why there was no further round.
    pub stop: Stop,
    /// Number of the best round.
    pub best: usize,
    /// All rounds.
    pub rounds: Vec<Round>,
    /// Tokens and time spent, answers from disk included.
    pub spent: Spent,
}

/// Writes environments.
pub struct Writer<'a> {
    /// Asks the model. Its answers belong in [`Request::answers`].
    pub asker: &'a Asker<'a>,
    /// The prompts.
    pub prompts: &'a Prompts,
    /// Opens candidates.
    pub opener: &'a dyn Opener,
    /// The folder of environments. The work does not belong in it, because environments are looked for in all of its
    /// folders.
    pub output: PathBuf,
    /// The folder of this environment's work: [`Request::folder`].
    pub folder: PathBuf,
    /// The observer of the writing.
    pub observer: &'a dyn WriteObserver,
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("asker", &self.asker)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl Writer<'_> {
    /// Writes an environment.
    pub fn write<'w>(&'w self, request: &'w Request) -> BoxFuture<'w, Result<Written, WriteError>> {
        Box::pin(async move {
            // Two processes with the same request would both pay for it.
            let _lock = place::lock(&self.folder)?;
            // It is written first, so that a folder that cannot be written to is found before a model is paid.
            let asked = json!({
                "description": request.description,
                "form": request.form,
                "model": self.asker.model.identity(),
                "seed": self.asker.seed,
            });
            keep(&self.folder.join(REQUEST), &asked)?;
            let Drafted { plan, candidate } =
                self.draft(&request.description, request.form).await?;
            let Revised {
                rounds,
                candidates,
                best,
                stop,
            } = self.rounds(request, &plan, candidate).await?;
            let candidate = &candidates[best];
            let mut written = Written {
                name: candidate.name.clone(),
                form: request.form,
                sound: stop == Stop::Sound,
                file: rounds[best].file.clone(),
                stop,
                best,
                rounds,
                spent: self.asker.account.spent(),
            };
            keep(&self.folder.join(REPORT), &json!(written))?;
            if written.sound {
                let scenarios = self.expected(candidate, &written.file).await?;
                written.file = place::place(candidate, &written.file, scenarios, &self.output)?;
                keep(&self.folder.join(REPORT), &json!(written))?;
            }
            Ok(written)
        })
    }

    /// The scenarios of a sound Python file, each with the state that it has before any call.
    async fn expected(&self, candidate: &Candidate, file: &Path) -> Result<Vec<Value>, WriteError> {
        let mut scenarios = candidate.scenarios();
        if scenarios.is_empty() {
            return Ok(scenarios);
        }
        let cannot = |why: String| WriteError::Unplayable {
            path: file.to_owned(),
            why,
        };
        let environments = self.opener.open(file).await;
        let environments = environments.map_err(|error| cannot(error.to_string()))?;
        for scenario in &mut scenarios {
            let session = environments.open(&candidate.name, "expected", &scenario["task"], 0);
            let session = session.await.map_err(|error| cannot(error.to_string()))?;
            let state = session
                .state()
                .await
                .map_err(|error| cannot(error.to_string()))?;
            let state = rlf_json::from_str::<Value>(&state);
            scenario["expect"] = state.map_err(|error| cannot(error.to_string()))?;
        }
        Ok(scenarios)
    }
}

/// Writes a record.
fn keep(path: &Path, record: &Value) -> Result<(), WriteError> {
    let text = format!("{record:#}\n");
    rlf_files::write(path, text.as_bytes()).map_err(|source| WriteError::Disk {
        path: path.to_owned(),
        source,
    })
}
