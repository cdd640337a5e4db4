//! Loaded plugins: their tools and rewards, their environments, and the programs that their interpreters run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rlf_dialogue::config::AnswerRule;
use rlf_dialogue::conversation::{ConversationMessage, trajectory_from_messages};
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::ToolCall;
use rlf_dialogue::trajectory::Trajectory;
use rlf_environments::environments::{EnvironmentConfig, Environments};
use rlf_interpreters::interpreter::{Interpreter, Interpreters, ProgramOptions};
use rlf_interpreters::notebook::NotebookRequest;
use rlf_interpreters::program::Program;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::programs::{ProgramGrants, ProgramLimits};
use rlf_plugins::python_environment::PythonEnvironment;
use rlf_plugins::registry::Registry;
use rlf_plugins::turn::TurnContext;
use rlf_rewards::grading::Grading;
use rlf_rewards::reward::{GradeError, PluginScore, grade_group};
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::call::{read_arguments, unreadable, with_text};
use crate::error::{Failure, from_json, to_json};
use crate::fork::OfProcess;
use crate::notebook::Notebook;
use crate::pending::Pending;
use crate::process::{KINDS, Process, process};
use crate::program::{Limits, Request, files, report};
use crate::session::Session;

struct Loaded {
    registry: Registry,
    interpreters: Interpreters,
    tools: ToolManager,
    environments: Environments,
}

/// Plugins of several directories, loaded once.
#[pyclass(frozen)]
pub(crate) struct Plugins(OfProcess<Arc<Loaded>>);

/// A request to grade attempts at one task.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GradingOrder {
    task: Task,
    conversations: Vec<Vec<ConversationMessage>>,
    answer: AnswerRule,
    split: Split,
    step: u64,
    steps: u64,
    seed: u64,
}

#[pymethods]
impl Plugins {
    /// The names of all plugins that were found, loaded or not.
    fn names(&self) -> PyResult<BTreeSet<String>> {
        let registry = &self.0.get()?.registry;
        let loaded = registry.plugins().iter();
        let problems = registry.problems().iter();
        Ok((loaded.map(|plugin| plugin.name().to_owned()))
            .chain(problems.filter_map(|problem| problem.plugin.clone()))
            .collect())
    }

    /// The plugins that were not loaded: the name, the path, and the reason with the way to mend it.
    fn problems(&self) -> PyResult<Vec<(String, PathBuf, String)>> {
        let problems = self.0.get()?.registry.problems().iter();
        let told = problems.map(|one| (one.label().to_owned(), one.path.clone(), one.to_string()));
        Ok(told.collect())
    }

    /// The definitions of all tools, as JSON, in the order in which models see them.
    fn tools(&self) -> PyResult<String> {
        let definitions = self.0.get()?.tools.definitions(None);
        let definitions = definitions.map_err(|error| Failure::Other(error.to_string()))?;
        Ok(to_json(&definitions)?)
    }

    /// The names of the rewards.
    fn rewards(&self) -> PyResult<Vec<String>> {
        let plugins = self.0.get()?.registry.plugins().iter();
        let rewards = plugins.filter(|plugin| plugin.kind() == PluginKind::Reward);
        Ok(rewards.map(|plugin| plugin.name().to_owned()).collect())
    }

    /// The names of the environments.
    fn environments(&self) -> PyResult<Vec<String>> {
        let names = self.0.get()?.environments.names();
        Ok(names.map(str::to_owned).collect())
    }

    /// The languages in which programs can run.
    fn languages(&self) -> PyResult<Vec<String>> {
        let all = self.0.get()?.interpreters.all();
        Ok(all
            .map(|interpreter| interpreter.language().id.clone())
            .collect())
    }

    /// Fails if no interpreter runs the language.
    fn check(&self, language: &str) -> PyResult<()> {
        self.interpreter(language).map(|_| ())
    }

    /// Runs a program. The answer is a dictionary: the fields of `ProgramResult`.
    fn run(&self, language: &str, request: Request) -> PyResult<Pending> {
        let interpreter = self.interpreter(language)?.clone();
        let program: Program = request.try_into()?;
        let memory = check_limits(&interpreter, &program.limits)?;
        let process = process()?;
        let run = async move {
            let _place = process.programs.place(memory).await?;
            let options = ProgramOptions {
                deadline: Some(Instant::now() + deadline(&interpreter, &program.limits)),
                ..ProgramOptions::default()
            };
            Ok::<_, Failure>(interpreter.run(program, options).await?)
        };
        Ok(Pending::new(run, |py, done| report(py, &done)))
    }

