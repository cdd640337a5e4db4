//! Interpreters: plugins that run programs, one fresh instance for each, and notebooks, one for all of
//! their cells.
//!
//! A program that a model wrote is data until it is here. What it does ends in a [`RunReport`]: what
//! it printed, how it ended, which files it left, also where it had to be stopped. A program makes no
//! calls, so whoever waits for one waits for nobody else; programs have a pool of their own.
//!
//! - [`program`]: what is run, and what is known of it then
//! - [`notebook`]: cells that share a namespace
//! - `tool`: a program as a tool of the model's, `python` with an argument `code`
//! - `functions`: a folder of functions as tools, with no component built for them

pub mod functions;
pub mod notebook;
pub mod program;
pub(crate) mod tool;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rlf_sandbox::{CallReport, CallSpec, Clock, Ending, Limits, ScratchFiles, Stopped, Tee};
use serde::{Deserialize, Serialize};

use self::program::{Compiled, Exception, Outcome, Program, ProgramLimits, RunError, RunReport};
use crate::bindings::interpreter;
use crate::plugin::{Exports, Plugin};
use crate::registry::Registry;

/// `[plugins.<alias>.programs]`: what one program may use in this interpreter. A run can ask for less.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramPolicy {
    /// CPU time, and again time as the program sees it, sleeping included. Key `time_ms`, default 10,000 ms.
    #[serde(rename = "time_ms", with = "crate::policy::milliseconds")]
    pub time: Duration,
    /// Real time of a run, waiting for a place included: past it the machine was too busy, and the run counts as
    /// `unavailable`. Key `deadline_ms`, default 120,000 ms.
    #[serde(rename = "deadline_ms", with = "crate::policy::milliseconds")]
    pub deadline: Duration,
    /// Sum of all memory. Default 256 MiB; at most what the sandbox gives one memory.
    pub memory_bytes: u64,
    /// What is kept of standard output, and again of standard error: half from the head, half from the tail. Default:
    /// 64 KiB each where a run asks for nothing, and 1 MiB at the most where it asks, as programs over HTTP do.
    /// `limits.output_stop_bytes` ends a program that prints more than that.
    pub output_bytes: Option<u64>,
    /// Sum of its files, of those that are given to it with code and input, and of those that are taken from it.
    /// Default 16 MiB.
    pub file_bytes: u64,
}

impl Default for ProgramPolicy {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(10),
            deadline: Duration::from_mins(2),
            memory_bytes: 256 << 20,
            output_bytes: None,
            file_bytes: 16 << 20,
        }
    }
}

impl ProgramPolicy {
    /// Kept of a stream where nobody says how much: what a model can read of.
    pub const KEPT_BYTES: u64 = 64 << 10;
    /// Kept of a stream of a run that asks for all, where the operator does not say how much that is. What runs
    /// processes keeps as much.
    pub const MOST_KEPT_BYTES: u64 = 1 << 20;
    /// Most files and directories of a program.
    const ENTRIES: u64 = 10_000;
    /// Deepest path of a program's.
    const DEPTH: u32 = 64;
    /// What crosses beside files and output.
    const REST_BYTES: u64 = 4 << 20;

