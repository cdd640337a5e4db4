//! From the files of one plugin to a plugin that can be called: admitted, compiled, initialised,
//! and its tools listed and checked.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rlf_dialogue::tool::ToolDefinition;
use rlf_sandbox::{
    ComponentInfo, Grants, InitMode, LoadError, LoadRequest, Pool, RealSources, Sandbox,
};

use crate::admission::{Refusal, admit};
use crate::bindings::{environment, interpreter, reward, tool, types};
use crate::convert::{definition_from_guest, definition_to_guest};
use crate::discovery::Candidate;
use crate::gates;
use crate::interpreter::Language;
use crate::interpreter::functions::{FunctionSources, Functions, LANGUAGE, Unfit};
use crate::interpreter::program::ProgramLimits;
use crate::interpreter::tool::definition as interpreter_tool;
use crate::manifest::{Gate, PluginKind, is_valid_name};
use crate::plugin::{Checking, Exports, LoadedTool, Plugin};
use crate::policy::PluginPolicy;
use crate::problem::{Problem, ProblemKind};
use crate::schema::{self, ToolSchema};

/// Most tools of one plugin.
pub const MAX_TOOLS: usize = 256;
/// Most languages of one interpreter.
pub const MAX_LANGUAGES: usize = 16;
/// Longest description of a tool, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 16 * 1024;

/// Most values in the schemas of all its tools, every `$ref` followed.
pub const MAX_PLUGIN_SCHEMA_NODES: usize = 100_000;
/// All regular expressions in the schemas of all its tools, compiled, in bytes.
pub const MAX_PLUGIN_PATTERN_BYTES: usize = 4 << 20;

