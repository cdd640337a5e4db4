//! Answers on disk, one file each.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rlf_endpoint::{ChatMessage, Spent, Usage};
use serde::{Deserialize, Serialize};

use super::error::AskError;

/// Digits of the identity in a file's name.
const DIGITS: usize = 16;

/// An answer with its question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The stage.
    pub stage: String,
    /// Hash of everything that the answer depends on.
    pub identity: String,
    /// The model, with its temperature.
    pub model: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Seconds until the answer arrived.
    pub seconds: f64,
    /// Tokens of question and answer.
    pub usage: Usage,
    /// True if the tokens are estimated, because the endpoint counts none.
    pub estimated: bool,
    /// True if the limit of tokens cut it short.
    pub cut_short: bool,
    /// The answer.
    pub text: String,
    /// The question.
    pub messages: Vec<ChatMessage>,
}

impl Answer {
    /// Its tokens and time.
    pub fn spent(&self) -> Spent {
        Spent {
            answers: 1,
            prompt_tokens: self.usage.prompt_tokens,
            answer_tokens: self.usage.completion_tokens,
            seconds: self.seconds,
        }
    }
}

/// A folder of answers. It is made with the first answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers {
    folder: PathBuf,
}

impl Answers {
    /// The answers in a folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { folder }
    }

    /// The file of an answer.
    pub fn file(&self, stage: &str, identity: &str) -> PathBuf {
        let digits = &identity[..identity.len().min(DIGITS)];
        self.folder.join(format!("{stage}-{digits}.json"))
    }

    /// The stored answer with this identity, if there is one.
    pub(super) fn get(&self, stage: &str, identity: &str) -> Result<Option<Answer>, AskError> {
        let path = self.file(stage, identity);
        let cannot = |source| disk("read", &path, source);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot(error)),
        };
        let answer: Answer = serde_json::from_slice(&text).map_err(|error| {
            cannot(io::Error::other(format!("{error}; delete it to ask again")))
        })?;
        Ok((answer.identity == identity).then_some(answer))
    }

    /// Keeps an answer.
    pub(super) fn put(&self, answer: &Answer) -> Result<(), AskError> {
        let path = self.file(&answer.stage, &answer.identity);
        let text = serde_json::to_vec_pretty(answer).map_err(io::Error::from);
        fs::create_dir_all(&self.folder)
            .and_then(|()| rlf_files::write(&path, &text?))
            .map_err(|source| disk("write", &path, source))
    }
}

fn disk(action: &'static str, path: &Path, source: io::Error) -> AskError {
    let path = path.to_owned();
    AskError::Disk {
        action,
        path,
        source,
    }
}
