//! Functions as tools: a folder of Python files and the schemas of their functions. The interpreter calls them, so no
//! component is built for any of them.
//!
//! The folder has `tools.json`, a list of definitions as in OpenAI's API and in FTRL's rows: `name`, `description` and
//! `parameters`, inside `{"type": "function", "function": ..}` or bare. For every tool it has `NAME.py` with a function
//! of that name. Each file is a module, so its other definitions are available when the function is called.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rlf_dialogue::message::Content;
use rlf_dialogue::tool::{Ended, Fault, Hints, Observation, ToolDefinition};
use rlf_plugins::bindings::types;
use rlf_plugins::manifest::is_valid_name;
use rlf_plugins::outcome::CallEnd;
use rlf_plugins::plugin::{Plugin, ToolRequest};
use rlf_plugins::safe_text::make_string_safe;
use serde::Deserialize;
use serde_json::Value;

use crate::interpreter::{self, Interpreter, ProgramOptions};
use crate::language::{PYTHON, language};
use crate::program::{CompileError, Compiled, File, Program};
use crate::tool;

/// The file with the list of definitions.
pub const TOOLS_FILE: &str = "tools.json";

/// Maximum size of a file, in bytes. Larger files are refused.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// A program that calls a function. Its arguments are the module, the function and two files.
pub const CALL_FUNCTION: &str = include_str!("call_function.py");
/// A program that imports a module as a call does, and reports whether the function exists.
const FIND_FUNCTION: &str = include_str!("find_function.py");
const ARGUMENTS: &str = "/arguments.json";
const ANSWER: &str = "/answer.json";

/// The functions of a folder: the source of each tool, and the definitions that models see.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct FunctionSources {
    folder: PathBuf,
    pub(crate) definitions: Vec<ToolDefinition>,
    pub(crate) sources: BTreeMap<String, String>,
}

/// The reason why a folder of functions cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FunctionSourcesError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot read {}: it is not a regular file, or has more than {MAX_FILE_BYTES} bytes", .0.display())]
    NotAFile(PathBuf),
    #[error("{}: {problem}", file.display())]
    Definitions { file: PathBuf, problem: String },
}

/// The reason why a function cannot be offered, with advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionProblem {
    pub(crate) what: String,
    pub(crate) mend: String,
}

/// Compiled functions, by tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Functions {
    modules: BTreeMap<String, Compiled>,
}

#[derive(Deserialize)]
struct Definition {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(
        alias = "input_schema",
        alias = "inputSchema",
        default = "no_parameters"
    )]
    parameters: Value,
}

fn no_parameters() -> Value {
    serde_json::json!({ "type": "object", "properties": {} })
}