/// Loads a candidate under the name `alias`. Blocks while it compiles; not to be called on a
/// thread of an async runtime.
pub(crate) fn load(
    alias: &str,
    candidate: Candidate,
    policy: &PluginPolicy,
    sandbox: &Sandbox,
) -> Result<Plugin, Problem> {
    let (path, component_path) = (candidate.path.clone(), candidate.component_path.clone());
    let problem = |path: &Path, (kind, what, mend): Refusal| Problem {
        plugin: alias.into(),
        path: path.to_owned(),
        kind,
        what: one_line(&what),
        mend,
    };
    let component = ComponentInfo::read(&candidate.component)
        .map_err(|error| problem(&component_path, of_load_error(&error)))?;
    let admitted = admit(alias, &candidate.manifest, policy, &component)
        .map_err(|refusal| problem(&path, refusal))?;
    let imported = component
        .imports
        .iter()
        .filter_map(|import| Gate::of_import(import));
    let gates = gates::open(imported, &admitted.policy).map_err(|what| {
        let mend = format!("correct [plugins.{alias}]; docs/plugins.md describes every key");
        problem(&path, (ProblemKind::Policy, what, mend))
    })?;
    let is_interpreter = admitted.kind == PluginKind::Interpreter;
    let policy = &admitted.policy;
    let misplaced = if is_interpreter {
        if policy.files.is_some() || policy.unsandboxed_host_directory.is_some() {
            Some("an interpreter gives every program files of its own (`programs.file_bytes`)")
        } else if policy.functions.is_some() && policy.environment.is_some() {
            Some(
                "`functions` are tools without a state, and `environment` is worlds with one: it is either",
            )
        } else {
            None
        }
    } else if policy.functions.is_some() {
        Some("`functions` are for an interpreter, and this plugin is none")
    } else if policy.environment.is_some() {
        Some("`environment` is for an interpreter that runs Python, and this plugin is none")
    } else {
        None
    };
    if let Some(what) = misplaced {
        let mend = format!("leave it out of [plugins.{alias}]");
        return Err(problem(&path, (ProblemKind::Policy, what.to_owned(), mend)));
    }
    let sources = (policy.functions.as_deref())
        .map(FunctionSources::read)
        .transpose()
        .map_err(|what| {
            let mend = format!("correct `functions` in [plugins.{alias}], or what lies there");
            problem(&path, (ProblemKind::Policy, what, mend))
        })?;
    let mut config = policy.effective_config(&candidate.manifest);
    if let Some(environment) = &policy.environment {
        config["environment"] = environment.read().map_err(|what| {
            let mend = format!("correct `environment` in [plugins.{alias}], or what lies there");
            problem(&path, (ProblemKind::Policy, what, mend))
        })?;
    }
    let environment_hash = config.get("environment").map(|files| {
        blake3::hash(files.to_string().as_bytes())
            .to_hex()
            .to_string()
    });
    let config_json = config.to_string();
    let most_memory = sandbox.pools().max_memory_bytes;
    let (pool, files, limits) = if is_interpreter {
        let programs = &policy.programs;
        let mut limits = programs.limits(&policy.limits, &ProgramLimits::default(), most_memory);
        // Of what loading takes; programs have limits of their own.
        limits.memory_bytes = most_memory;
        let pool = if policy.environment.is_some() {
            Pool::Sessions
        } else {
            Pool::Programs
        };
        (pool, Some(programs.files()), limits)
    } else {
        let pool = if admitted.kind == PluginKind::Environment {
            Pool::Sessions
        } else {
            Pool::Calls
        };
        (pool, policy.files.clone(), policy.limits.clone())
    };
    let request = LoadRequest {
        name: alias,
        pool,
        gates: &gates,
        bytes: &candidate.component,
        config_json: &config_json,
        grants: &Grants {
            data: admitted.policy.data.clone(),
            files,
            host_directory: admitted.policy.unsandboxed_host_directory.clone(),
            real: RealSources {
                clock: admitted.policy.grants.contains(&Gate::RealClock),
                random: admitted.policy.grants.contains(&Gate::RealRandom),
            },
        },
        limits,
    };
    let template = sandbox
        .load(&request)
        .map_err(|error| problem(&component_path, of_load_error(&error)))?;
    let pre = template.instance_pre();
    let exports = match admitted.kind {
        PluginKind::Tool => tool::GuestIndices::new(pre).map(|all| Exports::Tool(Arc::new(all))),
        PluginKind::Reward => {
            reward::GuestIndices::new(pre).map(|all| Exports::Reward(Arc::new(all)))
        }
        PluginKind::Interpreter => {
            interpreter::GuestIndices::new(pre).map(|all| Exports::Interpreter(Arc::new(all)))
        }
        PluginKind::Environment => {
            environment::GuestIndices::new(pre).map(|all| Exports::Environment(Arc::new(all)))
        }
    };
    let exports = exports.map_err(|error| {
        let what = format!(
            "the component does not export {} as the contract has it: {error:#}",
            admitted.kind.interface()
        );
        problem(
            &component_path,
            (ProblemKind::Component, what, "build it against wit/".into()),
        )
    })?;
    let mut plugin = Plugin::new(
        alias.to_owned(),
        (candidate.path, candidate.component_path, candidate.manifest),
        admitted.policy,
        admitted.notices,
        template,
        exports,
    );
    plugin.environment_hash = environment_hash.filter(|_| plugin.policy.environment.is_some());
    ask(&mut plugin, sources).map_err(|refusal| problem(&component_path, refusal))?;
    if let (Some(_), InitMode::PerCall { reason }) =
        (&plugin.environment_hash, plugin.template().init())
    {
        tracing::warn!(
            "environment `{alias}`: every session loads its files again, which takes time and memory: {reason}"
        );
    }
    Ok(plugin)
}

/// In what is wrong with a component its own names are quoted: none of them may begin a line or move a
/// terminal's cursor.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    rlf_sandbox::safe_text(lines.join("; ").as_bytes())
}

fn of_load_error(error: &LoadError) -> Refusal {
    let kind = match error {
        LoadError::Init { .. } => ProblemKind::Init,
        LoadError::Data(_) => ProblemKind::Data,
        LoadError::Limits(_) | LoadError::Files(_) => ProblemKind::Policy,
        _ => ProblemKind::Component,
    };
    // The sandbox's messages say how to mend it themselves.
    (kind, error.to_string(), String::new())
}

