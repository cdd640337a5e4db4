//! Downloads published checkpoints by name, into the folder that Python's `huggingface_hub` uses too.
//!
//! `hf-hub` speaks with the hub. This crate decides which files a checkpoint needs, takes all of them from one commit, and
//! checks them. It must not know how a checkpoint is used. It believes the hub in one point: `hf-hub` panics if a redirection
//! names no place.
//!
//! ```no_run
//! let hub = rlf_hub::Hub::from_environment()?;
//! let folder = hub.checkpoint("Qwen/Qwen3-0.6B", "main")?;
//! println!("model.checkpoint = {:?}", folder.display().to_string());
//! # Ok::<(), rlf_hub::HubError>(())
//! ```

mod error;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::{env, fs};

use hf_hub::api::sync::{Api, ApiBuilder, ApiError, ApiRepo};
use hf_hub::{Cache, Repo, RepoType};
use rlf_policy::Qwen3Config;
use sha2::{Digest, Sha256};

pub use self::error::HubError;

/// Times that a file whose download broke off is asked for again, from where it broke off.
const RETRIES: usize = 5;

/// A hub of models, and the folder that keeps what it sent.
#[derive(Debug)]
pub struct Hub {
    api: Api,
    cache: Cache,
    endpoint: String,
}

impl Hub {
    /// The hub and the folder that the environment names, as for `huggingface_hub`: `HF_ENDPOINT`, `HF_HOME` and `HF_TOKEN`.
    ///
    /// # Errors
    /// If no home folder is known, and `HF_HOME` is not set.
    pub fn from_environment() -> Result<Self, HubError> {
        let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let home = set("HF_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(env::home_dir()?.join(".cache/huggingface")));
        let cache = Cache::new(home.ok_or(HubError::NoHome)?.join("hub"));
        let endpoint = set("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_owned());
        let token = set("HF_TOKEN").or_else(|| cache.token());
        Self::new(&endpoint, cache, token, true)
    }

    fn new(
        endpoint: &str,
        cache: Cache,
        token: Option<String>,
        progress: bool,
    ) -> Result<Self, HubError> {
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let api = ApiBuilder::from_cache(cache.clone())
            .with_endpoint(endpoint.clone())
            .with_token(token)
            .with_retries(RETRIES)
            .with_progress(progress)
            .build();
        Ok(Self {
            api: api.map_err(|source| HubError::request("the hub", source))?,
            cache,
            endpoint,
        })
    }

    /// Downloads the checkpoint of a model, such as `Qwen/Qwen3-0.6B`, and returns its folder. `revision` is a branch, a tag
    /// or a commit. Files that are there already are checked, and not downloaded again. A download that was broken
    /// off goes on.
    ///
    /// # Errors
    /// If the hub cannot be reached or has no such model, if the model is not one that can be trained, or if a file is not
    /// the one that the hub announced.
    pub fn checkpoint(&self, name: &str, revision: &str) -> Result<PathBuf, HubError> {
        if !is_name(name) || !is_path(revision) {
            return Err(HubError::Name {
                name: name.to_owned(),
                revision: revision.to_owned(),
            });
        }
        let repo = |revision: &str| {
            Repo::with_revision(name.to_owned(), RepoType::Model, revision.to_owned())
        };
        let info = self.api.repo(repo(revision)).info();
        let info = info.map_err(|error| {
            let error = Refused::Request(Box::new(error));
            let list = format!("the list of files at {}", self.endpoint);
            self.failure(name, revision, &list, error)
        })?;
        let commit = info.sha;
        if !is_hash(&commit) {
            return Err(HubError::Damaged(format!("the commit {commit:?}")));
        }
        let files = info.siblings.into_iter().map(|file| file.rfilename);
        let (first, others): (Vec<_>, Vec<_>) = files
            .filter(|file| is_needed(file))
            .partition(|file| file == "config.json");
        let weights = others.iter().any(|file| has_extension(file, "safetensors"));
        if first.is_empty() || !weights {
            return Err(HubError::NoCheckpoint(name.to_owned()));
        }
        let folder = (self.cache.repo(repo(&commit))).pointer_path(&commit);
        let repo = self.api.repo(repo(&commit));
        // The small file first: it tells whether the large ones are of use.
        for file in first.iter().chain(&others) {
            if !folder.join(file).exists() {
                self.download(&repo, &commit, file)
                    .map_err(|error| self.failure(name, revision, file, error))?;
            }
            check(&folder, file)?;
            if file == "config.json" {
                Qwen3Config::load(&folder)?;
            }
        }
        Ok(folder)
    }

    /// Downloads a file of a commit.
    fn download(&self, repo: &ApiRepo, commit: &str, file: &str) -> Result<(), Refused> {
        let request = |error| Refused::Request(Box::new(error));
        let announced = self.api.metadata(&repo.url(file)).map_err(request)?;
        // It becomes the name of a file.
        if announced.commit_hash() != commit || !is_hash(announced.etag()) {
            return Err(Refused::Damaged);
        }
        repo.download(file).map_err(request)?;
        Ok(())
    }

    /// The error of a request for a model. A hub does not tell a model that does not exist from one that may not be read.
    fn failure(&self, name: &str, revision: &str, what: &str, error: Refused) -> HubError {
        let error = match error {
            Refused::Damaged => return HubError::Damaged(what.to_owned()),
            Refused::Request(error) => *error,
        };
        if let ApiError::RequestError(request) = &error
            && let ureq::Error::StatusCode(401 | 403 | 404) = **request
        {
            return HubError::NotFound {
                name: name.to_owned(),
                revision: revision.to_owned(),
                endpoint: self.endpoint.clone(),
            };
        }
        HubError::request(what, error)
    }
}

/// The reason why a file was not downloaded.
enum Refused {
    Request(Box<ApiError>),
    Damaged,
}

/// Checks that a file is the one that the hub announced, also if it was there before: a check that was broken off counts for
/// nothing.
fn check(folder: &Path, file: &str) -> Result<(), HubError> {
    let link = folder.join(file);
    let failed = |source| HubError::Read {
        path: link.clone(),
        source,
    };
    let content = fs::canonicalize(&link).map_err(failed)?;
    let announced = content.file_name().and_then(|name| name.to_str());
    // Large files have the names of their SHA-256, and small ones those of git.
    if let Some(announced) = announced.filter(|name| name.len() == 64)
        && sha256(&content).map_err(failed)? != announced
    {
        fs::remove_file(&link).map_err(failed)?;
        fs::remove_file(&content).map_err(failed)?;
        return Err(HubError::Damaged(file.to_owned()));
    }
    Ok(())
}

/// The SHA-256 of a file, in hexadecimal digits.
fn sha256(file: &Path) -> io::Result<String> {
    let mut reader = io::BufReader::with_capacity(1 << 20, fs::File::open(file)?);
    let mut hash = Sha256::new();
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(format!("{:x}", hash.finalize()));
        }
        hash.update(bytes);
        let count = bytes.len();
        reader.consume(count);
    }
}

/// True for a hash in hexadecimal digits.
fn is_hash(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// True for the files of a checkpoint that this project and others read. Hubs have further ones, in other formats.
fn is_needed(file: &str) -> bool {
    let extensions = ["json", "jinja", "safetensors"];
    is_path(file) && !file.contains('/') && extensions.iter().any(|end| has_extension(file, end))
}

fn has_extension(file: &str, extension: &str) -> bool {
    Path::new(file)
        .extension()
        .is_some_and(|end| end == extension)
}

/// True for `owner/model`.
fn is_name(name: &str) -> bool {
    is_path(name) && name.split('/').count() == 2
}

/// True for a path that can stand in a URL, and that leads nowhere else.
fn is_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    path.split('/')
        .all(|part| !part.is_empty() && !part.starts_with('.') && part.bytes().all(plain))
}