impl FunctionSources {
    /// Reads a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, FunctionSourcesError> {
        let failed = |action, path: PathBuf| {
            move |source| FunctionSourcesError::Io {
                action,
                path,
                source,
            }
        };
        let open = Dir::open_ambient_dir(folder, ambient_authority())
            .map_err(failed("open", folder.to_owned()))?;
        let read = |name: &str| -> Result<String, FunctionSourcesError> {
            let path = folder.join(name);
            let metadata = (open.metadata(name)).map_err(failed("read", path.clone()))?;
            if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
                return Err(FunctionSourcesError::NotAFile(path));
            }
            open.read_to_string(name).map_err(failed("read", path))
        };
        let definitions = Self::definitions(&read(TOOLS_FILE)?).map_err(|problem| {
            let file = folder.join(TOOLS_FILE);
            FunctionSourcesError::Definitions { file, problem }
        })?;
        let mut sources = BTreeMap::new();
        for definition in &definitions {
            let source = read(&format!("{}.py", definition.name))?;
            sources.insert(definition.name.clone(), source);
        }
        Ok(Self {
            folder: folder.to_owned(),
            definitions,
            sources,
        })
    }

    fn definitions(text: &str) -> Result<Vec<ToolDefinition>, String> {
        let tools: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let tools = tools.as_array().ok_or(
            "it is no list; write [{\"name\": .., \"description\": .., \"parameters\": ..}]",
        )?;
        tools
            .iter()
            .enumerate()
            .map(|(index, tool)| {
                let function = tool.get("function").unwrap_or(tool);
                let definition = Definition::deserialize(function)
                    .map_err(|error| format!("tool {index}: {error}"))?;
                if !is_valid_name(&definition.name) || !is_identifier(&definition.name) {
                    return Err(format!(
                        "tool {index}: {:?} cannot be the name of a function and of its file",
                        definition.name
                    ));
                }
                Ok(ToolDefinition {
                    name: definition.name,
                    description: definition.description,
                    input_schema: definition.parameters,
                    output_schema: None,
                    // The program can reach nothing except its arguments.
                    hints: Hints {
                        read_only: true,
                        idempotent: true,
                        ..Hints::default()
                    },
                    extra: Vec::new(),
                })
            })
            .collect()
    }

    /// Compiles every source and checks that its function exists.
    pub(crate) async fn compile(&self, plugin: &Plugin) -> Result<Functions, FunctionProblem> {
        if language(plugin, PYTHON).is_none() {
            return Err(FunctionProblem {
                what: format!("`functions` are in {PYTHON}, which this interpreter does not run"),
                mend: format!("leave `functions` out of [plugins.{}]", plugin.name()),
            });
        }
        let mut modules = BTreeMap::new();
        for (name, source) in &self.sources {
            let compiled = interpreter::compile(plugin, PYTHON, &module(name), source).await;
            let compiled = match compiled {
                Ok(compiled) => compiled,
                Err(error @ CompileError::Rejected(_)) => {
                    return Err(self.broken(name, &error.to_string()));
                }
                Err(CompileError::Program(error)) => {
                    return Err(self.test_problem(name, &error.to_string()));
                }
            };
            self.find(plugin, name, &compiled).await?;
            modules.insert(name.clone(), compiled);
        }
        Ok(Functions { modules })
    }

    /// Imports a file as its calls will, so that errors common to all of them are reported now.
    async fn find(
        &self,
        plugin: &Plugin,
        name: &str,
        module: &Compiled,
    ) -> Result<(), FunctionProblem> {
        let program = Program {
            code: FIND_FUNCTION.to_owned(),
            arguments: vec![
                "find_function.py".to_owned(),
                module.name.clone(),
                name.to_owned(),
                ANSWER.to_owned(),
            ],
            fetch: vec![ANSWER.to_owned()],
            modules: vec![module.clone()],
            ..Program::default()
        };
        let spec = ProgramOptions {
            label: format!("{}: find {name}", plugin.name()),
            ..ProgramOptions::default()
        };
        let report = interpreter::run(plugin, PYTHON, program, spec)
            .await
            .map_err(|error| self.test_problem(name, &error.to_string()))?;
        if let Some(stopped) = &report.stopped {
            return Err(if stopped.ended.is_infrastructure() {
                self.test_problem(name, &stopped.reason)
            } else {
                let error = format!("importing it was stopped: {}", stopped.reason);
                self.broken(name, &error)
            });
        }
        let found = (report.files.first())
            .and_then(|file| serde_json::from_slice::<Found>(&file.data).ok())
            .ok_or_else(|| self.broken(name, "importing it ends the program"))?;
        let place = self.place(name);
        let what = match found {
            Found {
                error: Some(error), ..
            } => return Err(self.broken(name, &format!("importing it fails: {error}"))),
            Found { kind: None, .. } => format!("{place} has no function `{name}`"),
            Found {
                kind: Some(kind),
                callable: false,
                ..
            } => format!("`{name}` in {place} is no function, but of type {kind}"),
            Found { .. } => return Ok(()),
        };
        let others = match found.others.as_slice() {
            [] => "it defines no function at all".to_owned(),
            others => format!("it defines: {}", others.join(", ")),
        };
        Err(FunctionProblem {
            what: format!("{what}, which {TOOLS_FILE} names; {others}"),
            mend: format!("define `def {name}(..)` there, or correct the name in {TOOLS_FILE}"),
        })
    }

    fn place(&self, name: &str) -> String {
        self.folder.join(format!("{name}.py")).display().to_string()
    }

    /// The problem of an error in a file. The file's internal name is replaced in the text.
    fn broken(&self, name: &str, error: &str) -> FunctionProblem {
        let error = error.replace(&module(name), name);
        FunctionProblem {
            what: format!("{}: {error}", self.place(name)),
            mend: format!("correct it, or leave `{name}` out of {TOOLS_FILE}"),
        }
    }

    /// The problem of a file that could not be tested.
    fn test_problem(&self, name: &str, why: &str) -> FunctionProblem {
        FunctionProblem {
            what: format!("{} cannot be tried: {why}", self.place(name)),
            mend: "try again, with less running beside it".to_owned(),
        }
    }
}

/// The result of an import.
#[derive(Deserialize)]
struct Found {
    /// The exception that the module raised.
    error: Option<String>,
    /// The type of the value that has the function's name.
    kind: Option<String>,
    callable: bool,
    /// The functions that the file defines.
    others: Vec<String>,
}

/// The module of a function's file. No program imports this name by accident.
pub fn module(function: &str) -> String {
    format!("rlf_functions_{function}")
}

fn is_identifier(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit()) && !name.contains('-')
}

#[derive(Deserialize)]
struct Answer {
    failed: bool,
    text: String,
}