/// Runs the plugin for the first time: a tool plugin says what it offers, an interpreter which languages it
/// runs, a reward only has to be one.
fn ask(plugin: &mut Plugin, functions: Option<FunctionSources>) -> Result<(), Refusal> {
    // The guest runs on the sandbox's threads; this one only waits.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| {
            (
                ProblemKind::Tools,
                format!("cannot wait for it: {error}"),
                String::new(),
            )
        })?;
    let (listed, mend) = match plugin.kind() {
        PluginKind::Reward => {
            let probed = runtime.block_on(plugin.probe_reward());
            return probed.map_err(|stopped| {
                (
                    ProblemKind::Component,
                    format!("it cannot be made ready to grade: {stopped}"),
                    "build it against wit/".into(),
                )
            });
        }
        PluginKind::Environment => {
            // Which tools there are, a task says.
            let listed = runtime.block_on(plugin.list_scenarios());
            return listed.map(drop).map_err(|stopped| {
                (
                    ProblemKind::Component,
                    format!("scenarios did not return: {stopped}"),
                    "mend the environment, and build it against wit/".into(),
                )
            });
        }
        PluginKind::Interpreter => {
            let languages = runtime
                .block_on(plugin.list_languages())
                .map_err(|stopped| {
                    (
                        ProblemKind::Component,
                        format!("languages did not return: {stopped}"),
                        "mend the interpreter".into(),
                    )
                })?;
            plugin.languages = check_languages(languages)
                .map_err(|what| (ProblemKind::Component, what, "mend the interpreter".into()))?;
            if plugin.policy.environment.is_some() {
                return Ok(());
            }
            let definitions = match functions {
                Some(functions) => {
                    let compiled = runtime.block_on(compile(plugin, &functions));
                    plugin.functions = Some(
                        compiled.map_err(|unfit| (ProblemKind::Policy, unfit.what, unfit.mend))?,
                    );
                    functions.definitions
                }
                None => plugin.languages.iter().map(interpreter_tool).collect(),
            };
            let mend = format!("correct `functions` of [plugins.{}]", plugin.name());
            (definitions.iter().map(definition_to_guest).collect(), mend)
        }
        PluginKind::Tool => {
            let mend = "mend the plugin's list-tools".to_owned();
            let listed = runtime.block_on(plugin.list_tools()).map_err(|stopped| {
                (
                    ProblemKind::Tools,
                    format!("list-tools did not return: {stopped}"),
                    mend.clone(),
                )
            })?;
            (listed, mend)
        }
    };
    check_names(&listed, plugin.policy()).map_err(|what| {
        let mend = format!("correct `rename` in [plugins.{}]", plugin.name());
        (ProblemKind::Policy, what, mend)
    })?;
    plugin.tools = check_tools(listed, plugin.policy(), Checking::Host)
        .map_err(|what| (ProblemKind::Tools, what, mend))?;
    Ok(())
}

/// Compiles the functions that are offered in place of programs.
async fn compile(plugin: &Plugin, functions: &FunctionSources) -> Result<Functions, Unfit> {
    let runs = |language: &&Language| language.id == LANGUAGE;
    if plugin.languages.iter().find(runs).is_none() {
        return Err(Unfit {
            what: format!("`functions` are in {LANGUAGE}, which this interpreter does not run"),
            mend: format!("leave `functions` out of [plugins.{}]", plugin.name()),
        });
    }
    functions.compile(plugin).await
}

/// Checks what an interpreter says it runs.
fn check_languages(languages: Vec<interpreter::Language>) -> Result<Vec<Language>, String> {
    if languages.is_empty() || languages.len() > MAX_LANGUAGES {
        return Err(format!(
            "it runs {} languages; there must be between 1 and {MAX_LANGUAGES}",
            languages.len()
        ));
    }
    let mut seen = BTreeSet::new();
    languages
        .into_iter()
        .map(|language| {
            if !is_valid_name(&language.id) || !seen.insert(language.id.clone()) {
                return Err(format!(
                    "`{}` cannot name a language: write 1 to 64 of a-z A-Z 0-9 _ -, and each once",
                    shown(&language.id)
                ));
            }
            Ok(Language {
                id: language.id,
                version: shown(&language.version),
                sessions: language.sessions,
            })
        })
        .collect()
}

