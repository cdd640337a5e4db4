//! One random walk from a start, and the checks along its way.

use std::collections::BTreeMap;

use jsonschema::Validator;
use rlf_dialogue::tool::{Ended, ToolDefinition};
use rlf_environments::environments::Environments;
use rlf_environments::error::OpenError;
use rlf_environments::session::EnvironmentSession;
use rlf_random::Key;
use rlf_specification::has_word;
use serde_json::{Map, Value, json};

use super::Start;
use super::arguments::{Known, boundary, erroneous, valid};
use super::play::{Played, call};
use super::report::{FindingKind, Findings, OperationReport};

/// Calls between two snapshots.
const SNAPSHOT_EVERY: usize = 20;
/// Maximum number of calls of a tool that break the environment. Each can take the whole time of a call.
const MAX_BREAKS: usize = 3;
/// Minimum length of the texts of the state that no description may contain, in characters.
const SHORTEST_SECRET: usize = 6;

/// A call of a walk, and how it ended.
struct Call {
    tool: String,
    arguments: Map<String, Value>,
    played: Played,
}

/// The calls of a walk so far, and what they have shown.
#[derive(Default)]
pub(super) struct Trail {
    known: Known,
    calls: Vec<Call>,
    /// Validators of results by tool.
    validators: BTreeMap<String, Validator>,
}

/// A walk that begins.
pub(super) struct Walk<'a> {
    pub(super) environments: &'a Environments,
    pub(super) name: &'a str,
    /// True if the environment is a specification, whose rules the player checks.
    pub(super) is_specification: bool,
    pub(super) start: &'a Start,
    pub(super) key: Key,
    pub(super) calls: usize,
    pub(super) findings: &'a mut Findings,
    pub(super) operations: &'a mut BTreeMap<String, OperationReport>,
    /// True for the first walk from its start: it also tries boundary and erroneous arguments.
    pub(super) is_first: bool,
    pub(super) trail: Trail,
}