    /// Says which setting lets nothing run.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (time, deadline) = (self.time, self.deadline);
        for (key, is_zero) in [
            ("time_ms", time.is_zero()),
            ("deadline_ms", deadline.is_zero()),
            ("memory_bytes", self.memory_bytes == 0),
        ] {
            if is_zero {
                return Err(format!("`programs.{key} = 0` would let no program run"));
            }
        }
        Ok(())
    }

    /// Refuses more than a program may be given.
    fn check_given(&self, bytes: u64) -> Result<(), RunError> {
        if bytes <= self.file_bytes {
            return Ok(());
        }
        Err(RunError::Exhausted(format!(
            "code, input, files and modules have {bytes} bytes; {} are allowed (programs.file_bytes)",
            self.file_bytes
        )))
    }

    /// Refuses more than may be taken from a program.
    fn check_fetched(&self, bytes: u64, wanted: &ProgramLimits) -> Result<(), RunError> {
        let most = wanted.file_bytes.unwrap_or(u64::MAX).min(self.file_bytes);
        if bytes <= most {
            return Ok(());
        }
        Err(RunError::Exhausted(format!(
            "the files that were asked for have {bytes} bytes; {most} are allowed (file_bytes)"
        )))
    }

    /// The root directory of every program.
    pub(crate) fn files(&self) -> ScratchFiles {
        ScratchFiles {
            at: "/".to_owned(),
            bytes: self.file_bytes,
            entries: Self::ENTRIES,
            depth: Self::DEPTH,
            outputs: Vec::new(),
        }
    }

    /// The limits of an instance in which a program runs, within these and what the program asks for.
    pub(crate) fn limits(&self, base: &Limits, wanted: &ProgramLimits, most_memory: u64) -> Limits {
        let least = |allowed: u64, wanted: Option<u64>| wanted.unwrap_or(allowed).min(allowed);
        Limits {
            wall: self.deadline,
            cpu: self.time(wanted),
            memory_bytes: least(self.memory_bytes, wanted.memory_bytes).min(most_memory),
            output_bytes: self.kept(wanted),
            hostcall_bytes: base
                .hostcall_bytes
                .max(self.file_bytes.saturating_add(Self::REST_BYTES)),
            ..base.clone()
        }
    }

    /// What is kept of each stream, in bytes.
    pub(crate) fn kept(&self, wanted: &ProgramLimits) -> u64 {
        let (kept, most) = match self.output_bytes {
            Some(allowed) => (allowed, allowed),
            None => (Self::KEPT_BYTES, Self::MOST_KEPT_BYTES),
        };
        wanted.output_bytes.unwrap_or(kept).min(most)
    }

    /// What a program may take of time, of either kind.
    pub(crate) fn time(&self, wanted: &ProgramLimits) -> Duration {
        wanted.time.unwrap_or(self.time).min(self.time)
    }
}

/// A language that an interpreter runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Language {
    /// `python`, `javascript`, ..
    pub id: String,
    /// As the interpreter says it.
    pub version: String,
    /// Whether it has notebooks.
    pub sessions: bool,
}

/// How a run stands in the world around it.
#[derive(Debug, Clone, Default)]
pub struct RunSpec {
    /// Names it in logs.
    pub label: String,
    /// Earlier than the policy's, where the caller has less time left.
    pub deadline: Option<Instant>,
    /// How long a notebook may be open, in place of the policy's deadline.
    pub lifetime: Option<Duration>,
    /// Who is shown what it prints, as it prints it.
    pub tee: Option<Tee>,
}

/// A language of a loaded interpreter plugin. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Interpreter {
    plugin: Arc<Plugin>,
    language: Language,
    /// Whether what replaced the plugin on disk serves later runs.
    follows: bool,
}

impl Interpreter {
    /// What it runs.
    pub fn language(&self) -> &Language {
        &self.language
    }

    /// The plugin that it is part of.
    pub fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    /// The plugin that serves a run which begins now.
    fn serving(&self) -> Arc<Plugin> {
        if self.follows {
            self.plugin.latest()
        } else {
            Arc::clone(&self.plugin)
        }
    }

    /// The same, served by what serves now from here on: a module and those who import it need one interpreter.
    #[must_use]
    pub fn pinned(&self) -> Self {
        Self {
            plugin: self.serving(),
            language: self.language.clone(),
            follows: false,
        }
    }

    /// Runs a program from start to end, in an instance of its own. An error is what is wrong with the
    /// request; what the program did is in the report.
    pub async fn run(&self, program: Program, spec: RunSpec) -> Result<RunReport, RunError> {
        run(&self.serving(), &self.language.id, program, spec).await
    }

    /// Compiles a module for programs to import. Nothing of it runs. The inner error is what is wrong
    /// with the source.
    pub async fn compile(
        &self,
        name: &str,
        source: &str,
    ) -> Result<Result<Compiled, Exception>, RunError> {
        compile(&self.serving(), &self.language.id, name, source).await
    }
}