/// Checks that the operator's names are for tools that there are, and can name one.
fn check_names(listed: &[types::ToolDefinition], policy: &PluginPolicy) -> Result<(), String> {
    let own_names: BTreeSet<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
    for (own, new) in &policy.rename {
        if !own_names.contains(own.as_str()) {
            let known: Vec<&str> = own_names.into_iter().take(20).collect();
            return Err(format!(
                "`rename` is about a tool `{own}`, but its tools are: {}",
                shown(&known.join(", "))
            ));
        }
        if !is_valid_name(new) {
            return Err(format!(
                "`rename.{own}` = {new:?} cannot name a tool: write 1 to 64 of a-z A-Z 0-9 _ -"
            ));
        }
    }
    Ok(())
}

/// Checks what a plugin says of its tools, and gives them the operator's names.
pub(crate) fn check_tools(
    listed: Vec<types::ToolDefinition>,
    policy: &PluginPolicy,
    checking: Checking,
) -> Result<Vec<LoadedTool>, String> {
    if listed.is_empty() {
        return Err("it offers no tools".into());
    }
    if listed.len() > MAX_TOOLS {
        return Err(format!(
            "it offers {} tools; at most {MAX_TOOLS} are taken",
            listed.len()
        ));
    }
    let mut seen = BTreeSet::new();
    let (mut nodes, mut pattern_bytes) = (0, 0);
    listed
        .into_iter()
        .map(|listed| {
            if listed.description.len() > MAX_DESCRIPTION_BYTES {
                return Err(format!(
                    "the description of `{}` has {} bytes; at most {MAX_DESCRIPTION_BYTES} are taken",
                    shown(&listed.name),
                    listed.description.len()
                ));
            }
            // Before it is parsed: a schema's length is bounded as text.
            let schema = match checking {
                Checking::Host => ToolSchema::parse(&listed.input_schema).map(Some),
                Checking::Tool => schema::bounded(&listed.input_schema).map(|_| None),
            };
            let schema =
                schema.map_err(|error| format!("tool `{}`: {error}", shown(&listed.name)))?;
            nodes += schema.as_ref().map_or(0, ToolSchema::nodes);
            pattern_bytes += schema.as_ref().map_or(0, ToolSchema::pattern_bytes);
            if nodes > MAX_PLUGIN_SCHEMA_NODES || pattern_bytes > MAX_PLUGIN_PATTERN_BYTES {
                return Err(format!(
                    "the schemas of its tools are too much together: up to `{}` they unfold into {nodes} \
                     values with {pattern_bytes} bytes of regular expressions, and {MAX_PLUGIN_SCHEMA_NODES} and \
                     {MAX_PLUGIN_PATTERN_BYTES} are taken",
                    shown(&listed.name)
                ));
            }
            let own = definition_from_guest(listed).map_err(|error| error.to_string())?;
            let name = policy.rename.get(&own.name).unwrap_or(&own.name).clone();
            for name in [&own.name, &name] {
                if !is_valid_name(name) {
                    return Err(format!(
                        "`{}` cannot name a tool: write 1 to 64 of a-z A-Z 0-9 _ -",
                        shown(name)
                    ));
                }
            }
            if !seen.insert(name.clone()) {
                return Err(format!("it offers two tools called `{name}`"));
            }
            Ok(LoadedTool {
                own_name: own.name.clone(),
                definition: ToolDefinition { name, ..own },
                schema: schema.map(Arc::new),
            })
        })
        .collect()
}

