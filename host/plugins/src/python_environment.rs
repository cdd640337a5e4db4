//! Environments written in Python: a folder of files, one server each. The interpreter gets them when it is loaded, so
//! every session starts from memory in which they are already imported.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The file of scenarios that `env check` plays, beside the servers.
pub const SCENARIOS_FILE: &str = "scenarios.json";

/// Maximum size of a file, in bytes. Larger files are refused.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Maximum number of servers of one environment.
const MAX_SERVERS: usize = 256;

/// A short episode that comes with an environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub id: String,
    /// The task that the session is opened with.
    #[serde(default)]
    pub task: Value,
    /// Seed of all randomness.
    #[serde(default)]
    pub seed: u64,
    /// Names and arguments of the calls, in order.
    pub calls: Vec<(String, Value)>,
    /// Expected state after the calls. For a scenario without one, `env check` reports a problem that shows the actual
    /// state.
    #[serde(default)]
    pub expect: Option<Value>,
}

/// The reason why the files of an environment cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PythonEnvironmentError {
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action: open, list or read.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is too large, or is not a regular file.
    #[error("cannot read {}: it is not a regular file, or has more than {MAX_FILE_BYTES} bytes", .0.display())]
    NotAFile(PathBuf),
    /// The folder has no server.
    #[error("there is no server in {}: a server is a file `Name.py`, with a capital", .0.display())]
    NoServer(PathBuf),
    /// The folder has too many servers.
    #[error("{} has {count} servers; at most {MAX_SERVERS} are taken", folder.display())]
    TooManyServers {
        /// The folder.
        folder: PathBuf,
        /// Their number.
        count: usize,
    },
    /// The file of scenarios is not a list of scenarios.
    #[error("{}: {problem}", file.display())]
    Scenarios {
        /// The file.
        file: PathBuf,
        /// The mistake, and the number of the scenario that has it.
        problem: String,
    },
}

/// `[plugins.<alias>.environment]` of an interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PythonEnvironment {
    /// A folder of files in EnvFactory's format, or one such file. Each is a server with the name of its file. Tasks
    /// name a server and the state in which it begins. Default: none, for tasks that bring their own functions.
    pub servers: Option<PathBuf>,
}

impl PythonEnvironment {
    /// The environment in `servers`.
    pub fn new(servers: PathBuf) -> Self {
        Self {
            servers: Some(servers),
        }
    }

    /// The paths, which are relative to the configuration's folder.
    pub(crate) fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.servers.iter_mut()
    }

    /// True if there is any server, whatever else is wrong.
    pub fn has_servers(&self) -> bool {
        let Some(path) = &self.servers else {
            return false;
        };
        let (folder, only) = place(path);
        let files = Files::open(folder);
        files.is_ok_and(|files| files.servers(only.as_deref()).is_ok())
    }

    /// Reads the files for the interpreter's `init`.
    pub fn read(&self) -> Result<Value, PythonEnvironmentError> {
        let mut servers = Map::new();
        let mut scenarios = Vec::new();
        if let Some(path) = &self.servers {
            let (folder, only) = place(path);
            let files = Files::open(folder)?;
            for (name, source) in files.servers(only.as_deref())? {
                let file = format!("{name}.py");
                servers.insert(name, json!({ "source": source, "file": file }));
            }
            if let Some(text) = files.text_if_there(SCENARIOS_FILE)? {
                scenarios = scenarios_of(&text).map_err(|problem| {
                    let file = folder.join(SCENARIOS_FILE);
                    PythonEnvironmentError::Scenarios { file, problem }
                })?;
                if only.is_some() {
                    scenarios.retain(|scenario| takes_place_in(scenario, &servers));
                }
            }
        }
        Ok(json!({ "servers": servers, "scenarios": scenarios }))
    }
}

/// Checks the form of files that did not come from a folder: see [`PythonEnvironment::read`].
pub(crate) fn check(files: &Value) -> Result<(), String> {
    let Some(servers) = files["servers"].as_object() else {
        return Err("its environment has no servers".to_owned());
    };
    if servers.len() > MAX_SERVERS {
        return Err(format!("its environment has {} servers", servers.len()));
    }
    match servers
        .keys()
        .find(|name| name.chars().any(char::is_control) || name.len() > 255)
    {
        Some(name) => Err(format!(
            "its environment has a server with the name {name:.64?}"
        )),
        None => Ok(()),
    }
}

/// The folder of the servers, and the file name if only one file is meant.
fn place(path: &Path) -> (&Path, Option<String>) {
    let (folder, only) = match path.extension() {
        Some(_) if path.is_file() => (path.parent().unwrap_or(path), path.file_name()),
        _ => (path, None),
    };
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    (folder, only.map(|name| name.to_string_lossy().into_owned()))
}

/// Parses a list of scenarios. The error says which entry is not a scenario.
fn scenarios_of(text: &str) -> Result<Vec<Scenario>, String> {
    let rows: Value = rlf_json::from_str(text).map_err(|error| error.to_string())?;
    let Value::Array(rows) = rows else {
        return Err("it is no list of scenarios".into());
    };
    let scenario = |(number, row): (usize, Value)| {
        let id = row["id"].as_str().map(|id| format!(" (`{id}`)"));
        serde_json::from_value(row)
            .map_err(|error| format!("scenario {}{}: {error}", number + 1, id.unwrap_or_default()))
    };
    rows.into_iter().enumerate().map(scenario).collect()
}