/// See [`Interpreter::run`].
async fn run(
    plugin: &Plugin,
    language: &str,
    program: Program,
    spec: RunSpec,
) -> Result<RunReport, RunError> {
    program.check(&plugin.policy().programs)?;
    let indices = indices(plugin)?;
    let call = call_spec(plugin, &program.limits, program.seed, spec);
    let wanted = program.limits;
    let request = program.into_guest(language, &plugin.policy().programs);
    let report = plugin
        .template()
        .call(call, move |store, instance| {
            Box::pin(async move {
                let guest = indices.load(&mut *store, &instance)?;
                guest.call_execute(store, &request).await
            })
        })
        .await;
    let policy = &plugin.policy().programs;
    report_of(
        report,
        |run| (run.outcome.into(), run.files),
        policy,
        &wanted,
    )
}

/// See [`Interpreter::compile`].
async fn compile(
    plugin: &Plugin,
    language: &str,
    name: &str,
    source: &str,
) -> Result<Result<Compiled, Exception>, RunError> {
    let indices = indices(plugin)?;
    let spec = RunSpec {
        label: format!("{}: compile {name}", plugin.name()),
        ..RunSpec::default()
    };
    let call = call_spec(plugin, &ProgramLimits::default(), 0, spec);
    let (language, name, source) = (language.to_owned(), name.to_owned(), source.to_owned());
    let report = plugin
        .template()
        .call(call, move |store, instance| {
            Box::pin(async move {
                let guest = indices.load(&mut *store, &instance)?;
                guest.call_compile(store, &language, &name, &source).await
            })
        })
        .await;
    match report.outcome {
        Ok(compiled) => Ok(compiled.map(Into::into).map_err(Into::into)),
        Err(stopped) => Err(RunError::of_stopped(stopped)),
    }
}

/// A call in which a program may use what it asks for, within what the operator allows.
fn call_spec(plugin: &Plugin, wanted: &ProgramLimits, seed: u64, spec: RunSpec) -> CallSpec {
    let policy = &plugin.policy().programs;
    let most_memory = plugin.template().max_memory_bytes();
    let mut limits = policy.limits(&plugin.policy().limits, wanted, most_memory);
    limits.wall = spec.lifetime.unwrap_or(limits.wall);
    CallSpec {
        label: spec.label,
        seed,
        limits: Some(limits),
        deadline: spec.deadline,
        virtual_time: Some(policy.time(wanted)),
        tee: spec.tee,
        ..CallSpec::default()
    }
}

/// The exports of an interpreter.
fn indices(plugin: &Plugin) -> Result<Arc<interpreter::GuestIndices>, RunError> {
    match &plugin.exports {
        Exports::Interpreter(indices) => Ok(Arc::clone(indices)),
        // Replaced on disk by something else.
        _ => Err(RunError::Unavailable(format!(
            "plugin `{}` is no interpreter",
            plugin.name()
        ))),
    }
}

/// What became of a run, whether the guest returned or was stopped.
fn report_of<R>(
    report: CallReport<Result<R, crate::bindings::types::Error>>,
    read: impl FnOnce(R) -> (Outcome, Vec<crate::bindings::code::File>),
    policy: &ProgramPolicy,
    wanted: &ProgramLimits,
) -> Result<RunReport, RunError> {
    let mut run = RunReport {
        stopped: None,
        outcome: None,
        stdout: report.stdout,
        stderr: report.stderr,
        files: Vec::new(),
        cpu: report.cpu,
        wall: report.wall,
        queued: report.queued,
        memory_peak: report.memory_peak,
    };
    match report.outcome {
        Ok(Ok(returned)) => {
            let (outcome, files) = read(returned);
            let bytes: u64 = files.iter().map(|file| file.data.len() as u64).sum();
            policy.check_fetched(bytes, wanted)?;
            run.outcome = Some(outcome);
            run.files = files.into_iter().map(Into::into).collect();
        }
        Ok(Err(error)) => return Err(RunError::of_guest(error)),
        // `os._exit` and the like: an end like others.
        Err(Stopped {
            ended: Ending::Exited { code },
            ..
        }) => run.outcome = Some(Outcome::Exited(code)),
        Err(stopped) => run.stopped = Some(in_words_of_programs(stopped)),
    }
    Ok(run)
}