    /// Opens a notebook. It stays open until it is closed or dropped.
    fn open_notebook(
        &self,
        language: &str,
        given: Vec<(String, Vec<u8>)>,
        seed: u64,
        limits: Limits,
    ) -> PyResult<Pending> {
        let interpreter = self.interpreter(language)?.clone();
        let request = NotebookRequest {
            files: files(given),
            modules: Vec::new(),
            seed,
            limits: limits.try_into()?,
        };
        let memory = check_limits(&interpreter, &request.limits)?;
        let options = ProgramOptions {
            lifetime: Some(rlf_sandbox::MAX_DURATION),
            ..ProgramOptions::default()
        };
        let process = process()?;
        let open = async move {
            let place = process.programs.notebook_place(memory).await?;
            let notebook = interpreter.open_notebook(request, options).await?;
            Ok::<_, Failure>(Notebook::new(notebook, place))
        };
        Ok(Pending::new(open, |py, notebook| {
            Ok(Py::new(py, notebook)?.into_any())
        }))
    }

    /// Calls a tool. The answer is the outcome as JSON, as trajectories keep it.
    fn call(
        &self,
        name: String,
        arguments: &str,
        seed: u64,
        trajectory_id: String,
        turn: u32,
        index: u32,
    ) -> PyResult<Pending> {
        let arguments = read_arguments(arguments);
        let loaded = Arc::clone(self.0.get()?);
        let Some(memory) = loaded.tools.memory_bytes(&name) else {
            let missing = loaded.tools.definitions(Some(&[name]));
            let why = missing.map_or_else(|error| error.to_string(), |_| String::new());
            return Err(Failure::Lookup(why).into());
        };
        let process = process()?;
        Ok(Pending::text(async move {
            let context = TurnContext {
                trajectory_id,
                turn,
                seed,
            };
            let call_id = format!("{}/{turn}/{index}", context.trajectory_id);
            let arguments = match arguments {
                Ok(arguments) => arguments,
                Err(why) => return to_json(&with_text(&unreadable(call_id, name, &why))?),
            };
            let _place = process.calls.place(memory).await?;
            let call = ToolCall {
                call_id,
                name,
                arguments,
            };
            let outcomes = loaded.tools.invoke(vec![call], &context).await;
            let outcome = outcomes.first();
            let outcome =
                outcome.ok_or_else(|| Failure::Other("the call gave no outcome".into()))?;
            to_json(&with_text(outcome)?)
        }))
    }

    /// Grades a group with one reward. The answer is JSON: for each trajectory its score or the reason why it has none.
    fn grade(&self, name: String, order: &str) -> PyResult<Pending> {
        let loaded = Arc::clone(self.0.get()?);
        let plugin = loaded.registry.plugin(&name);
        let plugin = plugin.filter(|plugin| plugin.kind() == PluginKind::Reward);
        let plugin = plugin.map(Arc::clone);
        let plugin = plugin.ok_or_else(|| {
            let rewards = self.rewards().unwrap_or_default();
            let why = missing(&loaded.registry, &name, rewards.iter().map(String::as_str));
            Failure::Lookup(format!("there is no reward `{name}`{why}"))
        })?;
        let order: GradingOrder = from_json(order, "grade")?;
        let process = process()?;
        Ok(Pending::text(async move {
            let _place = process
                .calls
                .place(plugin.grants().limits.memory_bytes)
                .await?;
            let task = order.task;
            let conversations = order.conversations.into_iter().enumerate();
            let group: Vec<Trajectory> = conversations
                .map(|(at, messages)| {
                    let id = format!("{}#{at}", task.id);
                    trajectory_from_messages(id, &task.id, messages, order.answer)
                })
                .collect();
            let grading = Grading {
                split: order.split,
                step: order.step,
                steps: order.steps,
                seed: order.seed,
            };
            let scores = grade_group(&plugin, &loaded.tools, &task, &group, grading).await;
            let scores: Vec<Value> = scores.into_iter().map(score).collect();
            to_json(&scores)
        }))
    }

