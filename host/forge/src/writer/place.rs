//! Putting a sound environment where it is used: into a folder of environments.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rlf_plugins::python_environment::SCENARIOS_FILE;
use serde_json::Value;

use super::WriteError;
use super::candidate::Candidate;

/// Writes a candidate, whose file is `at`, into a folder, and adds its scenarios to the existing ones. If the folder
/// has another file of its name, that is an error, and nothing is overwritten. Returns the file.
pub(super) fn place(
    candidate: &Candidate,
    at: &Path,
    scenarios: Vec<Value>,
    folder: &Path,
) -> Result<PathBuf, WriteError> {
    let disk = |path: &Path, source: io::Error| WriteError::Disk {
        path: path.to_owned(),
        source,
    };
    let file = folder.join(candidate.file());
    match fs::read_to_string(&file) {
        Ok(there) if there == candidate.text() => {}
        Ok(_) => {
            let candidate = at.to_owned();
            return Err(WriteError::Taken {
                path: file,
                candidate,
            });
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(disk(&file, error)),
    }
    fs::create_dir_all(folder).map_err(|error| disk(folder, error))?;
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