fn shown(name: &str) -> String {
    rlf_sandbox::safe_text(name.as_bytes())
        .chars()
        .take(64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, schema: &str) -> types::ToolDefinition {
        types::ToolDefinition {
            name: name.into(),
            description: "d".into(),
            input_schema: schema.into(),
            output_schema: None,
            hints: types::Hints::READ_ONLY | types::Hints::DETERMINISTIC,
            extra: vec![],
        }
    }

    const OBJECT: &str = r#"{"type":"object"}"#;

    fn refusal(tools: Vec<types::ToolDefinition>, policy: &str) -> String {
        let policy = rlf_config::parse(policy, "c.toml").unwrap();
        check_tools(tools, &policy, Checking::Host).unwrap_err()
    }

    #[test]
    fn tools_are_taken_in_their_order_and_under_the_operators_names() {
        let policy = rlf_config::parse("rename.b = \"c\"", "c.toml").unwrap();
        let listed = vec![listed("b", OBJECT), listed("a", OBJECT)];
        let tools = check_tools(listed, &policy, Checking::Host).unwrap();
        let names: Vec<(&str, &str)> = tools
            .iter()
            .map(|t| (t.definition.name.as_str(), t.own_name.as_str()))
            .collect();
        assert_eq!(names, [("c", "b"), ("a", "a")]);
        assert!(tools[0].definition.hints.read_only && tools[0].definition.hints.deterministic);
        assert!(!tools[0].definition.hints.idempotent);
    }

    #[test]
    fn what_is_wrong_with_a_list_of_languages_is_said() {
        let language = |id: &str| interpreter::Language {
            id: id.into(),
            version: "1\u{1b}[2J".into(),
            sessions: false,
        };
        let refusal = |ids: &[&str]| {
            let languages = ids.iter().map(|id| language(id)).collect();
            check_languages(languages).unwrap_err()
        };
        assert_eq!(
            refusal(&[]),
            "it runs 0 languages; there must be between 1 and 16"
        );
        assert!(refusal(&["a"; 17]).starts_with("it runs 17 languages"));
        assert!(refusal(&["a", "a"]).starts_with("`a` cannot name a language"));
        assert!(refusal(&["a b"]).starts_with("`a b` cannot name a language"));
        let read = check_languages(vec![language("a")]).unwrap();
        assert_eq!(read[0].version, "1\u{241b}[2J");
    }

    #[test]
    fn what_is_wrong_with_a_list_of_tools_is_said() {
        assert_eq!(refusal(vec![], ""), "it offers no tools");
        assert_eq!(
            refusal(vec![listed("a.b\u{1b}", OBJECT)], ""),
            "`a.b\u{241b}` cannot name a tool: write 1 to 64 of a-z A-Z 0-9 _ -"
        );
        assert_eq!(
            refusal(vec![listed("a", OBJECT), listed("a", OBJECT)], ""),
            "it offers two tools called `a`"
        );
        assert_eq!(
            refusal(
                vec![listed("a", OBJECT), listed("b", OBJECT)],
                "rename.a = \"b\""
            ),
            "it offers two tools called `b`"
        );
        let misnamed = |policy: &str| {
            check_names(
                &[listed("a", OBJECT)],
                &rlf_config::parse(policy, "c.toml").unwrap(),
            )
            .unwrap_err()
        };
        assert_eq!(
            misnamed("rename.x = \"b\""),
            "`rename` is about a tool `x`, but its tools are: a"
        );
        assert_eq!(
            misnamed("rename.a = \"\""),
            "`rename.a` = \"\" cannot name a tool: write 1 to 64 of a-z A-Z 0-9 _ -"
        );
        assert!(
            refusal(vec![listed("a", "{")], "").starts_with("tool `a`: the schema is not JSON")
        );
        let remote = r#"{"type":"object","properties":{"x":{"$ref":"https://example.com"}}}"#;
        assert!(refusal(vec![listed("a", remote)], "").contains("is not allowed"));
        let long = types::ToolDefinition {
            description: "x".repeat(20_000),
            ..listed("a", OBJECT)
        };
        assert_eq!(
            refusal(vec![long], ""),
            "the description of `a` has 20000 bytes; at most 16384 are taken"
        );
        // Two hundred that would each do alone.
        let large = format!(
            r#"{{"type":"object","properties":{{"x":{{"enum":[{}0]}}}}}}"#,
            "0,".repeat(1_000)
        );
        let large = (0..200).map(|n| listed(&format!("t{n}"), &large)).collect();
        let said = refusal(large, "");
        assert!(
            said.starts_with("the schemas of its tools are too much together: up to `t99`"),
            "{said}"
        );
        let many = (0..300).map(|n| listed(&format!("t{n}"), OBJECT)).collect();
        assert_eq!(
            refusal(many, ""),
            "it offers 300 tools; at most 256 are taken"
        );
    }
}
