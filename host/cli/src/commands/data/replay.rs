//! Plays the gold calls of imported tasks in their environments. It checks that the calls can be made, and finds the
//! states that they lead to, for rows that do not contain these states.

use std::collections::BTreeSet;

use anyhow::{anyhow, bail, ensure};
use rlf_dialogue::message::plain_text;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{Ended, ToolCall};
use rlf_environments::environments::Environments;
use rlf_environments::session::EnvironmentSession;
use rlf_plugins::turn::TurnContext;
use rlf_run::demonstrations::reference::{gold_answer, gold_calls};
use serde_json::Value;

use crate::arguments::Import;
use crate::operator::Operator;
use crate::plugins::sources;
use crate::progress::Progress;
use crate::warning::warn;

/// Maximum number of tasks named as solved by doing nothing.
const MAX_NAMED: usize = 10;
/// Maximum number of characters of a call's result that are printed.
const MAX_SHOWN: usize = 300;

/// Opens every task and plays its gold calls. Stores the first state in the task's reference, and the last one too if
/// the reference has none. Warns of each task whose gold calls cannot be made, or whose reference has another final
/// state. Returns the indices of these tasks, and lines that summarise all tasks.
pub(super) fn run(
    import: &Import,
    tasks: &mut [Task],
) -> anyhow::Result<(BTreeSet<usize>, Vec<String>)> {
    let operator = Operator::load(import.config.as_deref())?;
    let sources = sources(&import.plugins.plugins)?;
    let sandbox = sources.sandbox(&operator.sandbox)?;
    let registry = sources.load(&operator.grants_by_name, &sandbox, &Progress::new());
    let environments = Environments::new(&registry, &sandbox, &operator.environments);
    let runtime = crate::commands::runtime()?;
    // If there is no environment at all, the rows are not to blame.
    let mut named = tasks.iter().filter_map(|task| task.environment.as_deref());
    if let Some(first) = named.clone().next()
        && named.all(|name| environments.plugin(name).is_err())
    {
        if import.config.is_none() && registry.problem_of(first).is_none() {
            bail!(
                "there is no environment `{first}`; name the configuration that has the environment with --config"
            );
        }
        environments.plugin(first)?;
    }
    let (all, mut played) = (tasks.len(), 0);
    let (mut idle, mut despite) = (Vec::new(), Vec::new());
    let mut wrong = BTreeSet::new();
    for (index, task) in tasks.iter_mut().enumerate() {
        let Some(name) = task.environment.clone() else {
            if import.skip_bad {
                wrong.insert(index);
                continue;
            }
            bail!(
                "task {:?} lives in no environment, so its calls cannot be made; leave --replay out",
                task.id
            );
        };
        let problem = match gold_calls(&task.reference) {
            Ok(calls) => {
                played += usize::from(!calls.is_empty());
                let replayed = runtime.block_on(replay(&environments, &name, task, calls));
                if replayed.is_idle {
                    idle.push(task.id.clone());
                }
                if replayed.has_failed_call {
                    despite.push(task.id.clone());
                }
                replayed.problem
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem {
            warn(&format!("task {:?}: {problem}", task.id));
            wrong.insert(index);
        }
    }
    ensure!(
        environments.unserved() == 0,
        "the machine was too busy for some of the calls, so it is not known which rows are right; run the same command \
         again when less else runs"
    );
    let verdict = match wrong.len() {
        0 => "all are right".to_owned(),
        wrong => format!("{wrong} of all are wrong"),
    };
    let mut lines = vec![format!(
        "gold calls of {played} of {all} tasks were made; {verdict}"
    )];
    let findings = [
        (
            idle,
            "are solved where they begin, by doing nothing, for a reward that grades the state alone",
        ),
        (
            despite,
            "reach their goal although one of their gold calls fails",
        ),
    ];
    for (ids, finding) in findings {
        if !ids.is_empty() {
            let named = ids.iter().take(MAX_NAMED).map(String::as_str);
            let named: Vec<&str> = named
                .chain((ids.len() > MAX_NAMED).then_some(".."))
                .collect();
            lines.push(format!(
                "{} of all {finding}: {}",
                ids.len(),
                named.join(", ")
            ));
        }
    }
    Ok((wrong, lines))
}

/// The result of replaying a task's gold calls.
struct Replayed {
    /// The reason why the row cannot be right, if there is one.
    problem: Option<String>,
    /// True if the environment judges the first state to be a success.
    is_idle: bool,
    /// True if the row is right although one of its gold calls fails.
    has_failed_call: bool,
}

async fn replay(
    environments: &Environments,
    name: &str,
    task: &mut Task,
    calls: Vec<(String, Value)>,
) -> Replayed {
    let wrong = |problem| Replayed {
        problem: Some(problem),
        is_idle: false,
        has_failed_call: false,
    };
    let seed = Environments::seed(task);
    let mut session = match environments.open(name, "replay", &task.setup, seed).await {
        Ok(session) => session,
        Err(error) => return wrong(error.to_string()),
    };
    let initial = match state(&session).await {
        Ok(initial) => initial,
        Err(error) => return wrong(error.to_string()),
    };
    let begins = session.verify(None, &task.reference).await;
    let is_idle = begins.is_ok_and(|verdict| verdict.success);
    let (mut problem, mut has_failed_call) = (None, false);
    if !calls.is_empty() {
        match play(&mut session, task, initial, calls).await {
            Ok(has_failed) => has_failed_call = has_failed,
            Err(error) => problem = Some(error.to_string()),
        }
    }
    Replayed {
        problem,
        is_idle,
        has_failed_call,
    }
}

/// Makes the gold calls, gives the gold answer, and stores the first and the last state in the task's reference. Returns
/// whether a call failed, or the reason why the row cannot be right as an error.
async fn play(
    session: &mut EnvironmentSession,
    task: &mut Task,
    initial: Value,
    calls: Vec<(String, Value)>,
) -> anyhow::Result<bool> {
    let answer = gold_answer(&task.reference)?;
    let turns = calls.len();
    let failed = make_calls(session, task.tools.as_deref(), calls).await?;
    let end = state(session).await?;
    if let (Some(answer), false) = (&answer, session.is_terminated()) {
        session.say(answer, &turn(turns)).await?;
    }
    let verdict = session.verify(answer.as_deref(), &task.reference).await;
    let own = task.reference.get("state").cloned();
    let Some(reference) = task.reference.as_object_mut() else {
        bail!("its reference is no object");
    };
    reference.insert("initial".into(), initial);
    reference.entry("state").or_insert_with(|| end.clone());
    let has_failed = !failed.is_empty();
    match (verdict, own) {
        (Ok(verdict), _) if verdict.success => Ok(has_failed),
        (Ok(verdict), _) => {
            let what = format!(
                "its gold calls do not lead where its row says ({}); mend the one or the other",
                verdict.reason
            );
            bail!([vec![what], failed].concat().join("; "))
        }
        // The environment gives no verdict.
        (Err(_), Some(own)) if own != end => bail!(
            "its gold calls lead to another state than its row has, which is left as it is: mend the one or the other"
        ),
        (Err(_), Some(_)) => Ok(has_failed),
        (Err(_), None) if !has_failed => Ok(false),
        (Err(_), None) => bail!(failed.join("; ")),
    }
}

/// Makes calls in turn. `allowed` are the tools that the task allows. Returns a line about each call that ended as
/// `failed`. Any other end is an error, and so is a call that the tool does not take.
async fn make_calls(
    session: &mut EnvironmentSession,
    allowed: Option<&[String]>,
    calls: Vec<(String, Value)>,
) -> anyhow::Result<Vec<String>> {
    let mut failed = Vec::new();
    for (index, (tool, arguments)) in calls.into_iter().enumerate() {
        let number = index + 1;
        if allowed.is_some_and(|tools| !tools.contains(&tool)) {
            bail!("gold call {number} is to `{tool}`, which its `tools` do not allow");
        }
        if let Some(problem) = unknown_argument(session, &tool, &arguments) {
            bail!("gold call {number} to `{tool}` {problem}");
        }
        let call = ToolCall {
            call_id: format!("replay/{index}/0"),
            name: tool.clone(),
            arguments,
        };
        let outcome = session.call(call, &turn(index)).await;
        if outcome.ended == Ended::Ok {
            continue;
        }
        let text = outcome.observation.as_ref();
        let text = text.map_or_else(String::new, |text| plain_text(&text.content));
        let text: String = text.chars().take(MAX_SHOWN).collect();
        let ended = outcome.ended.as_str();
        let what = format!("gold call {number} to `{tool}` ended as {ended}: {text}");
        if outcome.ended != Ended::Failed {
            bail!(what);
        }
        failed.push(what);
    }
    Ok(failed)
}

fn turn(number: usize) -> TurnContext {
    TurnContext {
        trajectory_id: "replay".into(),
        turn: u32::try_from(number).unwrap_or(u32::MAX),
        seed: 0,
    }
}

/// The first argument of a call that the tool does not know. Most tools ignore such arguments.
fn unknown_argument(session: &EnvironmentSession, tool: &str, arguments: &Value) -> Option<String> {
    let schema = &session
        .tools()
        .find(|offered| offered.name == tool)?
        .input_schema;
    let known = schema["properties"].as_object()?;
    let takes_more = |key: &str| {
        schema
            .get(key)
            .is_some_and(|more| more != &Value::Bool(false))
    };
    if takes_more("additionalProperties") || takes_more("patternProperties") {
        return None;
    }
    let unknown = arguments
        .as_object()?
        .keys()
        .find(|name| !known.contains_key(*name))?;
    let known: Vec<&str> = known.keys().map(String::as_str).collect();
    Some(format!(
        "has an argument `{unknown}`, which the tool does not know; it takes {}",
        known.join(", ")
    ))
}

async fn state(session: &EnvironmentSession) -> anyhow::Result<Value> {
    let text = session.state().await?;
    rlf_json::from_str(&text)
        .map_err(|error| anyhow!("the environment's state is not JSON: {error}"))
}
