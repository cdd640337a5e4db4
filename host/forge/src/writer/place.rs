//! Putting a sound environment where it is used: into a folder of environments.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rlf_files::{FolderLock, LOCK_FILE, LockError};
use rlf_plugins::python_environment::SCENARIOS_FILE;
use serde_json::Value;

use super::WriteError;
use super::candidate::Candidate;

/// Extensions of the files of environments. Two files whose names differ in nothing else are two environments of one
/// name.
const EXTENSIONS: [&str; 3] = ["toml", "json", "py"];

/// Creates a folder, and locks it until the result is dropped.
pub(super) fn lock(folder: &Path) -> Result<FolderLock, WriteError> {
    fs::create_dir_all(folder).map_err(|error| disk(folder, error))?;
    FolderLock::take(folder).map_err(|error| match error {
        LockError::Held { .. } => WriteError::InUse(folder.to_owned()),
        LockError::Io(error) => disk(&folder.join(LOCK_FILE), error),
    })
}

fn disk(path: &Path, source: io::Error) -> WriteError {
    WriteError::Disk {
        path: path.to_owned(),
        source,
    }
}

/// Writes a candidate, whose file is `at`, into a folder, and adds its scenarios to the existing ones. If the folder
/// has another environment of its name, that is an error, and nothing is overwritten. Returns the file.
pub(super) fn place(
    candidate: &Candidate,
    at: &Path,
    scenarios: Vec<Value>,
    folder: &Path,
) -> Result<PathBuf, WriteError> {
    let _lock = lock(folder)?;
    let file = folder.join(candidate.file());
    for extension in EXTENSIONS {
        let path = file.with_extension(extension);
        match fs::read_to_string(&path) {
            Ok(there) if path == file && there == candidate.text() => {}
            Ok(_) => {
                let candidate = at.to_owned();
                return Err(WriteError::Taken { path, candidate });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(disk(&path, error)),
        }
    }
    if !scenarios.is_empty() {
        let path = folder.join(SCENARIOS_FILE);
        let mut all = read(&path).map_err(|error| disk(&path, error))?;
        all.retain(|one| !is_of(one, &candidate.name));
        all.extend(scenarios);
        let text = format!("{:#}\n", Value::Array(all));
        rlf_files::write(&path, text.as_bytes()).map_err(|error| disk(&path, error))?;
    }
    rlf_files::write(&file, candidate.text().as_bytes()).map_err(|error| disk(&file, error))?;
    Ok(file)
}

fn read(path: &Path) -> io::Result<Vec<Value>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(rlf_json::from_str(&text)?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// True if a scenario is of this server alone.
fn is_of(scenario: &Value, name: &str) -> bool {
    let servers = scenario["task"]["servers"].as_object();
    servers.is_some_and(|servers| servers.len() == 1 && servers.contains_key(name))
}

#[cfg(test)]
mod tests {
    use rlf_specification::Format;

    use super::super::candidate::Source;
    use super::*;

    #[test]
    fn an_environment_is_put_where_no_other_has_its_name_and_nobody_else_writes() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let candidate = |format| Candidate {
            name: "Doors".to_owned(),
            source: Source::Specification {
                text: "{}\n".to_owned(),
                format,
            },
        };
        let put = |format| place(&candidate(format), Path::new("at"), Vec::new(), folder);
        let held = lock(folder).unwrap();
        assert!(matches!(put(Format::Json), Err(WriteError::InUse(_))));
        drop(held);
        let file = put(Format::Json).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "{}\n");
        assert_eq!(put(Format::Json).unwrap(), file);
        let error = put(Format::Toml).unwrap_err();
        assert!(
            matches!(&error, WriteError::Taken { path, .. } if *path == file),
            "{error}"
        );
        assert!(!folder.join("Doors.toml").exists());
    }
}