/// What stopped a program, with the name that [`ProgramPolicy`] has for the limit: an instance has other ones.
fn in_words_of_programs(mut stopped: Stopped) -> Stopped {
    stopped.reason = stopped.reason.replace("the plugin", "the program");
    if let Some(limit) = &mut stopped.limit {
        let before = limit.to_string();
        let of_program = matches!(
            stopped.ended,
            Ending::Timeout {
                clock: Clock::Virtual
            }
        );
        limit.name = match limit.name.as_str() {
            "wall_ms" if !of_program => "deadline_ms".to_owned(),
            "cpu_ms" | "wall_ms" => "time_ms".to_owned(),
            other => other.to_owned(),
        };
        stopped.reason = stopped.reason.replace(&before, &limit.to_string());
    }
    stopped
}

/// The interpreters of a registry, by the languages that they run. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Interpreters {
    by_language: Arc<BTreeMap<String, Interpreter>>,
    by_plugin: Arc<BTreeMap<String, Vec<Interpreter>>>,
}

impl Interpreters {
    /// All that are loaded. Where several run a language, the plugin that is called like it does, else the first
    /// by name; those that only serve functions (`functions` of a policy) are left out.
    pub fn new(registry: &Registry) -> Self {
        let mut by_language: BTreeMap<String, Interpreter> = BTreeMap::new();
        let mut by_plugin: BTreeMap<String, Vec<Interpreter>> = BTreeMap::new();
        for plugin in registry.plugins() {
            for language in plugin.languages() {
                let interpreter = Interpreter {
                    plugin: Arc::clone(plugin),
                    language: language.clone(),
                    follows: true,
                };
                by_plugin
                    .entry(plugin.name().to_owned())
                    .or_default()
                    .push(interpreter.clone());
                if plugin.policy().functions.is_some() || plugin.is_environment() {
                    continue;
                }
                let is_namesake = plugin.name() == language.id;
                if is_namesake || !by_language.contains_key(&language.id) {
                    by_language.insert(language.id.clone(), interpreter);
                }
            }
        }
        Self {
            by_language: Arc::new(by_language),
            by_plugin: Arc::new(by_plugin),
        }
    }

    /// All of them, by language.
    pub fn all(&self) -> impl Iterator<Item = &Interpreter> {
        self.by_language.values()
    }

    /// The one that runs a language.
    pub fn get(&self, language: &str) -> Option<&Interpreter> {
        self.by_language.get(language)
    }

    /// The one of these plugins that runs a language.
    pub(crate) fn of_plugins(&self, plugins: &[String], language: &str) -> Option<&Interpreter> {
        plugins
            .iter()
            .filter_map(|plugin| self.by_plugin.get(plugin))
            .flatten()
            .find(|interpreter| interpreter.language.id == language)
    }

    /// Whether there is an interpreter plugin of that name.
    pub(crate) fn has_plugin(&self, plugin: &str) -> bool {
        self.by_plugin.contains_key(plugin)
    }

    /// The names of all interpreter plugins.
    pub(crate) fn plugins(&self) -> impl Iterator<Item = &str> {
        self.by_plugin.keys().map(String::as_str)
    }
}

/// An interpreter by the plugin that is to serve, and no other.
pub(crate) fn of_plugin(plugin: &Arc<Plugin>, language: &Language) -> Interpreter {
    Interpreter {
        plugin: Arc::clone(plugin),
        language: language.clone(),
        follows: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_asks_keeps_more_of_its_output_within_what_the_operator_says() {
        let kept = |said: Option<u64>, wanted: Option<u64>| {
            let policy = ProgramPolicy {
                output_bytes: said,
                ..ProgramPolicy::default()
            };
            policy.kept(&ProgramLimits {
                output_bytes: wanted,
                ..ProgramLimits::default()
            })
        };
        assert_eq!(kept(None, None), 64 << 10);
        assert_eq!(kept(None, Some(u64::MAX)), 1 << 20);
        assert_eq!(kept(None, Some(5)), 5);
        assert_eq!(kept(Some(1_000), None), 1_000);
        assert_eq!(kept(Some(1_000), Some(u64::MAX)), 1_000);
        assert_eq!(kept(Some(4 << 20), Some(u64::MAX)), 4 << 20);
    }
}
