//! Interpreters: plugins that run programs, each in a fresh instance.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rlf_plugins::bindings::{code, types};
use rlf_plugins::plugin::Plugin;
use rlf_plugins::programs::{ProgramGrants, ProgramLimits};
use rlf_plugins::registry::Registry;
use rlf_sandbox::{BoxFuture, CallReport, CallSpec, Clock, Ending, LimitReached, Stopped, Tee};

use crate::language::{Language, indices, languages};
use crate::program::{
    CompileError, Compiled, Program, ProgramError, ProgramOutcome, ProgramReport, check_fetched,
};

/// The circumstances of a run: its deadline, its name in logs, its live output.
#[derive(Debug, Clone, Default)]
pub struct ProgramOptions {
    /// The name of the run in logs.
    pub label: String,
    /// A deadline that is earlier than that of the grants, if the caller has less time left.
    pub deadline: Option<Instant>,
    /// Time that a notebook may be open, instead of the deadline of the grants.
    pub lifetime: Option<Duration>,
    /// Receives the output while the program runs.
    pub tee: Option<Tee>,
}

/// A language of a loaded interpreter plugin. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Interpreter {
    plugin: Arc<Plugin>,
    language: Language,
    /// True if a replacement of the plugin on disk serves later runs.
    follows: bool,
}

impl Interpreter {
    /// The interpreter for a language in exactly this plugin, even if the plugin is replaced on disk.
    pub fn pinned_to(plugin: &Arc<Plugin>, language: &Language) -> Self {
        Self {
            plugin: Arc::clone(plugin),
            language: language.clone(),
            follows: false,
        }
    }

    /// The language that it runs.
    pub fn language(&self) -> &Language {
        &self.language
    }

    /// The plugin that it is a part of.
    pub fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    /// The plugin that serves a run that starts now.
    pub(crate) fn serving(&self) -> Arc<Plugin> {
        if self.follows {
            self.plugin.latest()
        } else {
            Arc::clone(&self.plugin)
        }
    }

    /// Runs a program from start to end, in a fresh instance. An error describes a mistake in the request or a failure
    /// to run it. The program's own end is in the report.
    pub fn run(
        &self,
        program: Program,
        spec: ProgramOptions,
    ) -> BoxFuture<'_, Result<ProgramReport, ProgramError>> {
        Box::pin(async move { run(&self.serving(), &self.language.id, program, spec).await })
    }

    /// Compiles a module for programs to import. None of its code runs.
    pub fn compile<'a>(
        &'a self,
        name: &'a str,
        source: &'a str,
    ) -> BoxFuture<'a, Result<Compiled, CompileError>> {
        Box::pin(async move { compile(&self.serving(), &self.language.id, name, source).await })
    }
}

/// See [`Interpreter::run`].
pub(crate) async fn run(
    plugin: &Plugin,
    language: &str,
    program: Program,
    spec: ProgramOptions,
) -> Result<ProgramReport, ProgramError> {
    program.check(&plugin.grants().programs)?;
    let indices = indices(plugin)?;
    let call = call_spec(plugin, &program.limits, program.seed, spec);
    let wanted = program.limits;
    let request = program.into_guest(language, &plugin.grants().programs);
    let report = plugin
        .template()
        .call(call, move |store, instance| {
            Box::pin(async move {
                let guest = indices.load(&mut *store, &instance)?;
                guest.call_execute(store, &request).await
            })
        })
        .await;
    let grants = &plugin.grants().programs;
    report_of(
        report,
        |run| (run.outcome.into(), run.files),
        grants,
        &wanted,
    )
}

/// See [`Interpreter::compile`].
pub(crate) async fn compile(
    plugin: &Plugin,
    language: &str,
    name: &str,
    source: &str,
) -> Result<Compiled, CompileError> {
    let indices = indices(plugin)?;
    let spec = ProgramOptions {
        label: format!("{}: compile {name}", plugin.name()),
        ..ProgramOptions::default()
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
        Ok(Ok(compiled)) => Ok(compiled.into()),
        Ok(Err(exception)) => Err(CompileError::Rejected(exception.into())),
        Err(stopped) => Err(ProgramError::from_stopped(stopped).into()),
    }
}

