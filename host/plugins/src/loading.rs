//! Loading of one plugin, from its files to a plugin that can be called: it is admitted, compiled and initialised, and
//! its tools are listed and checked.

use std::sync::Arc;

use rlf_sandbox::{
    ComponentSource, Grants, InitMode, LoadError, LoadRequest, OpenGate, Pool, RealSources, Sandbox,
};
use serde_json::Value;

use crate::admission::{Admitted, admit};
use crate::candidate::Candidate;
use crate::gates::{self, GateError};
use crate::grants::PluginGrants;
use crate::kind::{Kinds, LoadPlan};
use crate::manifest::{GateName, PluginKind};
use crate::offered_tools::{Checking, check_names, check_tools};
use crate::plugin::{LoadedEnvironment, Plugin, ToolList};
use crate::problem::{LoadRefusal, Problem, ProblemKind};

/// Loads a candidate under the name `alias`. Blocks while it compiles, so do not call it on a thread of an async
/// runtime.
pub(crate) fn load(
    alias: &str,
    mut candidate: Candidate,
    grants: &PluginGrants,
    kinds: Kinds,
    sandbox: &Sandbox,
) -> Result<Plugin, Problem> {
    let files = candidate.files.clone();
    let of_plugin = |refusal: LoadRefusal| refusal.about(alias, &files.path);
    let of_code = |refusal: LoadRefusal| refusal.about(alias, &files.code);
    let info = candidate.info();
    let manifest = &candidate.contents.manifest;
    let script = candidate.contents.script.as_ref();
    let admitted = admit(alias, manifest, grants, &info, script).map_err(of_plugin)?;
    let grants = &admitted.grants;
    let loader = (kinds.iter().find(|loader| loader.kind() == admitted.kind)).ok_or_else(|| {
        let what = format!(
            "it is {}, and this program runs none",
            admitted.kind.with_article()
        );
        of_plugin(LoadRefusal::new(ProblemKind::Component, what, ""))
    })?;
    let gates = open_gates(&admitted, script.is_some()).map_err(|error| {
        let mend = format!("correct [plugins.{alias}]; docs/plugins.md describes every key");
        let refusal = LoadRefusal::new(ProblemKind::Grants, error.to_string(), mend);
        of_plugin(refusal)
    })?;
    if let Some(what) = misplaced(admitted.kind, grants) {
        let mend = format!("leave it out of [plugins.{alias}]");
        let refusal = LoadRefusal::new(ProblemKind::Grants, what, mend);
        return Err(of_plugin(refusal));
    }
    let plan = match script {
        Some(_) => loader.plan_for_script(grants).ok_or_else(|| {
            let what = format!("{} cannot be a source file", admitted.kind.with_article());
            LoadRefusal::new(ProblemKind::Component, what, "")
        }),
        None => loader.plan(alias, grants, sandbox.pools().max_memory_bytes),
    };
    let mut plan = plan.map_err(of_plugin)?;
    if let Some(files) = candidate.contents.environment.take() {
        add_environment(alias, files, admitted.kind, &mut plan).map_err(of_plugin)?;
    }
    let mut config = grants.effective_config(manifest);
    if let Some(script) = script {
        config = script.init_config(&config);
    }
    let environment = plan.environment.map(|files| {
        let loaded = LoadedEnvironment::new(&files);
        config["environment"] = files;
        loaded
    });
    let config_json = config.to_string();
    let request = LoadRequest {
        name: alias,
        pool: plan.pool,
        gates: &gates,
        component: ComponentSource::File(&candidate.component),
        config_json: &config_json,
        grants: &Grants {
            data: grants.data.clone(),
            files: plan.files,
            host_directory: grants.unsandboxed_host_directory.clone(),
            real: RealSources {
                clock: grants.gates.contains(&GateName::RealClock),
                random: grants.gates.contains(&GateName::RealRandom),
            },
        },
        limits: plan.limits,
    };
    let template = sandbox
        .load(&request)
        .map_err(|error| of_code(unprepared(&error, script.is_some())))?;
    let exports = (plan.exports)(template.instance_pre()).map_err(|error| {
        let what = format!(
            "the component does not export {} as the contract has it: {error:#}",
            admitted.kind.interface()
        );
        let mend = "build it against wit/";
        of_code(LoadRefusal::new(ProblemKind::Component, what, mend))
    })?;
    let loads_files = environment.is_some() || script.is_some();
    let name = alias.to_owned();
    let mut plugin = Plugin::new(name, candidate, admitted, template, exports, environment);
    ask(&mut plugin).map_err(of_code)?;
    if let (true, InitMode::PerCall { reason }) = (loads_files, plugin.template().init()) {
        let (what, run) = match plugin.environment {
            Some(_) => ("environment", "session"),
            None => ("plugin", "call"),
        };
        tracing::warn!(
            "{what} `{alias}`: every {run} loads its files again, which takes time and memory: {reason}"
        );
    }
    Ok(plugin)
}

