//! Digests of the weights and states in a folder, so that a byte that changed on the disk is noticed before anyone trains
//! on it.
//!
//! `BLAKE3SUMS` has one line for each file, in the format of the program `b3sum`, which can check it too.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;

use super::error::RunError;
use super::layout::{REPLAY, ROLLOUTS};
use super::whole;

const FILE: &str = "BLAKE3SUMS";

/// Writes the digests of all weights in `folder` and the folders in it, which are files `*.safetensors`, and of the
/// states of rollouts and of experience replay.
pub(super) fn write(folder: &Path) -> Result<(), RunError> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    whole::write_file(&folder.join(FILE), lines(folder, files)?.as_bytes())
}

/// Adds the files of `folder` and of the folders in it that have a digest.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), RunError> {
    let list = |error| RunError::io("list", folder, error);
    for entry in fs::read_dir(folder).map_err(list)? {
        let path = entry.map_err(list)?.path();
        let is_state = path
            .file_name()
            .is_some_and(|name| name == ROLLOUTS || name == REPLAY);
        if path.is_dir() {
            collect(&path, files)?;
        } else if is_state || path.extension().is_some_and(|end| end == "safetensors") {
            files.push(path);
        }
    }
    Ok(())
}

/// The first file of `folder` whose content is not the one that [`write()`] saw, out of those that `wanted` accepts by name.
/// `None` too if the folder has no digests, because an earlier version wrote none.
pub(super) fn altered(
    folder: &Path,
    wanted: impl Fn(&str) -> bool,
) -> Result<Option<PathBuf>, RunError> {
    let file = folder.join(FILE);
    let text = match rlf_files::read_text(&file, rlf_files::MAX_TEXT_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|e| RunError::io("read", &file, e))?,
    };
    let (mut files, mut written) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let Some((digest, name)) = line.split_once("  ") else {
            return Ok(Some(file));
        };
        if wanted(name) {
            files.push(folder.join(name));
            written.push(digest);
        }
    }
    for ((file, written), digest) in files.iter().zip(written).zip(digests(&files)) {
        match digest {
            Ok(digest) if digest == written => {}
            Ok(_) => return Ok(Some(file.clone())),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(file.clone())),
            Err(error) => return Err(RunError::io("read", file, error)),
        }
    }
    Ok(None)
}

/// The BLAKE3 digest of a file, in hexadecimal.
pub(super) fn file_digest(file: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(file)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// The BLAKE3 digest of a model's folder: of its lines in the format of `b3sum`, one for each file of weights, adapters,
/// settings, tokenizer and template. Other files do not count, such as an optimiser's state.
pub(super) fn folder_digest(folder: &Path) -> Result<String, RunError> {
    let list = |error| RunError::io("list", folder, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(list)? {
        let path = entry.map_err(list)?.path();
        let name = path.file_name().and_then(OsStr::to_str);
        if path.is_file() && name.is_some_and(is_of_model) {
            files.push(path);
        }
    }
    Ok(blake3::hash(lines(folder, files)?.as_bytes()).to_string())
}

/// True if loading a model reads a file of this name: `model-00001-of-00002.safetensors`, for example.
fn is_of_model(name: &str) -> bool {
    name.starts_with("model")
        || name.starts_with("adapter_")
        || [
            "chat_template.jinja",
            "config.json",
            "generation_config.json",
            "tokenizer.json",
            "tokenizer_config.json",
        ]
        .contains(&name)
}

/// One line for each of these files, with its digest and its name in `folder`.
fn lines(folder: &Path, mut files: Vec<PathBuf>) -> Result<String, RunError> {
    files.sort();
    let mut lines = String::new();
    for (file, digest) in files.iter().zip(digests(&files)) {
        let digest = digest.map_err(|e| RunError::io("read", file, e))?;
        let name = file.strip_prefix(folder).unwrap_or(file);
        let _ = writeln!(lines, "{digest}  {}", name.display());
    }
    Ok(lines)
}

/// The digests of some files, which are read side by side.
fn digests(files: &[PathBuf]) -> Vec<io::Result<String>> {
    thread::scope(|scope| {
        let running: Vec<_> = files
            .iter()
            .map(|file| scope.spawn(move || file_digest(file)))
            .collect();
        running
            .into_iter()
            .map(|thread| {
                let broke = || io::Error::other("the thread that read it broke");
                thread.join().unwrap_or_else(|_| Err(broke()))
            })
            .collect()
    })
}