impl Walk<'_> {
    /// Walks; returns the number of calls. None if the start does not load.
    pub(super) async fn run(mut self) -> Option<usize> {
        let place = self.start.name.clone();
        let opened = async {
            let session = self
                .open(&self.start.task)
                .await
                .map_err(|error| error.to_string())?;
            let state = session.state().await.map_err(|error| error.to_string())?;
            let json: Value = rlf_json::from_str(&state).map_err(|error| error.to_string())?;
            Ok::<_, String>((session, json))
        };
        let (mut session, state) = match opened.await {
            Ok(opened) => opened,
            Err(why) => {
                let mend = "correct the scenario, or what the environment requires of it";
                self.findings
                    .add(FindingKind::DoesNotLoad, &place, why, mend);
                return None;
            }
        };
        let tools: Vec<ToolDefinition> = session.tools().cloned().collect();
        self.trail.known.learn(&state);
        self.descriptions(&tools);
        for tool in &tools {
            let report = self.operations.entry(tool.name.clone()).or_default();
            report.name.clone_from(&tool.name);
            let properties = tool.input_schema["properties"].as_object();
            report.has_parameters = properties.is_some_and(|properties| !properties.is_empty());
            self.validator(tool);
        }
        for (tool, arguments, fits) in self.plan(&tools) {
            self.step(&mut session, tool, arguments, fits).await;
        }
        for number in 0..self.calls {
            if session.is_terminated() || session.lost().is_some() || tools.is_empty() {
                break;
            }
            let key = self.key.at(number as u64);
            let tool = self.choose(&tools, key);
            let arguments = valid(&tool.input_schema, &self.trail.known, key.at(1));
            self.step(&mut session, tool, arguments, true).await;
            if number % SNAPSHOT_EVERY == SNAPSHOT_EVERY - 1 {
                self.snapshot(&session).await;
            }
        }
        self.again().await;
        self.reload(&session).await;
        Some(self.trail.calls.len())
    }

    async fn open(&self, task: &Value) -> Result<EnvironmentSession, OpenError> {
        let Start { name, seed, .. } = self.start;
        self.environments.open(self.name, name, task, *seed).await
    }

    /// Boundary and erroneous calls of the first walk.
    fn plan<'t>(
        &self,
        tools: &'t [ToolDefinition],
    ) -> Vec<(&'t ToolDefinition, Map<String, Value>, bool)> {
        if !self.is_first {
            return Vec::new();
        }
        let known = &self.trail.known;
        let mut plan = Vec::new();
        for tool in tools {
            let key = self.key.named(&tool.name);
            for arguments in boundary(&tool.input_schema, known, key) {
                plan.push((tool, arguments, true));
            }
            for arguments in erroneous(&tool.input_schema, known, key) {
                plan.push((tool, arguments, false));
            }
        }
        plan
    }

    /// Chooses any tool, or half of the time one of those that succeeded least often. Tools that break often are left out.
    fn choose<'t>(&self, tools: &'t [ToolDefinition], key: Key) -> &'t ToolDefinition {
        let any = &tools[key.below(0, tools.len() as u64) as usize];
        if key.below(1, 2) == 0 && !self.breaks_often(any) {
            return any;
        }
        let succeeded = |tool: &&ToolDefinition| {
            self.operations
                .get(&tool.name)
                .map_or(0, |report| report.succeeded)
        };
        let tools = tools.iter().filter(|tool| !self.breaks_often(tool));
        tools.min_by_key(succeeded).unwrap_or(any)
    }

    fn breaks_often(&self, tool: &ToolDefinition) -> bool {
        self.findings.times(FindingKind::Breaks, &tool.name) >= MAX_BREAKS
    }

    async fn step(
        &mut self,
        session: &mut EnvironmentSession,
        tool: &ToolDefinition,
        arguments: Map<String, Value>,
        fits: bool,
    ) {
        if session.is_terminated() || session.lost().is_some() || self.breaks_often(tool) {
            return;
        }
        let before = session.state().await.ok();
        let number = self.trail.calls.len();
        let played = call(session, number, &tool.name, &arguments).await;
        let after = session.state().await.ok();
        let json = Value::Object(arguments.clone());
        let call_and_result = format!("{json}: {}", brief(&played.text));
        let report = self.operations.entry(tool.name.clone()).or_default();
        let refused = played.ended != Ended::Ok;
        if fits {
            report.calls += 1;
            report.succeeded += usize::from(!refused);
            report.refused += usize::from(refused);
            if refused {
                report.last_refusal = Some(call_and_result.clone());
            }
        } else {
            report.erroneous += 1;
        }
        let mut found = |kind: FindingKind, message: String, mend: &str| {
            self.findings.add(kind, &tool.name, message, mend);
        };
        if played.is_broken() {
            let ended = played.ended.as_str();
            let detail = brief(&played.detail);
            found(
                FindingKind::Breaks,
                format!("{json} ended as {ended}: {detail}"),
                "handle these arguments",
            );
        } else if self.is_specification && played.is_undone() {
            found(
                FindingKind::BreaksRule,
                call_and_result,
                "refuse the call before, with a message that says what to do",
            );
        } else if !fits && !refused {
            found(
                FindingKind::AcceptsErrors,
                format!("{json} does not fit the schema"),
                "refuse it",
            );
        }
        if refused && before != after {
            let message = format!("{json} was refused, and the state is another");
            found(
                FindingKind::RefusalChanges,
                message,
                "check first, then change",
            );
        }
        if !refused && before != after && tool.hints.read_only {
            found(
                FindingKind::ReadOnlyChanges,
                format!("{json} changed the state"),
                "do not call it read-only",
            );
        }
        if let (false, Some(result)) = (refused, &played.result) {
            let validator = self.trail.validators.get(&tool.name);
            let validator = validator.filter(|_| played.structured);
            if validator.is_some_and(|validator| !validator.is_valid(result)) {
                let message = format!("{json} returned {}", brief(&result.to_string()));
                found(
                    FindingKind::WrongResult,
                    message,
                    "return what the output schema says",
                );
            }
            self.trail.known.learn(result);
        }
        self.trail.calls.push(Call {
            tool: tool.name.clone(),
            arguments,
            played,
        });
    }

    /// Makes the validator of a tool's results.
    fn validator(&mut self, tool: &ToolDefinition) {
        let Some(schema) = &tool.output_schema else {
            return;
        };
        match jsonschema::validator_for(schema) {
            Ok(validator) => {
                let name = tool.name.clone();
                self.trail.validators.insert(name, validator);
            }
            Err(error) => self.findings.add(
                FindingKind::WrongResult,
                &tool.name,
                format!("its output schema is no JSON schema: {error}"),
                "correct the schema",
            ),
        }
    }

    /// Finds texts of the state that descriptions of tools and of their parameters contain.
    fn descriptions(&mut self, tools: &[ToolDefinition]) {
        for tool in tools {
            let schema = tool.input_schema.to_string();
            let mut descriptions = vec![tool.description.as_str()];
            described(&tool.input_schema, &mut descriptions);
            let says = |text: &&str| descriptions.iter().any(|one| has_word(one, text));
            let secrets = self.trail.known.identifying_texts(SHORTEST_SECRET);
            // Values of enumerations are in the schema because they must be.
            let leaked = secrets
                .filter(says)
                .find(|text| !schema.contains(&json!(text).to_string()));
            if let Some(leaked) = leaked {
                let message = format!(
                    "a description says `{leaked}`, which the state of {} says",
                    self.start.name
                );
                let mend = "describe the tool and its parameters without values of the state";
                self.findings
                    .add(FindingKind::LeakingDescription, &tool.name, message, mend);
            }
        }
    }

    /// Checks that a session restored from a snapshot has the same state.
    async fn snapshot(&mut self, session: &EnvironmentSession) {
        let kept = async {
            let state = session.state().await.map_err(|error| error.to_string())?;
            let snapshot = session
                .snapshot()
                .await
                .map_err(|error| error.to_string())?;
            let mut other = self
                .open(&self.start.task)
                .await
                .map_err(|error| error.to_string())?;
            other
                .restore(&snapshot)
                .await
                .map_err(|error| error.to_string())?;
            let restored = other.state().await.map_err(|error| error.to_string())?;
            if restored == state {
                Ok(())
            } else {
                Err("the restored session has another state".to_owned())
            }
        };
        if let Err(why) = kept.await {
            let mend = "keep everything that matters in the snapshot";
            self.findings
                .add(FindingKind::SnapshotDiffers, &self.start.name, why, mend);
        }
    }

    /// Checks that the same calls from the same seed give the same results.
    async fn again(&mut self) {
        let place = self.start.name.clone();
        let mend = "draw everything random from the seed, and use no time and no order of a set";
        let Ok(mut session) = self.open(&self.start.task).await else {
            let message = "it does not load a second time";
            return self
                .findings
                .add(FindingKind::NotRepeatable, &place, message, mend);
        };
        for (number, one) in self.trail.calls.iter().enumerate() {
            let Call {
                tool,
                arguments,
                played,
            } = one;
            if session.is_terminated() || session.lost().is_some() {
                return;
            }
            let again = call(&mut session, number, tool, arguments).await;
            let same = again.ended == played.ended
                && again.text == played.text
                && again.state == played.state;
            if !same {
                let arguments = Value::Object(arguments.clone());
                let message = format!(
                    "call {}, {tool} {arguments}, ended otherwise the second time",
                    number + 1
                );
                return self
                    .findings
                    .add(FindingKind::NotRepeatable, &place, message, mend);
            }
        }
    }

    /// Checks that the walk's last state, as the state of a task, loads unchanged.
    async fn reload(&mut self, session: &EnvironmentSession) {
        let is_a_server = self.start.task.get("servers").is_some();
        let Ok(state) = session.state().await else {
            return;
        };
        let Ok(json) = rlf_json::from_str::<Value>(&state) else {
            return;
        };
        if !is_a_server || session.lost().is_some() {
            return;
        }
        let saved = async {
            let other = self
                .open(&json!({ "servers": json }))
                .await
                .map_err(|error| error.to_string())?;
            let loaded = other.state().await.map_err(|error| error.to_string())?;
            if loaded == state {
                Ok(())
            } else {
                Err("the saved state loads as another".to_owned())
            }
        };
        if let Err(why) = saved.await {
            let mend = "load everything that is saved, and allow every state that operations reach";
            self.findings
                .add(FindingKind::DoesNotReload, &self.start.name, why, mend);
        }
    }
}

/// Collects the descriptions in a schema, at any depth.
fn described<'s>(schema: &'s Value, found: &mut Vec<&'s str>) {
    match schema {
        Value::Object(parts) => {
            found.extend(parts.get("description").and_then(Value::as_str));
            parts.values().for_each(|part| described(part, found));
        }
        Value::Array(parts) => parts.iter().for_each(|part| described(part, found)),
        _ => {}
    }
}

fn brief(text: &str) -> String {
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(200).collect();
    if characters.next().is_some() {
        start + ".."
    } else {
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptions_of_nested_parameters_are_found() {
        let schema = json!({
            "properties": {
                "description": {"type": "string", "description": "a"},
                "guests": {"type": "array", "items": {"$ref": "#/$defs/Guest"}},
            },
            "$defs": {"Guest": {"properties": {"name": {"anyOf": [{"description": "b"}]}}}},
        });
        let mut found = Vec::new();
        described(&schema, &mut found);
        found.sort_unstable();
        assert_eq!(found, ["a", "b"]);
    }
}