    /// Opens a session of an environment.
    fn open_session(
        &self,
        environment: String,
        setup: &str,
        seed: u64,
        trajectory_id: String,
    ) -> PyResult<Pending> {
        let setup: Value = from_json(setup, "setup")?;
        let loaded = Arc::clone(self.0.get()?);
        let open = async move {
            let environments = &loaded.environments;
            let opened = environments.open(&environment, &trajectory_id, &setup, seed);
            Ok::<_, Failure>(Session::new(opened.await?, trajectory_id, seed))
        };
        Ok(Pending::new(open, |py, session| {
            Ok(Py::new(py, session)?.into_any())
        }))
    }
}

impl Plugins {
    fn interpreter(&self, language: &str) -> PyResult<&Interpreter> {
        let loaded = self.0.get()?;
        loaded.interpreters.get(language).ok_or_else(|| {
            // Usually no other interpreter was loaded, so there are no names to compare.
            let why = match loaded.registry.problem_of(language) {
                Some(problem) => format!(": {problem}"),
                None => "; `python` and `javascript` ship with the package, and an interpreter plugin has its own name".into(),
            };
            Failure::Lookup(format!("no interpreter runs `{language}`{why}")).into()
        })
    }
}

/// The reason why there is nothing called `name` among `names`, for the end of a sentence.
fn missing<'a>(
    registry: &Registry,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> String {
    if let Some(problem) = registry.problem_of(name) {
        return format!(": {problem}");
    }
    if let Some(near) = rlf_config::nearest(name, names.clone()) {
        return format!("; did you mean `{near}`?");
    }
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return "; none is loaded".to_owned();
    }
    format!("; there are: {}", names.join(", "))
}

/// Loads the plugins of `directories`, the earlier ones first. `grants` is the table `[plugins]` as JSON. With `only`, all
/// others are left out. The answer is a `Plugins`.
#[pyfunction]
pub(crate) fn load(
    directories: Vec<PathBuf>,
    grants: &str,
    only: Option<BTreeSet<String>>,
) -> PyResult<Pending> {
    let grants: BTreeMap<String, PluginGrants> = from_json(grants, "grants")?;
    let process = process()?;
    Ok(Pending::new(
        load_elsewhere(process, directories, grants, only),
        |py, loaded| Ok(Py::new(py, loaded)?.into_any()),
    ))
}

/// Loads the environment at a path: a Python file or a folder of them, a specification or a folder of them, or a
/// component. The answer is its name, the names of its servers if it is written in Python, and a `Plugins`.
#[pyfunction]
pub(crate) fn load_environment(path: PathBuf, directories: Vec<PathBuf>) -> PyResult<Pending> {
    let path = path.canonicalize().map_err(|error| {
        let path = path.display();
        Failure::Lookup(format!("there is no environment {path}: {error}"))
    })?;
    let stem = path.file_stem().unwrap_or_default();
    let name = stem.to_string_lossy().into_owned();
    let grants = environment_grants(&path);
    let grants = BTreeMap::from([(name.clone(), grants)]);
    let only = Some(BTreeSet::from([name.clone()]));
    let process = process()?;
    Ok(Pending::new(
        load_elsewhere(process, directories, grants, only),
        |py, loaded| {
            let plugin = loaded.0.get()?.registry.plugin(&name);
            let servers = plugin
                .and_then(|plugin| plugin.servers())
                .unwrap_or_default();
            let found = (name, servers.to_vec(), Py::new(py, loaded)?);
            Ok(found.into_pyobject(py)?.into_any().unbind())
        },
    ))
}