/// Builds a call with the limits that a program asks for, within the operator's.
pub(crate) fn call_spec(
    plugin: &Plugin,
    wanted: &ProgramLimits,
    seed: u64,
    spec: ProgramOptions,
) -> CallSpec {
    let grants = &plugin.grants().programs;
    let most_memory = plugin.template().max_memory_bytes();
    let mut limits = grants.limits(&plugin.grants().limits, wanted, most_memory);
    limits.wall = spec.lifetime.unwrap_or(limits.wall);
    CallSpec {
        label: spec.label,
        seed,
        limits: Some(limits),
        deadline: spec.deadline,
        virtual_time: Some(grants.time(wanted)),
        tee: spec.tee,
        ..CallSpec::default()
    }
}

/// Makes the report of a run, whether the guest returned or was stopped.
fn report_of<R>(
    report: CallReport<Result<R, types::Error>>,
    read: impl FnOnce(R) -> (ProgramOutcome, Vec<code::File>),
    grants: &ProgramGrants,
    wanted: &ProgramLimits,
) -> Result<ProgramReport, ProgramError> {
    let mut run = ProgramReport {
        stopped: None,
        outcome: None,
        stdout: report.stdout,
        stderr: report.stderr,
        files: Vec::new(),
        files_refused: report.files.refused.map(with_name_of_file_limit),
        cpu: report.cpu,
        wall: report.wall,
        queued: report.queued,
        memory_peak: report.memory_peak,
    };
    match report.outcome {
        Ok(Ok(returned)) => {
            let (outcome, files) = read(returned);
            let bytes: u64 = files.iter().map(|file| file.data.len() as u64).sum();
            check_fetched(grants, bytes, wanted)?;
            run.outcome = Some(outcome);
            run.files = files.into_iter().map(Into::into).collect();
        }
        Ok(Err(error)) => return Err(ProgramError::from_guest(error)),
        // `os._exit` and similar calls are a normal end of a program.
        Err(Stopped {
            ended: Ending::Exited { code },
            ..
        }) => run.outcome = Some(ProgramOutcome::Exited(code)),
        Err(stopped) => run.stopped = Some(with_names_of_program_limits(stopped)),
    }
    Ok(run)
}

/// A limit on a program's files, with its name in [`ProgramGrants`] if it is a key there.
fn with_name_of_file_limit(mut limit: LimitReached) -> LimitReached {
    if limit.name == "files.bytes" {
        "file_bytes".clone_into(&mut limit.name);
    }
    limit
}

/// The reason why a program was stopped, with the limit's name in [`ProgramGrants`]. The limit of an instance has
/// another name.
pub(crate) fn with_names_of_program_limits(mut stopped: Stopped) -> Stopped {
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

/// The interpreters of a registry, by language. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Interpreters {
    by_language: Arc<BTreeMap<String, Interpreter>>,
}

impl Interpreters {
    /// All loaded interpreters. If several run the same language, the plugin with the language's name is used, else the
    /// first by name. Interpreters that only serve functions (`functions` of their grants) are left out.
    pub fn new(registry: &Registry) -> Self {
        let mut by_language: BTreeMap<String, Interpreter> = BTreeMap::new();
        let run_programs = registry
            .plugins()
            .iter()
            .filter(|plugin| plugin.grants().functions.is_none() && !plugin.is_environment());
        for plugin in run_programs {
            for language in languages(plugin) {
                let is_namesake = plugin.name() == language.id;
                if is_namesake || !by_language.contains_key(&language.id) {
                    let interpreter = Interpreter {
                        plugin: Arc::clone(plugin),
                        language: language.clone(),
                        follows: true,
                    };
                    by_language.insert(language.id.clone(), interpreter);
                }
            }
        }
        Self {
            by_language: Arc::new(by_language),
        }
    }

    /// All interpreters, by language.
    pub fn all(&self) -> impl Iterator<Item = &Interpreter> {
        self.by_language.values()
    }

    /// The interpreter for a language.
    pub fn get(&self, language: &str) -> Option<&Interpreter> {
        self.by_language.get(language)
    }
}