/// Calls a function.
pub(crate) async fn call(
    plugin: &Arc<Plugin>,
    functions: &Functions,
    request: ToolRequest,
) -> CallEnd {
    let compiled = functions.modules.get(&request.name);
    let (Some(language), Some(compiled)) = (language(plugin, PYTHON), compiled) else {
        return CallEnd::by_plugin(format!("it has no function {} any more", request.name));
    };
    let program = Program {
        code: CALL_FUNCTION.to_owned(),
        arguments: vec![
            "call_function.py".to_owned(),
            compiled.name.clone(),
            request.name.clone(),
            ARGUMENTS.to_owned(),
            ANSWER.to_owned(),
        ],
        files: vec![File {
            path: ARGUMENTS.to_owned(),
            data: request.arguments.clone().into_bytes(),
        }],
        fetch: vec![ANSWER.to_owned()],
        modules: vec![compiled.clone()],
        seed: request.context.seed,
        ..Program::default()
    };
    let report = match tool::run(&Interpreter::pinned_to(plugin, language), program, &request).await
    {
        Ok(report) => report,
        Err(end) => return end,
    };
    // The output is for the function's author, never for the model.
    let (stdout, mut stderr) = (report.stdout.captured(), report.stderr.captured());
    stderr.text = stderr.text.replace(&compiled.name, &request.name);
    let errors = stderr.text.clone();
    plugin.keep_printed(stdout, stderr);
    let answer = (report.files.iter())
        .find(|file| file.path == ANSWER)
        .and_then(|file| serde_json::from_slice::<Answer>(&file.data).ok());
    let Some(answer) = answer else {
        return match &report.stopped {
            Some(stopped) => CallEnd::from_stopped(stopped),
            None => CallEnd::by_model(Ended::Exited, "error: the function ended without a result")
                .with_detail(errors),
        };
    };
    let most = plugin.grants().limits.result_bytes;
    if answer.text.len() as u64 > most {
        return CallEnd::from_result(Ok(too_much(answer.text)), most);
    }
    CallEnd {
        ended: if answer.failed {
            Ended::Failed
        } else {
            Ended::Ok
        },
        fault: Fault::of_answer(answer.failed),
        observation: Some(Observation {
            content: vec![Content::Text(make_string_safe(answer.text))],
            failed: answer.failed,
            metrics: Vec::new(),
            extra: Vec::new(),
        }),
        detail: (answer.failed && !errors.is_empty()).then(|| last_of(errors.trim()).to_owned()),
    }
}

/// The last 1,000 characters of a text.
fn last_of(text: &str) -> &str {
    let start = text.char_indices().rev().nth(999);
    &text[start.map_or(0, |(at, _)| at)..]
}

/// A result that exceeds its limit, so that the model reads the same text as for any other tool.
fn too_much(text: String) -> types::Observation {
    types::Observation {
        content: vec![types::Content::Text(text)],
        failed: false,
        metrics: Vec::new(),
        extra: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn refusal(files: &[(&str, &str)]) -> String {
        let folder = folder(files);
        let error = FunctionSources::read(folder.path()).unwrap_err();
        let folder = folder.path().display().to_string();
        error.to_string().replace(&folder, ".")
    }

    #[test]
    fn definitions_are_read_bare_and_as_openai_writes_them() {
        let folder = folder(&[
            (
                TOOLS_FILE,
                r#"[{"type": "function", "function": {"name": "a", "description": "A.", "parameters": {"type": "object"}}},
                    {"name": "b"}]"#,
            ),
            ("a.py", "def a(): return 1\n"),
            ("b.py", "def b(): return 2\n"),
        ]);
        let read = FunctionSources::read(folder.path()).unwrap();
        let names: Vec<&str> = read.definitions.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(read.definitions[0].description, "A.");
        assert_eq!(read.definitions[1].input_schema, no_parameters());
        assert_eq!(read.sources["b"], "def b(): return 2\n");
    }

    #[test]
    fn what_is_wrong_with_a_folder_is_said_with_its_place() {
        assert!(refusal(&[]).starts_with("cannot read ./tools.json: "));
        assert!(refusal(&[(TOOLS_FILE, "[")]).starts_with("./tools.json: EOF"));
        assert!(refusal(&[(TOOLS_FILE, "{}")]).starts_with("./tools.json: it is no list"));
        let missing = refusal(&[(TOOLS_FILE, r#"[{"name": "a"}]"#)]);
        assert!(missing.starts_with("cannot read ./a.py: "), "{missing}");
        for name in ["../a", "a/b", "1a", "a-b", ""] {
            let text = format!(r#"[{{"name": "{name}"}}]"#);
            let said = refusal(&[(TOOLS_FILE, &text)]);
            assert!(said.contains("cannot be the name of a function"), "{said}");
        }
    }
}