/// Loads plugins on a thread of its own, because components may have to be compiled.
async fn load_elsewhere(
    process: &'static Process,
    directories: Vec<PathBuf>,
    grants: BTreeMap<String, PluginGrants>,
    only: Option<BTreeSet<String>>,
) -> Result<Plugins, Failure> {
    let loading = tokio::task::spawn_blocking(move || {
        let wanted = |name: &str| only.as_ref().is_none_or(|only| only.contains(name));
        let sandbox = &process.sandbox;
        let registry = Registry::load_from(&directories, &grants, KINDS, sandbox, wanted);
        let tools = ToolManager::new(&registry, &ToolManagerConfig::default());
        let loaded = Loaded {
            interpreters: Interpreters::new(&registry),
            tools: tools.map_err(|error| Failure::Load(error.to_string()))?,
            environments: Environments::new(&registry, sandbox, &EnvironmentConfig::default()),
            registry,
        };
        Ok(Plugins(OfProcess::new(Arc::new(loaded))))
    });
    let loaded = loading.await;
    loaded.unwrap_or_else(|error| Err(Failure::Load(error.to_string())))
}

/// Checks that the interpreter's grants allow these limits. Returns the memory that a program with them is counted with.
fn check_limits(interpreter: &Interpreter, limits: &ProgramLimits) -> Result<u64, Failure> {
    let plugin = interpreter.plugin();
    let grants = &plugin.grants().programs;
    let most_memory = grants
        .memory_bytes
        .min(plugin.template().max_memory_bytes());
    let seconds = |time: Duration| time.as_secs_f64();
    let more = |name: &str, wanted: f64, allowed: f64, key: &str| {
        Failure::Value(format!(
            "{name} = {wanted}: the sandbox allows {allowed}; allow more with Plugins(grants={{\"{}\": {{\"programs\": \
             {{\"{key}\": ..}}}}}})",
            plugin.name()
        ))
    };
    if let Some(time) = limits.time.filter(|time| *time > grants.time) {
        return Err(more(
            "seconds",
            seconds(time),
            seconds(grants.time),
            "time_ms",
        ));
    }
    let sizes = [
        ("memory_bytes", limits.memory_bytes, most_memory),
        (
            "output_bytes",
            limits.output_bytes,
            grants.output_bytes.unwrap_or(ProgramGrants::MAX_KEPT_BYTES),
        ),
        ("file_bytes", limits.file_bytes, grants.file_bytes),
    ];
    for (name, wanted, allowed) in sizes {
        if let Some(wanted) = wanted.filter(|wanted| *wanted > allowed) {
            return Err(more(name, wanted as f64, allowed as f64, name));
        }
    }
    let own = plugin.template().initial_memory_bytes();
    let memory = limits.memory_bytes.unwrap_or(most_memory);
    let beyond = own.saturating_sub(ProgramGrants::INTERPRETER_BYTES);
    if memory + beyond < own {
        return Err(Failure::Value(format!(
            "memory_bytes = {memory}: the interpreter alone starts with {} MiB",
            own >> 20
        )));
    }
    Ok(memory + beyond)
}

/// Real time that a program may take once it has room: what its grants say, or four times its limit of CPU time.
fn deadline(interpreter: &Interpreter, limits: &ProgramLimits) -> Duration {
    let grants = &interpreter.plugin().grants().programs;
    grants.deadline.max(4 * grants.time(limits))
}

/// The grants with which the environment at a path is loaded, by what lies there.
fn environment_grants(path: &Path) -> PluginGrants {
    let has_extension = |file: &Path, extensions: &[&str]| {
        let extension = file.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extensions.contains(&extension))
    };
    let mut grants = PluginGrants::default();
    let python = PythonEnvironment::new(path.to_owned());
    if path.join("plugin.toml").exists() || has_extension(path, &["wasm"]) {
        grants.path = Some(path.to_owned());
    } else if has_extension(path, &["py"]) || (path.is_dir() && python.has_servers()) {
        grants.plugin = Some("python".into());
        grants.environment = Some(python);
    } else {
        grants.plugin = Some("specified".into());
        grants.data.insert("specifications".into(), path.to_owned());
    }
    grants
}

/// The fields of `Score`.
fn score(score: Result<PluginScore, GradeError>) -> Value {
    let object = |pairs: Vec<(String, f64)>| -> Map<String, Value> {
        let pairs = pairs.into_iter();
        pairs.map(|(name, value)| (name, value.into())).collect()
    };
    match score {
        Ok(score) => json!({
            "terms": object(score.terms),
            "per_event": score.per_event,
            "metrics": object(score.metrics),
            "error": null,
        }),
        Err(error) => {
            json!({"terms": null, "per_event": [], "metrics": {}, "error": error.to_string()})
        }
    }
}