/// The gates that are linked.
fn open_gates(admitted: &Admitted, is_script: bool) -> Result<Vec<Arc<dyn OpenGate>>, GateError> {
    let used = admitted.gates.iter().copied();
    let linked = used.filter(|gate| !gate.is_behind_wasi());
    let mut gates = gates::open(linked, &admitted.grants)?;
    if is_script || admitted.kind == PluginKind::Interpreter {
        gates.push(gates::for_interpreter());
    }
    let for_programs = &admitted.grants.programs.tools;
    if admitted.kind == PluginKind::Interpreter && !is_script && !for_programs.is_empty() {
        gates.push(gates::for_programs(for_programs));
    }
    Ok(gates)
}

/// Lets an interpreter load the environment that is in its bundle.
fn add_environment(
    alias: &str,
    files: Value,
    kind: PluginKind,
    plan: &mut LoadPlan,
) -> Result<(), LoadRefusal> {
    if kind != PluginKind::Interpreter {
        let what = format!(
            "it contains an environment in Python, and it is {}",
            kind.with_article()
        );
        return Err(LoadRefusal::new(
            ProblemKind::Component,
            what,
            "build it again",
        ));
    }
    if plan.environment.is_some() {
        let what = "the file already contains an environment";
        let mend = format!("remove `environment` from [plugins.{alias}]");
        return Err(LoadRefusal::new(ProblemKind::Grants, what, mend));
    }
    plan.environment = Some(files);
    plan.pool = Pool::Sessions;
    Ok(())
}

/// The refusal of a component that could not be prepared. What a source file raised, with its line, says enough.
fn unprepared(error: &LoadError, is_script: bool) -> LoadRefusal {
    match error {
        LoadError::Config { reason, .. } | LoadError::Init { reason, .. } if is_script => {
            LoadRefusal::new(ProblemKind::Init, reason, "")
        }
        error => error.into(),
    }
}

/// The reason to refuse grants that are only for interpreters, if a plugin of another kind has them.
fn misplaced(kind: PluginKind, grants: &PluginGrants) -> Option<&'static str> {
    if kind == PluginKind::Interpreter {
        None
    } else if grants.functions.is_some() {
        Some("`functions` are for an interpreter, and this plugin is not one")
    } else if grants.environment.is_some() {
        Some("`environment` is for an interpreter that runs Python, and this plugin is not one")
    } else {
        None
    }
}

/// Runs the plugin for the first time, and checks the tools that it offers.
fn ask(plugin: &mut Plugin) -> Result<(), LoadRefusal> {
    // The guest runs on the sandbox's threads; this one only waits.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| {
            let what = format!("cannot wait for it: {error}");
            LoadRefusal::new(ProblemKind::Tools, what, "")
        })?;
    let Some(ToolList { listed, mend }) = runtime.block_on(plugin.list())? else {
        return Ok(());
    };
    check_names(&listed, &plugin.grants().rename).map_err(|error| {
        let mend = format!("correct `rename` in [plugins.{}]", plugin.name());
        LoadRefusal::new(ProblemKind::Grants, error.to_string(), mend)
    })?;
    plugin.tools = check_tools(listed, &plugin.grants().rename, Checking::Host)
        .map_err(|error| LoadRefusal::new(ProblemKind::Tools, error.to_string(), mend))?;
    Ok(())
}
