//! Interpreters: plugins that run programs, each in a fresh instance.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rlf_plugins::bindings::{code, types};
use rlf_plugins::gates::Nesting;
use rlf_plugins::plugin::Plugin;
use rlf_plugins::programs::{ProgramGrants, ProgramLimits};
use rlf_plugins::registry::Registry;
use rlf_sandbox::{BoxFuture, CallReport, CallSpec, Clock, Ending, LimitReached, Stopped, Tee};

use crate::imports::imported;
use crate::language::{Language, indices, language, languages};
use crate::program::{
    CompileError, Compiled, Program, ProgramError, ProgramOutcome, ProgramReport, fetched_limit,
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
    /// The means by which the program calls tools, if its interpreter's grants open any to programs. Default: none.
    pub nesting: Option<Arc<Nesting>>,
}

/// A language of loaded interpreter plugins. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Interpreter {
    plugin: Arc<Plugin>,
    /// Plugins with the same language. They run the programs that import a package which only they have.
    others: Arc<[Arc<Plugin>]>,
    language: Language,
    /// True if a replacement of the plugin on disk serves later runs.
    follows: bool,
}

impl Interpreter {
    /// The interpreter for a language in exactly this plugin, even if the plugin is replaced on disk.
    pub fn pinned_to(plugin: &Arc<Plugin>, language: &Language) -> Self {
        Self {
            plugin: Arc::clone(plugin),
            others: Arc::new([]),
            language: language.clone(),
            follows: false,
        }
    }

    /// The interpreter for a language among these plugins, as they are now on disk. The first one that runs the language
    /// runs a program, unless the program imports a package that only a later one has (`packages` of its manifest).
    pub fn among<'a>(plugins: impl IntoIterator<Item = &'a Arc<Plugin>>, id: &str) -> Option<Self> {
        let latest = plugins.into_iter().map(Plugin::latest);
        let mut plugins = latest.filter(|plugin| language(plugin, id).is_some());
        let first = plugins.next()?;
        let found = language(&first, id)?.clone();
        Some(Self {
            plugin: first,
            others: plugins.collect(),
            language: found,
            follows: false,
        })
    }

    /// The language that it runs.
    pub fn language(&self) -> &Language {
        &self.language
    }

    /// The plugin that runs its programs, and sets their limits, unless they need the packages of another.
    pub fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    /// The plugin that serves a notebook that opens now.
    pub(crate) fn serving(&self) -> Arc<Plugin> {
        self.current(&self.plugin)
    }

    /// The plugin as it serves now.
    fn current(&self, plugin: &Arc<Plugin>) -> Arc<Plugin> {
        if self.follows {
            plugin.latest()
        } else {
            Arc::clone(plugin)
        }
    }

    /// All plugins that may run a program; the first is [`plugin`](Self::plugin).
    fn plugins(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        std::iter::once(&self.plugin).chain(self.others.iter())
    }

    /// The number, among [`plugins`](Self::plugins), of the one that runs a program. The modules that lie beside it count
    /// as its own code.
    fn choose(&self, program: &Program) -> usize {
        if self.others.is_empty() {
            return 0;
        }
        let imported = imported(&program.code, &program.files);
        let has = |plugin: &Arc<Plugin>| {
            let mut packages = plugin.manifest().packages.iter();
            packages.any(|package| imported.contains(package.as_str()))
        };
        self.plugins().position(has).unwrap_or(0)
    }

    /// Runs a program from start to end, in a fresh instance. An error describes a mistake in the request or a failure
    /// to run it. The program's own end is in the report.
    pub fn run(
        &self,
        mut program: Program,
        spec: ProgramOptions,
    ) -> BoxFuture<'_, Result<ProgramReport, ProgramError>> {
        Box::pin(async move {
            let chosen = self.choose(&program);
            if !self.others.is_empty() {
                for module in &mut program.modules {
                    module.data = part(&module.data, chosen).ok_or_else(|| {
                        let what = format!(
                            "module {:?} was compiled by another interpreter",
                            module.name
                        );
                        ProgramError::InvalidArguments(what)
                    })?;
                }
            }
            let plugin = self.plugins().nth(chosen).unwrap_or(&self.plugin);
            run(&self.current(plugin), &self.language.id, program, spec).await
        })
    }

    /// Compiles a module for programs to import. None of its code runs.
    pub fn compile<'a>(
        &'a self,
        name: &'a str,
        source: &'a str,
    ) -> BoxFuture<'a, Result<Compiled, CompileError>> {
        Box::pin(async move {
            let id = &self.language.id;
            let mut compiled = compile(&self.serving(), id, name, source).await?;
            if self.others.is_empty() {
                return Ok(compiled);
            }
            let mut all = Vec::new();
            add_part(&mut all, &compiled.data);
            for other in self.others.iter() {
                let for_other = compile(&self.current(other), id, name, source).await?;
                add_part(&mut all, &for_other.data);
            }
            compiled.data = all;
            Ok(compiled)
        })
    }
}