/// True if every server that the scenario names is loaded.
fn takes_place_in(scenario: &Scenario, servers: &Map<String, Value>) -> bool {
    let named = scenario.task["servers"].as_object();
    named.is_none_or(|named| named.keys().all(|name| servers.contains_key(name)))
}

struct Files<'a> {
    folder: &'a Path,
    open: Dir,
}

impl<'a> Files<'a> {
    fn open(folder: &'a Path) -> Result<Self, PythonEnvironmentError> {
        let open = Dir::open_ambient_dir(folder, ambient_authority());
        Ok(Self {
            folder,
            open: open.map_err(failed("open", folder))?,
        })
    }

    /// Names and sources of the servers, sorted by name.
    fn servers(&self, only: Option<&str>) -> Result<Vec<(String, String)>, PythonEnvironmentError> {
        let mut names = Vec::new();
        let entries = self.open.entries();
        for entry in entries.map_err(failed("list", self.folder))? {
            let name = entry
                .map_err(failed("list", self.folder))?
                .file_name()
                .to_string_lossy()
                .into_owned();
            if only.is_none_or(|only| only == name)
                && let Some(stem) = name.strip_suffix(".py")
                // By EnvFactory's convention, a file whose name does not begin with a capital is a helper.
                && (only.is_some() || stem.starts_with(|first: char| first.is_ascii_uppercase()))
            {
                names.push(stem.to_owned());
            }
        }
        names.sort_unstable();
        if names.is_empty() {
            let folder = self.folder.to_owned();
            return Err(PythonEnvironmentError::NoServer(folder));
        }
        if names.len() > MAX_SERVERS {
            return Err(PythonEnvironmentError::TooManyServers {
                folder: self.folder.to_owned(),
                count: names.len(),
            });
        }
        let read = |name: String| {
            let text = self.text(&format!("{name}.py"))?;
            Ok((name, text))
        };
        names.into_iter().map(read).collect()
    }

    fn text_if_there(&self, name: &str) -> Result<Option<String>, PythonEnvironmentError> {
        if self.open.exists(name) {
            self.text(name).map(Some)
        } else {
            Ok(None)
        }
    }

    fn text(&self, name: &str) -> Result<String, PythonEnvironmentError> {
        let path = self.folder.join(name);
        let metadata = self.open.metadata(name).map_err(failed("read", &path))?;
        if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
            return Err(PythonEnvironmentError::NotAFile(path));
        }
        self.open
            .read_to_string(name)
            .map_err(failed("read", &path))
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PythonEnvironmentError {
    move |source| PythonEnvironmentError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)], at: &str) -> Result<Value, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let environment = PythonEnvironment::new(folder.path().join(at));
        environment.read().map_err(|error| {
            let folder = folder.path().display().to_string();
            error.to_string().replace(&folder, ".")
        })
    }

    #[test]
    fn a_folder_is_one_server_a_file_and_all_scenarios() {
        let files = [
            ("Door.py", "a"),
            ("Lamp.py", "b"),
            ("make_tasks.py", "c"),
            (
                "scenarios.json",
                r#"[{"id": "a", "task": {"servers": {"Door": {}}}, "calls": [], "expect": {}},
                    {"id": "b", "task": {"servers": {"Gone": {}}}, "calls": []}]"#,
            ),
        ];
        let all = read(&files, "").unwrap();
        assert_eq!(
            all,
            json!({
                "servers": {
                    "Door": {"source": "a", "file": "Door.py"},
                    "Lamp": {"source": "b", "file": "Lamp.py"},
                },
                // A scenario that names a missing server is reported when it is played.
                "scenarios": [
                    {"id": "a", "task": {"servers": {"Door": {}}}, "seed": 0, "calls": [], "expect": {}},
                    {"id": "b", "task": {"servers": {"Gone": {}}}, "seed": 0, "calls": [], "expect": null},
                ],
            })
        );
        let one = read(&files, "Lamp.py").unwrap();
        assert_eq!(one["servers"].as_object().unwrap().len(), 1);
        assert_eq!(one["scenarios"], json!([]));
    }

    #[test]
    fn what_is_wrong_with_a_folder_is_said_with_its_place() {
        assert_eq!(
            read(&[("door.py", "")], "").unwrap_err(),
            "there is no server in ./: a server is a file `Name.py`, with a capital"
        );
        assert!(
            read(&[], "gone")
                .unwrap_err()
                .starts_with("cannot open ./gone: ")
        );
        let broken = read(&[("Door.py", ""), ("scenarios.json", "[")], "").unwrap_err();
        assert!(broken.starts_with("./scenarios.json: EOF"), "{broken}");
        let files = [
            ("Door.py", ""),
            ("scenarios.json", r#"[{"id": "a", "call": []}]"#),
        ];
        let broken = read(&files, "").unwrap_err();
        let expected = "./scenarios.json: scenario 1 (`a`): unknown field `call`";
        assert!(broken.starts_with(expected), "{broken}");
    }
}
