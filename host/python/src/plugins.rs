//! Loaded plugins: their tools and rewards, their environments, and the programs that their interpreters run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use rlf_dialogue::config::AnswerRule;
use rlf_dialogue::conversation::trajectory_from_messages;
use rlf_dialogue::message::Message;
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
use rlf_plugins::problem::Problem;
use rlf_plugins::python_environment::PythonEnvironment;
use rlf_plugins::registry::Registry;
use rlf_plugins::turn::TurnContext;
use rlf_rewards::grading::Grading;
use rlf_rewards::reward::{PluginScore, grade_group};
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::{Failure, from_json, to_json};
use crate::notebook::Notebook;
use crate::pending::Pending;
use crate::process::{KINDS, OfProcess, process};
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

/// What Python asks to be graded.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GradingOrder {
    task: Task,
    #[serde(default)]
    conversations: Vec<Vec<Message>>,
    #[serde(default)]
    trajectories: Vec<Trajectory>,
    answer: AnswerRule,
    split: Split,
    step: u64,
    steps: u64,
    seed: u64,
}

#[pymethods]
impl Plugins {
    /// Loads the plugins of `directories`, the earlier ones first. `grants` is the table `[plugins]` as JSON. With
    /// `only`, all others are left out.
    #[new]
    fn new(
        py: Python<'_>,
        directories: Vec<PathBuf>,
        grants: &str,
        only: Option<BTreeSet<String>>,
    ) -> PyResult<Self> {
        let grants_by_name: BTreeMap<String, PluginGrants> = from_json(grants, "grants")?;
        load(py, &directories, &grants_by_name, |name| {
            only.as_ref().is_none_or(|only| only.contains(name))
        })
    }

    /// Loads the environment at a path: a Python file or a folder of them, a specification or a folder of them, or a
    /// component. Returns its name, the names of its servers if it is written in Python, and the loaded plugin.
    #[staticmethod]
    fn with_environment(
        py: Python<'_>,
        path: PathBuf,
        directories: Vec<PathBuf>,
    ) -> PyResult<(String, Vec<String>, Self)> {
        let path = path.canonicalize().map_err(|error| {
            Failure::Lookup(format!(
                "there is no environment {}: {error}",
                path.display()
            ))
        })?;
        let stem = path.file_stem().unwrap_or_default();
        let name = stem.to_string_lossy().into_owned();
        let grants = environment_grants(&path);
        let servers = (grants.environment.as_ref()).map(PythonEnvironment::names);
        let servers = servers.transpose();
        let servers = servers.map_err(|error| Failure::Load(error.to_string()))?;
        let grants_by_name = BTreeMap::from([(name.clone(), grants)]);
        let plugins = load(py, &directories, &grants_by_name, |other| other == name)?;
        Ok((name, servers.unwrap_or_default(), plugins))
    }