/// Appends what one plugin compiled of a module that several may load.
fn add_part(all: &mut Vec<u8>, part: &[u8]) {
    all.extend((part.len() as u64).to_le_bytes());
    all.extend(part);
}

/// Takes the part of a module that plugin number `chosen` compiled. Returns `None` if the module was not compiled here.
fn part(mut all: &[u8], chosen: usize) -> Option<Vec<u8>> {
    for _ in 0..chosen {
        let (length, rest) = all.split_first_chunk()?;
        all = rest.get(usize::try_from(u64::from_le_bytes(*length)).ok()?..)?;
    }
    let (length, rest) = all.split_first_chunk()?;
    let part = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some(part.to_vec())
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
    let own = plugin.template().initial_memory_bytes();
    limits.memory_bytes = (limits.memory_bytes)
        .saturating_add(own.saturating_sub(ProgramGrants::INTERPRETER_BYTES))
        .min(most_memory);
    CallSpec {
        label: spec.label,
        seed,
        limits: Some(limits),
        deadline: spec.deadline,
        virtual_time: Some(grants.time(wanted)),
        tee: spec.tee,
        file_bytes: wanted.file_bytes,
        context: spec.nesting.map(|nesting| nesting as _),
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
            run.outcome = Some(outcome);
            match fetched_limit(grants, bytes, wanted) {
                None => run.files = files.into_iter().map(Into::into).collect(),
                Some(limit) => run.files_refused = Some(limit),
            }
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
    /// Each plugin alone, by its name.
    by_plugin: Arc<BTreeMap<String, Interpreter>>,
}

impl Interpreters {
    /// All loaded interpreters. If several run the same language, the plugin with the language's name runs a program,
    /// else the first by name. A program that imports a package which only another plugin has (`packages` of its
    /// manifest) runs in that plugin. Interpreters that only serve functions (`functions` of their grants) are left
    /// out.
    pub fn new(registry: &Registry) -> Self {
        let run_programs: Vec<_> = (registry.plugins().iter())
            .filter(|plugin| plugin.grants().functions.is_none() && !plugin.is_environment())
            .collect();
        let ids: BTreeSet<&String> = (run_programs.iter())
            .flat_map(|plugin| languages(plugin))
            .map(|language| &language.id)
            .collect();
        let by_language = ids.into_iter().filter_map(|id| {
            let (namesake, others): (Vec<&Arc<Plugin>>, Vec<_>) =
                (run_programs.iter()).partition(|plugin| plugin.name() == id);
            let interpreter = Interpreter::among(namesake.into_iter().chain(others), id)?;
            let follows = true;
            Some((
                id.clone(),
                Interpreter {
                    follows,
                    ..interpreter
                },
            ))
        });
        let by_language = by_language.collect();
        let by_plugin = run_programs.iter().filter_map(|plugin| {
            let language = languages(plugin).first()?.clone();
            let alone = Interpreter {
                follows: true,
                ..Interpreter::pinned_to(plugin, &language)
            };
            Some((plugin.name().to_owned(), alone))
        });
        Self {
            by_language: Arc::new(by_language),
            by_plugin: Arc::new(by_plugin.collect()),
        }
    }

    /// All interpreters, by language.
    pub fn all(&self) -> impl Iterator<Item = &Interpreter> {
        self.by_language.values()
    }

    /// The interpreter for a language. The name of a plugin works too: it stands for the first language of that plugin,
    /// run by that plugin alone.
    pub fn get(&self, language: &str) -> Option<&Interpreter> {
        (self.by_language.get(language)).or_else(|| self.by_plugin.get(language))
    }
}