    /// The plugins that were not loaded: the name, the path, and the reason with the way to mend it.
    fn problems(&self) -> PyResult<Vec<(String, PathBuf, String)>> {
        let problems = self.0.get()?.registry.problems().iter();
        let told = problems.map(|one| (one.plugin.clone(), one.path.clone(), one.to_string()));
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

    /// Runs a program. The answer is a dictionary: the fields of `ProgramResult`.
    fn run(&self, language: &str, request: Request) -> PyResult<Pending> {
        let interpreter = self.interpreter(language)?.clone();
        let program: Program = request.try_into()?;
        let process = process()?;
        let run = async move {
            let _place = process.programs.acquire().await;
            interpreter.run(program, ProgramOptions::default()).await
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
        let options = ProgramOptions {
            lifetime: Some(rlf_sandbox::MAX_DURATION),
            ..ProgramOptions::default()
        };
        let open = async move { interpreter.open_notebook(request, options).await };
        Ok(Pending::new(open, |py, notebook| {
            Ok(Py::new(py, Notebook::new(notebook))?.into_any())
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
        let arguments: Value = from_json(arguments, "arguments")?;
        let loaded = Arc::clone(self.0.get()?);
        if !loaded.tools.has(&name) {
            let missing = loaded.tools.definitions(Some(&[name]));
            let why = missing.map_or_else(|error| error.to_string(), |_| String::new());
            return Err(Failure::Lookup(why).into());
        }
        let process = process()?;
        Ok(Pending::text(async move {
            let _place = process.calls.acquire().await;
            let context = TurnContext {
                trajectory_id,
                turn,
                seed,
            };
            let call = ToolCall {
                call_id: format!("{}/{turn}/{index}", context.trajectory_id),
                name,
                arguments,
            };
            let outcomes = loaded.tools.invoke(vec![call], &context).await;
            let outcome = outcomes.into_iter().next();
            to_json(&outcome.ok_or_else(|| Failure::Other("the call gave no outcome".into()))?)
        }))
    }

    /// Grades a group with one reward. The answer is JSON: for each trajectory its score or the reason why it has none.
    fn grade(&self, name: String, order: &str) -> PyResult<Pending> {
        let loaded = Arc::clone(self.0.get()?);
        let plugin = loaded.registry.plugin(&name).map(Arc::clone);
        let plugin = plugin.ok_or_else(|| {
            let rewards = self.rewards().unwrap_or_default();
            let why = missing(&loaded.registry, &name, rewards.iter().map(String::as_str));
            Failure::Lookup(format!("there is no reward `{name}`{why}"))
        })?;
        let order: GradingOrder = from_json(order, "grade")?;
        let process = process()?;
        Ok(Pending::text(async move {
            let _place = process.calls.acquire().await;
            let task = order.task;
            let mut group = order.trajectories;
            let conversations = order.conversations.into_iter().enumerate();
            group.extend(conversations.map(|(at, messages)| {
                let id = format!("{}#{at}", task.id);
                trajectory_from_messages(id, &task.id, messages, order.answer)
            }));
            let grading = Grading {
                split: order.split,
                step: order.step,
                steps: order.steps,
                seed: order.seed,
            };
            // As in a run, rewards do not see trajectories that were excluded during the rollout.
            let gradable: Vec<&Trajectory> =
                (group.iter()).filter(|t| t.excluded.is_none()).collect();
            let scores = if gradable.is_empty() {
                Ok(Vec::new())
            } else {
                grade_group(&plugin, &loaded.tools, &task, &gradable, grading).await
            };
            let mut scores = match scores {
                Ok(scores) => scores.into_iter(),
                Err(error) => vec![Err(error); gradable.len()].into_iter(),
            };
            let scores: Vec<Value> = (group.iter())
                .map(|trajectory| match &trajectory.excluded {
                    Some(reason) => score(Err(reason.clone())),
                    None => score(match scores.next() {
                        Some(score) => score.map_err(|error| error.to_string()),
                        None => Err("it returned no score".to_owned()),
                    }),
                })
                .collect();
            to_json(&scores)
        }))
    }

    /// Opens a session of an environment.
    fn open_session(
        &self,
        environment: String,
        setup: &str,
        seed: u64,
        label: String,
    ) -> PyResult<Pending> {
        let setup: Value = from_json(setup, "setup")?;
        let loaded = Arc::clone(self.0.get()?);
        let open = async move {
            let environments = &loaded.environments;
            let opened = environments
                .open(&environment, &label, &setup, seed)
                .await?;
            Ok::<_, Failure>((opened, label))
        };
        Ok(Pending::new(open, move |py, (opened, label)| {
            Ok(Py::new(py, Session::new(opened, label, seed))?.into_any())
        }))
    }
}

impl Plugins {
    fn interpreter(&self, language: &str) -> PyResult<&Interpreter> {
        let loaded = self.0.get()?;
        loaded.interpreters.get(language).ok_or_else(|| {
            // Usually no other interpreter was loaded, so there are no names to compare.
            let why = match problem(&loaded.registry, language) {
                Some(problem) => format!(": {problem}"),
                None => "; `python` and `javascript` ship with the package, and an interpreter plugin has its own name".into(),
            };
            Failure::Lookup(format!("no interpreter runs `{language}`{why}")).into()
        })
    }
}

/// The reason why the plugin `name` was not loaded, if it was found.
fn problem(registry: &Registry, name: &str) -> Option<String> {
    let about = |problem: &&Problem| problem.plugin == name || problem.plugin == "*";
    registry
        .problems()
        .iter()
        .find(about)
        .map(Problem::to_string)
}

/// The reason why there is nothing called `name` among `names`, for the end of a sentence.
fn missing<'a>(
    registry: &Registry,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> String {
    if let Some(problem) = problem(registry, name) {
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

fn load(
    py: Python<'_>,
    directories: &[PathBuf],
    grants: &BTreeMap<String, PluginGrants>,
    wanted: impl Fn(&str) -> bool + Send + Sync,
) -> PyResult<Plugins> {
    let process = process()?;
    let sandbox = &process.sandbox;
    let loaded = py.detach(|| -> Result<Loaded, Failure> {
        // Loading may start tasks, for example to follow a plugin's files.
        let _entered = process.runtime.enter();
        let registry = Registry::load_from(directories, grants, KINDS, sandbox, wanted);
        let tools = ToolManager::new(&registry, &ToolManagerConfig::default());
        Ok(Loaded {
            interpreters: Interpreters::new(&registry),
            tools: tools.map_err(|error| Failure::Load(error.to_string()))?,
            environments: Environments::new(&registry, sandbox, &EnvironmentConfig::default()),
            registry,
        })
    })?;
    Ok(Plugins(OfProcess::new(Arc::new(loaded))))
}

/// The grants with which the environment at a path is loaded, by what lies there.
fn environment_grants(path: &Path) -> PluginGrants {
    let has_extension = |file: &Path, extensions: &[&str]| {
        let extension = file.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extensions.contains(&extension))
    };
    let mut grants = PluginGrants::default();
    let python = PythonEnvironment {
        servers: Some(path.to_owned()),
    };
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
fn score(score: Result<PluginScore, String>) -> Value {
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
        Err(error) => json!({"terms": null, "per_event": [], "metrics": {}, "error": error}),
    }
}
